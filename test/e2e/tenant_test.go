package e2e

import (
	"context"
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev2alpha1 "github.com/openmcp-project/openmcp-operator/api/core/v2alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// tenant is a control plane and the Velero on it.
type tenant struct {
	types.NamespacedName
	names plan.Names
}

func newTenant(t *testing.T, namespace, name string) tenant {
	t.Helper()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	names, err := plan.NamesOf(key)
	must(t, err)
	must(t, ensure(t.Context(), onboarding, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	return tenant{NamespacedName: key, names: names}
}

// orderControlPlane is all that a tenant does to get a control plane.
func (s tenant) orderControlPlane(t *testing.T) {
	t.Helper()
	controlPlane := &corev2alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	must(t, ensure(t.Context(), onboarding, controlPlane))
}

// orderVelero is all that a tenant does to get a Velero.
func (s tenant) orderVelero(t *testing.T, version string, plugins ...v1alpha1.Plugin) {
	t.Helper()
	must(t, onboarding.Create(t.Context(), &v1alpha1.Velero{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		Spec:       v1alpha1.VeleroSpec{Version: version, Plugins: plugins},
	}))
}

// change edits the Velero's spec.
func (s tenant) change(t *testing.T, edit func(*v1alpha1.VeleroSpec)) {
	t.Helper()
	eventually(t, soon, "change the Velero", func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		edit(&velero.Spec)
		return onboarding.Update(ctx, velero)
	})
}

func (s tenant) velero(ctx context.Context) (*v1alpha1.Velero, error) {
	velero := &v1alpha1.Velero{}
	return velero, onboarding.Get(ctx, s.NamespacedName, velero)
}

func (s tenant) awaitReady(t *testing.T) {
	t.Helper()
	defer s.describeFailed(t)
	eventually(t, installed, s.String()+" becomes Ready", func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		if velero.Status.Phase != string(v1alpha1.Ready) || velero.Status.ObservedGeneration != velero.Generation {
			return fmt.Errorf("status is %+v, generation %d", velero.Status, velero.Generation)
		}
		return hasCondition(velero, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})
}

func (s tenant) helmRelease(ctx context.Context, name string) (*helmv2.HelmRelease, error) {
	release := &helmv2.HelmRelease{}
	return release, platform.Get(ctx, types.NamespacedName{Namespace: s.names.TenantNamespace, Name: name}, release)
}

func (s tenant) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	return deployment, workload.Get(ctx, types.NamespacedName{Namespace: s.names.WorkloadNamespace, Name: "velero"}, deployment)
}

// running is the server's image, and those of its plugins by their order.
func (s tenant) running(ctx context.Context) ([]string, error) {
	deployment, err := s.deployment(ctx)
	if err != nil {
		return nil, err
	}
	images := []string{deployment.Spec.Template.Spec.Containers[0].Image}
	for _, container := range deployment.Spec.Template.Spec.InitContainers {
		images = append(images, container.Image)
	}
	return images, nil
}

// controlPlane connects to the tenant's API server.
func (s tenant) controlPlane(t *testing.T) client.Client {
	t.Helper()
	cluster, err := world.ControlPlane(t.Context(), s.Namespace, s.Name)
	must(t, err)
	connected, err := cluster.Client(v1alpha1.AddToScheme)
	must(t, err)
	return connected
}

// untouched is what must not change on the target while nothing that runs may be touched.
type untouched struct {
	Deployment, Server, ControlPlane int64
}

func (s tenant) generations(t *testing.T) untouched {
	t.Helper()
	deployment, err := s.deployment(t.Context())
	must(t, err)
	server, err := s.helmRelease(t.Context(), plan.ServerRelease)
	must(t, err)
	controlPlane, err := s.helmRelease(t.Context(), plan.ControlPlaneRelease)
	must(t, err)
	return untouched{Deployment: deployment.Generation, Server: server.Generation, ControlPlane: controlPlane.Generation}
}

func ensure(ctx context.Context, cluster client.Client, object client.Object) error {
	if err := cluster.Create(ctx, object); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// leave has the tenant's Velero and control plane go, so that its API server ends too. Nobody waits for it here: everybodyLeft does.
func (s tenant) leave(t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}
	// Not the test's own context, since some leave when it is over.
	ctx := context.WithoutCancel(t.Context())
	for _, object := range []client.Object{&v1alpha1.Velero{ObjectMeta: meta}, &corev2alpha1.ControlPlane{ObjectMeta: meta}} {
		must(t, client.IgnoreNotFound(onboarding.Delete(ctx, object)))
	}
}

// everybodyLeft waits until whoever leaves is gone.
func everybodyLeft(t *testing.T) {
	t.Helper()
	eventually(t, installed, "everybody who leaves is gone", func(ctx context.Context) error {
		var left []string
		for _, list := range []client.ObjectList{&v1alpha1.VeleroList{}, &corev2alpha1.ControlPlaneList{}} {
			if err := onboarding.List(ctx, list); err != nil {
				return err
			}
			if err := apimeta.EachListItem(list, func(object runtime.Object) error {
				if meta, err := apimeta.Accessor(object); err != nil || meta.GetDeletionTimestamp() == nil {
					return err
				}
				left = append(left, fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object.(client.Object))))
				return nil
			}); err != nil {
				return err
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
}

// awaitControlPlane waits until the control plane that was ordered answers.
func (s tenant) awaitControlPlane(t *testing.T) client.Client {
	t.Helper()
	var controlPlane client.Client
	eventually(t, installed, "the control plane is there", func(ctx context.Context) error {
		cluster, err := world.ControlPlane(ctx, s.Namespace, s.Name)
		if err != nil {
			return err
		}
		if err := cluster.Ready(ctx); err != nil {
			return err
		}
		controlPlane, err = cluster.Client(v1alpha1.AddToScheme)
		return err
	})
	return controlPlane
}
