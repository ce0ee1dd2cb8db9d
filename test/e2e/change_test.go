package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// settle is how long nothing may happen before "no change" counts as shown.
const settle = 5 * time.Second

// changes changes the first tenant's Velero; the second one's must not notice.
func changes() features.Feature {
	var neighbour untouched
	return features.New("changes of the spec").
		Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			neighbour = second(t).generations(t)
			return ctx
		}).
		Assess("a version change runs the new version, and Ready never holds for the old one", versionChange).
		Assess("a plugin is added", pluginAdded).
		Assess("another order of the plugins changes nothing on the target", pluginsReordered).
		Assess("a plugin is removed", pluginRemoved).
		Assess("the neighbour is untouched", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			if diff := cmp.Diff(neighbour, second(t).generations(t)); diff != "" {
				t.Errorf("the neighbour changed (-before +after):\n%s", diff)
			}
			return ctx
		}).
		Feature()
}

func versionChange(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	tenant := first(t)
	tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
	eventually(t, installed, "the new version runs and Ready says so", func(ctx context.Context) error {
		velero, err := tenant.velero(ctx)
		if err != nil {
			return err
		}
		images, err := tenant.running(ctx)
		if err != nil {
			return err
		}
		wanted := images[0] == serverImage+":"+newVersion
		if velero.Status.Phase == string(v1alpha1.Ready) && velero.Status.ObservedGeneration == velero.Generation && !wanted {
			t.Fatalf("Ready at generation %d while %s runs", velero.Generation, images[0])
		}
		if !wanted {
			return fmt.Errorf("%s runs", images[0])
		}
		return nil
	})
	tenant.awaitReady(t)
	return ctx
}

func pluginAdded(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	first(t).change(t, func(spec *v1alpha1.VeleroSpec) { spec.Plugins = []v1alpha1.Plugin{aws, gcp} })
	awaitImages(t, first(t), awsImage+":"+aws.Version, gcpImage+":"+gcp.Version)
	return ctx
}

func pluginsReordered(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	tenant := first(t)
	before := tenant.generations(t)
	tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Plugins = []v1alpha1.Plugin{gcp, aws} })
	tenant.awaitReady(t)
	time.Sleep(settle)
	if diff := cmp.Diff(before, tenant.generations(t)); diff != "" {
		t.Errorf("another order of the plugins changed something (-before +after):\n%s", diff)
	}
	return ctx
}

func pluginRemoved(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	first(t).change(t, func(spec *v1alpha1.VeleroSpec) { spec.Plugins = []v1alpha1.Plugin{aws} })
	awaitImages(t, first(t), awsImage+":"+aws.Version)
	return ctx
}

// awaitImages waits for exactly these plugins, in any order, and for Ready.
func awaitImages(t *testing.T, tenant tenant, plugins ...string) {
	t.Helper()
	eventually(t, installed, "the plugins run", func(ctx context.Context) error {
		images, err := tenant.running(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(append([]string{serverImage + ":" + newVersion}, plugins...), images); diff != "" {
			return fmt.Errorf("other images run (-want +got):\n%s", diff)
		}
		return nil
	})
	tenant.awaitReady(t)
}
