package property

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/internal/access"
)

// lagging is a cache that still has an AccessRequest of before.
type lagging struct {
	*apiServer
	old *clustersv1alpha1.AccessRequest
}

// Get implements client.Client.
func (l lagging) Get(ctx context.Context, key types.NamespacedName, object client.Object, options ...client.GetOption) error {
	if request, ok := object.(*clustersv1alpha1.AccessRequest); ok && key == client.ObjectKeyFromObject(l.old) {
		l.old.DeepCopyInto(request)
		return nil
	}
	return l.apiServer.Get(ctx, key, object, options...)
}

// TestLaggingCacheDeletesNothing: the request that the cache has as deleted may be gone, and its successor in use.
func TestLaggingCacheDeletesNothing(t *testing.T) {
	for _, id := range []string{access.ControlPlane, access.Server, access.Workload} {
		t.Run(id, func(t *testing.T) {
			w := installed(t)
			live := &clustersv1alpha1.AccessRequest{}
			if err := w.platform.Get(t.Context(), requestOf(id, w.names[0]), live); err != nil {
				t.Fatal(err)
			}
			old := live.DeepCopy()
			old.UID, old.ResourceVersion, old.DeletionTimestamp = "old", "0", &metav1.Time{Time: live.CreationTimestamp.Time}
			if _, err := access.New(lagging{w.platform, old}, w.platform, permissions()).Look(t.Context(), velero); err != nil {
				t.Fatal(err)
			}
			if err := w.platform.Get(t.Context(), requestOf(id, w.names[0]), live); err != nil || !live.DeletionTimestamp.IsZero() {
				t.Errorf("the live request is deleted: %v, error %v", live.DeletionTimestamp, err)
			}
		})
	}
}
