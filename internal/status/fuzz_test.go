package status

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// dice takes choices from fuzz data.
type dice []byte

func (d *dice) roll(sides int) int {
	if len(*d) == 0 {
		return 0
	}
	rolled := int((*d)[0]) % sides
	*d = (*d)[1:]
	return rolled
}

func (d *dice) condition(types, reasons []string, message string) metav1.Condition {
	statuses := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown, "Odd"}
	return condition(types[d.roll(len(types))], statuses[d.roll(len(statuses))], reasons[d.roll(len(reasons))], message, int64(d.roll(4)))
}

var (
	helmTypes   = []string{fluxmeta.ReadyCondition, helmv2.ReleasedCondition, fluxmeta.ReconcilingCondition, fluxmeta.StalledCondition, helmv2.DriftedCondition, helmv2.RemediatedCondition}
	sourceTypes = []string{fluxmeta.ReadyCondition, sourcev1.FetchFailedCondition, sourcev1.SourceVerifiedCondition, sourcev1.StorageOperationFailedCondition, fluxmeta.StalledCondition}
)

// scramble makes a release what the dice say.
func (d *dice) scramble(release *Release, message, id string) {
	hr, source := release.HelmRelease, release.Source
	hr.Generation, hr.Status.ObservedGeneration = int64(d.roll(4)), int64(d.roll(4)-1)
	hr.Status.Conditions, hr.Status.History = nil, nil
	hr.Spec.Suspend = d.roll(8) == 7
	for range d.roll(6) {
		set(&hr.Status.Conditions, d.condition(helmTypes, helmReasons[:len(helmReasons)-1], message))
	}
	for range d.roll(4) {
		hr.Status.History = append(hr.Status.History, snapshot(d.roll(4), hr.Name, []string{"0.1.0", "0.0.9", "none of a version"}[d.roll(3)], []string{"deployed", "failed", "superseded"}[d.roll(3)]))
	}
	if d.roll(8) == 7 {
		hr.Status.History = append(hr.Status.History, nil)
	}
	hr.Status.Inventory = inventory(id, "ns_name_apps_Deployment", id)
	source.Status.Conditions = nil
	for range d.roll(4) {
		set(&source.Status.Conditions, d.condition(sourceTypes, []string{"OCIArtifactPullFailed", "VerificationError"}, message))
	}
	if d.roll(2) == 1 {
		source.Status.Artifact = nil
	}
	switch d.roll(6) {
	case 3:
		release.Source = nil
	case 4:
		release.HelmRelease = nil
	case 5:
		release.Wanted, release.Source = nil, nil
	}
}

// scrambleRest is what is decided without Flux.
func (d *dice) scrambleRest(observed *Observation) {
	observed.Queued = d.roll(4) == 3
	if d.roll(4) == 3 {
		observed.Blocked = &plan.Blocked{Reason: v1alpha1.ReasonVersionNotOffered, Message: "version v9 is not offered"}
	}
	switch d.roll(4) {
	case 2:
		observed.Access = Access{Reason: v1alpha1.ReasonAccessDenied, Message: "the platform denied access", Failed: true}
	case 3:
		observed.Access = Access{Reason: v1alpha1.ReasonWaitingForControlPlane, Message: "waiting for the platform"}
	}
	switch d.roll(4) {
	case 1:
		observed.Hold = Gate(nil, []string{"backup daily-1"}, false, later.Time)
	case 2:
		observed.Hold = Gate(nil, nil, true, later.Time)
	case 3:
		observed.Diagnosis = unpulled()
	}
}

// FuzzCompute: whatever Flux reports, the status is within the API's limits, quotes nothing of Flux's texts, and stays as it is.
func FuzzCompute(f *testing.F) {
	for i, message := range nasty {
		f.Add([]byte{1, 1, 0, 2, 0, 1, byte(i), 1, 1, 1, byte(i), 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1}, message, "velero_a__b_rbac.authorization.k8s.io_Role")
		f.Add([]byte(strings.Repeat(string(rune('a'+i)), 60)), message, "_____")
	}
	f.Fuzz(func(t *testing.T, data []byte, message, id string) {
		velero, observed := stored(t)
		dice := dice(data)
		dice.scramble(&observed.ControlPlane, message, id)
		dice.scramble(&observed.Server, message, id)
		dice.scrambleRest(&observed)
		if dice.roll(8) == 7 {
			observed.Removal = &Removal{Reason: removalSteps[dice.roll(len(removalSteps))], Message: "removing"}
		}
		velero.Status = Compute(velero, observed, later)
		withinLimits(t, velero.Status)
		quotesNothing(t, velero.Status.Conditions, message)
		if again := Compute(velero, observed, metav1.NewTime(later.Add(1))); Changed(velero.Status, again) {
			t.Errorf("the same observation gives another status:\n%+v\n%+v", velero.Status, again)
		}
		if Installed(observed.Server) && observed.Server.HelmRelease.Status.ObservedGeneration != observed.Server.HelmRelease.Generation {
			t.Error("installed in a generation that Flux has not seen")
		}
	})
}

func withinLimits(t *testing.T, got v1alpha1.VeleroStatus) {
	t.Helper()
	if len(got.Resources) > maxResources {
		t.Errorf("%d resources", len(got.Resources))
	}
	for _, resource := range got.Resources {
		if len(resource.Message) > maxMessage || resource.Phase == "" || resource.Location == "" || resource.Kind == "" || resource.Name == "" {
			t.Errorf("%+v", resource)
		}
	}
	if !slices.IsSortedFunc(got.Conditions, func(a, b metav1.Condition) int {
		return slices.Index(conditionOrder, a.Type) - slices.Index(conditionOrder, b.Type)
	}) {
		t.Errorf("order of the conditions: %+v", got.Conditions)
	}
}

// quotesNothing: no part of Flux's text that is longer than 20 bytes.
func quotesNothing(t *testing.T, conditions []metav1.Condition, text string) {
	t.Helper()
	all, err := json.Marshal(conditions)
	if err != nil {
		t.Fatal(err)
	}
	for start := 0; start+21 <= len(text); start++ {
		if strings.Contains(string(all), text[start:start+21]) {
			t.Fatalf("%q is quoted in %s", text[start:start+21], all)
		}
	}
}
