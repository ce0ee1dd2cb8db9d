package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func (s tenant) deletionWithoutCRDs(t *testing.T) {
	controlPlane := s.controlPlane(t)
	for _, name := range veleroCRDs(t, controlPlane) {
		definition := crd("velero.io", "v1", strings.TrimSuffix(name, ".velero.io"), "Any")
		must(t, controlPlane.Delete(t.Context(), definition))
	}
	eventually(t, installed, "the CRDs are gone", func(context.Context) error {
		if left := veleroCRDs(t, controlPlane); len(left) > 0 {
			return fmt.Errorf("%q are left", left)
		}
		return nil
	})
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
}

// besideHanging keeps the operator and Flux busy with a control plane that does not answer.
func besideHanging(t *testing.T, one, other tenant) {
	t.Helper()
	other.orderVelero(t, oldVersion)
	other.awaitReady(t)
	cluster, err := world.ControlPlane(t.Context(), other.Namespace, other.Name)
	must(t, err)
	resume, err := cluster.Hang()
	must(t, err)
	t.Cleanup(func() { _ = resume() })
	other.patchRelease(t, plan.ControlPlaneRelease, fmt.Sprintf(`{"metadata":{"annotations":{%q:"now"}}}`, fluxmeta.ReconcileRequestAnnotation))
	other.startDeletion(t)
	other.awaitBlocked(t, v1alpha1.ReasonTargetUnreachable, "cannot be reached")
	one.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
	eventually(t, reached, newVersion+" runs", func(ctx context.Context) error {
		images, err := one.running(ctx)
		if err == nil && images[0] != serverImage+":"+newVersion {
			err = fmt.Errorf("%s runs", images[0])
		}
		return err
	})
	one.awaitReady(t)
	must(t, resume())
	other.awaitDeleted(t)
	other.assertGone(t)
}

// deletionOfHeldObject: Flux waits for the object for a while, and at its next attempt there is no release any more.
func (s tenant) deletionOfHeldObject(t *testing.T) {
	releases := only(s.names.TenantNamespace, helmv2.GroupVersion.Group, helmv2.GroupVersion.Version, "helmreleases", admissionregistrationv1.Update)
	admissionRule{platform, setField("uninstall-"+s.names.Instance, releases, "/spec/uninstall/timeout", `"5s"`)}.create(t)
	held := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.names.WorkloadNamespace, Name: "velero"}}
	must(t, setFinalizers(t.Context(), workload, held, holder))
	eventually(t, soon, "Flux is to wait for five seconds", func(ctx context.Context) error {
		release, err := s.helmRelease(ctx, plan.ServerRelease)
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&release.ObjectMeta, "test.example/poke", "true")
		if err := platform.Update(ctx, release); err != nil || release.Spec.Uninstall.Timeout.Duration == 5*time.Second {
			return err
		}
		return fmt.Errorf("it is to wait for %s", release.Spec.Uninstall.Timeout.Duration)
	})
	s.startDeletion(t)
	s.awaitBlocked(t, v1alpha1.ReasonRemovingWorkloadNamespace)
	must(t, isGone(t.Context(), platform, &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: s.names.TenantNamespace, Name: plan.ServerRelease}}))
	must(t, workload.Get(t.Context(), client.ObjectKeyFromObject(held), held))
	s.assertRestWaits(t)
	must(t, setFinalizers(t.Context(), workload, held))
	s.awaitDeleted(t)
	s.assertGone(t)
}

// assertRestWaits looks for what must not go before the server has: the control plane's release with all that Flux needs for it.
func (s tenant) assertRestWaits(t *testing.T) {
	t.Helper()
	release, err := s.helmRelease(t.Context(), plan.ControlPlaneRelease)
	must(t, err)
	if !release.DeletionTimestamp.IsZero() {
		t.Error("the control plane's release is deleted before the server is gone")
	}
	must(t, s.everySource(t.Context(), notDeleted))
	for _, id := range []string{access.ControlPlane, access.Server, access.Workload} {
		request, err := s.accessRequest(t.Context(), id)
		must(t, err)
		if !request.DeletionTimestamp.IsZero() {
			t.Errorf("access %s is given back", id)
		}
	}
	var names []string
	var secrets corev1.SecretList
	must(t, platform.List(t.Context(), &secrets, client.InNamespace(s.names.TenantNamespace), client.MatchingLabels{plan.ManagedByLabel: plan.ProviderName}))
	for _, secret := range secrets.Items {
		names = append(names, secret.Name)
	}
	if diff := cmp.Diff([]string{"sp-velero-server-identity", "sp-velero-server-values"}, names); diff != "" {
		t.Errorf("generated Secrets (-want +got):\n%s", diff)
	}
}

// deletionWithoutMonitoring: an object of the release has a kind that its cluster does not know any more. Flux tries for ever, and does not say
// what.
func (s tenant) deletionWithoutMonitoring(t *testing.T) {
	monitors := crd("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")
	must(t, workload.Create(t.Context(), monitors.DeepCopy()))
	t.Cleanup(func() { _ = workload.Delete(context.WithoutCancel(t.Context()), monitors) })
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"})
	monitor.SetNamespace(s.names.WorkloadNamespace)
	monitor.SetName("velero")
	setServerValues(t, `{"metrics":{"serviceMonitor":{"enabled":true}}}`)
	defer setServerValues(t, "")
	s.order(t)
	must(t, workload.Get(t.Context(), client.ObjectKeyFromObject(monitor), monitor))
	must(t, workload.Delete(t.Context(), monitors.DeepCopy()))
	eventually(t, installed, "the CRD is gone", func(ctx context.Context) error { return isGone(ctx, workload, monitors.DeepCopy()) })
	s.startDeletion(t)
	s.awaitBlocked(t, v1alpha1.ReasonRemovingServer, "does not know its kind any more", "a platform operator must", "suspend its HelmRelease")
	s.patchRelease(t, plan.ServerRelease, `{"spec":{"suspend":true}}`)
	s.awaitDeleted(t)
	s.assertGone(t)
}
