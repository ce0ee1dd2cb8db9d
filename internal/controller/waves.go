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

// wakeBuffer is how many may be woken at once; one that is not woken looks again by itself after its turn.
const wakeBuffer = 1024

// waves lets one edit of the ProviderConfig reach many Veleros a few at a time: Flux has few workers, and an edit that breaks servers should
// not break all of them at once. It is kept in memory only: after a restart some more may be changed at the same time. The zero value is ready to use, and wakes nobody.
type waves struct {
	mutex sync.Mutex
	// moving says until when a Velero counts as being changed.
	moving map[types.NamespacedName]time.Time
	// asked says until when a Velero is changed because its user asked for something. Those are not among the moving, so that no user can hold up
	// a rollout.
	asked map[types.NamespacedName]time.Time
	// queue are the Veleros that wait for their turn, first come first served.
	queue []types.NamespacedName
	// wake brings those back whose turn may have come.
	wake chan event.TypedGenericEvent[*v1alpha1.Velero]
}

// enter says whether a Velero may be changed now. If not, it is queued.
func (w *waves) enter(velero types.NamespacedName, limit int, now time.Time) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.expire(now)
	_, moving := w.moving[velero]
	_, asked := w.asked[velero]
	if !moving && !asked && len(w.moving) >= limit {
		if !slices.Contains(w.queue, velero) {
			w.queue = append(w.queue, velero)
		}
		return false
	}
	if !moving && !asked {
		w.moving[velero] = now.Add(turn)
	}
	w.dequeue(velero)
	return true
}

func (w *waves) expire(now time.Time) {
	if w.moving == nil {
		w.moving, w.asked = map[types.NamespacedName]time.Time{}, map[types.NamespacedName]time.Time{}
	}
	over := func(_ types.NamespacedName, until time.Time) bool { return now.After(until) }
	maps.DeleteFunc(w.moving, over)
	maps.DeleteFunc(w.asked, over)
}

// overtake lets a Velero be changed at once whose user asked for something, until that is done: it may take several steps.
func (w *waves) overtake(velero types.NamespacedName, now time.Time) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.expire(now)
	w.asked[velero] = now.Add(turn)
	w.dequeue(velero)
}

// pass takes a Velero out of the queue that has nothing to wait for any more.
func (w *waves) pass(velero types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.dequeue(velero)
}

// leave takes note that a Velero is Ready, or is none any more, and wakes the next one.
func (w *waves) leave(velero types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.dequeue(velero)
	delete(w.asked, velero)
	if _, moving := w.moving[velero]; !moving {
		return
	}
	delete(w.moving, velero)
	if len(w.queue) == 0 {
		return
	}
	next := &v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{Namespace: w.queue[0].Namespace, Name: w.queue[0].Name}}
	select {
	case w.wake <- event.TypedGenericEvent[*v1alpha1.Velero]{Object: next}:
		w.queue = w.queue[1:]
	default:
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
// have to wait; until then it is as its user asked for. Whatever its user changed is done at once.
func (r *Reconciler) itsTurn(velero *v1alpha1.Velero, resolved *plan.Plan, releases []fluxgen.Release, secrets []plan.GeneratedSecret, observed cluster.Observation) (bool, error) {
	key := client.ObjectKeyFromObject(velero)
	differs, err := changes(releases, secrets, observed)
	switch {
	case err != nil:
		return false, err
	case !differs:
		r.waves.pass(key)
		return true, nil
	case velero.Generation != velero.Status.ObservedGeneration:
		r.waves.overtake(key, time.Now())
		return true, nil
	}
	return r.waves.enter(key, resolved.MaxConcurrent(), time.Now()), nil
}

// changes says whether anything would be changed about a Velero that is installed. The server's identity does not count: it is renewed at
// once, and restarts nothing.
func changes(releases []fluxgen.Release, secrets []plan.GeneratedSecret, observed cluster.Observation) (bool, error) {
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
	return slices.ContainsFunc(secrets, func(secret plan.GeneratedSecret) bool {
		return !secret.Identity() && !secret.UpToDate(observed.Secrets[secret.Name])
	}), nil
}
