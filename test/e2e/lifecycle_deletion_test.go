package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// deletions delete Veleros in every state. Each ends complete, or blocked with a reason that names what to do; in none is a HelmRelease left
// behind, and in none does the access go before its HelmRelease.
func deletions(t *testing.T) {
	t.Run("side by side", func(t *testing.T) {
		for _, each := range []func(*testing.T){deletionGuard, deletionOfAccess} {
			t.Run("tenant", func(t *testing.T) {
				t.Parallel()
				each(t)
			})
		}
	})
	deletionOfReleases(t)
	// The rest takes away what the deletion of every Velero needs.
	everybodyLeft(t)
	deletionOfClusters(t)
	everybodyLeft(t)
	deletionWithoutFlux(t)
}

// startDeletion deletes the Velero and does not wait.
func (s tenant) startDeletion(t *testing.T) {
	t.Helper()
	velero, err := s.velero(t.Context())
	must(t, err)
	must(t, onboarding.Delete(t.Context(), velero))
}

// awaitDeleted waits until the Velero is gone, with the order kept at every moment.
func (s tenant) awaitDeleted(t *testing.T) {
	t.Helper()
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

// awaitBlocked waits until the deletion stands still for a reason, and its message has all words.
func (s tenant) awaitBlocked(t *testing.T, reason string, words ...string) {
	t.Helper()
	eventually(t, installed, fmt.Sprintf("the deletion of %s stands still for %s", s, reason), func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		if velero.Status.Phase != string(v1alpha1.Terminating) {
			return fmt.Errorf("phase is %s", velero.Status.Phase)
		}
		if err := hasCondition(velero, v1alpha1.ConditionReady, metav1.ConditionFalse, reason); err != nil {
			return err
		}
		message := apimeta.FindStatusCondition(velero.Status.Conditions, v1alpha1.ConditionReady).Message
		for _, word := range words {
			if !strings.Contains(message, word) {
				return fmt.Errorf("message %q does not have %q", message, word)
			}
		}
		return nil
	})
}

// order gets the tenant a control plane and a Velero that is Ready.
func (s tenant) order(t *testing.T, plugins ...v1alpha1.Plugin) {
	t.Helper()
	s.orderControlPlane(t)
	s.orderVelero(t, oldVersion, plugins...)
	s.awaitReady(t)
}

// annotate sets an annotation, or removes it when value is empty.
func annotate(t *testing.T, cluster client.Client, object client.Object, key, value string) {
	t.Helper()
	content := fmt.Sprintf("%q", value)
	if value == "" {
		content = "null"
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, content)
	must(t, cluster.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// setFinalizers replaces the finalizers of an object, as somebody with kubectl does.
func setFinalizers(ctx context.Context, cluster client.Client, object client.Object, finalizers ...string) error {
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	before := object.DeepCopyObject().(client.Object)
	object.SetFinalizers(finalizers)
	return cluster.Patch(ctx, object, client.MergeFrom(before))
}

var errStillThere = errors.New("it is still there")

// startOperator starts the operator that was stopped.
func startOperator(t *testing.T) {
	t.Helper()
	var err error
	operator, err = world.StartOperator(t.Context(), landscape.OperatorOptions{SkipInit: true})
	must(t, err)
}
