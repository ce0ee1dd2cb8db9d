package status

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func TestReadyWhenAllIsAsWanted(t *testing.T) {
	velero, observed := healthy(t)
	got := Compute(velero, observed, earlier)
	want := []metav1.Condition{
		condition("Ready", "True", "Ready", "Velero v1.17.1 is installed", 2),
		condition("ConfigurationValid", "True", "Valid", "the configuration can be used", 2),
		condition("AccessGranted", "True", "Granted", "the control plane and the cluster that the server runs on can be accessed", 2),
		condition("ControlPlaneInstalled", "True", "Installed", "the Velero API is installed (chart version 0.1.0)", 2),
		condition("ServerInstalled", "True", "Installed", "the Velero server is installed (chart version 0.1.0)", 2),
	}
	if diff := cmp.Diff(want, got.Conditions); diff != "" {
		t.Error(diff)
	}
	if got.Phase != string(v1alpha1.Ready) || got.ObservedGeneration != 2 {
		t.Errorf("phase %s, observed generation %d", got.Phase, got.ObservedGeneration)
	}
}

// TestStages goes from nothing to Ready.
func TestStages(t *testing.T) {
	nothing := func(o *Observation) { o.ControlPlane, o.Server = Release{}, Release{} }
	tests := map[string]struct {
		change                              func(*Observation)
		phase                               v1alpha1.InstancePhase
		ready, access, controlPlane, server string
	}{
		"WaitingForAccess": {func(o *Observation) { nothing(o); o.Access = Access{Reason: "WaitingForWorkloadCluster", Message: "m"} }, v1alpha1.Progressing, "WaitingForWorkloadCluster", "WaitingForWorkloadCluster", "WaitingForAccess", "WaitingForAccess"},
		"NoControlPlane": {func(o *Observation) {
			nothing(o)
			o.Access = Access{Reason: "ControlPlaneNotFound", Message: "m"}
		}, v1alpha1.Pending, "ControlPlaneNotFound", "ControlPlaneNotFound", "WaitingForAccess", "WaitingForAccess"},
		"Blocked": {func(o *Observation) { nothing(o); o.Blocked = &plan.Blocked{Reason: "VersionNotOffered", Message: "m"} }, v1alpha1.Failed, "VersionNotOffered", "Granted", "WaitingForConfiguration", "WaitingForConfiguration"},
		"FetchingCharts": {func(o *Observation) {
			o.ControlPlane.HelmRelease, o.Server.HelmRelease, o.ControlPlane.Source, o.Server.Source = nil, nil, nil, nil
		}, v1alpha1.Progressing, "FetchingChart", "Granted", "FetchingChart", "WaitingForCRDs"},
		"InstallingCRDs":     {func(o *Observation) { o.ControlPlane.HelmRelease, o.Server.HelmRelease = nil, nil }, v1alpha1.Progressing, "Installing", "Granted", "Installing", "WaitingForCRDs"},
		"InstallingServer":   {func(o *Observation) { o.Server.HelmRelease = nil }, v1alpha1.Progressing, "Installing", "Granted", "Installed", "Installing"},
		"CRDsNotReadyAgain":  {func(o *Observation) { o.ControlPlane.HelmRelease.Generation++ }, v1alpha1.Progressing, "Installing", "Granted", "Installing", "Installed"},
		"Ready":              {func(*Observation) {}, v1alpha1.Ready, "Ready", "Granted", "Installed", "Installed"},
		"BlockedWhileItRuns": {func(o *Observation) { unwanted(o); o.Blocked = &plan.Blocked{Reason: "PluginNotOffered", Message: "m"} }, v1alpha1.Failed, "PluginNotOffered", "Granted", "Installed", "Installed"},
		"AccessLost":         {func(o *Observation) { unwanted(o); o.Access = Access{Reason: "WaitingForControlPlane", Message: "m"} }, v1alpha1.Progressing, "WaitingForControlPlane", "WaitingForControlPlane", "Installed", "Installed"},
		"ConflictWhileItRuns": {func(o *Observation) {
			o.Blocked = &plan.Blocked{Reason: "NameConflict", Message: "m"}
			o.Server.Wanted.Chart.Version = "0.2.0"
		}, v1alpha1.Failed, "NameConflict", "Granted", "Installed", "Installed"},
		"ConflictAtTheFirst": {func(o *Observation) {
			o.Blocked = &plan.Blocked{Reason: "NameConflict", Message: "m"}
			o.Server.HelmRelease = nil
		}, v1alpha1.Failed, "NameConflict", "Granted", "Installed", "WaitingForConfiguration"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			velero, observed := healthy(t)
			test.change(&observed)
			got := Compute(velero, observed, earlier)
			reasons := []string{got.Phase}
			for _, condition := range got.Conditions {
				reasons = append(reasons, condition.Reason)
				if condition.ObservedGeneration != velero.Generation || condition.Message == "" {
					t.Errorf("%s has generation %d and message %q", condition.Type, condition.ObservedGeneration, condition.Message)
				}
			}
			reasons = slices.Delete(reasons, 2, 3) // ConfigurationValid
			want := []string{string(test.phase), test.ready, test.access, test.controlPlane, test.server}
			if diff := cmp.Diff(want, reasons); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// unwanted is how a release is observed while it is not known what is wanted.
func unwanted(observed *Observation) {
	for _, release := range []*Release{&observed.ControlPlane, &observed.Server} {
		release.Wanted, release.Source = nil, nil
	}
}

// TestReadyNamesTheFirstObstacle: a condition that is False outweighs one that is Unknown, but the first says why.
func TestReadyNamesTheFirstObstacle(t *testing.T) {
	gone := ready(metav1.ConditionFalse, stateError, "dial tcp: i/o timeout")
	velero, observed := stored(t)
	gone(observed.ControlPlane.HelmRelease)
	unseen("the control plane").check(t, Compute(velero, observed, later), v1alpha1.ConditionReady)
	attempt("UpgradeFailed", "timeout waiting for: x")(observed.Server.HelmRelease)
	progressing(v1alpha1.ReasonTargetUnreachable, "the control plane").check(t, Compute(velero, observed, later), v1alpha1.ConditionReady)
}

func TestInputsAreLeftAlone(t *testing.T) {
	velero, observed := stored(t)
	observed.Server.HelmRelease.Status.History = append(observed.Server.HelmRelease.Status.History, snapshot(2, "velero-server", "0.1.0", "failed"))
	attempt("UpgradeFailed", "x")(observed.Server.HelmRelease)
	before, seen := velero.DeepCopy(), observed.Server.HelmRelease.DeepCopy()
	Compute(velero, observed, later)
	observed.Removal = &Removal{Reason: v1alpha1.ReasonReleasingAccess, Message: "m"}
	Compute(velero, observed, later)
	if diff := cmp.Diff(before, velero) + cmp.Diff(seen, observed.Server.HelmRelease); diff != "" {
		t.Error(diff)
	}
}

// TestTransitionTime moves only with the status of a condition, and not with its reason, its message or the generation.
func TestTransitionTime(t *testing.T) {
	velero, observed := stored(t)
	velero.Generation++
	velero.Spec.Version = "v1.18.0"
	for conditionType, condition := range transitionTimes(Compute(velero, observed, later)) {
		if !condition.Equal(&earlier) {
			t.Errorf("%s: nothing happened at %s", conditionType, condition)
		}
	}
	observed.Server.HelmRelease.Generation++
	got := Compute(velero, observed, later)
	velero.Status = got
	attempt("UpgradeFailed", "timeout waiting for: x")(observed.Server.HelmRelease)
	observed.Server.HelmRelease.Status.ObservedGeneration++
	again := Compute(velero, observed, metav1.NewTime(later.Add(1)))
	if diff := cmp.Diff(transitionTimes(got), transitionTimes(again)); diff != "" {
		t.Errorf("another reason is no transition: %s", diff)
	}
	for conditionType, want := range map[string]metav1.Time{"Ready": later, "ServerInstalled": later, "ControlPlaneInstalled": earlier, "AccessGranted": earlier} {
		if got := transitionTimes(got)[conditionType]; !got.Equal(&want) {
			t.Errorf("%s: %s, want %s", conditionType, got, want)
		}
	}
}

func transitionTimes(status v1alpha1.VeleroStatus) map[string]metav1.Time {
	times := map[string]metav1.Time{}
	for _, condition := range status.Conditions {
		times[condition.Type] = condition.LastTransitionTime
	}
	return times
}

// TestForeignConditionsAndOrder: conditions of other types stay, behind ours, whatever the stored order is.
func TestForeignConditionsAndOrder(t *testing.T) {
	velero, observed := stored(t)
	foreign := condition("ServerResponding", "Unknown", "NotAsked", "m", 1)
	velero.Status.Conditions = append([]metav1.Condition{foreign}, velero.Status.Conditions...)
	slices.Reverse(velero.Status.Conditions[2:])
	got := Compute(velero, observed, later)
	var types []string
	for _, condition := range got.Conditions {
		types = append(types, condition.Type)
	}
	want := append(slices.Clone(conditionOrder), "ServerResponding")
	if diff := cmp.Diff(want, types) + cmp.Diff(foreign, find(got.Status, "ServerResponding")); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	velero, observed := healthy(t)
	observed.Blocked = &plan.Blocked{Reason: "VersionNotOffered", Message: strings.Repeat("ä", 3000) + "\xff"}
	got := find(Compute(velero, observed, earlier).Status, "ConfigurationValid").Message
	if len(got) > 1024 || len(got) < 1000 || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes: …%s", len(got), got[len(got)-10:])
	}
}

// TestQueued: what waits for its turn is told so, and is otherwise as it was.
func TestQueued(t *testing.T) {
	velero, observed := stored(t)
	before := Compute(velero, observed, later)
	observed.Queued = true
	got := Compute(velero, observed, later)
	if want := find(before.Status, v1alpha1.ConditionReady).Message + "; a change by the platform operator waits for its turn"; find(got.Status, v1alpha1.ConditionReady).Message != want {
		t.Errorf("it says %q, want %q", find(got.Status, v1alpha1.ConditionReady).Message, want)
	}
	got.Conditions[0].Message = before.Conditions[0].Message
	if diff := cmp.Diff(before, got); diff != "" {
		t.Errorf("more is changed (-before +after):\n%s", diff)
	}
}
