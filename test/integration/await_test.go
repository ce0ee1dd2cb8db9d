package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/await"
)

const (
	// limit bounds what takes a few events and API calls on a busy machine, and soon what must not take longer than a person waits.
	limit, soon = time.Minute, 10 * time.Second
)

// eventually fails the test when check does not pass in time.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	if err := await.Until(t.Context(), limit, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// must fails the test when setting it up failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// isGone checks that an object does not exist.
func isGone(ctx context.Context, cluster client.Client, object client.Object) error {
	err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil {
		return fmt.Errorf("%T %s still exists, with deletion timestamp %s and finalizers %v", object, object.GetName(), object.GetDeletionTimestamp(), object.GetFinalizers())
	}
	return client.IgnoreNotFound(err)
}

// newTenant is a Velero's key that no other test uses, its names and its namespace on the platform, which exists when it is returned.
func newTenant(t *testing.T, name string) (types.NamespacedName, plan.Names) {
	t.Helper()
	velero := types.NamespacedName{Namespace: "default", Name: name}
	names, err := plan.NamesOf(velero)
	must(t, err)
	must(t, ensure(t.Context(), platform, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.TenantNamespace}}))
	return velero, names
}

func ensure(ctx context.Context, cluster client.Client, object client.Object) error {
	if err := cluster.Create(ctx, object); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// merge patches an object as kubectl patch --type=merge does.
func merge(t *testing.T, cluster client.Client, object client.Object, patch string) {
	t.Helper()
	must(t, cluster.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}
