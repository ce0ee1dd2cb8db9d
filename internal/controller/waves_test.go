package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

var (
	veleroA = types.NamespacedName{Name: "a"}
	veleroB = types.NamespacedName{Name: "b"}
	veleroC = types.NamespacedName{Name: "c"}
	start   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// entering checks whether a Velero may be changed, in waves of one.
func entering(t *testing.T, w *waves, velero types.NamespacedName, after time.Duration, want bool) {
	t.Helper()
	if got := w.enter(velero, 1, start.Add(after)); got != want {
		t.Fatalf("%s may be changed after %s: %t, want %t", velero.Name, after, got, want)
	}
}

// woken are those that are brought back, in their order.
func woken(w *waves) []string {
	var names []string
	for len(w.wake) > 0 {
		names = append(names, (<-w.wake).Object.Name)
	}
	return names
}

func expectWoken(t *testing.T, w *waves, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, woken(w), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("woken (-want +got):\n%s", diff)
	}
}

func TestWavesGoOneAfterTheOther(t *testing.T) {
	w := &waves{wake: make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)}
	entering(t, w, veleroA, 0, true)
	entering(t, w, veleroA, time.Second, true) // it is being changed already
	entering(t, w, veleroC, time.Second, false)
	entering(t, w, veleroB, time.Second, false)
	entering(t, w, veleroC, time.Second, false)
	expectWoken(t, w)
	w.leave(veleroA)
	expectWoken(t, w, "c")
	entering(t, w, veleroC, time.Second, true)
	w.leave(veleroC)
	expectWoken(t, w, "b")
	w.leave(veleroC) // again Ready, without having been changed
	expectWoken(t, w)
}

func TestWavesDoNotWaitForeverForOne(t *testing.T) {
	w := &waves{wake: make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)}
	entering(t, w, veleroA, 0, true)
	entering(t, w, veleroB, turn, false)
	entering(t, w, veleroB, turn+time.Second, true)
}

func TestWavesForgetWhoeverHasNothingToWaitFor(t *testing.T) {
	w := &waves{wake: make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)}
	entering(t, w, veleroA, 0, true)
	entering(t, w, veleroB, 0, false)
	entering(t, w, veleroC, 0, false)
	w.pass(veleroB)  // the edit was taken back
	w.leave(veleroC) // deleted while it waited
	w.leave(veleroA)
	expectWoken(t, w)
}

func TestUsersOvertakeAndHoldUpNobody(t *testing.T) {
	w := &waves{wake: make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)}
	entering(t, w, veleroA, 0, true)
	entering(t, w, veleroB, 0, false)
	entering(t, w, veleroC, 0, false)
	w.overtake(veleroB, start)
	entering(t, w, veleroB, time.Second, true)
	w.leave(veleroA)
	expectWoken(t, w, "c")
	entering(t, w, veleroC, 2*time.Second, true) // although what B's user asked for is not done yet
	w.leave(veleroB)
	expectWoken(t, w)
	entering(t, w, veleroB, 3*time.Second, false) // another edit of the ProviderConfig
}

func TestUsersDoNotOvertakeForever(t *testing.T) {
	w := &waves{}
	entering(t, w, veleroA, time.Second, true)
	w.overtake(veleroB, start)
	entering(t, w, veleroB, turn+time.Millisecond, false)
}

// TestWaitingIsNoTurn: a Velero that waits is Ready all the time, and that must not take it out of the queue.
func TestWaitingIsNoTurn(t *testing.T) {
	w := &waves{wake: make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)}
	velero := func(key types.NamespacedName, phase v1alpha1.InstancePhase) *v1alpha1.Velero {
		return &v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{Name: key.Name}, Status: v1alpha1.VeleroStatus{Status: commonapi.Status{Phase: string(phase)}}}
	}
	entering(t, w, veleroA, 0, true)
	entering(t, w, veleroB, 0, false)
	w.observe(velero(veleroB, v1alpha1.Ready), true)
	w.observe(velero(veleroA, v1alpha1.Progressing), false)
	expectWoken(t, w)
	w.observe(velero(veleroA, v1alpha1.Ready), false)
	expectWoken(t, w, "b")
}
