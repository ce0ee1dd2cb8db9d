package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/test/await"
)

const (
	// soon bounds what takes an event and a few API calls.
	soon = 5 * time.Second
	// installed bounds what takes Flux and a new API server, on a busy machine.
	installed = 3 * time.Minute
	// reached bounds what Flux carries from the platform to a cluster when something changed, on a busy machine.
	reached = 20 * time.Second
	// retried bounds what waits for Flux to try again, which it does every minute.
	retried = 100 * time.Second
)

// eventually waits until check passes, and fails the test with what check said last.
func eventually(t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
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

// hasCondition checks a condition, and that it is about the current generation.
func hasCondition(velero *v1alpha1.Velero, conditionType string, status metav1.ConditionStatus, reason string) error {
	condition := apimeta.FindStatusCondition(velero.Status.Conditions, conditionType)
	switch {
	case condition == nil:
		return fmt.Errorf("no condition %s in %+v", conditionType, velero.Status)
	case condition.Status != status || condition.Reason != reason:
		return fmt.Errorf("condition %s is %s/%s (%s), want %s/%s; phase %s", conditionType, condition.Status, condition.Reason, condition.Message, status, reason, velero.Status.Phase)
	case condition.ObservedGeneration != velero.Generation:
		return fmt.Errorf("condition %s is about generation %d, the object is at %d", conditionType, condition.ObservedGeneration, velero.Generation)
	}
	return nil
}

// isGone checks that an object does not exist.
func isGone(ctx context.Context, cluster client.Client, object client.Object) error {
	err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil {
		return fmt.Errorf("%T %s still exists", object, object.GetName())
	}
	return client.IgnoreNotFound(err)
}
