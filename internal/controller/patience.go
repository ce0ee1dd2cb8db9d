package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// lookAgain is the shortest time between two looks at what nothing watches, and lookAgainLater the longest.
	lookAgain, lookAgainLater = 2 * time.Second, time.Minute
	// A user who deletes the last object waits for the deletion to go on; for an hour it is noticed within lookAgainUser.
	lookAgainUser, userWaits = 8 * time.Second, time.Hour
	// forgotten is when a wait is over that nobody asked about.
	forgotten = 10 * lookAgainLater
)

// patience says when to look again at what nothing watches, as a deletion does at another cluster: the longer it has waited, the later. So what
// makes progress is quick, and what stands still for days, or holds a worker with every look at a cluster that does not answer, costs next to
// nothing. It is kept in memory only. The zero value is ready to use.
type patience struct {
	mutex sync.Mutex
	waits map[types.UID]standstill
}

// standstill is a wait for one thing.
type standstill struct {
	reason     string
	since, now time.Time
}

// next is when to look again at what a Velero waits for; for its user, when it is the user whom it waits for.
func (p *patience) next(velero types.UID, reason string, user bool, now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.waits == nil {
		p.waits = map[types.UID]standstill{}
	}
	for other, wait := range p.waits {
		if now.Sub(wait.now) > forgotten {
			delete(p.waits, other)
		}
	}
	wait := p.waits[velero]
	if wait.reason != reason {
		wait = standstill{reason: reason, since: now}
	}
	wait.now = now
	p.waits[velero] = wait
	waited := now.Sub(wait.since)
	latest := lookAgainLater
	if user && waited < userWaits {
		latest = lookAgainUser
	}
	return max(lookAgain, min(latest, waited/2))
}

// over takes note that a Velero waits for nothing of the kind any more: the next wait is a new one.
func (p *patience) over(velero types.UID) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.waits, velero)
}
