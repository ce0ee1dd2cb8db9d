package controller

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
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

// TestPlaceIsNotLeftEmpty: whoever is woken and does not take its place makes room for the next.
func TestPlaceIsNotLeftEmpty(t *testing.T) {
	for name, what := range map[string]func(*waves, types.NamespacedName){
		"has nothing to wait for any more":       (*waves).pass,
		"is Ready already, or deleted":           (*waves).leave,
		"is blocked, ignored, waiting, or fails": (*waves).looked,
	} {
		t.Run(name, func(t *testing.T) {
			w := &waves{wake: make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)}
			entering(t, w, veleroA, 0, true)
			entering(t, w, veleroB, 0, false)
			entering(t, w, veleroC, 0, false)
			w.leave(veleroA)
			expectWoken(t, w, "b")
			w.looked(veleroA)
			expectWoken(t, w) // the place is held
			entering(t, w, veleroA, time.Second, false)
			what(w, veleroB)
			expectWoken(t, w, "c")
			entering(t, w, veleroC, time.Second, true)
			w.looked(veleroC)
			expectWoken(t, w)
		})
	}
}

func TestMorePlacesWakeMore(t *testing.T) {
	w := &waves{wake: make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)}
	entering(t, w, veleroA, 0, true)
	entering(t, w, veleroB, 0, false)
	entering(t, w, veleroC, 0, false)
	w.enter(veleroA, 3, start)
	expectWoken(t, w, "b", "c")
	entering(t, w, veleroB, time.Second, false) // it is one place again
}

// TestLapsedPlaceWakesTheNext without anybody looking.
func TestLapsedPlaceWakesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &waves{wake: make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)}
		w.enter(veleroA, 1, time.Now())
		w.enter(veleroB, 1, time.Now())
		time.Sleep(turn)
		expectWoken(t, w)
		time.Sleep(2 * time.Second)
		expectWoken(t, w, "b")
	})
}

// TestEveryoneHasItsTurn, with many at a time, some of whom do not take their place.
func TestEveryoneHasItsTurn(t *testing.T) {
	const limit, count = 3, 100
	w := &waves{wake: make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)}
	var done sync.WaitGroup
	done.Add(count)
	look := func(number int) {
		velero := types.NamespacedName{Name: strconv.Itoa(number)}
		defer w.looked(velero)
		switch {
		case number%7 == 0: // by now, it is blocked
			done.Done()
		case w.enter(velero, limit, start):
			w.leave(velero)
			done.Done()
		}
	}
	for number := range count {
		w.enter(types.NamespacedName{Name: strconv.Itoa(number)}, 0, start)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range workers {
		go func() {
			for {
				select {
				case woken := <-w.wake:
					number, _ := strconv.Atoi(woken.Object.Name)
					look(number)
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	w.enter(veleroA, limit, start)
	w.leave(veleroA)
	done.Wait()
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
