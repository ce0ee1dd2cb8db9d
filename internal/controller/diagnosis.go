package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/internal/status"
)

const (
	// usual is how long a server may take to become ready before anybody looks why it does not.
	usual = time.Minute
	// Then its pods are looked at again after a while, which becomes longer.
	lookAtPods, lookAtPodsLater = 30 * time.Second, 5 * time.Minute
	// unasked is when a server is forgotten that nobody asked about.
	unasked = time.Hour
)

// looks are the servers that do not become ready, and what was found. It is kept in memory only. The zero value is ready to use.
type looks struct {
	mutex sync.Mutex
	of    map[types.UID]looked
}

// looked is what is known of one server that is as wanted in that generation of its HelmRelease.
type looked struct {
	generation int64
	since      time.Time
	// next is when to look at its pods, which somebody may have done before.
	next   time.Time
	before bool
	found  *status.Diagnosis
}

// begin says what was found, and whether to look now. Whoever is known to be in trouble is looked at without a wait.
func (l *looks) begin(velero types.UID, generation int64, trouble bool, told *status.Diagnosis, now time.Time) (found *status.Diagnosis, look bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.of == nil {
		l.of = map[types.UID]looked{}
	}
	one, known := l.of[velero]
	switch {
	case !known:
		// What a process before this one has told is still true until it is known better.
		one = looked{generation: generation, since: now, next: now.Add(usual), found: told}
		trouble = trouble || told != nil
	case one.generation != generation:
		one = looked{generation: generation, since: now, next: now.Add(usual)}
	}
	if trouble && !one.before {
		one.next = now
	}
	l.of[velero] = one
	return one.found, !now.Before(one.next)
}

// end takes note of a look.
func (l *looks) end(velero types.UID, found *status.Diagnosis, now time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for other, one := range l.of {
		if now.Sub(one.next) > unasked {
			delete(l.of, other)
		}
	}
	one := l.of[velero]
	one.found, one.before = found, true
	one.next = now.Add(max(lookAtPods, min(lookAtPodsLater, now.Sub(one.since)/4)))
	l.of[velero] = one
}

// again is after which time to look; none when there is nothing to look at, or nobody did when it was time.
func (l *looks) again(velero types.UID, now time.Time) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if one, known := l.of[velero]; known {
		return one.next.Sub(now)
	}
	return 0
}

// over takes note that there is nothing to look for any more.
func (l *looks) over(velero types.UID) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.of, velero)
}

// diagnose looks why a server does not become ready, which Flux does not say.
func (r *Reconciler) diagnose(ctx context.Context, velero *v1alpha1.Velero, resolved *plan.Plan, grant plan.Grant, observation *status.Observation) error {
	installing, failed := status.Unready(*observation, velero.Status.Conditions)
	if !installing && !failed {
		r.looks.over(velero.UID)
		return nil
	}
	now := time.Now()
	found, look := r.looks.begin(velero.UID, observation.Server.HelmRelease.Generation, failed, status.Told(velero.Status.Conditions), now)
	if look {
		seen, err := r.pods(ctx, resolved, grant)
		switch {
		case err == nil:
			found = seen
		case !cluster.Unseen(err):
			return err
		default:
			logf.FromContext(ctx).Info("the pods of a server cannot be looked at", "cause", err.Error())
		}
		r.looks.end(velero.UID, found, now)
	}
	observation.Diagnosis = found
	return nil
}

func (r *Reconciler) pods(ctx context.Context, resolved *plan.Plan, grant plan.Grant) (*status.Diagnosis, error) {
	remote, err := r.Platform.Remote(ctx, resolved.Names, grant)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	pods, refusal, err := cluster.ServerPods(ctx, remote, resolved.Names.WorkloadNamespace)
	if err != nil {
		return nil, err
	}
	return status.Diagnose(pods, refusal, resolved.PluginNames()), nil
}
