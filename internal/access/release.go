package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess/advanced"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Release gives everything back that Ensure asked for, and says whether it is gone. It must not be called while a HelmRelease exists that
// uses the credentials: Flux would drop the release without uninstalling it.
//
// The library's ReconcileDelete is not used: it removes the list of finalizers without a precondition, from a read that may be stale, so it
// can wipe the ClusterProvider's finalizer, and it remembers what it deletes in memory only.
func (a *Access) Release(ctx context.Context, velero types.NamespacedName) (bool, error) {
	names, err := plan.NamesOf(velero)
	if err != nil {
		return false, err
	}
	gone := true
	for _, id := range ids {
		removed, err := a.remove(ctx, requestKey(velero, names, id), names, &clustersv1alpha1.AccessRequest{})
		if err != nil {
			return false, fmt.Errorf("release access %q: %w", id, err)
		}
		gone = gone && removed
	}
	if !gone {
		// The provider still needs the cluster while it cleans up the access.
		return false, nil
	}
	// Not before the requests: a ClusterProvider that watches its Secrets would look at a request that still stands, and bring back the
	// namespace that was just removed.
	if err := a.unguard(ctx, names); err != nil {
		return false, fmt.Errorf("release the credentials: %w", err)
	}
	removed, err := a.remove(ctx, requestKey(velero, names, Workload), names, &clustersv1alpha1.ClusterRequest{})
	if err != nil {
		return false, fmt.Errorf("release the workload cluster: %w", err)
	}
	return removed, nil
}

// unguard takes our finalizer off every Secret that guard put it on: the requests that named them may be gone, and labels may be edited.
func (a *Access) unguard(ctx context.Context, names plan.Names) error {
	secrets, err := a.guardedSecrets(ctx, names)
	if err != nil {
		return err
	}
	for i := range secrets {
		if err := a.withoutFinalizer(ctx, &secrets[i], plan.Finalizer); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a request that is ours, and says whether that has let go of everything.
func (a *Access) remove(ctx context.Context, key types.NamespacedName, names plan.Names, request client.Object) (bool, error) {
	if err := a.reader.Get(ctx, key, request); err != nil {
		return client.IgnoreNotFound(err) == nil, client.IgnoreNotFound(err)
	}
	if !ours(request, names) {
		// Not ours; it was never adopted.
		return true, nil
	}
	if request.GetDeletionTimestamp().IsZero() {
		uid := request.GetUID()
		if err := a.client.Delete(ctx, request, client.Preconditions{UID: &uid}); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		// With its deletion timestamp; the next look decides about the finalizer.
		return a.remove(ctx, key, names, request)
	}
	return a.lastFinalizer(ctx, request)
}

// lastFinalizer takes the library's finalizer off a request that is being deleted, once the others have let go, and says whether it did.
func (a *Access) lastFinalizer(ctx context.Context, request client.Object) (bool, error) {
	if finalizers := request.GetFinalizers(); len(finalizers) != 1 || finalizers[0] != advanced.Finalizer {
		return false, nil
	}
	err := a.withoutFinalizer(ctx, request, advanced.Finalizer)
	return err == nil, err
}

func (a *Access) withoutFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	before := object.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(a.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// Holdings is what a Velero that is being deleted still has. It is read past the caches.
type Holdings struct {
	// ControlPlane and Workload are the grants; empty when there is none (any more).
	ControlPlane, Workload plan.Grant
	// ControlPlaneWithdrawn and WorkloadWithdrawn: the request is being deleted, by Release or with its namespace, or gone, so the grant may be of
	// no use.
	ControlPlaneWithdrawn, WorkloadWithdrawn bool
	// WorkloadPending: the workload access is on its way, and its ClusterProvider makes the server's namespace before it grants.
	WorkloadPending bool
	// ControlPlaneGone and WorkloadGone say that the cluster itself is gone or on its way out, so that nothing can be cleaned up on it.
	ControlPlaneGone, WorkloadGone bool
}

// Holdings looks up the grants for a deletion.
func (a *Access) Holdings(ctx context.Context, velero types.NamespacedName) (Holdings, error) {
	var holdings Holdings
	names, err := plan.NamesOf(velero)
	if err != nil {
		return holdings, err
	}
	ofControlPlane := types.NamespacedName{Namespace: names.TenantNamespace, Name: velero.Name}
	controlPlane, err := a.held(ctx, requestKey(velero, names, ControlPlane), ofControlPlane)
	if err != nil {
		return holdings, err
	}
	ofWorkload := requestKey(velero, names, Workload)
	workload, err := a.held(ctx, ofWorkload, ofWorkload)
	return Holdings{
		ControlPlane: controlPlane.grant, ControlPlaneWithdrawn: controlPlane.withdrawn, ControlPlaneGone: controlPlane.gone,
		Workload: workload.grant, WorkloadWithdrawn: workload.withdrawn, WorkloadGone: workload.gone, WorkloadPending: workload.pending,
	}, err
}

// holding is what one request still gives.
type holding struct {
	grant                    plan.Grant
	withdrawn, gone, pending bool
}

// held looks up the grant of a request for the cluster of a ClusterRequest.
func (a *Access) held(ctx context.Context, key, clusterRequest types.NamespacedName) (holding, error) {
	request := &clustersv1alpha1.AccessRequest{}
	err := a.reader.Get(ctx, key, request)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return holding{}, err
	}
	gone, err := a.clusterGone(ctx, request, clusterRequest)
	if err != nil || gone || !exists {
		return holding{gone: gone, withdrawn: !exists}, err
	}
	withdrawn := !request.DeletionTimestamp.IsZero()
	if request.Status.SecretRef == nil {
		return holding{pending: !withdrawn && request.Spec.ClusterRef != nil && !request.Status.IsDenied()}, nil
	}
	return holding{grant: plan.Grant{Secret: request.Status.SecretRef.Name, Key: clustersv1alpha1.SecretKeyKubeconfig}, withdrawn: withdrawn}, nil
}

// clusterGone is true when the Cluster of a request does not exist any more or is being deleted. One that is only unreachable is not gone. A
// request that is gone itself, or does not know its Cluster yet, is for that of the ClusterRequest.
func (a *Access) clusterGone(ctx context.Context, request *clustersv1alpha1.AccessRequest, key types.NamespacedName) (bool, error) {
	reference := request.Spec.ClusterRef
	if reference == nil {
		clusterRequest := &clustersv1alpha1.ClusterRequest{}
		if err := a.reader.Get(ctx, key, clusterRequest); client.IgnoreNotFound(err) != nil {
			return false, err
		}
		reference = clusterRequest.Status.Cluster
	}
	if reference == nil {
		return false, nil
	}
	cluster := &clustersv1alpha1.Cluster{}
	err := a.reader.Get(ctx, reference.NamespacedName(), cluster)
	if err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return !cluster.DeletionTimestamp.IsZero(), nil
}
