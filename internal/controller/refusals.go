package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/internal/status"
)

// standing is how long the platform cluster must refuse what is written for a Velero before its user is told: a webhook, a policy or a quota
// that is just being changed is nobody's business.
const standing = 10 * time.Second

// refusals are the Veleros for which the platform cluster refuses something, and since when. It is kept in memory only. The zero value is ready
// to use.
type refusals struct {
	mutex sync.Mutex
	since map[types.NamespacedName]time.Time
}

// stands says whether an error is a refusal that has lasted.
func (r *refusals) stands(velero types.NamespacedName, err error, now time.Time) bool {
	if !refusal(err) {
		return false
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.since == nil {
		r.since = map[types.NamespacedName]time.Time{}
	}
	if _, known := r.since[velero]; !known {
		r.since[velero] = now
	}
	return now.Sub(r.since[velero]) >= standing
}

// over takes note that nothing is refused any more.
func (r *refusals) over(velero types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.since, velero)
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

// tellRefusal tells about an error of an installation when it is a refusal that has lasted. The error stays one, and is tried again.
func (r *Reconciler) tellRefusal(ctx context.Context, velero *v1alpha1.Velero, observation status.Observation, cause error) error {
	if !r.refusals.stands(client.ObjectKeyFromObject(velero), cause, time.Now()) {
		return cause
	}
	message := status.Refusal(cause.Error())
	if observation.Access.Granted {
		observation.Blocked = &plan.Blocked{Reason: v1alpha1.ReasonPlatformRefuses, Message: message}
	} else {
		observation.Access = status.Access{Reason: v1alpha1.ReasonPlatformRefuses, Message: message, Failed: true}
	}
	return errors.Join(cause, r.writeStatus(ctx, velero, observation))
}

// tellRefusal does the same for a step of a deletion.
func (d *removal) tellRefusal(ctx context.Context, step step, cause error) error {
	if !d.refusals.stands(d.key, cause, time.Now()) {
		return cause
	}
	reported := &status.Removal{
		Reason: step.reason, Problem: v1alpha1.ReasonPlatformRefuses, Message: step.message + ": " + status.Refusal(cause.Error()),
	}
	return errors.Join(cause, d.writeStatus(ctx, d.velero, status.Observation{Removal: reported}))
}
