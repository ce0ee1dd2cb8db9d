package e2e

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// changeDuringBackup plays a server that is at work: on simulated nodes nobody is.
func changeDuringBackup(t *testing.T, tenant tenant) {
	t.Run("upgrade: a backup is in progress | WaitingForBackup with its name, the server is left alone, and it runs when the backup is done", func(t *testing.T) {
		controlPlane := tenant.controlPlane(t)
		backup := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}, "status": map[string]any{"phase": "InProgress"}}}
		backup.SetGroupVersionKind(schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Backup"})
		backup.SetNamespace(tenant.names.ControlPlaneNamespace)
		backup.SetName("daily-1")
		must(t, controlPlane.Create(t.Context(), backup))
		pod := tenant.podState(t)
		before, err := tenant.helmRelease(t.Context(), plan.ServerRelease)
		must(t, err)
		tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = oldVersion })
		for _, conditionType := range []string{v1alpha1.ConditionServerInstalled, v1alpha1.ConditionReady} {
			tenant.awaitCondition(t, conditionType, metav1.ConditionFalse, v1alpha1.ReasonWaitingForBackup, "version "+oldVersion, "backup daily-1 is done", "at the latest at")
		}
		tenant.assertNotRestarted(t, pod)
		after, err := tenant.helmRelease(t.Context(), plan.ServerRelease)
		must(t, err)
		if before.Generation != after.Generation {
			t.Error("the server's HelmRelease was changed")
		}
		must(t, controlPlane.Patch(t.Context(), backup, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Completed"}}`))))
		tenant.awaitRunning(t, oldVersion)
		must(t, controlPlane.Delete(t.Context(), backup))
	})
}

// failPull plays a kubelet that cannot pull an image.
func (s tenant) failPull(t *testing.T, container string) {
	t.Helper()
	eventually(t, retried, "the image is not pulled", func(ctx context.Context) error {
		pods, err := s.pods(ctx)
		if err != nil {
			return err
		}
		if len(pods) != 1 {
			return errors.New("there is not one pod")
		}
		before := pods[0].DeepCopy()
		pods[0].Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name:  container,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image https://registry.internal"}},
		}}
		return workload.Status().Patch(ctx, &pods[0], client.MergeFrom(before))
	})
}
