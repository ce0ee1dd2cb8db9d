package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openmcp-project/controller-utils/pkg/logging"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/controller"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// readyTimeout bounds one readiness check.
const readyTimeout = time.Second

// Run is the operator. It returns when the context ends, or when it cannot go on, also because it must be started again.
func Run(ctx context.Context, options Options, log logging.Logger) error {
	if err := options.validate(); err != nil {
		return err
	}
	config, err := options.platformConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, managerOptions(options))
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	direct, err := client.New(config, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return fmt.Errorf("connect to the platform cluster: %w", err)
	}
	log.Info("waiting for access to the onboarding cluster")
	granted, err := requestOnboarding(ctx, direct, "onboarding-run", options.AccessTimeout, onboardingScheme(), onboardingRun())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	token := &renewedToken{}
	if err := token.follow(mgr, granted.secret, stop); err != nil {
		return fmt.Errorf("follow the onboarding token: %w", err)
	}
	onboarding, err := onboardingCluster(mgr, token.use(tuned(granted.cluster.RESTConfig())))
	if err != nil {
		return err
	}
	if err := setup(ctx, mgr, onboarding, options); err != nil {
		return err
	}
	return start(ctx, mgr)
}

// start runs the manager until the context ends, and says when that was to be started again.
func start(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, errOtherAccess) {
		return cause
	}
	return nil
}

func managerOptions(options Options) ctrl.Options {
	return ctrl.Options{
		Scheme:                 platformScheme(),
		Cache:                  platformCache(podNamespace()),
		NewCache:               newPlatformCache,
		Metrics:                metricsserver.Options{BindAddress: options.MetricsAddress, SecureServing: options.MetricsSecure},
		HealthProbeBindAddress: options.HealthAddress,
		// The Lease is on the platform, where the replicas are: the onboarding cluster grants no rights for it and has no such namespace.
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              options.ProviderName + "." + plan.ProviderName,
		LeaderElectionNamespace:       podNamespace(),
		LeaderElectionReleaseOnCancel: true,
	}
}

// platformCache holds no more than what the controllers look at: objects of ours, and Secrets and ConfigMaps only as metadata.
func platformCache(operatorNamespace string) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{plan.ManagedByLabel: plan.ProviderName})}
	instance, err := labels.NewRequirement(plan.InstanceLabel, selection.Exists, nil)
	utilruntime.Must(err)
	return cache.Options{
		DefaultTransform: cluster.Trim,
		ByObject: map[client.Object]cache.ByObject{
			&helmv2.HelmRelease{}:             ours,
			&sourcev1.OCIRepository{}:         ours,
			&clustersv1alpha1.AccessRequest{}: {Label: labels.SelectorFromSet(labels.Set{openmcpconst.ManagedByLabel: plan.ProviderName})},
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{
				operatorNamespace:   {},
				cache.AllNamespaces: {LabelSelector: labels.NewSelector().Add(*instance)},
			}},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{operatorNamespace: {}}},
		},
	}
}

func onboardingCluster(mgr ctrl.Manager, config *rest.Config) (runtimecluster.Cluster, error) {
	onboarding, err := runtimecluster.New(config, func(options *runtimecluster.Options) {
		options.Scheme = onboardingScheme()
		options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	})
	if err != nil {
		return nil, fmt.Errorf("set up the onboarding cluster: %w", err)
	}
	if err := mgr.Add(onboarding); err != nil {
		return nil, fmt.Errorf("add the onboarding cluster: %w", err)
	}
	return onboarding, nil
}

func setup(ctx context.Context, mgr ctrl.Manager, onboarding runtimecluster.Cluster, options Options) error {
	platform := cluster.New(mgr.GetClient(), mgr.GetAPIReader(), podNamespace())
	configs := controller.Configs{Platform: mgr.GetClient(), ProviderName: options.ProviderName}
	caches := controller.Caches{Onboarding: onboarding.GetCache(), Platform: mgr.GetCache(), OperatorNamespace: podNamespace()}
	veleros := &controller.Reconciler{
		Onboarding: onboarding.GetClient(),
		Configs:    configs,
		Access:     access.New(mgr.GetClient(), mgr.GetAPIReader(), TenantPermissions()),
		Platform:   platform,
		Recorder:   onboarding.GetEventRecorder(plan.UserAgent),
	}
	if err := veleros.Setup(ctx, mgr, caches); err != nil {
		return fmt.Errorf("set up the Velero controller: %w", err)
	}
	configurations := &controller.ConfigReconciler{Onboarding: onboarding.GetClient(), Client: mgr.GetClient(), Configs: configs, Platform: platform}
	if err := configurations.Setup(mgr, caches); err != nil {
		return fmt.Errorf("set up the ProviderConfig controller: %w", err)
	}
	return addChecks(mgr, caches)
}

// addChecks: alive is a process that answers; ready is one whose view of both clusters is complete.
func addChecks(mgr ctrl.Manager, caches controller.Caches) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	for name, synced := range map[string]cache.Cache{"platform": caches.Platform, "onboarding": caches.Onboarding} {
		check := func(request *http.Request) error {
			ctx, cancel := context.WithTimeout(request.Context(), readyTimeout)
			defer cancel()
			if !synced.WaitForCacheSync(ctx) {
				return fmt.Errorf("the cache of the %s cluster is not complete", name)
			}
			return nil
		}
		if err := mgr.AddReadyzCheck(name, check); err != nil {
			return err
		}
	}
	return nil
}

// secretSource watches one Secret, without its contents.
func secretSource(watched cache.Cache, key types.NamespacedName) source.Source {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return source.Kind(watched, secret, &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{},
		predicate.NewTypedPredicateFuncs(func(object *metav1.PartialObjectMetadata) bool {
			return client.ObjectKeyFromObject(object) == key
		}))
}
