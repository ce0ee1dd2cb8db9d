package controller

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"
)

// intended passes changes of what is wanted: the spec, the operation annotation, the finalizers and the deletion. Our own status writes are
// not among them.
func intended[T client.Object]() predicate.TypedPredicate[T] {
	return changed(func(object T) any {
		return []any{object.GetGeneration(), object.GetAnnotations()[openmcpconst.OperationAnnotation], object.GetFinalizers()}
	})
}

// changed passes creation and deletion, and updates that change what state returns, or that begin a deletion.
func changed[T client.Object](state func(T) any) predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(update event.TypedUpdateEvent[T]) bool {
		return update.ObjectOld.GetUID() != update.ObjectNew.GetUID() ||
			update.ObjectOld.GetDeletionTimestamp().IsZero() != update.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!equality.Semantic.DeepEqual(state(update.ObjectOld), state(update.ObjectNew))
	}}
}

// releaseState is what a reconcile looks at in a HelmRelease. helm-controller writes the status twice at every interval only to say that it
// is at work (condition Reconciling). That matters only while Ready is Unknown: it is the only sign that a drift correction was refused.
func releaseState(release *helmv2.HelmRelease) any {
	work := ""
	if ready := apimeta.FindStatusCondition(release.Status.Conditions, fluxmeta.ReadyCondition); ready != nil && ready.Status == metav1.ConditionUnknown {
		if reconciling := apimeta.FindStatusCondition(release.Status.Conditions, fluxmeta.ReconcilingCondition); reconciling != nil {
			work = reconciling.Reason
		}
	}
	return []any{
		release.Generation, release.Labels, release.Finalizers, release.Status.ObservedGeneration, conditions(release.Status.Conditions), work,
		release.Status.History, release.Status.LastAttemptedConfigDigest, release.Status.Inventory,
	}
}

func sourceState(source *sourcev1.OCIRepository) any {
	return []any{source.Generation, source.Labels, source.Status.ObservedGeneration, conditions(source.Status.Conditions), source.Status.Artifact}
}

func accessState(request *clustersv1alpha1.AccessRequest) any {
	return requestState(request, request.Status.Status, request.Status.SecretRef)
}

func clusterState(request *clustersv1alpha1.ClusterRequest) any {
	return requestState(request, request.Status.Status, request.Status.Cluster)
}

func requestState(request client.Object, status commonapi.Status, reference any) any {
	return []any{request.GetGeneration(), request.GetLabels(), request.GetFinalizers(), status.Phase, status.ObservedGeneration, reference}
}

// conditions without what changes although nothing happened.
func conditions(all []metav1.Condition) []metav1.Condition {
	kept := make([]metav1.Condition, 0, len(all))
	for _, condition := range all {
		if condition.Type == fluxmeta.ReconcilingCondition {
			continue
		}
		condition.LastTransitionTime = metav1.Time{}
		kept = append(kept, condition)
	}
	return kept
}
