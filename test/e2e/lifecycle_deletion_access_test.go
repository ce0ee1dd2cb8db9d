package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	corev2alpha1 "github.com/openmcp-project/openmcp-operator/api/core/v2alpha1"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess/advanced"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape/clusterprovider"
)

// deletionOfAccess deletes Veleros in every state of their access.
func deletionOfAccess(t *testing.T) {
	t.Run("deletion: there is no control plane | complete", func(t *testing.T) {
		tenant := newTenant(t, "team-access", "absent-mcp")
		tenant.orderVelero(t, oldVersion)
		tenant.awaitAccess(t, v1alpha1.ReasonControlPlaneNotFound)
		tenant.startDeletion(t)
		tenant.awaitDeleted(t)
		must(t, isGone(t.Context(), platform, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant.names.TenantNamespace}}))
	})
	pending := newTenant(t, "team-access", "pending-mcp")
	// Nobody has to wait until it is gone: there is no API server to end.
	defer func() { must(t, client.IgnoreNotFound(onboarding.Delete(t.Context(), pending.controlPlaneObject()))) }()
	t.Run("deletion: before access is granted | complete", pending.deletionBeforeAccess)
	t.Run("deletion: access is denied from the start | complete", pending.deletionWhileDenied)
	tenant := newTenant(t, "team-access", "access-mcp")
	defer tenant.leave(t)
	tenant.orderControlPlane(t)
	t.Run("deletion: during the installation | complete", tenant.deletionDuringInstall)
	t.Run("deletion: access is denied after the installation | complete", tenant.deletionAfterDenial)
	t.Run("deletion: somebody deleted the access secrets | complete", tenant.deletionWithDeletedSecrets)
	t.Run("deletion: somebody deleted the AccessRequests | complete, with access requested again", tenant.deletionWithDeletedRequests)
}

func (s tenant) awaitAccess(t *testing.T, reason string) {
	t.Helper()
	eventually(t, installed, fmt.Sprintf("the access of %s is %s", s, reason), func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		return hasCondition(velero, v1alpha1.ConditionAccessGranted, metav1.ConditionFalse, reason)
	})
}

// orderEndless orders a control plane that never comes, since no cluster is meant for its purpose.
func (s tenant) orderEndless(t *testing.T) {
	t.Helper()
	must(t, ensure(t.Context(), onboarding, &corev2alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, Labels: map[string]string{corev2alpha1.MCPPurposeOverrideLabel: "mcp-of-another-landscape"},
	}}))
}

func (s tenant) deletionBeforeAccess(t *testing.T) {
	s.orderEndless(t)
	s.orderVelero(t, oldVersion)
	s.awaitAccess(t, v1alpha1.ReasonWaitingForControlPlane)
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertNothingOnPlatform(t)
}

// assertNothingOnPlatform is for tenants without a control plane.
func (s tenant) assertNothingOnPlatform(t *testing.T) {
	t.Helper()
	for _, list := range []client.ObjectList{&clustersv1alpha1.AccessRequestList{}, &clustersv1alpha1.ClusterRequestList{}, &corev1.SecretList{}} {
		must(t, platform.List(t.Context(), list, client.InNamespace(s.names.TenantNamespace), client.MatchingLabels{plan.InstanceLabel: s.names.Instance}))
		if count := apimeta.LenList(list); count > 0 {
			t.Errorf("%s: %d left in a %T", s, count, list)
		}
	}
}

func (s tenant) accessRequest(ctx context.Context, id string) (*clustersv1alpha1.AccessRequest, error) {
	request := &clustersv1alpha1.AccessRequest{}
	name := advanced.StableRequestName(plan.ProviderName, reconcile.Request{NamespacedName: s.NamespacedName}, id)
	return request, platform.Get(ctx, types.NamespacedName{Namespace: s.names.TenantNamespace, Name: name}, request)
}

// entrust makes another ClusterProvider responsible for a request; nobody is there who answers in its name.
func (s tenant) entrust(t *testing.T, id, provider string) {
	t.Helper()
	eventually(t, soon, "entrust access "+id+" to "+provider, func(ctx context.Context) error {
		request, err := s.accessRequest(ctx, id)
		if err != nil {
			return err
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, clustersv1alpha1.ProviderLabel, provider)
		return platform.Patch(ctx, request, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

func (s tenant) deny(t *testing.T, id string) {
	t.Helper()
	eventually(t, soon, "deny access "+id, func(ctx context.Context) error { return s.denyNow(ctx, id) })
}

func (s tenant) denyNow(ctx context.Context, id string) error {
	request, err := s.accessRequest(ctx, id)
	if err != nil {
		return err
	}
	request.Status.Phase = clustersv1alpha1.REQUEST_DENIED
	request.Status.ObservedGeneration = request.Generation
	return platform.Status().Update(ctx, request)
}

func (s tenant) deletionWhileDenied(t *testing.T) {
	s.orderEndless(t)
	s.orderVelero(t, oldVersion)
	s.entrust(t, access.ControlPlane, "nobody")
	// Again and again: openmcp-operator may have begun before another provider was entrusted, and says then that it is pending.
	eventually(t, installed, "the access is denied, and that is told", func(ctx context.Context) error {
		if err := s.denyNow(ctx, access.ControlPlane); err != nil {
			return err
		}
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		return hasCondition(velero, v1alpha1.ConditionAccessGranted, metav1.ConditionFalse, v1alpha1.ReasonAccessDenied)
	})
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertNothingOnPlatform(t)
}

func (s tenant) deletionDuringInstall(t *testing.T) {
	s.orderVelero(t, oldVersion)
	eventually(t, installed, "Flux begins with the server", func(ctx context.Context) error {
		_, err := s.helmRelease(ctx, plan.ServerRelease)
		return err
	})
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
}

// deletionAfterDenial: what was granted before is still good for the uninstallation.
func (s tenant) deletionAfterDenial(t *testing.T) {
	s.order(t)
	for _, id := range []string{access.ControlPlane, access.Workload} {
		s.entrust(t, id, "nobody")
		s.deny(t, id)
	}
	s.awaitAccess(t, v1alpha1.ReasonAccessDenied)
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
}

func (s tenant) secretOf(t *testing.T, id string) *corev1.Secret {
	t.Helper()
	request, err := s.accessRequest(t.Context(), id)
	must(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Status.SecretRef.Name}}
}

func (s tenant) deletionWithDeletedSecrets(t *testing.T) {
	s.order(t)
	s.startDeletionAfter(t, func() {
		for _, id := range []string{access.ControlPlane, access.Server, access.Workload} {
			must(t, platform.Delete(t.Context(), s.secretOf(t, id)))
		}
	})
	s.awaitDeleted(t)
	s.assertGone(t)
}

func (s tenant) deletionWithDeletedRequests(t *testing.T) {
	s.order(t)
	s.startDeletionAfter(t, func() {
		for _, id := range []string{access.ControlPlane, access.Server, access.Workload} {
			s.revoke(t, id)
		}
	})
	// Here the access does go before its HelmRelease, by somebody else's hand, and comes back.
	s.awaitVeleroGone(t)
	s.assertGone(t)
}

// deletionWithoutSecret: Flux would drop the release without uninstalling it.
func (s tenant) deletionWithoutSecret(t *testing.T) {
	s.order(t)
	secret := s.secretOf(t, access.Workload)
	s.entrust(t, access.Workload, "nobody")
	s.startDeletionAfter(t, func() {
		must(t, platform.Delete(t.Context(), secret))
		must(t, setFinalizers(t.Context(), platform, secret))
	})
	s.awaitBlocked(t, v1alpha1.ReasonCredentialsInvalid, "removing the Velero server", "a platform operator must")
	_, err := s.helmRelease(t.Context(), plan.ServerRelease)
	must(t, err)
	s.entrust(t, access.Workload, clusterprovider.Name)
	eventually(t, installed, "the access is granted again", func(ctx context.Context) error {
		return platform.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	})
	s.awaitDeleted(t)
	s.assertGone(t)
}

// startDeletionAfter does something that the operator must not see before the deletion.
func (s tenant) startDeletionAfter(t *testing.T, act func()) {
	t.Helper()
	must(t, operator.Stop(t.Context()))
	act()
	s.startDeletion(t)
	startOperator(t)
}
