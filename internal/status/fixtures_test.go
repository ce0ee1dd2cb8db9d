package status

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

var (
	earlier = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	later   = metav1.NewTime(earlier.Add(time.Hour))
)

var chartDigest = "sha256:" + strings.Repeat("a", 64)

// fixture is a component that runs as wanted; tests change what they are about.
func fixture(t testing.TB, name, version string) Release {
	t.Helper()
	target, err := fluxgen.NewTarget("access", "kubeconfig", "velero")
	if err != nil {
		t.Fatal(err)
	}
	wanted := &fluxgen.Release{
		Name: name, Namespace: "mcp--tenant", Target: target, Interval: time.Minute, Timeout: time.Minute,
		Chart:  fluxgen.Chart{Repository: "oci://registry.internal/charts", Name: name, Version: version},
		Values: map[string]any{"image": "velero/velero:v1.17.1", "inline": map[string]any{"replicas": 1, "plugins": []string{"aws"}}},
	}
	source, release, err := fluxgen.Render(*wanted)
	if err != nil {
		t.Fatal(err)
	}
	source.Generation, source.Status = 1, sourceStatus(version)
	release.Generation, release.Status = 3, releaseStatus(3, name, version)
	return Release{Wanted: wanted, HelmRelease: release, Source: source}
}

func sourceStatus(version string) sourcev1.OCIRepositoryStatus {
	return sourcev1.OCIRepositoryStatus{
		ObservedGeneration: 1,
		Artifact:           &fluxmeta.Artifact{Revision: version + "@" + chartDigest},
		Conditions:         []metav1.Condition{condition(fluxmeta.ReadyCondition, metav1.ConditionTrue, "Succeeded", "stored artifact", 1)},
	}
}

func releaseStatus(generation int64, name, version string) helmv2.HelmReleaseStatus {
	message := "Helm install succeeded for release velero/" + name + ".v1 with chart " + name + "@" + version
	return helmv2.HelmReleaseStatus{
		ObservedGeneration:        generation,
		LastAttemptedConfigDigest: "sha256:config",
		History:                   helmv2.Snapshots{snapshot(1, name, version, "deployed")},
		Conditions: []metav1.Condition{
			condition(fluxmeta.ReadyCondition, metav1.ConditionTrue, helmv2.InstallSucceededReason, message, generation),
			condition(helmv2.ReleasedCondition, metav1.ConditionTrue, helmv2.InstallSucceededReason, message, generation),
		},
	}
}

func snapshot(revision int, name, version, status string) *helmv2.Snapshot {
	return &helmv2.Snapshot{
		Version: revision, ChartName: name, ChartVersion: version + "+aaaaaaaaaaaa", Status: status,
		ConfigDigest: "sha256:config", OCIDigest: chartDigest,
	}
}

func condition(conditionType string, status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: earlier}
}

// set replaces one condition of a Flux object.
func set(conditions *[]metav1.Condition, replacement metav1.Condition) {
	for i := range *conditions {
		if (*conditions)[i].Type == replacement.Type {
			(*conditions)[i] = replacement
			return
		}
	}
	*conditions = append(*conditions, replacement)
}

// healthy is a Velero that runs as wanted.
func healthy(t testing.TB) (*v1alpha1.Velero, Observation) {
	t.Helper()
	observed := Observation{
		Access:       Access{Granted: true},
		ControlPlane: fixture(t, plan.ControlPlaneRelease, "0.1.0"),
		Server:       fixture(t, plan.ServerRelease, "0.1.0"),
	}
	velero := &v1alpha1.Velero{
		ObjectMeta: metav1.ObjectMeta{Name: "test-mcp", Namespace: "default", Generation: 2},
		Spec:       v1alpha1.VeleroSpec{Version: "v1.17.1"},
	}
	return velero, observed
}

// stored is a Velero whose status was computed before.
func stored(t testing.TB) (*v1alpha1.Velero, Observation) {
	t.Helper()
	velero, observed := healthy(t)
	velero.Status = Compute(velero, observed, earlier)
	return velero, observed
}

func find(status commonapi.Status, conditionType string) metav1.Condition {
	for _, condition := range status.Conditions {
		if condition.Type == conditionType {
			return condition
		}
	}
	return metav1.Condition{}
}

// outcome is what a table says about a condition and the phase.
type outcome struct {
	status metav1.ConditionStatus
	reason string
	phase  v1alpha1.InstancePhase
	// says are words that the message must have.
	says []string
}

func (o outcome) check(t *testing.T, got v1alpha1.VeleroStatus, conditionType string) {
	t.Helper()
	condition := find(got.Status, conditionType)
	if condition.Status != o.status || condition.Reason != o.reason || got.Phase != string(o.phase) {
		t.Errorf("%s is %s/%s, phase %s; want %s/%s, phase %s\nmessage: %s", conditionType, condition.Status, condition.Reason, got.Phase, o.status, o.reason, o.phase, condition.Message)
	}
	for _, word := range o.says {
		if !strings.Contains(condition.Message, word) {
			t.Errorf("message %q does not say %q", condition.Message, word)
		}
	}
}
