package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/openmcp-project/controller-utils/pkg/logging"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"
)

// parse reads a command line as the command does.
func parse(t *testing.T, run bool, args ...string) (Options, error) {
	t.Helper()
	var options Options
	flags := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
	flags.SetOutput(t.Output())
	options.Register(flags)
	if run {
		options.RegisterRun(flags)
	}
	return options, flags.Parse(args)
}

// TestArgumentsOfOpenMCPOperator has every argument that openmcp-operator passes, in its own words.
func TestArgumentsOfOpenMCPOperator(t *testing.T) {
	tests := map[string]struct {
		run  bool
		args []string
		want Options
	}{
		"InitJob": {
			args: []string{"--environment=dev", "--verbosity=INFO", "--provider-name=velero"},
			want: Options{Environment: "dev", ProviderName: "velero", AccessTimeout: 5 * time.Minute},
		},
		"Deployment": {
			run:  true,
			args: []string{"--environment=dev", "--verbosity=DEBUG", "--provider-name=velero", "--metrics-bind-address=:8080", "--metrics-secure=false"},
			want: Options{Environment: "dev", ProviderName: "velero", AccessTimeout: 5 * time.Minute, MetricsAddress: ":8080", HealthAddress: ":8081"},
		},
		"DeploymentOfSeveralReplicas": {
			run:  true,
			args: []string{"--environment=dev", "--verbosity=ERROR", "--provider-name=velero", "--leader-elect=true", "--metrics-bind-address=:8080", "--metrics-secure=false"},
			want: Options{Environment: "dev", ProviderName: "velero", AccessTimeout: 5 * time.Minute, LeaderElection: true, MetricsAddress: ":8080", HealthAddress: ":8081"},
		},
		"DeploymentWithoutMetrics": {
			run:  true,
			args: []string{"--environment=dev", "--verbosity=INFO", "--provider-name=velero"},
			want: Options{Environment: "dev", ProviderName: "velero", AccessTimeout: 5 * time.Minute, MetricsAddress: "0", HealthAddress: ":8081"},
		},
		"OfPeople": {
			run:  true,
			args: []string{"--provider-name=velero", "--kubeconfig=some/file", "--access-timeout=10s", "--health-probe-bind-address=0", "--metrics-secure"},
			want: Options{ProviderName: "velero", Kubeconfig: "some/file", AccessTimeout: 10 * time.Second, MetricsAddress: "0", MetricsSecure: true, HealthAddress: "0"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse(t, test.run, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := logging.GetLogger(); err != nil {
		t.Errorf("no logger of that verbosity: %v", err)
	}
}

func TestWrongArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"Unknown":       {"--unknown"},
		"NoDuration":    {"--access-timeout=soon"},
		"NoVerbosity":   {"--verbosity=loud"},
		"RunFlagOfInit": {"--leader-elect=true"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(t, false, args...); err == nil {
				t.Error("it is accepted")
			}
		})
	}
}

func TestMissingArgumentsAreNamed(t *testing.T) {
	tests := map[string]struct {
		provider, namespace string
		names               []string
	}{
		"Nothing":  {"velero", "openmcp-system", nil},
		"Provider": {"", "openmcp-system", []string{"--provider-name"}},
		"PodsOwn":  {"velero", "", []string{openmcpconst.EnvVariablePodNamespace}},
		"Both":     {"", "", []string{"--provider-name", openmcpconst.EnvVariablePodNamespace}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(openmcpconst.EnvVariablePodNamespace, test.namespace)
			options := Options{ProviderName: test.provider}
			err := options.validate()
			if (err != nil) != (len(test.names) > 0) {
				t.Fatalf("error %v", err)
			}
			for _, name := range test.names {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q does not name %s", err, name)
				}
			}
		})
	}
}

// TestInitAndRunRefuseToStart: with something missing they end before they talk to anybody.
func TestInitAndRunRefuseToStart(t *testing.T) {
	t.Setenv(openmcpconst.EnvVariablePodNamespace, "")
	for name, err := range map[string]error{"Init": Init(t.Context(), Options{}, logging.Discard()), "Run": Run(t.Context(), Options{}, logging.Discard())} {
		if err == nil || !strings.Contains(err.Error(), "--provider-name") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestPlatformConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: 'https://platform.example'}}]\nusers: [{name: u, user: {token: t}}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := (&Options{Kubeconfig: file}).platformConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://platform.example" || config.QPS >= 0 || config.UserAgent != "service-provider-velero" {
		t.Errorf("host %s, QPS %v, user agent %s", config.Host, config.QPS, config.UserAgent)
	}
	if _, err := (&Options{Kubeconfig: filepath.Join(t.TempDir(), "absent")}).platformConfig(); err == nil {
		t.Error("a kubeconfig that does not exist is accepted")
	}
}
