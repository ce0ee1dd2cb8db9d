package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/status"
)

const (
	// standing is how long the platform cluster must refuse what is written for a Velero, or lack its kind, before its user is told: a webhook, a
	// policy, a quota or a CRD that is just being changed is nobody's business.
	standing = 10 * time.Second
	// outage is how long everything else must fail: an API server that is restarted is back by then.
	outage = time.Minute
)

// failures are the Veleros for which nothing succeeds on the platform cluster, and since when. It is kept in memory only. The zero value is
// ready to use.
type failures struct {
	mutex sync.Mutex
	of    map[types.NamespacedName]failing
}

// failing is a Velero for which something has failed since it last succeeded.
type failing struct {
	since time.Time
	// reason is that of the last failure, and the same without a break since then.
	reason      string
	reasonSince time.Time
	// told is what the user was told last; empty until then.
	told string
}

// stands says whether to tell about a failure. Once one is told, another one must last by itself to take its place: those that take turns
// do not make the status do so.
func (f *failures) stands(velero types.NamespacedName, err error, now time.Time) (reason string, tell bool) {
	reason = reasonOf(err)
	if reason == "" {
		return "", false
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.of == nil {
		f.of = map[types.NamespacedName]failing{}
	}
	one, known := f.of[velero]
	if !known {
		one.since = now
	}
	if one.reason != reason {
		one.reason, one.reasonSince = reason, now
	}
	if one.lasts(now) {
		one.told = reason
	}
	f.of[velero] = one
	return reason, one.told == reason
}

// lasts says whether the last failure has lasted. That nothing succeeds takes no more than failures of any kind.
func (f failing) lasts(now time.Time) bool {
	switch {
	case f.reason != v1alpha1.ReasonPlatformUnavailable:
		return now.Sub(f.reasonSince) >= standing
	case f.told == "":
		return now.Sub(f.since) >= outage
	default:
		return now.Sub(f.reasonSince) >= outage
	}
}

// over takes note that nothing fails any more.
func (f *failures) over(velero types.NamespacedName) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.of, velero)
}

// reasonOf is what to tell about an error that lasts; empty when it is part of the business.
func reasonOf(err error) string {
	switch {
	case apierrors.IsConflict(err), apierrors.IsTooManyRequests(err), errors.Is(err, context.Canceled):
		return ""
	case refusal(err):
		return v1alpha1.ReasonPlatformRefuses
	case unserved(err):
		return v1alpha1.ReasonPlatformIncomplete
	default:
		return v1alpha1.ReasonPlatformUnavailable
	}
}

// refusal says whether an API server will refuse the same again until a person acts: by an admission webhook or policy, a quota, the rights that
// were granted, or the validation of the kind. What passes by itself is none.
func refusal(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	// A webhook that gives no code has its refusal end as a bad request.
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// unserved says whether an API server does not know the kind: one that knows it names in its answer what was not found.
func unserved(err error) bool {
	return apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// tellFailure tells about an error of an installation that has lasted. The error stays one, and is tried again.
func (r *Reconciler) tellFailure(ctx context.Context, velero *v1alpha1.Velero, observation status.Observation, cause error) error {
	reason, tell := r.failures.stands(client.ObjectKeyFromObject(velero), cause, time.Now())
	if !tell {
		return cause
	}
	observation.Obstacle = status.ObstacleOf(reason, cause.Error())
	return errors.Join(cause, r.writeStatus(ctx, velero, observation))
}

// tellFailure does the same for a step of a deletion.
func (d *removal) tellFailure(ctx context.Context, step step, cause error) error {
	reason, tell := d.failures.stands(d.key, cause, time.Now())
	if !tell {
		return cause
	}
	reported := &status.Removal{
		Reason: step.reason, Problem: reason, Message: step.message + ": " + status.ObstacleOf(reason, cause.Error()).Message,
	}
	return errors.Join(cause, d.writeStatus(ctx, d.velero, status.Observation{Removal: reported}))
}
