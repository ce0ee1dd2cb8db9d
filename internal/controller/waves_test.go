package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

func TestWaves(t *testing.T) {
	a, b, c := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}, types.NamespacedName{Name: "c"}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var w waves
	enter := func(name types.NamespacedName, after time.Duration, want bool) {
		t.Helper()
		if got := w.enter(name, 1, start.Add(after)); got != want {
			t.Fatalf("%s may be changed after %s: %t, want %t", name.Name, after, got, want)
		}
	}
	queued := func(want ...types.NamespacedName) {
		t.Helper()
		if diff := cmp.Diff(want, w.next(5), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("queue (-want +got):\n%s", diff)
		}
	}
	enter(a, 0, true)
	enter(a, time.Second, true) // it is being changed already
	enter(c, time.Second, false)
	enter(b, time.Second, false)
	enter(c, time.Second, false)
	queued(c, b)

	w.settle(a, string(v1alpha1.Progressing))
	enter(c, time.Second, false)
	w.settle(a, string(v1alpha1.Ready))
	enter(c, time.Second, true)
	queued(b)

	// One that does not come to an end makes room after its turn.
	enter(b, turn, false)
	enter(b, 2*turn, true)
	queued()

	enter(a, 2*turn, false)
	w.settle(a, string(v1alpha1.Terminating))
	queued()
	w.settle(b, string(v1alpha1.Failed))
	enter(c, 2*turn, true)
}
