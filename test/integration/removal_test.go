package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// installedRelease is a HelmRelease with the kubeconfig that it names. It cannot go before release takes the finalizer off.
func installedRelease(t *testing.T, name string, edit func(*helmv2.HelmRelease)) (names plan.Names, held *helmv2.HelmRelease) {
	t.Helper()
	_, names = newTenant(t, name)
	_, held = rendered(t, names)
	held.Finalizers = []string{hold}
	edit(held)
	must(t, ensure(t.Context(), platform, kubeconfigSecret(t, names)))
	must(t, platform.Create(t.Context(), held))
	t.Cleanup(func() { release(context.WithoutCancel(t.Context()), held) })
	return names, held
}

const hold = "example.com/hold"

func release(ctx context.Context, object client.Object) {
	if platform.Get(ctx, client.ObjectKeyFromObject(object), object) == nil {
		before := object.DeepCopyObject().(client.Object)
		object.SetFinalizers(nil)
		_ = platform.Patch(ctx, object, client.MergeFrom(before))
	}
}

// kubeconfigSecret leads to the workload cluster.
func kubeconfigSecret(t *testing.T, names plan.Names) *corev1.Secret {
	t.Helper()
	content, err := os.ReadFile(world.Workload.Kubeconfig())
	must(t, err)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: "kubeconfig"},
		Data:       map[string][]byte{clustersv1alpha1.SecretKeyKubeconfig: content},
	}
}

// remove repeats the step until it ends without a conflict with what Flux writes.
func remove(t *testing.T, names plan.Names, targetGone bool) cluster.Progress {
	t.Helper()
	var progress cluster.Progress
	eventually(t, "the removal meets no other write", func(ctx context.Context) error {
		var err error
		progress, err = platformOf().RemoveRelease(ctx, names, plan.ServerRelease, targetGone)
		return err
	})
	return progress
}

func newest(t *testing.T, held *helmv2.HelmRelease) *helmv2.HelmRelease {
	t.Helper()
	found := &helmv2.HelmRelease{}
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(held), found))
	return found
}

// TestRemovalWaitsForTheFinalizer: the removal of a release is done when Flux has let it go, not before.
func TestRemovalWaitsForTheFinalizer(t *testing.T) {
	names, held := installedRelease(t, "removal-waits", func(*helmv2.HelmRelease) {})
	if begun, err := platformOf().RemovalBegun(t.Context(), names, "the Velero"); begun || err != nil {
		t.Errorf("before the removal: begun %v, error %v", begun, err)
	}
	eventually(t, "it begins", func(ctx context.Context) error { return platformOf().BeginRemoval(ctx, names, "the Velero") })
	for range 3 {
		if progress := remove(t, names, false); progress != (cluster.Progress{}) {
			t.Errorf("while the object is there: %+v", progress)
		}
	}
	if newest(t, held).DeletionTimestamp.IsZero() {
		t.Error("the object is not deleted")
	}
	if begun, err := platformOf().RemovalBegun(t.Context(), names, "the Velero"); !begun || err != nil {
		t.Errorf("during the removal: begun %v, error %v", begun, err)
	}
	release(t.Context(), held)
	eventually(t, "the object is gone", func(ctx context.Context) error { return isGone(ctx, platform, held) })
	if progress := remove(t, names, false); !progress.Done {
		t.Errorf("after the object is gone: %+v", progress)
	}
	if begun, err := platformOf().RemovalBegun(t.Context(), names, "the Velero"); !begun || err != nil {
		t.Errorf("after the removal: begun %v, error %v", begun, err)
	}
}

// TestRemovalResumes: Flux drops a suspended HelmRelease without an uninstall.
func TestRemovalResumes(t *testing.T) {
	names, held := installedRelease(t, "removal-resumes", func(r *helmv2.HelmRelease) { r.Spec.Suspend = true })
	remove(t, names, false)
	if after := newest(t, held); after.Spec.Suspend || after.DeletionTimestamp.IsZero() {
		t.Errorf("suspended %v, deleted at %v", after.Spec.Suspend, after.DeletionTimestamp)
	}
}

// TestRemovalNeedsTheKubeconfig: without it Flux would skip the uninstall, and nobody would ever know what is left on the target.
func TestRemovalNeedsTheKubeconfig(t *testing.T) {
	names, held := installedRelease(t, "removal-credentials", func(*helmv2.HelmRelease) {})
	secret := kubeconfigSecret(t, names)
	must(t, platform.Delete(t.Context(), secret))
	_, err := platformOf().RemoveRelease(t.Context(), names, plan.ServerRelease, false)
	if !errors.Is(err, cluster.ErrCredentials) {
		t.Errorf("error %v, want that the credentials are missing", err)
	}
	if !newest(t, held).DeletionTimestamp.IsZero() {
		t.Fatal("it was deleted all the same")
	}
	must(t, platform.Create(t.Context(), kubeconfigSecret(t, names)))
	remove(t, names, false)
	if newest(t, held).DeletionTimestamp.IsZero() {
		t.Error("it is not deleted although the credentials are back")
	}
}

// TestRemovalLetsGoOfALostTarget: Flux would try to uninstall for ever.
func TestRemovalLetsGoOfALostTarget(t *testing.T) {
	names, held := installedRelease(t, "removal-lost", func(*helmv2.HelmRelease) {})
	must(t, platform.Delete(t.Context(), kubeconfigSecret(t, names)))
	remove(t, names, true)
	if after := newest(t, held); !after.Spec.Suspend || after.DeletionTimestamp.IsZero() {
		t.Errorf("suspended %v, deleted at %v", after.Spec.Suspend, after.DeletionTimestamp)
	}
	release(t.Context(), held)
	eventually(t, "Flux lets it go", func(ctx context.Context) error {
		progress, err := platformOf().RemoveRelease(ctx, names, plan.ServerRelease, true)
		if err == nil && !progress.Done {
			err = fmt.Errorf("%+v", progress)
		}
		return err
	})
}

func TestRemovalOfSomebodyElsesRelease(t *testing.T) {
	names, held := installedRelease(t, "removal-foreign", func(r *helmv2.HelmRelease) { r.Labels[plan.InstanceLabel], r.Spec.Suspend = "another", true })
	before := contents(t, held)
	if progress := remove(t, names, false); !progress.Done {
		t.Errorf("it holds the removal up: %+v", progress)
	}
	if after := contents(t, held); fmt.Sprint(before) != fmt.Sprint(after) || !newest(t, held).DeletionTimestamp.IsZero() {
		t.Errorf("it was written or deleted: before %v, after %v", before, after)
	}
}

func TestRemoveObjects(t *testing.T) {
	_, names := newTenant(t, "removal-objects")
	source, _ := rendered(t, names)
	source.Finalizers = []string{hold}
	must(t, platform.Create(t.Context(), source))
	t.Cleanup(func() { release(context.WithoutCancel(t.Context()), source) })
	old := generated(names, "sp-velero-of-an-older-release", corev1.SecretTypeOpaque, nil)
	foreign := kubeconfigSecret(t, names)
	for _, secret := range []*corev1.Secret{old, foreign} {
		must(t, platform.Create(t.Context(), secret))
	}
	for range 2 {
		progress, err := platformOf().RemoveObjects(t.Context(), names)
		must(t, err)
		if progress.Done {
			t.Error("done while Flux still has the source")
		}
	}
	must(t, isGone(t.Context(), platform, old))
	stored(t, foreign)
	release(t.Context(), source)
	eventually(t, "it is done", func(ctx context.Context) error {
		progress, err := platformOf().RemoveObjects(ctx, names)
		if err == nil && !progress.Done {
			err = errors.New("not done")
		}
		return err
	})
	must(t, isGone(t.Context(), platform, source))
}

// remote connects as a removal does.
func remote(t *testing.T, names plan.Names) client.Client {
	t.Helper()
	connected, err := platformOf().Remote(t.Context(), names, plan.Grant{Secret: "kubeconfig", Key: clustersv1alpha1.SecretKeyKubeconfig})
	must(t, err)
	return connected
}

func TestRemote(t *testing.T) {
	_, names := newTenant(t, "remote")
	must(t, platform.Create(t.Context(), kubeconfigSecret(t, names)))
	must(t, remote(t, names).Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}))
	for _, grant := range []plan.Grant{{Secret: "absent", Key: "kubeconfig"}, {Secret: "kubeconfig", Key: "absent"}} {
		if _, err := platformOf().Remote(t.Context(), names, grant); !errors.Is(err, cluster.ErrCredentials) {
			t.Errorf("%+v: error %v", grant, err)
		}
	}
}

func TestRemoveNamespace(t *testing.T) {
	_, names := newTenant(t, "remove-namespace")
	must(t, platform.Create(t.Context(), kubeconfigSecret(t, names)))
	connected := remote(t, names)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.WorkloadNamespace}}
	must(t, workload.Create(t.Context(), namespace))
	must(t, workload.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "left"}}))
	if progress, err := cluster.RemoveNamespace(t.Context(), connected, namespace.Name); err != nil || progress.Done {
		t.Errorf("%+v, error %v", progress, err)
	}
	eventually(t, "the namespace is gone", func(ctx context.Context) error {
		progress, err := cluster.RemoveNamespace(ctx, connected, namespace.Name)
		if err == nil && !progress.Done {
			err = errors.New("it is not")
		}
		return err
	})
	must(t, isGone(t.Context(), workload, namespace))
}

// veleroCRD is a CRD of a kind of Velero's, as the release installs it.
func veleroCRD(kind string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	plural := strings.ToLower(kind) + "s"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".velero.io", Annotations: map[string]string{"meta.helm.sh/release-name": plan.ControlPlaneRelease, "meta.helm.sh/release-namespace": "velero"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "velero.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve},
			}}},
		},
	}
}

func instance(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("velero.io/v1")
	object.SetKind(kind)
	object.SetNamespace("default")
	object.SetName(name)
	return object
}

// TestUsersObjectsAndCRDs: users' objects hold the removal back and are named; the CRDs go when no object is left; CRDs of others stay.
func TestUsersObjectsAndCRDs(t *testing.T) {
	_, names := newTenant(t, "users-objects")
	must(t, platform.Create(t.Context(), kubeconfigSecret(t, names)))
	ordered := metav1.Time{}
	if progress, err := cluster.UserResources(t.Context(), remote(t, names)); err != nil || !progress.Done {
		t.Errorf("without CRDs: %+v, error %v", progress, err)
	}
	backups, requests, foreign := veleroCRD("Backup"), veleroCRD("DownloadRequest"), veleroCRD("Restore")
	foreign.Annotations = nil
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{backups, requests, foreign} {
		must(t, establish(t.Context(), workload, crd))
		t.Cleanup(func() { _ = workload.Delete(context.WithoutCancel(t.Context()), crd) })
	}
	connected := remote(t, names)
	// The server's own objects do not count.
	must(t, workload.Create(t.Context(), instance("DownloadRequest", "own")))
	for i := range 7 {
		must(t, workload.Create(t.Context(), instance("Backup", fmt.Sprintf("backup-%d", i))))
	}
	progress, err := cluster.UserResources(t.Context(), connected)
	must(t, err)
	if !progress.Failed || progress.Done || !strings.Contains(progress.Detail, "7 of kind Backup") || !strings.Contains(progress.Detail, "Backup default/backup-0") || strings.Contains(progress.Detail, "backup-6") {
		t.Errorf("with backups: %+v", progress)
	}
	if progress, err := cluster.RemoveCRDs(t.Context(), connected, names, ordered); err != nil || !progress.Done {
		t.Errorf("with backups: %+v, error %v", progress, err)
	}
	must(t, workload.Get(t.Context(), client.ObjectKeyFromObject(requests), requests))
	must(t, workload.DeleteAllOf(t.Context(), instance("Backup", ""), client.InNamespace("default")))
	eventually(t, "our CRDs are gone", func(ctx context.Context) error {
		progress, err := cluster.RemoveCRDs(ctx, connected, names, ordered)
		if err == nil && !progress.Done {
			err = errors.New("they are not")
		}
		return err
	})
	must(t, errors.Join(isGone(t.Context(), workload, backups), isGone(t.Context(), workload, requests)))
	must(t, workload.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
}
