package property

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
)

// deleted is an installed world whose Clusters exist and whose Velero is being deleted.
func deleted(t *testing.T) *world {
	t.Helper()
	w := installed(t)
	goAway(t)
	for _, name := range []string{velero.Name, requestOf(access.Workload, w.names[0]).Name} {
		cluster := &clustersv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.names[0].TenantNamespace, Name: name}}
		if err := w.platform.Create(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.onboarding.Delete(t.Context(), w.object(t)); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) object(t *testing.T) *v1alpha1.Velero {
	t.Helper()
	object := &v1alpha1.Velero{}
	if err := w.onboarding.Get(t.Context(), velero, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// ready is the condition of that name.
func (w *world) ready(t *testing.T) metav1.Condition {
	t.Helper()
	for _, condition := range w.object(t).Status.Conditions {
		if condition.Type == v1alpha1.ConditionReady {
			return condition
		}
	}
	t.Fatal("there is no condition Ready")
	return metav1.Condition{}
}

// withdraw deletes a request, and nobody is there who would hold it.
func (w *world) withdraw(t *testing.T, id string) {
	t.Helper()
	delete(w.platform.objects["AccessRequest"], requestOf(id, w.names[0]))
}

// TestDenialHoldsADeletion: access that was taken away is requested again, and when that is denied somebody else has to act.
func TestDenialHoldsADeletion(t *testing.T) {
	w := deleted(t)
	w.withdraw(t, access.ControlPlane)
	reconcile := func(reason string, words ...string) {
		t.Helper()
		if err := w.reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		ready := w.ready(t)
		for _, word := range words {
			if ready.Reason != reason || !strings.Contains(ready.Message, word) {
				t.Errorf("it says %s: %s, want %s: %s", ready.Reason, ready.Message, reason, word)
			}
		}
	}
	reconcile(v1alpha1.ReasonUserResourcesExist, "requested again")
	reconcile(v1alpha1.ReasonUserResourcesExist, "requested again")
	if err := judged(access.ControlPlane, clustersv1alpha1.REQUEST_DENIED)(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	reconcile(v1alpha1.ReasonAccessDenied, "denied", "a platform operator must")
	if err := (grants{w.platform, w.input.Token}).step(t.Context(), w.names[0].TenantNamespace); err != nil {
		t.Fatal(err)
	}
	// It does not answer.
	reconcile(v1alpha1.ReasonTargetUnreachable, "cannot be reached")
}

// TestRestoreTellsDenial unless what was granted before may still be good.
func TestRestoreTellsDenial(t *testing.T) {
	for _, id := range []string{access.ControlPlane, access.Workload} {
		t.Run(id, func(t *testing.T) {
			w := installed(t)
			subject := access.New(w.platform, w.platform, permissions())
			deny := judged(id, clustersv1alpha1.REQUEST_DENIED)
			if err := deny(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if has, err := subject.Restore(t.Context(), velero, id); !has || err != nil {
				t.Errorf("denied after it was granted: %v, error %v", has, err)
			}
			w.withdraw(t, id)
			if has, err := subject.Restore(t.Context(), velero, id); has || err != nil {
				t.Errorf("requested again: %v, error %v", has, err)
			}
			if err := deny(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if has, err := subject.Restore(t.Context(), velero, id); has || !errors.Is(err, access.ErrDenied) {
				t.Errorf("denied from the start: %v, error %v", has, err)
			}
		})
	}
}
