package e2e

import (
	"context"
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// deletion deletes the third tenant's Velero.
func deletion() features.Feature {
	var neighbours []untouched
	return features.New("deletion").
		Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			neighbours = []untouched{first(t).generations(t), second(t).generations(t)}
			return ctx
		}).
		Assess("nothing of this tenant is left but namespace velero", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			third(t).remove(t)
			third(t).assertGone(t)
			return ctx
		}).
		Assess("a new one of the same name is installed again", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			third(t).orderVelero(t, newVersion, gcp)
			third(t).awaitReady(t)
			return ctx
		}).
		Assess("a suspended release is uninstalled all the same", suspendedRelease).
		Assess("the neighbours are untouched", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			if diff := cmp.Diff(neighbours, []untouched{first(t).generations(t), second(t).generations(t)}); diff != "" {
				t.Errorf("a neighbour changed (-before +after):\n%s", diff)
			}
			return ctx
		}).
		Feature()
}

// suspendedRelease: Flux drops a suspended HelmRelease without uninstalling it.
func suspendedRelease(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	tenant := third(t)
	for _, name := range []string{plan.ServerRelease, plan.ControlPlaneRelease} {
		release, err := tenant.helmRelease(ctx, name)
		must(t, err)
		must(t, platform.Patch(ctx, release, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`))))
	}
	eventually(t, soon, "the status says that the release is suspended", func(ctx context.Context) error {
		velero, err := tenant.velero(ctx)
		if err != nil {
			return err
		}
		return hasCondition(velero, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	})
	tenant.remove(t)
	tenant.assertGone(t)
	return ctx
}

// remove deletes the Velero and waits until it is gone, with the order kept at every moment: no AccessRequest goes before its HelmRelease.
func (s tenant) remove(t *testing.T) {
	t.Helper()
	velero, err := s.velero(t.Context())
	must(t, err)
	must(t, onboarding.Delete(t.Context(), velero))
	eventually(t, installed, s.String()+" is gone", func(ctx context.Context) error {
		if err := s.accessOutlivesReleases(ctx); err != nil {
			t.Fatal(err)
		}
		velero, err := s.velero(ctx)
		if err == nil {
			return fmt.Errorf("it still exists: %+v", velero.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
}

// accessOutlivesReleases looks at the releases first: what is asked later may only be newer.
func (s tenant) accessOutlivesReleases(ctx context.Context) error {
	var releases helmv2.HelmReleaseList
	if err := platform.List(ctx, &releases, client.InNamespace(s.names.TenantNamespace)); err != nil {
		return err
	}
	for _, release := range releases.Items {
		key := client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.KubeConfig.SecretRef.Name}
		secret := &corev1.Secret{}
		if err := platform.Get(ctx, key, secret); err == nil {
			continue
		}
		if err := platform.Get(ctx, client.ObjectKeyFromObject(&release), &release); err == nil {
			return fmt.Errorf("HelmRelease %s exists and its credentials do not", release.Name)
		}
	}
	return nil
}

// assertGone looks on every cluster for what the tenant's Velero consisted of.
func (s tenant) assertGone(t *testing.T) {
	t.Helper()
	ctx, inTenant := t.Context(), client.InNamespace(s.names.TenantNamespace)
	instance := client.MatchingLabels{plan.InstanceLabel: s.names.Instance}
	for _, list := range []client.ObjectList{&helmv2.HelmReleaseList{}, &sourcev1.OCIRepositoryList{}, &corev1.SecretList{}, &clustersv1alpha1.AccessRequestList{}, &clustersv1alpha1.ClusterRequestList{}} {
		must(t, platform.List(ctx, list, inTenant, instance))
		if count := apimeta.LenList(list); count > 0 {
			t.Errorf("%s: %d left in a %T on the platform", s, count, list)
		}
	}
	if err := isGone(ctx, workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.WorkloadNamespace}}); err != nil {
		t.Errorf("%s: on the workload cluster: %v", s, err)
	}
	controlPlane := s.controlPlane(t)
	var crds apiextensionsv1.CustomResourceDefinitionList
	must(t, controlPlane.List(ctx, &crds))
	for _, crd := range crds.Items {
		if crd.Spec.Group == "velero.io" {
			t.Errorf("%s: CRD %s is left on the control plane", s, crd.Name)
		}
	}
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &appsv1.DeploymentList{}} {
		must(t, controlPlane.List(ctx, list, client.InNamespace("velero")))
		if count := apimeta.LenList(list); count > 0 {
			t.Errorf("%s: %d left in a %T in namespace velero", s, count, list)
		}
	}
	var bindings rbacv1.ClusterRoleBindingList
	must(t, controlPlane.List(ctx, &bindings, client.HasLabels{"clusters.openmcp.cloud/accessrequest"}))
	for _, binding := range bindings.Items {
		t.Errorf("%s: ClusterRoleBinding %s of an access request is left on the control plane", s, binding.Name)
	}
	must(t, controlPlane.Get(ctx, client.ObjectKey{Name: "velero"}, &corev1.Namespace{}))
}
