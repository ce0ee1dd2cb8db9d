package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// waitsFor repeats Ensure until it waits for what is given.
func waitsFor(t *testing.T, subject *access.Access, velero types.NamespacedName, reason string) {
	t.Helper()
	eventually(t, "it says "+reason, func(ctx context.Context) error { return waiting(ctx, subject, velero, reason) })
}

func waiting(ctx context.Context, subject *access.Access, velero types.NamespacedName, reason string) error {
	outcome, err := subject.Ensure(ctx, velero)
	if err != nil {
		return err
	}
	if outcome.Waiting == nil || outcome.Waiting.Reason != reason || outcome.Waiting.Failed != (reason == v1alpha1.ReasonAccessDenied) {
		return fmt.Errorf("it says %+v", outcome.Waiting)
	}
	return nil
}

// TestDeniedAccess of each kind fails, although the others are granted, and is over when the platform changes its mind.
func TestDeniedAccess(t *testing.T) {
	for _, id := range []string{access.ControlPlane, access.Server, access.Workload} {
		t.Run(id, func(t *testing.T) {
			velero, names := newTenant(t, "denied-"+id)
			standIn(t, velero, names)
			subject := accessOf(rights("secrets"))
			grants, _ := ensured(t, subject, velero)
			request := requestOf(velero, names, id)
			eventually(t, "it says that access is denied", func(ctx context.Context) error {
				// Again, when the ClusterProvider granted it in between.
				must(t, platform.Status().Patch(ctx, request, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Denied"}}`))))
				return waiting(ctx, subject, velero, v1alpha1.ReasonAccessDenied)
			})
			must(t, platform.Status().Patch(t.Context(), request, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Granted"}}`))))
			eventually(t, "access is granted again", func(ctx context.Context) error {
				outcome, err := subject.Ensure(ctx, velero)
				if err == nil && (outcome.Waiting != nil || outcome.Grants.Server.Secret != grants.Server.Secret) {
					err = fmt.Errorf("waiting %+v, the grants are %+v, were %+v", outcome.Waiting, outcome.Grants, grants)
				}
				return err
			})
		})
	}
}

// TestGrantOfAnOlderGeneration has the rights of before, so it does not count.
func TestGrantOfAnOlderGeneration(t *testing.T) {
	velero, names := newTenant(t, "older")
	standIn(t, velero, names)
	ensured(t, accessOf(rights("secrets")), velero)
	// A new release of the operator asks for other rights.
	updated := accessOf(rights("configmaps"))
	eventually(t, "the requests ask for the new rights", func(ctx context.Context) error {
		if _, err := updated.Ensure(ctx, velero); err != nil {
			return err
		}
		request := requestOf(velero, names, access.Workload)
		if err := cached.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
			return err
		}
		if request.Generation < 2 {
			return fmt.Errorf("generation %d", request.Generation)
		}
		return nil
	})
	grants, _ := ensured(t, updated, velero)
	user := userOf(t, names, grants.Workload)
	must(t, user.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(names.WorkloadNamespace)))
	if err := user.List(t.Context(), &corev1.SecretList{}, client.InNamespace(names.WorkloadNamespace)); !apierrors.IsForbidden(err) {
		t.Errorf("the rights of before answer %v", err)
	}
}

// behind is a cache that does not hear of any more changes of AccessRequests.
type behind struct {
	client.Client
	seen map[client.ObjectKey]*clustersv1alpha1.AccessRequest
}

// Get implements client.Client.
func (b behind) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	request, ok := object.(*clustersv1alpha1.AccessRequest)
	if !ok {
		return b.Client.Get(ctx, key, object, opts...)
	}
	if b.seen[key] == nil {
		if err := b.Client.Get(ctx, key, request, opts...); err != nil {
			return err
		}
		b.seen[key] = request.DeepCopy()
	}
	b.seen[key].DeepCopyInto(request)
	return nil
}

// TestGrantThatTheCacheStillHas: it is of an older generation from the moment on that other rights are asked for.
func TestGrantThatTheCacheStillHas(t *testing.T) {
	velero, names := newTenant(t, "behind")
	standIn(t, velero, names)
	ensured(t, accessOf(rights("secrets")), velero)
	updated := access.New(behind{cached, map[client.ObjectKey]*clustersv1alpha1.AccessRequest{}}, uncached, rights("configmaps"))
	for look := range 2 {
		outcome, err := updated.Ensure(t.Context(), velero)
		if apierrors.IsConflict(err) {
			continue
		}
		must(t, err)
		if outcome.Waiting == nil || outcome.Waiting.Failed || outcome.Grants.Workload.Secret != "" {
			t.Errorf("look %d: it waits for %+v, and the grants are %+v", look, outcome.Waiting, outcome.Grants)
		}
	}
}

// TestCredentialsThatVanish: a grant without its Secret, or with one that is on its way out, does not count.
func TestCredentialsThatVanish(t *testing.T) {
	velero, names := newTenant(t, "vanish")
	standIn(t, velero, names)
	subject := accessOf(rights("secrets"))
	grants, _ := ensured(t, subject, velero)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: grants.Workload.Secret}}
	must(t, platform.Delete(t.Context(), secret))
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	if secret.DeletionTimestamp.IsZero() || len(secret.Data) == 0 {
		t.Fatal("our finalizer does not keep the Secret")
	}
	waitsFor(t, subject, velero, v1alpha1.ReasonWaitingForWorkloadCluster)
	if again, _ := ensured(t, subject, velero); again.Workload.Version.UID == grants.Workload.Version.UID {
		t.Error("the grant is about the Secret that is gone")
	}
}

// TestControlPlaneOnItsWayOut: nothing is installed on it any more.
func TestControlPlaneOnItsWayOut(t *testing.T) {
	velero, names := newTenant(t, "leaving")
	request := standIn(t, velero, names, hold)
	t.Cleanup(func() { release(context.WithoutCancel(t.Context()), request) })
	must(t, platform.Delete(t.Context(), request))
	waitsFor(t, accessOf(rights("secrets")), velero, v1alpha1.ReasonControlPlaneDeleting)
	if err := isGone(t.Context(), platform, requestOf(velero, names, access.Workload)); err != nil {
		t.Error(err)
	}
}

// TestRequestsOfSomebodyElse are not touched, neither by Ensure nor by Release.
func TestRequestsOfSomebodyElse(t *testing.T) {
	velero, names := newTenant(t, "foreign-requests")
	control := standIn(t, velero, names)
	foreign := requestOf(velero, names, access.ControlPlane)
	foreign.Spec = clustersv1alpha1.AccessRequestSpec{
		RequestRef: &commonapi.ObjectReference{Namespace: control.Namespace, Name: control.Name}, Token: &clustersv1alpha1.TokenConfig{},
	}
	must(t, platform.Create(t.Context(), foreign))
	subject := accessOf(rights("secrets"))
	if outcome, err := subject.Ensure(t.Context(), velero); err == nil && outcome.Waiting == nil {
		t.Errorf("it is used: %+v", outcome)
	}
	givesBack(t, subject, velero)
	after := requestOf(velero, names, access.ControlPlane)
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(after), after))
	if !after.DeletionTimestamp.IsZero() || len(after.Spec.Token.Permissions) > 0 || after.Labels[plan.InstanceLabel] != "" {
		t.Errorf("the request of somebody else was changed: %+v", after.ObjectMeta)
	}
}

func TestReleaseOfNothing(t *testing.T) {
	velero, _ := newTenant(t, "nothing")
	if gone, err := accessOf(rights("secrets")).Release(t.Context(), velero); !gone || err != nil {
		t.Errorf("gone %v, error %v", gone, err)
	}
}

func TestHoldings(t *testing.T) {
	velero, names := newTenant(t, "holdings")
	standIn(t, velero, names)
	subject := accessOf(rights("secrets"))
	grants, _ := ensured(t, subject, velero)
	holdings, err := subject.Holdings(t.Context(), velero)
	must(t, err)
	if holdings.ControlPlane.Secret != grants.ControlPlane.Secret || holdings.Workload.Secret != grants.Workload.Secret || holdings.ControlPlaneGone || holdings.WorkloadGone {
		t.Errorf("holdings are %+v, grants %+v", holdings, grants)
	}
	nobody, err := subject.Holdings(t.Context(), types.NamespacedName{Namespace: "default", Name: "nobody"})
	must(t, err)
	// There is nothing that could come back, either.
	if want := (access.Holdings{ControlPlaneWithdrawn: true, WorkloadWithdrawn: true}); nobody != want {
		t.Errorf("who has nothing holds %+v", nobody)
	}
}

// TestHoldingsOnALostCluster: nothing can be cleaned up on a cluster that is gone or going; an unreachable one is not lost.
func TestHoldingsOnALostCluster(t *testing.T) {
	going := &clustersv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "going", Finalizers: []string{hold}},
		Spec:       clustersv1alpha1.ClusterSpec{Profile: "unknown", Purposes: []string{"none"}, Tenancy: clustersv1alpha1.TENANCY_SHARED},
	}
	staying := going.DeepCopy()
	staying.Name, staying.Finalizers = "staying", nil
	for _, cluster := range []*clustersv1alpha1.Cluster{going, staying} {
		must(t, platform.Create(t.Context(), cluster))
	}
	must(t, platform.Delete(t.Context(), going))
	t.Cleanup(func() { release(context.WithoutCancel(t.Context()), going) })
	for name, lost := range map[string]bool{"absent": true, "going": true, "staying": false} {
		t.Run(name, func(t *testing.T) {
			velero, names := newTenant(t, "lost-"+name)
			for _, id := range []string{access.ControlPlane, access.Workload} {
				request := requestOf(velero, names, id)
				request.Labels = names.Labels()
				request.Spec = clustersv1alpha1.AccessRequestSpec{ClusterRef: &commonapi.ObjectReference{Namespace: "clusters", Name: name}, Token: &clustersv1alpha1.TokenConfig{}}
				must(t, platform.Create(t.Context(), request))
			}
			holdings, err := accessOf(rights("secrets")).Holdings(t.Context(), velero)
			must(t, err)
			if holdings != (access.Holdings{ControlPlaneGone: lost, WorkloadGone: lost, WorkloadPending: !lost}) {
				t.Errorf("holdings are %+v", holdings)
			}
		})
	}
}
