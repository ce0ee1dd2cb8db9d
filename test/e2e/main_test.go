// Package e2e runs the operator on the landscape: real API servers, Flux, openmcp-operator and a real registry.
package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/app"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// The landscape and what runs on it, shared by all tests of this package: starting it once is most of their time.
var (
	testEnvironment env.Environment
	world           *landscape.Landscape
	operator        *landscape.Operator

	platform, onboarding, workload client.Client
)

// startTimeout bounds the start of the landscape, with all programs to be built.
const startTimeout = 45 * time.Minute

func TestMain(m *testing.M) {
	testEnvironment = env.New()
	testEnvironment.Setup(bringUp)
	testEnvironment.Finish(takeDown)
	os.Exit(testEnvironment.Run(m))
}

// TestVelero is the life of a few tenants' Veleros, in this order: each part starts from where the one before it ended.
func TestVelero(t *testing.T) {
	testEnvironment.Test(t, twoTenants(), changes(), blockedStates(), idleMinutes(), restarts(), deletion())
}

func bringUp(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	start, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// The operator may do exactly what its tables list, and nothing else.
	rules := slices.Concat(app.PlatformInit(), app.PlatformRun())
	options := landscape.Options{Name: cmp.Or(os.Getenv("E2E_LANDSCAPE"), "e2e"), Race: true, OperatorRules: rules, Progress: func(line string) { fmt.Fprintln(os.Stderr, line) }}
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
	for target, cluster := range map[*client.Client]landscape.Cluster{&platform: world.Platform, &onboarding: world.Onboarding, &workload: world.Workload} {
		if *target, err = cluster.Client(v1alpha1.AddToScheme); err != nil {
			return ctx, err
		}
	}
	if operator, err = world.StartOperator(start, landscape.OperatorOptions{}); err != nil {
		return ctx, err
	}
	return ctx, offer(start)
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
