// Package velero runs a real Velero, ordered by a tenant, on real nodes of the landscape, with a real object store.
package velero

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/app"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// The landscape and what runs on it, shared by all tests of this package.
var (
	testEnvironment env.Environment
	world           *landscape.Landscape

	platform, onboarding, workload client.Client
)

// startTimeout bounds the start of the landscape, with all programs to be built.
const startTimeout = 60 * time.Minute

func TestMain(m *testing.M) {
	if err := landscape.RealNodesPossible(); err != nil {
		fmt.Fprintln(os.Stderr, "the tests of a real Velero are left out:", err)
		return
	}
	testEnvironment = env.New()
	testEnvironment.Setup(bringUp)
	testEnvironment.Finish(takeDown)
	os.Exit(testEnvironment.Run(m))
}

// TestVelero is what two tenants do with their Veleros, while the operator moves from a process into a pod.
func TestVelero(t *testing.T) {
	one, two := tenantNamed("backed-up"), tenantNamed("upgraded")
	testEnvironment.Test(t,
		installation(one, landscape.VeleroVersion), backupAndRestore(one),
		operatorInAPod(),
		installation(two, landscape.OldVeleroVersion), upgrade(two, landscape.VeleroVersion),
	)
}

func bringUp(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	start, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	options := landscape.Options{
		Name: cmp.Or(os.Getenv("E2E_LANDSCAPE"), "velero"), Race: true, RealNodes: true,
		OperatorRules: slices.Concat(app.PlatformInit(), app.PlatformRun()),
		Progress:      func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
	// One that an earlier run left behind is in a state that no test expects.
	if err := landscape.Down(start, options); err != nil {
		return ctx, err
	}
	var err error
	if world, err = landscape.Up(start, options); err != nil {
		return ctx, err
	}
	if err := world.PublishCharts(start, "charts/velero-control-plane", "charts/velero-server"); err != nil {
		return ctx, err
	}
	if err := world.PublishVelero(start); err != nil {
		return ctx, err
	}
	for target, cluster := range map[*client.Client]landscape.Cluster{&platform: world.Platform, &onboarding: world.Onboarding, &workload: world.Workload} {
		if *target, err = cluster.Client(v1alpha1.AddToScheme); err != nil {
			return ctx, err
		}
	}
	if _, err := world.StartOperator(start, landscape.OperatorOptions{}); err != nil {
		return ctx, err
	}
	return ctx, platform.Create(start, offered())
}

// takeDown ends the landscape, unless E2E_KEEP asks to leave it for a look.
func takeDown(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	if world == nil {
		return ctx, nil
	}
	if os.Getenv("E2E_KEEP") != "" {
		return ctx, world.Describe(os.Stderr)
	}
	return ctx, world.Down(ctx)
}

// offered is the ProviderConfig of a platform operator who mirrors all images.
func offered() *v1alpha1.ProviderConfig {
	return &v1alpha1.ProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultProviderConfigName},
		Spec: v1alpha1.ProviderConfigSpec{
			AvailableImages: []v1alpha1.AvailableImage{
				{
					Name: v1alpha1.ServerImageName, Image: world.ImageAt(landscape.VeleroImage),
					Versions: []string{landscape.OldVeleroVersion, landscape.VeleroVersion},
				},
				{Name: "aws", Image: world.ImageAt(landscape.AWSPluginImage), Versions: []string{landscape.AWSPluginVersion}},
			},
			Charts: &v1alpha1.Charts{Repository: world.ChartRepository(), Insecure: true},
		},
	}
}
