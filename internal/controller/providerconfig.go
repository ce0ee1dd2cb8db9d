package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/internal/status"
)

// ConfigReconciler tells platform operators whether their ProviderConfig can be used. It changes nothing else: what a ProviderConfig means is
// decided for each Velero.
type ConfigReconciler struct {
	// Onboarding reads from the cache of the onboarding cluster.
	Onboarding client.Reader
	// Client reads from the cache of the platform cluster and writes to it.
	Client   client.Client
	Configs  Configs
	Platform *cluster.Platform

	trials trials
}

// Reconcile writes the status of one ProviderConfig when it changed. One that does not apply has no users and is judged all the same.
func (r *ConfigReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	config := &v1alpha1.ProviderConfig{}
	if err := r.Client.Get(ctx, request.NamespacedName, config); err != nil {
		r.trials.forget(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ignored(config) {
		return ctrl.Result{}, nil
	}
	config = config.DeepCopy()
	if config.Annotations[openmcpconst.OperationAnnotation] == openmcpconst.OperationAnnotationValueReconcile {
		before := config.DeepCopy()
		delete(config.Annotations, openmcpconst.OperationAnnotation)
		if err := r.Client.Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, fmt.Errorf("acknowledge the reconcile annotation: %w", err)
		}
	}
	err := r.writeStatus(ctx, config)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Our view of it, or of what it refers to, is old; the newer one comes as an event.
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	return ctrl.Result{}, err
}

func (r *ConfigReconciler) writeStatus(ctx context.Context, config *v1alpha1.ProviderConfig) error {
	problem, err := r.judge(ctx, config)
	if err != nil {
		return err
	}
	users, err := r.users(ctx, config)
	if err != nil {
		return err
	}
	before := config.DeepCopy()
	config.Status = status.ComputeConfig(config, users, problem, metav1.Now())
	if !status.ConfigChanged(before.Status, config.Status) {
		return nil
	}
	err = r.Client.Status().Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// judge says what is wrong with a ProviderConfig. What it refers to is looked into once after each change.
func (r *ConfigReconciler) judge(ctx context.Context, config *v1alpha1.ProviderConfig) (*plan.Blocked, error) {
	versions, err := r.Platform.Versions(ctx, plan.References(&config.Spec))
	if err != nil {
		return nil, err
	}
	trial, problem := plan.Check(&config.Spec, versions)
	if problem != nil {
		return problem, nil
	}
	fingerprint := trial.Fingerprint()
	if problem, known := r.trials.recall(config.Name, fingerprint); known {
		return problem, nil
	}
	contents, err := r.Platform.Contents(ctx, plan.Names{}, trial.Sources())
	if err != nil {
		return nil, err
	}
	problem = trial.Run(contents)
	r.trials.remember(config.Name, fingerprint, problem)
	return problem, nil
}

func (r *ConfigReconciler) users(ctx context.Context, config *v1alpha1.ProviderConfig) (int, error) {
	current, err := r.Configs.Current(ctx)
	if err != nil || current == nil || current.Name != config.Name {
		return 0, err
	}
	var veleros v1alpha1.VeleroList
	if err := r.Onboarding.List(ctx, &veleros, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("count Veleros: %w", err)
	}
	return len(veleros.Items), nil
}

// Setup registers the ProviderConfig controller and its watches with a manager.
func (r *ConfigReconciler) Setup(mgr ctrl.Manager, caches Caches) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("providerconfig").
		WatchesRawSource(source.Kind(caches.Platform, &v1alpha1.ProviderConfig{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.ProviderConfig]{}, intended[*v1alpha1.ProviderConfig]())).
		// A ProviderConfig that comes or goes may change which other one applies.
		WatchesRawSource(source.Kind(caches.Platform, &v1alpha1.ProviderConfig{}, handler.TypedEnqueueRequestsFromMapFunc(mapped[*v1alpha1.ProviderConfig](r.enqueueAll)), comesOrGoes[*v1alpha1.ProviderConfig]())).
		WatchesRawSource(source.Kind(caches.Onboarding, &v1alpha1.Velero{}, handler.TypedEnqueueRequestsFromMapFunc(mapped[*v1alpha1.Velero](r.enqueueAll)), comesOrGoes[*v1alpha1.Velero]())).
		WatchesRawSource(source.Kind(caches.Platform, object("Secret"), handler.TypedEnqueueRequestsFromMapFunc(mapped[*metav1.PartialObjectMetadata](r.inNamespace(caches.OperatorNamespace))))).
		WatchesRawSource(source.Kind(caches.Platform, object("ConfigMap"), handler.TypedEnqueueRequestsFromMapFunc(mapped[*metav1.PartialObjectMetadata](r.inNamespace(caches.OperatorNamespace))))).
		Complete(r)
}

func comesOrGoes[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(event.TypedUpdateEvent[T]) bool { return false }}
}

func (r *ConfigReconciler) inNamespace(namespace string) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		if object.GetNamespace() != namespace {
			return nil
		}
		return r.enqueueAll(ctx, object)
	}
}

func (r *ConfigReconciler) enqueueAll(ctx context.Context, _ client.Object) []reconcile.Request {
	var configs v1alpha1.ProviderConfigList
	if err := r.Client.List(ctx, &configs); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(configs.Items))
	for i := range configs.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&configs.Items[i])})
	}
	return requests
}
