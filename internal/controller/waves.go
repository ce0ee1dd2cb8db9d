package controller

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// errNotItsTurn: a change of the ProviderConfig has to wait. Nothing is changed and nothing is told until then; what runs is still what the
// user asked for.
var errNotItsTurn = errors.New("waits for its turn in a rollout")

// turn bounds how long one Velero counts as being changed. A tenant whose release fails for reasons of its own must not hold up all others.
const turn = 10 * time.Minute

// waves lets one edit of the ProviderConfig reach many Veleros a few at a time: Flux has few workers, and an edit that breaks servers should
// not break all of them at once. It is kept in memory only: after a restart some more may be changed at the same time. The zero value is
// ready to use.
type waves struct {
	mutex sync.Mutex
	// moving says until when a Velero counts as being changed.
	moving map[types.NamespacedName]time.Time
	// queue are the Veleros that wait for their turn, first come first served.
	queue []types.NamespacedName
}

// enter says whether a Velero may be changed now. If not, it is queued.
func (w *waves) enter(velero types.NamespacedName, limit int, now time.Time) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.moving == nil {
		w.moving = map[types.NamespacedName]time.Time{}
	}
	for other, until := range w.moving {
		if now.After(until) {
			delete(w.moving, other)
		}
	}
	if _, moving := w.moving[velero]; !moving && len(w.moving) >= limit {
		if !slices.Contains(w.queue, velero) {
			w.queue = append(w.queue, velero)
		}
		return false
	} else if !moving {
		w.moving[velero] = now.Add(turn)
	}
	w.dequeue(velero)
	return true
}

// settle takes note of where a Velero is. Everything but Progressing makes room for the next one.
func (w *waves) settle(velero types.NamespacedName, phase string) {
	if phase == string(v1alpha1.Progressing) {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.moving, velero)
	if phase == string(v1alpha1.Terminating) {
		w.dequeue(velero)
	}
}

// next are the first Veleros that wait.
func (w *waves) next(count int) []types.NamespacedName {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.queue[:min(count, len(w.queue))])
}

func (w *waves) dequeue(velero types.NamespacedName) {
	w.queue = slices.DeleteFunc(w.queue, func(queued types.NamespacedName) bool { return queued == velero })
}
