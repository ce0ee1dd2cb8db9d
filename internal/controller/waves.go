package controller

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// turn bounds how long one Velero counts as being changed when it does not become Ready: a bad edit is held up, and a tenant whose release
// fails for reasons of its own does not hold up all others for ever.
const turn = 10 * time.Minute

// wakeBuffer is how many may be woken at once; those for whom there is no room are woken when somebody looks next.
const wakeBuffer = 1024

// waves lets one edit of the ProviderConfig reach many Veleros a few at a time: Flux has few workers, and an edit that breaks servers should
// not break all of them at once. It is kept in memory only: after a restart some more may be changed at the same time. The zero value is ready to use, and wakes nobody.
//
// A place that is free is never left to whoever comes by: it goes to the first in the queue, who is woken, and to the next one if that one
// does not take it.
type waves struct {
	mutex sync.Mutex
	// limit is how many places there are, as was last said.
	limit int
	// moving says until when a Velero counts as being changed.
	moving map[types.NamespacedName]time.Time
	// woken are those that a place is held for until they have looked.
	woken map[types.NamespacedName]bool
	// queue are the Veleros that wait for their turn, first come first served.
	queue []types.NamespacedName
	// wake brings those back whose turn has come.
	wake chan event.TypedGenericEvent[*v1alpha1.Velero]
}

// enter says whether a Velero may be changed now. If not, it is queued.
func (w *waves) enter(velero types.NamespacedName, limit int, now time.Time) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.limit = limit
	w.expire(now)
	defer w.wakeNext()
	if _, moving := w.moving[velero]; moving {
		return true
	}
	delete(w.woken, velero)
	if w.full() {
		if !slices.Contains(w.queue, velero) {
			w.queue = append(w.queue, velero)
		}
		return false
	}
	if w.moving == nil {
		w.moving = map[types.NamespacedName]time.Time{}
	}
	w.moving[velero] = now.Add(turn)
	w.dequeue(velero)
	time.AfterFunc(turn+time.Second, w.lapse)
	return true
}

func (w *waves) full() bool { return len(w.moving)+len(w.woken) >= w.limit }

func (w *waves) expire(now time.Time) {
	maps.DeleteFunc(w.moving, func(_ types.NamespacedName, until time.Time) bool { return now.After(until) })
}

// lapse gives the place of one that did not become Ready to the next.
func (w *waves) lapse() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.expire(time.Now())
	w.wakeNext()
}

// pass takes a Velero out of the queue that has nothing to wait for any more.
func (w *waves) pass(velero types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.dequeue(velero)
	delete(w.woken, velero)
	w.wakeNext()
}

// leave takes note that a Velero is Ready, or is none any more.
func (w *waves) leave(velero types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.dequeue(velero)
	delete(w.woken, velero)
	delete(w.moving, velero)
	w.wakeNext()
}

// looked takes note that a Velero was looked at, whatever came of it: a place that was held for it and that it did not take is free again.
func (w *waves) looked(velero types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.woken, velero)
	w.wakeNext()
}

// wakeNext holds the free places for the first ones in the queue, and wakes them.
func (w *waves) wakeNext() {
	for len(w.queue) > 0 && !w.full() {
		first := w.queue[0]
		select {
		case w.wake <- event.TypedGenericEvent[*v1alpha1.Velero]{Object: &v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: first.Name}}}:
		default:
			return
		}
		if w.woken == nil {
			w.woken = map[types.NamespacedName]bool{}
		}
		w.woken[first], w.queue = true, w.queue[1:]
	}
}

// observe takes note of what became of a Velero. One that waits is Ready all the time.
func (w *waves) observe(velero *v1alpha1.Velero, queued bool) {
	if ready := velero.Status.Phase == string(v1alpha1.Ready); ready && !queued || !velero.DeletionTimestamp.IsZero() {
		w.leave(client.ObjectKeyFromObject(velero))
	}
}

func (w *waves) dequeue(velero types.NamespacedName) {
	w.queue = slices.DeleteFunc(w.queue, func(queued types.NamespacedName) bool { return queued == velero })
}

// itsTurn says whether a Velero that runs may be changed now. What an edit of the ProviderConfig, or of what it refers to, changes about it may
// have to wait; until then it is as its user asked for. What its user chose is done at once, and as long as it is not: nothing that is
// remembered says so, since an operator forgets, and since what was chosen may be offered only later.
func (r *Reconciler) itsTurn(velero *v1alpha1.Velero, resolved *plan.Plan, releases []fluxgen.Release, observed cluster.Observation) (bool, error) {
	key := client.ObjectKeyFromObject(velero)
	differs, err := changes(releases, observed)
	if err != nil {
		return false, err
	}
	// A change that waits for backups has had its turn, which may be over by now.
	edited := velero.Generation != velero.Status.ObservedGeneration || velero.Status.PendingChange != nil
	if !differs || edited || !hasChoice(resolved, observed) {
		r.waves.pass(key)
		return true, nil
	}
	return r.waves.enter(key, resolved.MaxConcurrent(), time.Now()), nil
}

// hasChoice says whether what is installed has what the user chose.
func hasChoice(resolved *plan.Plan, observed cluster.Observation) bool {
	controlPlane, server := observed.Releases[plan.ControlPlaneRelease], observed.Releases[plan.ServerRelease]
	return controlPlane != nil && server != nil && resolved.HasChoice(controlPlane.Spec.Values, server.Spec.Values)
}

// changes says whether any release of a Velero that is installed would be changed. Secrets do not count: they are renewed at once, and a rotation
// restarts nothing.
func changes(releases []fluxgen.Release, observed cluster.Observation) (bool, error) {
	for _, release := range releases {
		_, wanted, err := fluxgen.Render(release)
		if err != nil {
			return false, fmt.Errorf("generate release %q: %w", release.Name, err)
		}
		current := observed.Releases[release.Name]
		if current == nil {
			return false, nil
		}
		if cluster.Differs(current, wanted) {
			return true, nil
		}
	}
	return false, nil
}
