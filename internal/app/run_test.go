package app

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/internal/controller"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// TestCachesHoldOnlyWhatIsOurs: the platform has objects of all tenants and all providers.
func TestCachesHoldOnlyWhatIsOurs(t *testing.T) {
	names, err := plan.NamesOf(client.ObjectKey{Namespace: "default", Name: "test-mcp"})
	if err != nil {
		t.Fatal(err)
	}
	ours := labels.Set(names.Labels())
	ours[openmcpconst.ManagedByLabel] = plan.ProviderName
	theirs := labels.Set{plan.ManagedByLabel: "Helm", openmcpconst.ManagedByLabel: "another"}
	for object, configured := range platformCache("operator").ByObject {
		selectors := []labels.Selector{configured.Label}
		switch object.(type) {
		case *helmv2.HelmRelease, *sourcev1.OCIRepository, *clustersv1alpha1.AccessRequest:
		case *corev1.Secret:
			selectors = []labels.Selector{configured.Namespaces[cache.AllNamespaces].LabelSelector}
			onlyOperators(t, configured.Namespaces, cache.AllNamespaces)
		case *corev1.ConfigMap:
			selectors = nil
			onlyOperators(t, configured.Namespaces)
		default:
			t.Errorf("%T is not expected", object)
		}
		for _, selector := range selectors {
			if selector == nil || !selector.Matches(ours) || selector.Matches(theirs) || selector.Matches(labels.Set{}) {
				t.Errorf("%T: selector %v", object, selector)
			}
		}
	}
	if len(platformCache("operator").ByObject) != 5 {
		t.Error("a kind is missing")
	}
}

func onlyOperators(t *testing.T, namespaces map[string]cache.Config, others ...string) {
	t.Helper()
	if _, has := namespaces["operator"]; !has || len(namespaces) != 1+len(others) {
		t.Errorf("namespaces %v", namespaces)
	}
}

// TestLease: its name is one, it is the provider's own, and it is where the replicas are.
func TestLease(t *testing.T) {
	t.Setenv(openmcpconst.EnvVariablePodNamespace, "operator")
	seen := map[string]bool{}
	for _, provider := range []string{"velero", "velero-2"} {
		options := managerOptions(Options{ProviderName: provider, LeaderElection: true})
		if problems := validation.IsDNS1123Subdomain(options.LeaderElectionID); len(problems) > 0 || seen[options.LeaderElectionID] {
			t.Errorf("lease %q: %v, taken: %v", options.LeaderElectionID, problems, seen[options.LeaderElectionID])
		}
		if !options.LeaderElection || options.LeaderElectionNamespace != "operator" || !options.LeaderElectionReleaseOnCancel {
			t.Errorf("%+v", options)
		}
		seen[options.LeaderElectionID] = true
	}
}

// checks are what a manager is given to answer /healthz and /readyz with.
type checks struct {
	ctrl.Manager
	alive, ready map[string]healthz.Checker
}

func (c checks) AddHealthzCheck(name string, check healthz.Checker) error {
	c.alive[name] = check
	return nil
}

func (c checks) AddReadyzCheck(name string, check healthz.Checker) error {
	c.ready[name] = check
	return nil
}

type filling struct {
	cache.Cache
	complete bool
}

func (f filling) WaitForCacheSync(context.Context) bool { return f.complete }

// TestReadyNeedsBothClusters: a process that answers is alive, but of no use yet.
func TestReadyNeedsBothClusters(t *testing.T) {
	registered := checks{alive: map[string]healthz.Checker{}, ready: map[string]healthz.Checker{}}
	if err := addChecks(registered, controller.Caches{Onboarding: filling{complete: false}, Platform: filling{complete: true}}); err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil)
	if err := registered.ready["platform"](request); err != nil {
		t.Errorf("platform: %v", err)
	}
	if err := registered.ready["onboarding"](request); err == nil || !strings.Contains(err.Error(), "onboarding") {
		t.Errorf("onboarding: error %v", err)
	}
	for name, check := range registered.alive {
		if err := check(request); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
