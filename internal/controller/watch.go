package controller

import (
	"context"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// tenantIndex finds the Velero of a tenant namespace: the names on the platform are derived from the Velero's name and namespace by a hash,
// so an event there can only be traced back through an index, and nothing that somebody may edit can lead it astray.
const tenantIndex = "tenantNamespace"

// workers is how many Veleros are reconciled at the same time. A reconcile waits for another cluster only in a
// deletion, before a change of a server, and to see why one does not become ready.
const workers = 8

// Caches are the informer caches that the controllers watch through.
type Caches struct {
	Onboarding, Platform cache.Cache
	// OperatorNamespace is where the ProviderConfig's Secrets and ConfigMaps are.
	OperatorNamespace string
}

// Setup registers the Velero controller and its watches with a manager.
func (r *Reconciler) Setup(ctx context.Context, mgr ctrl.Manager, caches Caches) error {
	if err := caches.Onboarding.IndexField(ctx, &v1alpha1.Velero{}, tenantIndex, tenantNamespace); err != nil {
		return fmt.Errorf("index Veleros: %w", err)
	}
	r.waves.wake = make(chan event.TypedGenericEvent[*v1alpha1.Velero], wakeBuffer)
	tenant, all := r.enqueueTenant, r.enqueueAll
	watcher, err := ctrl.NewControllerManagedBy(mgr).
		Named("velero").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: retries()}).
		WatchesRawSource(source.Kind(caches.Onboarding, &v1alpha1.Velero{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.Velero]{}, intended[*v1alpha1.Velero]())).
		WatchesRawSource(source.Channel(r.waves.wake, &handler.TypedEnqueueRequestForObject[*v1alpha1.Velero]{})).
		WatchesRawSource(source.Kind(caches.Platform, &v1alpha1.ProviderConfig{}, handler.TypedEnqueueRequestsFromMapFunc(mapped[*v1alpha1.ProviderConfig](all)), intended[*v1alpha1.ProviderConfig]())).
		WatchesRawSource(source.Kind(caches.Platform, &clustersv1alpha1.AccessRequest{}, handler.TypedEnqueueRequestsFromMapFunc(mapped[*clustersv1alpha1.AccessRequest](tenant)), changed(accessState))).
		WatchesRawSource(source.Kind(caches.Platform, &clustersv1alpha1.ClusterRequest{}, handler.TypedEnqueueRequestsFromMapFunc(mapped[*clustersv1alpha1.ClusterRequest](tenant)), changed(clusterState))).
		WatchesRawSource(source.Kind(caches.Platform, object("Secret"), handler.TypedEnqueueRequestsFromMapFunc(mapped[*metav1.PartialObjectMetadata](r.enqueueUsers(plan.Secret, caches.OperatorNamespace))))).
		WatchesRawSource(source.Kind(caches.Platform, object("ConfigMap"), handler.TypedEnqueueRequestsFromMapFunc(mapped[*metav1.PartialObjectMetadata](r.enqueueUsers(plan.ConfigMap, caches.OperatorNamespace))))).
		Build(r)
	if err != nil {
		return err
	}
	return r.followFlux(mgr, watcher, caches.Platform)
}

// retries is how long to wait before what failed is tried again: a moment, then ever longer. By default it would be 16 minutes in the end, in which
// nobody would see that the cause is gone.
func retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
}

// followFlux watches Flux's objects: from the start with all the rest when it can, else as soon as their kinds are served.
func (r *Reconciler) followFlux(mgr ctrl.Manager, watcher controller.Controller, platform cache.Cache) error {
	flux := &flux{mapper: mgr.GetRESTMapper(), watcher: watcher, sources: []source.Source{
		source.Kind(platform, &helmv2.HelmRelease{}, handler.TypedEnqueueRequestsFromMapFunc(mapped[*helmv2.HelmRelease](r.enqueueTenant)), changed(releaseState)),
		source.Kind(platform, &sourcev1.OCIRepository{}, handler.TypedEnqueueRequestsFromMapFunc(mapped[*sourcev1.OCIRepository](r.enqueueTenant)), changed(sourceState)),
	}}
	if err := mgr.AddReadyzCheck("flux", flux.ready); err != nil {
		return err
	}
	missing, err := flux.missing()
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return flux.watch()
	}
	flux.sources = append(flux.sources, source.Func(r.everybody))
	return mgr.Add(flux)
}

// firstRetry and lastRetry bound the waits between attempts.
const firstRetry, lastRetry = 10 * time.Millisecond, time.Minute

// tenantNamespace is the index function of tenantIndex.
func tenantNamespace(velero client.Object) []string {
	names, err := plan.NamesOf(client.ObjectKeyFromObject(velero))
	if err != nil {
		return nil
	}
	return []string{names.TenantNamespace}
}

func object(kind string) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return metadata
}

func mapped[T client.Object](enqueue func(context.Context, client.Object) []reconcile.Request) handler.TypedMapFunc[T, reconcile.Request] {
	return func(ctx context.Context, object T) []reconcile.Request { return enqueue(ctx, object) }
}

// enqueueTenant enqueues the Velero of the object's namespace.
func (r *Reconciler) enqueueTenant(ctx context.Context, object client.Object) []reconcile.Request {
	return r.list(ctx, client.MatchingFields{tenantIndex: object.GetNamespace()})
}

// enqueueAll enqueues every Velero.
func (r *Reconciler) enqueueAll(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.list(ctx)
}

// enqueueUsers enqueues whom a Secret or ConfigMap concerns: in the operator's namespace everybody if the ProviderConfig refers to it,
// elsewhere the tenant.
func (r *Reconciler) enqueueUsers(kind plan.Kind, operatorNamespace string) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		if object.GetNamespace() != operatorNamespace {
			return r.enqueueTenant(ctx, object)
		}
		config, err := r.Configs.Current(ctx)
		if err != nil || config == nil {
			return nil
		}
		for _, reference := range plan.References(&config.Spec) {
			if reference.Kind == kind && reference.Name == object.GetName() {
				return r.list(ctx)
			}
		}
		return nil
	}
}

func (r *Reconciler) list(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	var veleros v1alpha1.VeleroList
	if err := r.Onboarding.List(ctx, &veleros, options...); err != nil {
		logf.FromContext(ctx).Error(err, "cannot find out which Veleros an event concerns")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(veleros.Items))
	for _, velero := range veleros.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: velero.Namespace, Name: velero.Name}})
	}
	return requests
}
