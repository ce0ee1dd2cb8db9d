package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	corev2alpha1 "github.com/openmcp-project/openmcp-operator/api/core/v2alpha1"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess/advanced"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// rights are small ones that are easy to tell apart.
func rights(resource string) access.Permissions {
	lists := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"list"}}}
	return access.Permissions{
		ControlPlane: []clustersv1alpha1.PermissionsRequest{{Rules: lists}},
		ServerRoles:  []commonapi.RoleRef{{Kind: "ClusterRole", Name: "cluster-admin"}},
		Workload: func(namespace string) []clustersv1alpha1.PermissionsRequest {
			return []clustersv1alpha1.PermissionsRequest{{Namespace: namespace, Rules: lists}}
		},
	}
}

func accessOf(permissions access.Permissions) *access.Access {
	return access.New(cached, uncached, permissions)
}

// ensured repeats Ensure, as the operator does, until it grants, and returns the reasons of the waiting before.
func ensured(t *testing.T, subject *access.Access, velero types.NamespacedName) (grants plan.Grants, reasons []string) {
	t.Helper()
	eventually(t, "access is granted", func(ctx context.Context) error {
		outcome, err := subject.Ensure(ctx, velero)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			return err
		}
		must(t, err)
		if waiting := outcome.Waiting; waiting != nil {
			if waiting.Failed {
				t.Fatalf("failed: %+v", waiting)
			}
			if len(reasons) == 0 || reasons[len(reasons)-1] != waiting.Reason {
				reasons = append(reasons, waiting.Reason)
			}
			return fmt.Errorf("%+v", waiting)
		}
		grants = outcome.Grants
		return upToDate(ctx, grants, velero)
	})
	return grants, reasons
}

// givesBack repeats Release until nothing is left.
func givesBack(t *testing.T, subject *access.Access, velero types.NamespacedName) {
	t.Helper()
	eventually(t, "everything is given back", func(ctx context.Context) error {
		gone, err := subject.Release(ctx, velero)
		if err == nil && !gone {
			err = errors.New("it is not")
		}
		return err
	})
}

// upToDate checks that the grants are about the newest Secrets: a ClusterProvider may write one again right after it was granted.
func upToDate(ctx context.Context, grants plan.Grants, velero types.NamespacedName) error {
	names, err := plan.NamesOf(velero)
	if err != nil {
		return err
	}
	for _, grant := range []plan.Grant{grants.ControlPlane, grants.Server, grants.Workload} {
		secret := &corev1.Secret{}
		if err := platform.Get(ctx, client.ObjectKey{Namespace: names.TenantNamespace, Name: grant.Secret}, secret); err != nil {
			return err
		}
		if grant.Version != (plan.Version{UID: secret.UID, ResourceVersion: secret.ResourceVersion}) {
			return fmt.Errorf("the grant is about %+v, Secret %s is at %s", grant.Version, secret.Name, secret.ResourceVersion)
		}
	}
	return nil
}

// standIn is the ClusterRequest of a control plane that is the workload cluster: it is there at once.
func standIn(t *testing.T, velero types.NamespacedName, names plan.Names, finalizers ...string) *clustersv1alpha1.ClusterRequest {
	t.Helper()
	request := &clustersv1alpha1.ClusterRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: velero.Name, Finalizers: finalizers},
		Spec:       clustersv1alpha1.ClusterRequestSpec{Purpose: clustersv1alpha1.PURPOSE_WORKLOAD},
	}
	must(t, platform.Create(t.Context(), request))
	eventually(t, "the cache knows the control plane", func(ctx context.Context) error {
		return cached.Get(ctx, client.ObjectKeyFromObject(request), request.DeepCopy())
	})
	return request
}

func requestOf(velero types.NamespacedName, names plan.Names, id string) *clustersv1alpha1.AccessRequest {
	return &clustersv1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.TenantNamespace, Name: advanced.StableRequestName(plan.ProviderName, reconcile.Request{NamespacedName: velero}, id),
	}}
}

// userOf connects with what a grant holds.
func userOf(t *testing.T, names plan.Names, grant plan.Grant) client.Client {
	t.Helper()
	secret := &corev1.Secret{}
	must(t, platform.Get(t.Context(), client.ObjectKey{Namespace: names.TenantNamespace, Name: grant.Secret}, secret))
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[grant.Key])
	must(t, err)
	user, err := client.New(config, client.Options{Scheme: scheme()})
	must(t, err)
	return user
}

// TestAccess is the life of one tenant's access, with a control plane of its own.
func TestAccess(t *testing.T) {
	velero := types.NamespacedName{Namespace: "default", Name: "access"}
	names, err := plan.NamesOf(velero)
	must(t, err)
	subject := accessOf(rights("secrets"))
	nothingWithoutControlPlane(t, subject, velero, names)
	must(t, onboarding.Create(t.Context(), &corev2alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: velero.Namespace, Name: velero.Name}}))
	eventually(t, "the platform has a request for the control plane", func(ctx context.Context) error {
		return cached.Get(ctx, client.ObjectKey{Namespace: names.TenantNamespace, Name: velero.Name}, &clustersv1alpha1.ClusterRequest{})
	})
	grants, reasons := ensured(t, subject, velero)
	if len(reasons) == 0 || reasons[0] != v1alpha1.ReasonWaitingForControlPlane {
		t.Errorf("it waited for %v", reasons)
	}
	grantsAreWhatWasAskedFor(t, names, grants)
	credentialsAreGuarded(t, names, grants)
	// The last write of the ClusterProvider is behind it by now, with its own look at it.
	time.Sleep(time.Second)
	grants, _ = ensured(t, subject, velero)
	callsNothing(t, "an Ensure of what is granted", func() {
		again, err := subject.Ensure(t.Context(), velero)
		must(t, err)
		if diff := cmp.Diff(grants, again.Grants); diff != "" || again.Waiting != nil {
			t.Errorf("the grants differ, or %+v (-before +after):\n%s", again.Waiting, diff)
		}
	})
	guardSurvivesRenewal(t, subject, velero, names, grants)
	guardIsRestored(t, subject, velero, names)
	grants = deletedRequestComesBack(t, subject, velero, names)
	releaseKeepsTheOrder(t, subject, velero, names, grants)
}

// nothingWithoutControlPlane: the requests would create the control plane's namespace, which nobody would remove.
func nothingWithoutControlPlane(t *testing.T, subject *access.Access, velero types.NamespacedName, names plan.Names) {
	t.Helper()
	calls := callsDuring(t, func() {
		outcome, err := subject.Ensure(t.Context(), velero)
		must(t, err)
		if outcome.Waiting == nil || outcome.Waiting.Reason != v1alpha1.ReasonControlPlaneNotFound {
			t.Errorf("without a control plane: %+v", outcome)
		}
	})
	if len(calls) > 0 {
		t.Errorf("without a control plane: %+v", calls)
	}
	must(t, isGone(t.Context(), platform, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.TenantNamespace}}))
}

func grantsAreWhatWasAskedFor(t *testing.T, names plan.Names, grants plan.Grants) {
	t.Helper()
	controlPlane, server, target := userOf(t, names, grants.ControlPlane), userOf(t, names, grants.Server), userOf(t, names, grants.Workload)
	must(t, controlPlane.List(t.Context(), &corev1.SecretList{}))
	must(t, server.List(t.Context(), &rbacv1.ClusterRoleBindingList{}))
	must(t, target.List(t.Context(), &corev1.SecretList{}, client.InNamespace(names.WorkloadNamespace)))
	for what, err := range map[string]error{
		"Flux on the control plane":              controlPlane.List(t.Context(), &corev1.ConfigMapList{}),
		"Flux in another namespace":              target.List(t.Context(), &corev1.SecretList{}, client.InNamespace("default")),
		"Flux with other objects of the server":  target.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(names.WorkloadNamespace)),
		"Flux with other tenants' namespaces":    target.Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}),
		"Flux with all namespaces of the tenant": target.List(t.Context(), &corev1.SecretList{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: error %v, want forbidden", what, err)
		}
	}
}

func secretsOf(t *testing.T, names plan.Names, grants plan.Grants) []*corev1.Secret {
	t.Helper()
	var secrets []*corev1.Secret
	for _, grant := range []plan.Grant{grants.ControlPlane, grants.Server, grants.Workload} {
		secret := &corev1.Secret{}
		must(t, platform.Get(t.Context(), client.ObjectKey{Namespace: names.TenantNamespace, Name: grant.Secret}, secret))
		secrets = append(secrets, secret)
	}
	return secrets
}

func credentialsAreGuarded(t *testing.T, names plan.Names, grants plan.Grants) {
	t.Helper()
	for _, secret := range secretsOf(t, names, grants) {
		if !controllerutil.ContainsFinalizer(secret, plan.Finalizer) || secret.Labels[plan.InstanceLabel] != names.Instance || secret.Labels["reconcile.fluxcd.io/watch"] != "Enabled" {
			t.Errorf("Secret %s is not guarded: finalizers %v, labels %v", secret.Name, secret.Finalizers, secret.Labels)
		}
	}
}

// guardSurvivesRenewal has the ClusterProvider renew a token now: an end in the past asks for it, as the clock would in time.
func guardSurvivesRenewal(t *testing.T, subject *access.Access, velero types.NamespacedName, names plan.Names, before plan.Grants) {
	t.Helper()
	secret := secretsOf(t, names, before)[1]
	old := string(secret.Data[clustersv1alpha1.SecretKeyKubeconfig])
	past := secret.DeepCopy()
	past.Data[clustersv1alpha1.SecretKeyExpirationTimestamp] = past.Data[clustersv1alpha1.SecretKeyCreationTimestamp]
	must(t, platform.Patch(t.Context(), past, client.MergeFrom(secret)))
	eventually(t, "the token is new", func(ctx context.Context) error {
		if err := platform.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		if string(secret.Data[clustersv1alpha1.SecretKeyKubeconfig]) == old {
			return errors.New("it is the old one")
		}
		return nil
	})
	var renewed plan.Grants
	eventually(t, "the grant is about the new token", func(ctx context.Context) error {
		outcome, err := subject.Ensure(ctx, velero)
		renewed = outcome.Grants
		if err != nil || outcome.Waiting != nil {
			return fmt.Errorf("waiting %+v, error %w", outcome.Waiting, err)
		}
		if outcome.Grants.Server.Version.ResourceVersion != secret.ResourceVersion {
			return errors.New("it is about the old one")
		}
		return nil
	})
	credentialsAreGuarded(t, names, renewed)
}

// guardIsRestored takes everything off the Secrets that we put there.
func guardIsRestored(t *testing.T, subject *access.Access, velero types.NamespacedName, names plan.Names) {
	t.Helper()
	grants, _ := ensured(t, subject, velero)
	for _, secret := range secretsOf(t, names, grants) {
		merge(t, platform, secret, `{"metadata":{"finalizers":null,"labels":null}}`)
	}
	eventually(t, "the Secrets are guarded again", func(ctx context.Context) error {
		outcome, err := subject.Ensure(ctx, velero)
		if err != nil || outcome.Waiting != nil {
			return fmt.Errorf("waiting %+v, error %w", outcome.Waiting, err)
		}
		var unguarded error
		for _, grant := range []plan.Grant{outcome.Grants.ControlPlane, outcome.Grants.Server, outcome.Grants.Workload} {
			secret := &corev1.Secret{}
			must(t, platform.Get(ctx, client.ObjectKey{Namespace: names.TenantNamespace, Name: grant.Secret}, secret))
			if !controllerutil.ContainsFinalizer(secret, plan.Finalizer) {
				unguarded = fmt.Errorf("Secret %s is not", secret.Name)
			}
		}
		return unguarded
	})
}

// deletedRequestComesBack deletes a request that is in use, as a person might by mistake.
func deletedRequestComesBack(t *testing.T, subject *access.Access, velero types.NamespacedName, names plan.Names) plan.Grants {
	t.Helper()
	request := requestOf(velero, names, access.Server)
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(request), request))
	deleted := request.UID
	must(t, platform.Delete(t.Context(), request))
	var grants plan.Grants
	eventually(t, "access is granted again", func(ctx context.Context) error {
		outcome, err := subject.Ensure(ctx, velero)
		if err != nil || outcome.Waiting != nil {
			return fmt.Errorf("waiting %+v, error %w", outcome.Waiting, err)
		}
		if err := platform.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
			return err
		}
		if request.UID == deleted {
			return errors.New("it is still the deleted request")
		}
		grants = outcome.Grants
		return nil
	})
	return grants
}

// releaseKeepsTheOrder: the requests first, then our finalizer on their Secrets, then the workload cluster.
func releaseKeepsTheOrder(t *testing.T, subject *access.Access, velero types.NamespacedName, names plan.Names, grants plan.Grants) {
	t.Helper()
	held := requestOf(velero, names, access.Server)
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(held), held))
	before := held.DeepCopy()
	controllerutil.AddFinalizer(held, hold)
	must(t, platform.Patch(t.Context(), held, client.MergeFrom(before)))
	clusterRequest := &clustersv1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: requestOf(velero, names, access.Workload).Name}}
	for range 5 {
		if gone, err := subject.Release(t.Context(), velero); gone || err != nil && !apierrors.IsConflict(err) {
			t.Fatalf("while one request is held: gone %v, error %v", gone, err)
		}
	}
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(clusterRequest), clusterRequest))
	if !clusterRequest.DeletionTimestamp.IsZero() {
		t.Error("the workload cluster is given back before the last access")
	}
	must(t, platform.Get(t.Context(), client.ObjectKey{Namespace: names.TenantNamespace, Name: grants.Server.Secret}, &corev1.Secret{}))
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(held), held))
	before = held.DeepCopy()
	controllerutil.RemoveFinalizer(held, hold)
	must(t, platform.Patch(t.Context(), held, client.MergeFrom(before)))
	givesBack(t, subject, velero)
	objects := []client.Object{clusterRequest, requestOf(velero, names, access.ControlPlane), requestOf(velero, names, access.Server), requestOf(velero, names, access.Workload)}
	for _, grant := range []plan.Grant{grants.ControlPlane, grants.Server, grants.Workload} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: grant.Secret}})
	}
	for _, object := range objects {
		eventually(t, "it is gone", func(ctx context.Context) error { return isGone(ctx, platform, object) })
	}
	must(t, platform.Get(t.Context(), client.ObjectKey{Namespace: names.TenantNamespace, Name: velero.Name}, &clustersv1alpha1.ClusterRequest{}))
}
