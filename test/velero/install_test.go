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

// tenant is a control plane and the Velero on it.
type tenant struct{ types.NamespacedName }

func tenantNamed(name string) tenant {
	return tenant{types.NamespacedName{Namespace: "default", Name: name}}
}

// installation is what a tenant who has a control plane does to get a Velero, until it runs.
func installation(who tenant, version string) features.Feature {
	return features.New("installation of "+version).
		Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			meta := metav1.ObjectMeta{Namespace: who.Namespace, Name: who.Name}
			must(t, onboarding.Create(ctx, &corev2alpha1.ControlPlane{ObjectMeta: meta}))
			eventually(t, installed, "the control plane answers", who.answers)
			// Before Velero comes: it looks for new kinds every five minutes only, and leaves those out that it does not know.
			moveIn(t, who.controlPlane(t))
			must(t, onboarding.Create(ctx, &v1alpha1.Velero{ObjectMeta: meta, Spec: v1alpha1.VeleroSpec{
				Version: version, Plugins: []v1alpha1.Plugin{{Name: "aws", Version: landscape.AWSPluginVersion}},
			}}))
			return ctx
		}).
		Assess("the Velero becomes Ready", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			who.awaitReady(t)
			return ctx
		}).
		Assess("its server runs on a real node", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			who.assertServerRuns(t, version)
			return ctx
		}).
		Feature()
}

func (w tenant) awaitReady(t *testing.T) {
	t.Helper()
	velero := &v1alpha1.Velero{}
	eventually(t, installed, "the Velero is Ready", func(ctx context.Context) error {
		if err := onboarding.Get(ctx, w.NamespacedName, velero); err != nil {
			return err
		}
		if velero.Status.Phase != string(v1alpha1.Ready) || velero.Status.ObservedGeneration != velero.Generation {
			return fmt.Errorf("status %+v", velero.Status)
		}
		return nil
	})
}

// assertServerRuns looks at the pod of the server itself.
func (w tenant) assertServerRuns(t *testing.T, version string) {
	t.Helper()
	names, err := plan.NamesOf(w.NamespacedName)
	must(t, err)
	pods := &corev1.PodList{}
	must(t, workload.List(t.Context(), pods, client.InNamespace(names.WorkloadNamespace)))
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
	if image := pod.Spec.Containers[0].Image; image != world.ImageAt(landscape.VeleroImage+":"+version) {
		t.Errorf("it runs %s", image)
	}
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (w tenant) answers(ctx context.Context) error {
	cluster, err := world.ControlPlane(ctx, w.Namespace, w.Name)
	if err != nil {
		return err
	}
	return cluster.Ready(ctx)
}

// controlPlane connects to the tenant's API server.
func (w tenant) controlPlane(t *testing.T) client.Client {
	t.Helper()
	cluster, err := world.ControlPlane(t.Context(), w.Namespace, w.Name)
	must(t, err)
	connected, err := cluster.Client(v1alpha1.AddToScheme)
	must(t, err)
	return connected
}
