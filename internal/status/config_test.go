package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func config() *v1alpha1.ProviderConfig {
	return &v1alpha1.ProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 4},
		Spec: v1alpha1.ProviderConfigSpec{AvailableImages: []v1alpha1.AvailableImage{
			{Name: "velero", Versions: []string{"v1.17.1", "v1.16.0"}, Image: "velero/velero"},
			{Name: "aws", Versions: []string{"v1.13.0"}, Image: "velero/velero-plugin-for-aws"},
		}},
	}
}

func TestConfigStatus(t *testing.T) {
	config := config()
	config.Status = ComputeConfig(config, 3, nil, earlier)
	offered := []v1alpha1.OfferedComponent{{Name: "velero", Versions: []string{"v1.17.1", "v1.16.0"}}, {Name: "aws", Versions: []string{"v1.13.0"}}}
	if diff := cmp.Diff(offered, config.Status.Offered); diff != "" {
		t.Error(diff)
	}
	if config.Status.Veleros != 3 || config.Status.Phase != "Ready" || config.Status.ObservedGeneration != 4 {
		t.Errorf("%+v", config.Status)
	}
	want := []metav1.Condition{condition("Ready", "True", "Valid", "the configuration can be used", 4)}
	if diff := cmp.Diff(want, config.Status.Conditions); diff != "" {
		t.Error(diff)
	}
	if again := ComputeConfig(config, 3, nil, later); ConfigChanged(config.Status, again) {
		t.Errorf("nothing happened: %s", cmp.Diff(config.Status, again))
	}
	if again := ComputeConfig(config, 4, nil, later); !ConfigChanged(config.Status, again) {
		t.Error("another Velero is no change")
	}
}

func TestConfigWithAProblem(t *testing.T) {
	config := config()
	config.Status = ComputeConfig(config, 0, nil, earlier)
	problem := &plan.Blocked{Reason: v1alpha1.ReasonSecretNotFound, Message: "Secret \"privateregcred\" does not exist"}
	got := ComputeConfig(config, 0, problem, later)
	ready := find(got.Status, "Ready")
	if ready.Status != "False" || ready.Reason != problem.Reason || ready.Message != problem.Message || !ready.LastTransitionTime.Equal(&later) || got.Phase != "Failed" {
		t.Errorf("%+v, phase %s", ready, got.Phase)
	}
	if find(config.Status.Status, "Ready").Status != "True" {
		t.Error("the input was changed")
	}
	config.DeletionTimestamp = &later
	if got := ComputeConfig(config, 0, problem, later); got.Phase != "Terminating" {
		t.Errorf("phase %s", got.Phase)
	}
}
