// Package app puts the program together: its schemes, clients, caches and managers, for init and for run.
package app

import (
	"errors"
	"fmt"
	"os"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/controller-utils/pkg/logging"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"
	providerv1alpha1 "github.com/openmcp-project/openmcp-operator/api/provider/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Options are the arguments that openmcp-operator starts a provider with, and those that make it run outside a cluster.
type Options struct {
	// Environment names the landscape.
	Environment string
	// ProviderName is the name of the ServiceProvider object.
	ProviderName string
	// Kubeconfig of the platform cluster; empty: that of the pod.
	Kubeconfig string
	// AccessTimeout bounds the wait for access to the onboarding cluster.
	AccessTimeout time.Duration

	// LeaderElection is on when several replicas run. Only run has these.
	LeaderElection bool
	MetricsAddress string
	MetricsSecure  bool
	HealthAddress  string
}

// Register declares the arguments of both subcommands.
func (o *Options) Register(flags *pflag.FlagSet) {
	flags.StringVar(&o.Environment, "environment", "", "name of the environment (passed by openmcp-operator)")
	flags.StringVar(&o.ProviderName, "provider-name", "", "name of the ServiceProvider object (passed by openmcp-operator)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the platform cluster; default: that of the pod")
	flags.DurationVar(&o.AccessTimeout, "access-timeout", 5*time.Minute, "how long to wait for access to the onboarding cluster")
	logging.InitFlags(flags)
}

// RegisterRun declares the arguments that only run has.
func (o *Options) RegisterRun(flags *pflag.FlagSet) {
	flags.BoolVar(&o.LeaderElection, "leader-elect", false, "elect a leader among several replicas, with a Lease on the platform cluster")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", "address of the metrics endpoint; 0: none")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", false, "serve metrics by HTTPS, with a certificate made at the start")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0: none")
}

// validate says what is missing in the arguments and the environment.
func (o *Options) validate() error {
	var problems []error
	if o.ProviderName == "" {
		problems = append(problems, errors.New("--provider-name is missing"))
	}
	if podNamespace() == "" {
		problems = append(problems, fmt.Errorf("environment variable %s is missing: it names the namespace with the ProviderConfig's Secrets", openmcpconst.EnvVariablePodNamespace))
	}
	return errors.Join(problems...)
}

func podNamespace() string { return os.Getenv(openmcpconst.EnvVariablePodNamespace) }

func (o *Options) platformConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("configure access to the platform cluster: %w", err)
	}
	return tuned(config), nil
}

// PlatformClient connects to the platform cluster with a kubeconfig; empty: that of the environment.
func PlatformClient(kubeconfig string) (client.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("configure access to the platform cluster: %w", err)
	}
	connected, err := client.New(tuned(config), client.Options{Scheme: platformScheme()})
	if err != nil {
		return nil, fmt.Errorf("connect to the platform cluster: %w", err)
	}
	return connected, nil
}

// tuned leaves throttling to the API server's priority and fairness: the client's default of 5 requests a second would make a restart with
// thousands of tenants take an hour.
func tuned(config *rest.Config) *rest.Config {
	config.UserAgent = plan.UserAgent
	config.QPS = -1
	return config
}

func platformScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(clustersv1alpha1.AddToScheme(scheme))
	utilruntime.Must(providerv1alpha1.AddToScheme(scheme))
	utilruntime.Must(helmv2.AddToScheme(scheme))
	utilruntime.Must(sourcev1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

func onboardingScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}
