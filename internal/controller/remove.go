package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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

// removal is a deletion that is going on. It needs the Velero's name and what exists; never its spec or a ProviderConfig, so that a
// version, plugin or configuration that is gone cannot hold it up or leave something behind.
type removal struct {
	*Reconciler
	velero   *v1alpha1.Velero
	key      types.NamespacedName
	names    plan.Names
	holdings access.Holdings
}

// step is one step of a removal. Each is repeated until it is done, and the next one does not start before.
type step struct {
	reason  string
	message string
	remove  func(context.Context) (cluster.Progress, error)
	// watched: an event tells when the step goes on. Other clusters are not watched.
	watched bool
}

// firstLook is where a deletion is that cannot even find out what there is to remove. It says nothing about the steps.
var firstLook = step{reason: v1alpha1.ReasonUserResourcesExist, message: "finding out what is left to remove"}

// steps in their order. The AccessRequests are last: without their credentials Flux would skip the uninstall.
func (d *removal) steps() []step {
	return []step{
		{reason: v1alpha1.ReasonUserResourcesExist, message: "users' objects on the control plane come first", remove: d.userResources},
		{reason: v1alpha1.ReasonRemovingServer, message: "removing the Velero server", watched: true, remove: d.server},
		{reason: v1alpha1.ReasonRemovingWorkloadNamespace, message: "removing the namespace of the Velero server", remove: d.workloadNamespace},
		{reason: v1alpha1.ReasonRemovingControlPlane, message: "removing Velero from the control plane", watched: true, remove: d.controlPlane},
		{reason: v1alpha1.ReasonRemovingCRDs, message: "removing the CRDs of Velero from the control plane", remove: d.crds},
		{reason: v1alpha1.ReasonRemovingPlatformObjects, message: "removing the chart sources and copied secrets", watched: true, remove: d.platformObjects},
		{reason: v1alpha1.ReasonReleasingAccess, message: "waiting for the platform to withdraw the access to the clusters", watched: true, remove: d.access},
	}
}

// remove takes the deletion as far as it goes now, and says in the status at which step it is.
func (r *Reconciler) remove(ctx context.Context, velero *v1alpha1.Velero) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(velero, plan.Finalizer) {
		return ctrl.Result{}, nil
	}
	deletion := &removal{Reconciler: r, velero: velero, key: client.ObjectKeyFromObject(velero)}
	var err error
	if deletion.names, err = plan.NamesOf(deletion.key); err != nil {
		return ctrl.Result{}, err
	}
	if deletion.holdings, err = r.Access.Holdings(ctx, deletion.key); err != nil {
		return ctrl.Result{}, deletion.tellFailure(ctx, firstLook, err)
	}
	for _, step := range deletion.steps() {
		progress, err := step.remove(ctx)
		if err != nil && !waitable(err) {
			return ctrl.Result{}, deletion.tellFailure(ctx, step, fmt.Errorf("%s: %w", step.message, err))
		}
		if err == nil && progress.Done {
			continue
		}
		return deletion.report(ctx, step, progress, err)
	}
	before := velero.DeepCopy()
	controllerutil.RemoveFinalizer(velero, plan.Finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.patch(ctx, velero, before, "remove finalizer"))
}

// waitable says whether an error is about another cluster, or the access to it, so that it belongs into the status and looking again later may
// help.
func waitable(err error) bool {
	return cluster.Unseen(err) || errors.Is(err, access.ErrDenied)
}

// report writes at which step the deletion is.
func (d *removal) report(ctx context.Context, step step, progress cluster.Progress, cause error) (ctrl.Result, error) {
	d.failures.over(d.key)
	reported := &status.Removal{Reason: step.reason, Message: step.message}
	detail := progress.Detail
	switch {
	case cause != nil:
		logf.FromContext(ctx).Info("a deletion waits for another cluster", "step", step.reason, "cause", cause.Error())
		reported.Problem, detail = problem(cause)
	case progress.Failure != "":
		reported.Problem, detail = status.UninstallFailure(progress.Failure)
	}
	if detail != "" {
		reported.Message += ": " + detail
	}
	// Even a step that is watched is looked at again: its cluster may be gone by then.
	result := ctrl.Result{RequeueAfter: lookAgainLater}
	if cause != nil || progress.Failed || !step.watched {
		result.RequeueAfter = d.patience.next(d.velero.UID, step.reason+reported.Problem, progress.Failed, time.Now())
	}
	return result, d.writeStatus(ctx, d.velero, status.Observation{Removal: reported})
}

// problem says what keeps this process from looking at another cluster.
func problem(cause error) (reason, detail string) {
	switch {
	case errors.Is(cause, access.ErrDenied):
		return v1alpha1.ReasonAccessDenied, "the platform denied access to the cluster; a platform operator must have it granted"
	case errors.Is(cause, cluster.ErrCredentials):
		return v1alpha1.ReasonCredentialsInvalid, "the credentials for the cluster are missing or of no use; a platform operator must have access granted again"
	case refused(cause):
		return v1alpha1.ReasonCredentialsInvalid, "the cluster refuses the credentials; a platform operator must have access granted again"
	default:
		return v1alpha1.ReasonTargetUnreachable, "the cluster cannot be reached; it is tried again"
	}
}

// userResources holds the deletion back while users have objects on the control plane. Once the server's removal has begun there is no way
// back: an object that comes later keeps the CRDs, and nothing else.
func (d *removal) userResources(ctx context.Context) (cluster.Progress, error) {
	if d.holdings.ControlPlaneGone {
		return cluster.Progress{Done: true}, nil
	}
	begun, err := d.Platform.RemovalBegun(ctx, d.names, d.velero.UID)
	if begun || err != nil {
		return cluster.Progress{Done: begun}, err
	}
	if has, err := d.hasAccess(ctx, plan.ControlPlaneRelease, access.ControlPlane); !has || err != nil {
		return withoutAccess, err
	}
	grant := d.holdings.ControlPlane
	if grant.Secret == "" {
		// A request that was withdrawn does not make go away what was installed with it.
		grant, err = d.Platform.Target(ctx, d.names, plan.ControlPlaneRelease)
	}
	if err != nil || grant.Secret == "" {
		return cluster.Progress{Done: err == nil}, err
	}
	return d.cleanUp(ctx, grant, d.holdings.ControlPlaneWithdrawn, func(remote client.Client) (cluster.Progress, error) {
		return cluster.UserResources(ctx, remote)
	})
}

// withoutAccess is where a deletion is while access that somebody took away comes back.
var withoutAccess = cluster.Progress{Detail: "the access to the cluster was taken away before; it is requested again"}

// hasAccess brings back the access of a release that exists if somebody took it away.
func (d *removal) hasAccess(ctx context.Context, release, id string) (bool, error) {
	target, err := d.Platform.Target(ctx, d.names, release)
	if err != nil || target.Secret == "" {
		return err == nil, err
	}
	return d.Access.Restore(ctx, d.key, id)
}

func (d *removal) server(ctx context.Context) (cluster.Progress, error) {
	return d.release(ctx, plan.ServerRelease, access.Workload, d.holdings.WorkloadGone)
}

func (d *removal) controlPlane(ctx context.Context) (cluster.Progress, error) {
	return d.release(ctx, plan.ControlPlaneRelease, access.ControlPlane, d.holdings.ControlPlaneGone)
}

// release uninstalls a release with the access of that id.
func (d *removal) release(ctx context.Context, name, id string, targetGone bool) (cluster.Progress, error) {
	if !targetGone {
		if has, err := d.hasAccess(ctx, name, id); !has || err != nil {
			return withoutAccess, err
		}
	}
	// Not before there is access: until then users may still be asked again.
	if err := d.Platform.BeginRemoval(ctx, d.names, d.velero.UID); err != nil {
		return cluster.Progress{}, err
	}
	return d.Platform.RemoveRelease(ctx, d.names, name, targetGone)
}

// workloadNamespace removes the namespace that the workload access came with. Without access there is none, and with the cluster it is gone.
func (d *removal) workloadNamespace(ctx context.Context) (cluster.Progress, error) {
	if d.holdings.WorkloadPending {
		return cluster.Progress{Detail: "it can be looked at once the access is granted that was requested for it"}, nil
	}
	if d.holdings.WorkloadGone || d.holdings.Workload.Secret == "" {
		return cluster.Progress{Done: true}, nil
	}
	return d.cleanUp(ctx, d.holdings.Workload, d.holdings.WorkloadWithdrawn, func(remote client.Client) (cluster.Progress, error) {
		return cluster.RemoveNamespace(ctx, remote, d.names.WorkloadNamespace)
	})
}

// cleanUp does something on another cluster. Credentials that are being withdrawn are used as long as they are good: with a tenant namespace
// that is deleted they go at the same time as all the rest. After that nobody can do it, and nothing comes of waiting.
func (d *removal) cleanUp(ctx context.Context, grant plan.Grant, withdrawn bool, clean func(client.Client) (cluster.Progress, error)) (cluster.Progress, error) {
	remote, err := d.Platform.Remote(ctx, d.names, grant)
	if err == nil {
		var progress cluster.Progress
		if progress, err = clean(remote); err == nil {
			return progress, nil
		}
	}
	if withdrawn && (refused(err) || errors.Is(err, cluster.ErrCredentials)) {
		return cluster.Progress{Done: true}, nil
	}
	return cluster.Progress{}, err
}

func refused(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// crds removes the CRDs that hold no user's data.
func (d *removal) crds(ctx context.Context) (cluster.Progress, error) {
	if d.holdings.ControlPlaneGone || d.holdings.ControlPlane.Secret == "" {
		return cluster.Progress{Done: true}, nil
	}
	return d.cleanUp(ctx, d.holdings.ControlPlane, d.holdings.ControlPlaneWithdrawn, func(remote client.Client) (cluster.Progress, error) {
		return cluster.RemoveCRDs(ctx, remote, d.names, d.velero.CreationTimestamp)
	})
}

func (d *removal) platformObjects(ctx context.Context) (cluster.Progress, error) {
	return d.Platform.RemoveObjects(ctx, d.names)
}

// access gives the access back, unless a HelmRelease still refers to it: one of ours whose labels were edited looks like somebody else's.
func (d *removal) access(ctx context.Context) (cluster.Progress, error) {
	users, err := d.Access.Users(ctx, d.key)
	if err != nil {
		return cluster.Progress{}, err
	}
	if len(users) > 0 {
		return cluster.Progress{Failed: true, Detail: fmt.Sprintf(
			"HelmRelease %s still uses it and does not have the labels of this Velero; a platform operator must give it back its label %s, or delete it",
			strings.Join(users, ", "), plan.InstanceLabel)}, nil
	}
	done, err := d.Access.Release(ctx, d.key)
	return cluster.Progress{Done: done}, err
}
