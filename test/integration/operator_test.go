package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// agent is the user agent of the clients that stand for the operator's, so that the audit log can tell them from the administrator's.
const agent = "integration-test"

// The operator's two ways to the platform cluster: through a manager's caches, and past them.
var (
	cached   client.Client
	uncached client.Reader
)

// operatorClients starts a manager with the same caches that the operator has.
func operatorClients(ctx context.Context) (client.Client, client.Reader, error) {
	config, err := world.Platform.RESTConfig()
	if err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = agent
	instance, err := labels.NewRequirement(plan.InstanceLabel, selection.Exists, nil)
	if err != nil {
		return nil, nil, err
	}
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{plan.ManagedByLabel: plan.ProviderName})}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultTransform: cluster.Trim,
			ByObject: map[client.Object]cache.ByObject{
				&helmv2.HelmRelease{}:             ours,
				&sourcev1.OCIRepository{}:         ours,
				&clustersv1alpha1.AccessRequest{}: {Label: labels.SelectorFromSet(labels.Set{openmcpconst.ManagedByLabel: plan.ProviderName})},
				&corev1.Secret{}: {Namespaces: map[string]cache.Config{
					landscape.SystemNamespace: {},
					cache.AllNamespaces:       {LabelSelector: labels.NewSelector().Add(*instance)},
				}},
				&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{landscape.SystemNamespace: {}}},
			},
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("set up the manager: %w", err)
	}
	go func() { _ = mgr.Start(ctx) }()
	for _, object := range []client.Object{
		&helmv2.HelmRelease{}, &sourcev1.OCIRepository{}, &clustersv1alpha1.AccessRequest{}, &clustersv1alpha1.ClusterRequest{}, metadata("Secret"), metadata("ConfigMap"),
	} {
		if _, err := mgr.GetCache().GetInformer(ctx, object); err != nil {
			return nil, nil, fmt.Errorf("fill the caches: %w", err)
		}
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, nil, errors.New("the caches are not filled")
	}
	return mgr.GetClient(), mgr.GetAPIReader(), nil
}

func metadata(kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return object
}

// callsDuring are the operator's requests to the platform cluster while act runs, apart from watches, as the audit log has them. A marker
// request after act shows that the log is complete.
func callsDuring(t *testing.T, act func()) []landscape.AuditEvent {
	t.Helper()
	since := time.Now()
	act()
	marker := "marker-" + string(uuid.NewUUID())
	must(t, client.IgnoreNotFound(uncached.Get(t.Context(), client.ObjectKey{Name: marker}, &corev1.Namespace{})))
	var calls []landscape.AuditEvent
	eventually(t, "the audit log is complete", func(context.Context) error {
		events, err := world.Platform.AuditEvents(since, func(event landscape.AuditEvent) bool {
			return event.UserAgent == agent && event.Verb != "watch"
		})
		if err != nil {
			return err
		}
		for i, event := range events {
			if strings.HasSuffix(event.URI, marker) {
				calls = events[:i]
				return nil
			}
		}
		return errors.New("the marker is missing")
	})
	return calls
}

// callsNothing fails the test when act makes the operator write, or read past the caches.
func callsNothing(t *testing.T, what string, act func()) {
	t.Helper()
	for _, call := range callsDuring(t, act) {
		t.Errorf("%s: %s %s", what, call.Verb, call.URI)
	}
}
