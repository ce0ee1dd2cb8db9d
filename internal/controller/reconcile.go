// Package controller is the flow: it reads, asks the pure packages what to do, does it, and says what came of it. Decisions are made in plan,
// fluxgen and status; here is only their order.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/internal/status"
)

const (
	// resync is how often every Velero is looked at although no event asked for it. It is a net under the watches, not a poll: it costs
	// nothing when nothing changed.
	resync, resyncJitter = 30 * time.Minute, 0.2
	// conflictRetry is when to look again after our view of an object turned out to be old.
	conflictRetry = 500 * time.Millisecond
)

// Reconciler makes what runs follow the Velero objects.
type Reconciler struct {
	// Onboarding reads from the cache of the onboarding cluster and writes to it.
	Onboarding client.Client
	// Configs says which ProviderConfig applies.
	Configs Configs
	// Access gets and gives back credentials.
	Access *access.Access
	// Platform is where the Flux objects are.
	Platform *cluster.Platform
	// Recorder writes Events on the onboarding cluster.
	Recorder events.EventRecorder

	waves    waves
	patience patience
	failures failures
	looks    looks
}

// Reconcile brings one Velero one step further. Of the three outcomes, blocked and waiting end in the status, and the watches bring us back;
// only what failed is retried.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer r.waves.looked(request.NamespacedName)
	velero := &v1alpha1.Velero{}
	if err := r.Onboarding.Get(ctx, request.NamespacedName, velero); err != nil {
		r.waves.leave(request.NamespacedName)
		r.failures.over(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ignored(velero) {
		r.reportIgnored(velero)
		return ctrl.Result{}, nil
	}
	result, err := r.reconcile(ctx, velero.DeepCopy())
	if apierrors.IsConflict(err) {
		logf.FromContext(ctx).V(1).Info("an object changed in between, looking again", "cause", err.Error())
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, velero *v1alpha1.Velero) (ctrl.Result, error) {
	if err := r.acknowledge(ctx, velero); err != nil {
		return ctrl.Result{}, err
	}
	if !velero.DeletionTimestamp.IsZero() {
		return r.remove(ctx, velero)
	}
	if err := r.ensureFinalizer(ctx, velero); err != nil {
		return ctrl.Result{}, err
	}
	observation, err := r.install(ctx, velero)
	if err != nil {
		return ctrl.Result{}, r.tellFailure(ctx, velero, observation, err)
	}
	r.failures.over(client.ObjectKeyFromObject(velero))
	if err := r.writeStatus(ctx, velero, observation); err != nil {
		return ctrl.Result{}, err
	}
	return r.nextLook(velero.UID, observation, time.Now()), nil
}

// nextLook is when to look again although no event asks for it.
func (r *Reconciler) nextLook(velero types.UID, observation status.Observation, now time.Time) ctrl.Result {
	if reason := unwatched(observation); reason != "" {
		return ctrl.Result{RequeueAfter: r.patience.next(velero, reason, false, now)}
	}
	r.patience.over(velero)
	if observation.Hold != nil {
		return ctrl.Result{RequeueAfter: observation.Hold.Again(now)}
	}
	if after := r.looks.again(velero, now); after > 0 {
		return ctrl.Result{RequeueAfter: after}
	}
	if observation.Queued {
		return ctrl.Result{RequeueAfter: wait.Jitter(turn, resyncJitter)}
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(resync, resyncJitter)}
}

// unwatched is the reason of a wait that no event ends; empty when there is none. What belongs to somebody else is not in our cache, so nobody
// tells when it is gone.
func unwatched(observation status.Observation) string {
	switch {
	case observation.Access.Unwatched, observation.Access.Reason == v1alpha1.ReasonNameConflict:
		return observation.Access.Reason
	case observation.Blocked != nil && observation.Blocked.Reason == v1alpha1.ReasonNameConflict:
		return observation.Blocked.Reason
	default:
		return ""
	}
}

// ensureFinalizer comes before the first object is created anywhere, so that nothing can be left behind.
func (r *Reconciler) ensureFinalizer(ctx context.Context, velero *v1alpha1.Velero) error {
	before := velero.DeepCopy()
	if !controllerutil.AddFinalizer(velero, plan.Finalizer) {
		return nil
	}
	return r.patch(ctx, velero, before, "add finalizer")
}

func (r *Reconciler) patch(ctx context.Context, velero, before *v1alpha1.Velero, purpose string) error {
	if err := r.Onboarding.Patch(ctx, velero, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("%s: %w", purpose, err)
	}
	return nil
}

// writeStatus writes at most once, and only what differs. The next one in a rollout has its turn when that is written, so that nobody sees two of
// them being changed.
func (r *Reconciler) writeStatus(ctx context.Context, velero *v1alpha1.Velero, observation status.Observation) error {
	before := velero.DeepCopy()
	velero.Status = status.Compute(velero, observation, metav1.Now())
	if status.Changed(before.Status, velero.Status) {
		if err := r.patchStatus(ctx, velero, before); err != nil {
			return err
		}
	}
	r.waves.observe(velero, observation.Queued)
	return nil
}

// patchStatus reports transitions after the write, so that a lost race does not report twice.
func (r *Reconciler) patchStatus(ctx context.Context, velero, before *v1alpha1.Velero) error {
	err := r.Onboarding.Status().Patch(ctx, velero, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	for _, event := range status.Transitions(before.Status.Conditions, velero.Status.Conditions) {
		r.Recorder.Eventf(velero, nil, event.Type, event.Reason, "Reconcile", "%s", event.Message)
	}
	return nil
}

// blockedBy translates a name conflict, which a person must resolve; nil for every other error.
func blockedBy(err error) *plan.Blocked {
	var conflict *cluster.ConflictError
	if !errors.As(err, &conflict) {
		return nil
	}
	return &plan.Blocked{Reason: v1alpha1.ReasonNameConflict, Message: conflict.Error() + fmt.Sprintf(
		"; a platform operator must give it back its label %s if somebody changed that, and else remove it", plan.InstanceLabel)}
}
