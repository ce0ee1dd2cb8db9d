package status

import (
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

const (
	// longestWait is how long a change of the server waits for backups and restores, and longestBlindWait for a control plane that cannot be
	// looked at: a server that cannot be changed is no better than a backup that has to be made again.
	longestWait, longestBlindWait = time.Hour, 5 * time.Minute
	// What is waited for is looked at again after a while, which becomes longer with the wait.
	shortestLook, longestLook = 15 * time.Second, time.Minute
)

// Hold is a change of the server that waits, since a restart fails the backups and restores that run.
type Hold struct {
	v1alpha1.PendingChange
	// Change is what waits.
	Change string
	// Ongoing is what it waits for.
	Ongoing []string
}

// Interrupts says whether a change would interrupt a server. One that was never installed, or that Flux is at work on or has failed with, has
// nothing that goes on.
func Interrupts(release *helmv2.HelmRelease) bool {
	latest := newest(release.Status.History)
	return latest != nil && latest.Status == deployedStatus && release.Status.ObservedGeneration == release.Generation
}

// Expired says whether a change has waited for as long as it may, whatever still runs.
func Expired(pending *v1alpha1.PendingChange, now time.Time) bool {
	return pending != nil && !now.Before(deadline(*pending))
}

func deadline(pending v1alpha1.PendingChange) time.Time {
	latest := pending.Since.Add(longestWait)
	if pending.UnseenSince != nil {
		if blind := pending.UnseenSince.Add(longestBlindWait); blind.Before(latest) {
			return blind
		}
	}
	return latest
}

// Gate is what a change waits for after a look at the control plane; nil when it does not wait. pending is since when it has waited.
func Gate(pending *v1alpha1.PendingChange, ongoing []string, unseen bool, now time.Time) *Hold {
	if len(ongoing) == 0 && !unseen {
		return nil
	}
	// As precise as the API stores it.
	moment := metav1.NewTime(now).Rfc3339Copy()
	hold := &Hold{PendingChange: v1alpha1.PendingChange{Since: moment}, Ongoing: ongoing}
	if pending != nil {
		hold.PendingChange = *pending.DeepCopy()
	}
	switch {
	case !unseen:
		hold.UnseenSince = nil
	case hold.UnseenSince == nil:
		hold.UnseenSince = &moment
	}
	if Expired(&hold.PendingChange, now) {
		return nil
	}
	return hold
}

// Again is after which time to look again.
func (h *Hold) Again(now time.Time) time.Duration {
	again := max(shortestLook, min(longestLook, now.Sub(h.Since.Time)/8))
	return max(time.Second, min(again, deadline(h.PendingChange).Sub(now)))
}

func (h *Hold) verdict() verdict {
	latest := deadline(h.PendingChange).UTC().Format("15:04 UTC")
	if h.UnseenSince != nil {
		return waiting(v1alpha1.ReasonWaitingForBackup, fmt.Sprintf(
			"%s as soon as no backup or restore runs, at the latest at %s: the control plane cannot be reached to see whether any does", h.Change, latest))
	}
	what, are := h.Ongoing[0], "is"
	if more := len(h.Ongoing) - 1; more > 0 {
		what, are = fmt.Sprintf("%s and %d more", what, more), "are"
	}
	return waiting(v1alpha1.ReasonWaitingForBackup, fmt.Sprintf("%s as soon as %s %s done, at the latest at %s", h.Change, what, are, latest))
}

// pendingChange is what is remembered of a wait. While nothing could be decided, it is as it was.
func pendingChange(stored *v1alpha1.PendingChange, observed Observation) *v1alpha1.PendingChange {
	switch {
	case observed.Removal != nil:
		return nil
	case observed.Hold != nil:
		return observed.Hold.DeepCopy()
	case observed.Server.Wanted == nil, observed.Obstacle != nil:
		return stored
	default:
		return nil
	}
}
