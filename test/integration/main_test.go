// Package integration runs the parts of the operator against real API servers and a real openmcp-operator, each part on its own and without
// the operator around it.
package integration

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/controller-utils/pkg/logging"

	"github.com/openmcp-project/service-provider-velero/api/crds"
	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/test/await"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// What all tests of this package share: starting it is most of their time.
var (
	world *landscape.Landscape
	// Administrators' clients.
	platform, onboarding, workload client.Client
)

// startTimeout bounds the start of the landscape, with all programs to be built.
const startTimeout = 45 * time.Minute

func TestMain(m *testing.M) {
	ctrl.SetLogger(logging.Discard().Logr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run brings the landscape up for the tests and takes it down after them, unless INTEGRATION_KEEP asks to leave it for a look.
func run(ctx context.Context, m *testing.M) (code int, err error) {
	options := landscape.Options{Name: "integration", Progress: func(line string) { fmt.Fprintln(os.Stderr, line) }}
	start, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// One that an earlier run left behind is in a state that no test expects.
	if err := landscape.Down(start, options); err != nil {
		return 1, err
	}
	if world, err = landscape.Up(start, options); err != nil {
		return 1, err
	}
	if os.Getenv("INTEGRATION_KEEP") == "" {
		defer func() {
			if failed := world.Down(context.WithoutCancel(ctx)); failed != nil {
				err = failed
			}
		}()
	}
	if err := furnish(start); err != nil {
		return 1, err
	}
	if cached, uncached, err = operatorClients(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// furnish connects to the clusters and installs the API of this provider.
func furnish(ctx context.Context) error {
	for target, cluster := range map[*client.Client]landscape.Cluster{&platform: world.Platform, &onboarding: world.Onboarding, &workload: world.Workload} {
		config, err := cluster.RESTConfig()
		if err != nil {
			return err
		}
		if *target, err = client.New(config, client.Options{Scheme: scheme()}); err != nil {
			return fmt.Errorf("connect to cluster %s: %w", cluster.Name, err)
		}
	}
	definitions, err := crds.CRDs()
	if err != nil {
		return err
	}
	targets := map[string]client.Client{"platform": platform, "onboarding": onboarding}
	for _, definition := range definitions {
		if err := establish(ctx, targets[definition.Labels["openmcp.cloud/cluster"]], definition); err != nil {
			return err
		}
	}
	return nil
}

// establish creates CRDs and waits until their kinds are served.
func establish(ctx context.Context, cluster client.Client, definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		wanted := definition.DeepCopy()
		wanted.ResourceVersion = ""
		if err := cluster.Create(ctx, wanted); err != nil {
			return fmt.Errorf("create CRD %s: %w", definition.Name, err)
		}
	}
	for _, definition := range definitions {
		if err := await.Until(ctx, time.Minute, func(ctx context.Context) error { return established(ctx, cluster, definition.Name) }); err != nil {
			return err
		}
	}
	return nil
}

func established(ctx context.Context, cluster client.Client, name string) error {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := cluster.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
		return err
	}
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("CRD %s is not established: %+v", name, definition.Status.Conditions)
}

// scheme knows the kinds of Kubernetes, openMCP, Flux and this provider.
func scheme() *runtime.Scheme {
	all := landscape.Scheme()
	utilruntime.Must(v1alpha1.AddToScheme(all))
	return all
}
