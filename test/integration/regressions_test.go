package integration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// TestWhatAPersonMustMendIsNotRetried: the watches tell when it is mended.
func TestWhatAPersonMustMendIsNotRetried(t *testing.T) {
	life := newLife(t, "not-retried", &line{})
	velero := &v1alpha1.Velero{}
	must(t, life.stage.Get(t.Context(), life.velero, velero))
	merge(t, life.stage, velero, `{"spec":{"version":"v9.9.9"}}`)
	for look := range 5 {
		before := len(life.calls)
		result, err := life.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: life.velero})
		if err != nil || result.RequeueAfter < 20*time.Minute {
			t.Errorf("look %d: again after %s, error %v", look, result.RequeueAfter, err)
		}
		for _, call := range life.calls[before:] {
			if call.write && look > 0 {
				t.Errorf("look %d: %s", look, call.name())
			}
		}
		life.stage.play(t, life.names)
	}
	must(t, life.stage.Get(t.Context(), life.velero, velero))
	if velero.Status.Phase != string(v1alpha1.Failed) {
		t.Errorf("status is %+v", velero.Status)
	}
}

// TestMetadataOfUsersLeadsNowhere: whatever users write at their Velero, it is installed where it would be without, and its end leaves others
// alone.
func TestMetadataOfUsersLeadsNowhere(t *testing.T) {
	neighbour := newLife(t, "neighbour", &line{})
	ready := func(velero *v1alpha1.Velero) bool { return velero.Status.Phase == string(v1alpha1.Ready) }
	neighbour.until(t, "Ready", ready)
	intruder := newLife(t, "intruder", &line{})
	velero := &v1alpha1.Velero{}
	must(t, intruder.stage.Get(t.Context(), intruder.velero, velero))
	before := velero.DeepCopy()
	velero.Labels = neighbour.names.Labels()
	velero.Labels["velero.services.openmcp.cloud/instance-id"] = neighbour.names.Instance
	velero.Annotations = neighbour.names.Labels()
	must(t, intruder.stage.Patch(t.Context(), velero, client.MergeFrom(before)))
	height := intruder.run(t)
	must(t, neighbour.stage.Get(t.Context(), neighbour.velero, velero))
	if diff := cmp.Diff(velero.Status, height, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
		t.Errorf("the status of who has no such metadata differs (-without +with):\n%s", diff)
	}
	shown := len(neighbour.calls)
	neighbour.until(t, "Ready", ready)
	for _, call := range neighbour.calls[shown:] {
		if call.write {
			t.Errorf("the neighbour lost something: %s", call.name())
		}
	}
}
