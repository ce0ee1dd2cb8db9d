package access

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ctrlutils "github.com/openmcp-project/controller-utils/pkg/controller"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// ours says whether an object of a request's name belongs to the Velero. The instance label alone proves it; without that label all others
// together do, as they do for the library. A label that names another Velero proves the opposite.
func ours(object client.Object, names plan.Names) bool {
	labels := object.GetLabels()
	if instance, labelled := labels[plan.InstanceLabel]; labelled {
		return instance == names.Instance
	}
	for key, value := range names.Labels() {
		if key != plan.InstanceLabel && labels[key] != value {
			return false
		}
	}
	return labels[openmcpconst.ManagedByLabel] == plan.ProviderName
}

// relabel gives the objects that a request consists of their labels back if somebody edited them: the library takes only those for its own that
// have all of them, and our cache holds no others. It says whether one of them belongs to somebody else. They are read past the cache, which
// may not hold them.
func (a *Access) relabel(ctx context.Context, velero types.NamespacedName, names plan.Names, id string) (foreign bool, err error) {
	for _, object := range []client.Object{&clustersv1alpha1.AccessRequest{}, &clustersv1alpha1.ClusterRequest{}} {
		if err := a.reader.Get(ctx, requestKey(velero, names, id), object); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return false, err
			}
			continue
		}
		if !ours(object, names) {
			return true, nil
		}
		before := object.DeepCopyObject().(client.Object)
		labels := maps.Clone(object.GetLabels())
		maps.Copy(labels, a.labels(velero, id))
		if equality.Semantic.DeepEqual(labels, object.GetLabels()) {
			continue
		}
		object.SetLabels(labels)
		if err := a.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return false, err
		}
	}
	return false, nil
}

// labels are those that the library gives a request.
func (a *Access) labels(velero types.NamespacedName, id string) map[string]string {
	managedBy, purpose, labels := managedLabels(plan.ProviderName, reconcile.Request{NamespacedName: velero}, a.requests[id])
	labels[openmcpconst.ManagedByLabel] = managedBy
	labels[openmcpconst.ManagedPurposeLabel] = ctrlutils.ShortenToXCharactersUnsafe(purpose, ctrlutils.K8sMaxNameLength)
	return labels
}
