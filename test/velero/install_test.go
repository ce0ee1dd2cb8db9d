package velero

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	corev2alpha1 "github.com/openmcp-project/openmcp-operator/api/core/v2alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// veleroNamespace is where Velero and its users meet on a control plane.
const veleroNamespace = "velero"

// tenant is the one whose control plane is backed up.
var tenant = types.NamespacedName{Namespace: "default", Name: "backed-up"}

// installation is what a tenant who has a control plane does to get a Velero, until it runs.
func installation() features.Feature {
	meta := metav1.ObjectMeta{Namespace: tenant.Namespace, Name: tenant.Name}
	return features.New("installation").
		Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			must(t, onboarding.Create(ctx, &corev2alpha1.ControlPlane{ObjectMeta: meta}))
			eventually(t, installed, "the control plane answers", controlPlaneAnswers)
			// Before Velero comes: it looks for new kinds every five minutes only, and leaves those out that it does not know.
			moveIn(t, controlPlane(t))
			must(t, onboarding.Create(ctx, &v1alpha1.Velero{ObjectMeta: meta, Spec: v1alpha1.VeleroSpec{
				Version: landscape.VeleroVersion, Plugins: []v1alpha1.Plugin{{Name: "aws", Version: landscape.AWSPluginVersion}},
			}}))
			return ctx
		}).
		Assess("the Velero becomes Ready", veleroIsReady).
		Assess("its server runs on a real node", serverRuns).
		Feature()
}

func veleroIsReady(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	velero := &v1alpha1.Velero{}
	eventually(t, installed, "the Velero is Ready", func(ctx context.Context) error {
		if err := onboarding.Get(ctx, tenant, velero); err != nil {
			return err
		}
		if velero.Status.Phase != string(v1alpha1.Ready) || velero.Status.ObservedGeneration != velero.Generation {
			return fmt.Errorf("status %+v", velero.Status)
		}
		return nil
	})
	return ctx
}

func serverRuns(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	names, err := plan.NamesOf(tenant)
	must(t, err)
	pods := &corev1.PodList{}
	must(t, workload.List(ctx, pods, client.InNamespace(names.WorkloadNamespace)))
	if len(pods.Items) != 1 {
		t.Fatalf("there are %d pods, want 1", len(pods.Items))
	}
	pod := pods.Items[0]
	if pod.Status.PodIP == "" || pod.Spec.NodeName != "workload-node" || !podReady(&pod) {
		t.Errorf("the pod on %s has the status %+v", pod.Spec.NodeName, pod.Status)
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.RestartCount > 0 {
			t.Errorf("container %s was restarted %d times", status.Name, status.RestartCount)
		}
	}
	return ctx
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func controlPlaneAnswers(ctx context.Context) error {
	cluster, err := world.ControlPlane(ctx, tenant.Namespace, tenant.Name)
	if err != nil {
		return err
	}
	return cluster.Ready(ctx)
}

// controlPlane connects to the tenant's API server.
func controlPlane(t *testing.T) client.Client {
	t.Helper()
	cluster, err := world.ControlPlane(t.Context(), tenant.Namespace, tenant.Name)
	must(t, err)
	connected, err := connect(cluster)
	must(t, err)
	return connected
}
