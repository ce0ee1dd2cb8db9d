package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// lives are how long the operator lives before each kill: long enough to write something, so that the kills fall on different moments.
var lives = []time.Duration{
	150 * time.Millisecond, 400 * time.Millisecond, 700 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second,
}

// restarts kills the operator again and again while it installs, changes and removes a Velero. The end is the same as without.
func restarts() features.Feature {
	return features.New("kill -9 at any moment").
		Assess("installation ends Ready, with what an undisturbed one has", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			tenant := fourth(t)
			tenant.orderControlPlane(t)
			tenant.orderVelero(t, newVersion, aws)
			killRepeatedly(t)
			tenant.awaitReady(t)
			if diff := cmp.Diff(shape(t, first(t)), shape(t, tenant)); diff != "" {
				t.Errorf("something else was installed (-undisturbed +killed):\n%s", diff)
			}
			return ctx
		}).
		Assess("a change arrives", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			fourth(t).change(t, func(spec *v1alpha1.VeleroSpec) { spec.Plugins = []v1alpha1.Plugin{aws, gcp} })
			killRepeatedly(t)
			awaitImages(t, fourth(t), awsImage+":"+aws.Version, gcpImage+":"+gcp.Version)
			return ctx
		}).
		Assess("deletion ends with nothing left", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			tenant := fourth(t)
			velero, err := tenant.velero(ctx)
			must(t, err)
			must(t, onboarding.Delete(ctx, velero))
			killRepeatedly(t)
			eventually(t, installed, "the Velero is gone", func(ctx context.Context) error {
				_, err := tenant.velero(ctx)
				if err == nil {
					return fmt.Errorf("it still exists")
				}
				return client.IgnoreNotFound(err)
			})
			tenant.assertGone(t)
			return ctx
		}).
		Assess("a restart writes nothing", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			before := resourceVersions(t)
			restart(t)
			time.Sleep(settle)
			if diff := cmp.Diff(before, resourceVersions(t)); diff != "" {
				t.Errorf("a Velero was written (-before +after):\n%s", diff)
			}
			return ctx
		}).
		Assess("a second replica takes over", secondReplicaTakesOver).
		Feature()
}

func fourth(t *testing.T) tenant { t.Helper(); return newTenant(t, "team-b", "killed-mcp") }

func killRepeatedly(t *testing.T) {
	t.Helper()
	for _, life := range lives {
		restart(t)
		time.Sleep(life)
	}
	restart(t)
}

// restart kills the operator and starts it again.
func restart(t *testing.T) {
	t.Helper()
	must(t, operator.Kill(t.Context()))
	var err error
	operator, err = world.StartOperator(t.Context(), landscape.OperatorOptions{SkipInit: true})
	must(t, err)
}

// shape is what a tenant's Velero consists of, without what differs from tenant to tenant.
func shape(t *testing.T, tenant tenant) []string {
	t.Helper()
	velero, err := tenant.velero(t.Context())
	must(t, err)
	images, err := tenant.running(t.Context())
	must(t, err)
	var resources []string
	for _, resource := range velero.Status.Resources {
		resources = append(resources, fmt.Sprintf("%s %s %s %s", resource.Location, resource.Kind, resource.Name, resource.Phase))
	}
	return append(images, resources...)
}

// secondReplicaTakesOver runs two replicas as openmcp-operator does with runReplicas: 2, and kills the leader.
func secondReplicaTakesOver(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	must(t, operator.Stop(ctx))
	leader, err := world.StartOperator(ctx, landscape.OperatorOptions{Replica: "a", LeaderElect: true, SkipInit: true})
	must(t, err)
	awaitLease(t)
	standby, err := world.StartOperator(ctx, landscape.OperatorOptions{Replica: "b", LeaderElect: true, SkipInit: true})
	must(t, err)
	must(t, leader.Kill(ctx))
	first(t).change(t, func(spec *v1alpha1.VeleroSpec) { spec.Plugins = []v1alpha1.Plugin{aws, gcp} })
	awaitImages(t, first(t), awsImage+":"+aws.Version, gcpImage+":"+gcp.Version)
	must(t, metricsAnswer(standby.Metrics))
	must(t, standby.Stop(ctx))
	operator, err = world.StartOperator(ctx, landscape.OperatorOptions{SkipInit: true})
	must(t, err)
	return ctx
}

func awaitLease(t *testing.T) {
	t.Helper()
	eventually(t, soon, "the first replica leads", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		key := client.ObjectKey{Namespace: operatorNamespace, Name: landscape.ProviderName + "." + plan.ProviderName}
		if err := platform.Get(ctx, key, lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return fmt.Errorf("nobody leads")
		}
		return nil
	})
}

func metricsAnswer(url string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("metrics answer %s", response.Status)
	}
	return nil
}
