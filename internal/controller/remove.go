package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// The other clusters are not watched, so a step that waits for one of them looks again after a while; only while deleting.
const (
	lookAgain        = 2 * time.Second
	lookAgainBlocked = 5 * time.Second
	lookAgainUnready = 15 * time.Second
)

// removal is a deletion that is going on. It needs the Velero's name and what exists; never its spec or a ProviderConfig, so that a
// version, plugin or configuration that is gone cannot hold it up or leave something behind.
type removal struct {
	*Reconciler
	names    plan.Names
	holdings access.Holdings
}

// step is one step of a removal. Each is repeated until it is done, and the next one does not start before.
type step struct {
	reason  string
	message string
	remove  func(context.Context) (cluster.Progress, error)
	// remote: the step works on another cluster, which nothing watches and which may be unreachable.
	remote bool
}

// steps in their order. The AccessRequests are last: without their credentials Flux would skip the uninstall.
func (d *removal) steps(velero *v1alpha1.Velero) []step {
	return []step{
		{reason: v1alpha1.ReasonUserResourcesExist, message: "users' objects on the control plane come first", remote: true, remove: d.userResources},
		{reason: v1alpha1.ReasonRemovingServer, message: "removing the Velero server", remove: func(ctx context.Context) (cluster.Progress, error) {
			return d.Platform.RemoveRelease(ctx, d.names, plan.ServerRelease, d.holdings.WorkloadGone)
		}},
		{reason: v1alpha1.ReasonRemovingWorkloadNamespace, message: "removing the namespace of the Velero server", remote: true, remove: d.workloadNamespace},
		{reason: v1alpha1.ReasonRemovingControlPlane, message: "removing Velero from the control plane", remove: func(ctx context.Context) (cluster.Progress, error) {
			return d.Platform.RemoveRelease(ctx, d.names, plan.ControlPlaneRelease, d.holdings.ControlPlaneGone)
		}},
		{reason: v1alpha1.ReasonRemovingCRDs, message: "removing the CRDs of Velero from the control plane", remote: true, remove: func(ctx context.Context) (cluster.Progress, error) {
			return d.crds(ctx, velero.CreationTimestamp)
		}},
		{reason: v1alpha1.ReasonRemovingPlatformObjects, message: "removing the chart sources and copied secrets", remove: func(ctx context.Context) (cluster.Progress, error) {
			return d.Platform.RemoveObjects(ctx, d.names)
		}},
		{reason: v1alpha1.ReasonReleasingAccess, message: "giving back the access to the clusters", remove: func(ctx context.Context) (cluster.Progress, error) {
			done, err := d.Access.Release(ctx, client.ObjectKeyFromObject(velero))
			return cluster.Progress{Done: done}, err
		}},
	}
}

// remove takes the deletion as far as it goes now, and says in the status at which step it is.
func (r *Reconciler) remove(ctx context.Context, velero *v1alpha1.Velero) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(velero, plan.Finalizer) {
		return ctrl.Result{}, nil
	}
	names, err := plan.NamesOf(client.ObjectKeyFromObject(velero))
	if err != nil {
		return ctrl.Result{}, err
	}
	holdings, err := r.Access.Holdings(ctx, client.ObjectKeyFromObject(velero))
	if err != nil {
		return ctrl.Result{}, err
	}
	deletion := &removal{Reconciler: r, names: names, holdings: holdings}
	for _, step := range deletion.steps(velero) {
		progress, err := step.remove(ctx)
		if err != nil && !step.remote && !errors.Is(err, cluster.ErrCredentials) {
			return ctrl.Result{}, fmt.Errorf("%s: %w", step.message, err)
		}
		if err == nil && progress.Done {
			continue
		}
		return deletion.report(ctx, velero, step, progress, err)
	}
	before := velero.DeepCopy()
	controllerutil.RemoveFinalizer(velero, plan.Finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.patch(ctx, velero, before, "remove finalizer"))
}

// report writes at which step the deletion is.
func (d *removal) report(ctx context.Context, velero *v1alpha1.Velero, step step, progress cluster.Progress, cause error) (ctrl.Result, error) {
	result := ctrl.Result{RequeueAfter: lookAgain}
	reported := &status.Removal{Reason: step.reason, Message: step.message}
	detail := progress.Detail
	switch {
	case cause != nil:
		logf.FromContext(ctx).Info("a deletion waits for another cluster", "step", step.reason, "cause", cause.Error())
		reported.Problem, detail = problem(cause)
		result.RequeueAfter = lookAgainUnready
	case progress.Failure != "":
		reported.Problem, detail = status.UninstallFailure(progress.Failure)
	case progress.Failed:
		result.RequeueAfter = lookAgainBlocked
	}
	if detail != "" {
		reported.Message += ": " + detail
	}
	return result, d.writeStatus(ctx, velero, status.Observation{Removal: reported})
}

// problem says what keeps this process from looking at another cluster.
func problem(cause error) (reason, detail string) {
	switch {
	case errors.Is(cause, cluster.ErrCredentials):
		return v1alpha1.ReasonCredentialsInvalid, "the credentials for the cluster are missing or of no use; a platform operator must have access granted again"
	case apierrors.IsUnauthorized(cause), apierrors.IsForbidden(cause):
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
	begun, err := d.Platform.RemovalBegun(ctx, d.names, plan.ServerRelease)
	if begun || err != nil {
		return cluster.Progress{Done: begun}, err
	}
	grant := d.holdings.ControlPlane
	if grant.Secret == "" {
		// A request that was withdrawn does not make go away what was installed with it.
		grant, err = d.Platform.Target(ctx, d.names, plan.ControlPlaneRelease)
	}
	if err != nil || grant.Secret == "" {
		return cluster.Progress{Done: err == nil}, err
	}
	remote, err := d.Platform.Remote(ctx, d.names, grant)
	if err != nil {
		return cluster.Progress{}, err
	}
	return cluster.UserResources(ctx, remote)
}

// workloadNamespace removes the namespace that the workload access came with. Without access there is none, and with the cluster it is gone.
func (d *removal) workloadNamespace(ctx context.Context) (cluster.Progress, error) {
	if d.holdings.WorkloadGone || d.holdings.Workload.Secret == "" {
		return cluster.Progress{Done: true}, nil
	}
	remote, err := d.Platform.Remote(ctx, d.names, d.holdings.Workload)
	if err != nil {
		return cluster.Progress{}, err
	}
	return cluster.RemoveNamespace(ctx, remote, d.names.WorkloadNamespace)
}

// crds removes the CRDs that hold no user's data.
func (d *removal) crds(ctx context.Context, ordered metav1.Time) (cluster.Progress, error) {
	if d.holdings.ControlPlaneGone || d.holdings.ControlPlane.Secret == "" {
		return cluster.Progress{Done: true}, nil
	}
	remote, err := d.Platform.Remote(ctx, d.names, d.holdings.ControlPlane)
	if err != nil {
		return cluster.Progress{}, err
	}
	return cluster.RemoveCRDs(ctx, remote, d.names, ordered)
}
