package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// idle is how long nothing is changed. E2E_IDLE=10m looks longer than a CI run should.
func idle(t *testing.T) time.Duration {
	t.Helper()
	wanted := os.Getenv("E2E_IDLE")
	if wanted == "" {
		return 2 * time.Minute
	}
	duration, err := time.ParseDuration(wanted)
	must(t, err)
	return duration
}

// idleMinutes: when nothing changes, nothing is written, on any cluster; the API servers' audit logs are the witnesses.
func idleMinutes() features.Feature {
	interval := func(t *testing.T, wanted *metav1.Duration) {
		t.Helper()
		changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.PollInterval = wanted })
		for _, tenant := range []tenant{first(t), second(t), third(t)} {
			tenant.awaitQuiet(t)
			tenant.awaitReady(t)
		}
	}
	return features.New("idle").
		Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			// Flux is to look for drift many times meanwhile.
			interval(t, &metav1.Duration{Duration: 10 * time.Second})
			return ctx
		}).
		Assess("no write and no reconcile that reads past the caches", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			time.Sleep(settle)
			versions := resourceVersions(t)
			since := time.Now()
			time.Sleep(idle(t))
			for _, cluster := range everyCluster(t) {
				calls, err := cluster.AuditEvents(since, func(event landscape.AuditEvent) bool {
					return byOperator(event) && event.Verb != "watch"
				})
				must(t, err)
				for _, call := range calls {
					t.Errorf("%s: %s %s", cluster.Name, call.Verb, call.URI)
				}
			}
			if diff := cmp.Diff(versions, resourceVersions(t)); diff != "" {
				t.Errorf("a Velero was written (-before +after):\n%s", diff)
			}
			return ctx
		}).
		Teardown(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			interval(t, nil)
			return ctx
		}).
		Feature()
}

// byOperator recognises the operator on every cluster: only on the platform it has a user of its own name.
func byOperator(event landscape.AuditEvent) bool {
	return event.User.Username == landscape.OperatorUser || event.UserAgent == plan.UserAgent
}

func everyCluster(t *testing.T) []landscape.Cluster {
	t.Helper()
	clusters := []landscape.Cluster{world.Platform, world.Onboarding, world.Workload}
	for _, tenant := range []tenant{first(t), second(t), third(t)} {
		cluster, err := world.ControlPlane(t.Context(), tenant.Namespace, tenant.Name)
		must(t, err)
		clusters = append(clusters, cluster)
	}
	return clusters
}

func resourceVersions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, tenant := range []tenant{first(t), second(t), third(t)} {
		velero, err := tenant.velero(t.Context())
		must(t, err)
		versions[tenant.String()] = velero.ResourceVersion
	}
	return versions
}
