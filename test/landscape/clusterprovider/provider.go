// Package clusterprovider is a ClusterProvider for one machine. It answers Cluster objects with API servers and
// AccessRequests with real ServiceAccounts, Roles and tokens, the way a provider for a cloud does.
package clusterprovider

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	"github.com/openmcp-project/openmcp-operator/api/install"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// Name is the name of the provider and of its only profile.
const Name = "local"

// workers is how many objects of a kind are reconciled side by side: starting a server takes seconds.
const workers = 4

// Run reconciles until ctx ends. health is the address of the readiness probe.
func Run(ctx context.Context, platform *rest.Config, s *site.Site, health string) error {
	mgr, err := ctrl.NewManager(platform, ctrl.Options{
		Scheme:                 install.InstallOperatorAPIsPlatform(runtime.NewScheme()),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: health,
	})
	if err != nil {
		return fmt.Errorf("set up the cluster provider: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("set up the readiness probe: %w", err)
	}
	if err := addControllers(mgr, s); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func addControllers(mgr ctrl.Manager, s *site.Site) error {
	platform := mgr.GetClient()
	options := controller.Options{MaxConcurrentReconciles: workers}
	err := ctrl.NewControllerManagedBy(mgr).
		For(&clustersv1alpha1.Cluster{}).WithOptions(options).
		Complete(&clusters{platform: platform, site: s})
	if err != nil {
		return fmt.Errorf("set up the Cluster controller: %w", err)
	}
	lifetime := s.TokenLifetime
	if lifetime == 0 {
		lifetime = DefaultTokenLifetime
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&clustersv1alpha1.AccessRequest{}).
		Owns(&corev1.Secret{}, builder.WithPredicates(onUpdate(dataChanged))).
		Watches(&clustersv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(requestsOf(platform)),
			builder.WithPredicates(onUpdate(phaseChanged))).
		WithOptions(options).
		Complete(&access{platform: platform, site: s, lifetime: lifetime, now: time.Now})
	if err != nil {
		return fmt.Errorf("set up the AccessRequest controller: %w", err)
	}
	return nil
}

// onUpdate lets only those updates pass that changed something of interest. A request must not be looked at just because
// somebody put a finalizer on its Secret or its Cluster: that would bring a namespace back that its owner has just deleted.
func onUpdate(changed func(before, after client.Object) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return changed(e.ObjectOld, e.ObjectNew) }}
}

func dataChanged(before, after client.Object) bool {
	return !equality.Semantic.DeepEqual(before.(*corev1.Secret).Data, after.(*corev1.Secret).Data)
}

func phaseChanged(before, after client.Object) bool {
	return before.(*clustersv1alpha1.Cluster).Status.Phase != after.(*clustersv1alpha1.Cluster).Status.Phase
}

// requestsOf maps a Cluster to the AccessRequests for it.
func requestsOf(platform client.Client) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) []reconcile.Request {
		requests := &clustersv1alpha1.AccessRequestList{}
		if err := platform.List(ctx, requests); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot list the AccessRequests of a Cluster", "cluster", client.ObjectKeyFromObject(cluster))
			return nil
		}
		var found []reconcile.Request
		for _, request := range requests.Items {
			ref := request.Spec.ClusterRef
			if ref != nil && ref.Name == cluster.GetName() && ref.Namespace == cluster.GetNamespace() {
				found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&request)})
			}
		}
		return found
	}
}
