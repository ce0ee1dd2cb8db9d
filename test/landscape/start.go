package landscape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/openmcp-project/service-provider-velero/test/landscape/apiserver"
	"github.com/openmcp-project/service-provider-velero/test/landscape/etcd"
	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// readyLimit is how long a component may take to become ready on a busy machine.
const readyLimit = 2 * time.Minute

// start runs all components: first the clusters, then what they hold, then the controllers.
func (l *Landscape) start(ctx context.Context) error {
	err := together(ctx,
		inOrder(l.startEtcd, l.startServers),
		l.startRegistry,
		l.startObjectStore,
		l.buildCommand,
	)
	if err != nil {
		return err
	}
	if err := l.open(); err != nil {
		return err
	}
	if err := together(ctx, l.furnishPlatform, l.furnishOnboarding, l.furnishWorkload); err != nil {
		return err
	}
	err = together(ctx,
		l.startControllers, l.startFlux, l.startNodes,
		inOrder(l.startClusterProvider, l.startOpenMCP),
	)
	if err != nil {
		return err
	}
	if err := l.allAlive(); err != nil {
		return err
	}
	l.site.Complete = true
	l.Report("the landscape is up")
	return l.site.Save()
}

// allAlive finds the components that ended after they were started.
func (l *Landscape) allAlive() error {
	records, err := l.site.Processes().Records()
	if err != nil {
		return err
	}
	for _, record := range records {
		if !record.Alive() {
			return fmt.Errorf("%s has ended; %s", record.Name, process.LogTail(record.Log))
		}
	}
	return nil
}

func (l *Landscape) startEtcd(ctx context.Context) error {
	if err := etcd.Start(ctx, l.site); err != nil {
		return err
	}
	l.Report("etcd is ready")
	return nil
}

func (l *Landscape) startServers(ctx context.Context) error {
	return together(ctx, l.server(Platform), l.server(Onboarding), l.server(Workload))
}

func (l *Landscape) server(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := apiserver.Start(ctx, l.site, apiserver.Spec{Name: name, Services: l.services(name)}); err != nil {
			return err
		}
		l.Report("cluster %s is ready", name)
		return nil
	}
}

// startControllers runs the kube-controller-managers, once the clusters hold all CRDs.
func (l *Landscape) startControllers(context.Context) error {
	return errors.Join(
		l.Platform.StartControllers(),
		l.Onboarding.StartControllers(apiserver.NodelessControllers()...),
		l.Workload.StartControllers(),
	)
}

func (l *Landscape) startRegistry(ctx context.Context) error {
	address := fmt.Sprintf("%s:%d", l.site.Address(), l.site.RegistryPort)
	config := fmt.Sprintf(registryConfig, l.site.Path("registry"), address)
	if err := l.site.Write([]byte(config), "registry.yaml"); err != nil {
		return err
	}
	return l.run(ctx, process.Spec{
		Name: "registry", Program: "registry", Args: []string{"serve", l.site.Path("registry.yaml")}, Stage: site.StageServer,
	}, "http://"+address+"/v2/")
}

const registryConfig = `version: 0.1
log: {level: warn}
storage:
  filesystem: {rootdirectory: %s}
  delete: {enabled: true}
http: {addr: "%s"}
`

// buildCommand builds command landscape: the cluster provider is one of its subcommands.
func (l *Landscape) buildCommand(ctx context.Context) error {
	return l.goBuild(ctx, nil, l.site.Path("bin", "landscape"), "./test/landscape/cmd/landscape")
}

// goBuild builds a program of the checkout. The go command's own cache makes it cheap to do so every time.
func (l *Landscape) goBuild(ctx context.Context, flags []string, target, pkg string) error {
	if err := os.MkdirAll(l.site.Path("bin"), 0o700); err != nil {
		return fmt.Errorf("create the program directory: %w", err)
	}
	return l.runGoBuild(ctx, nil, append(append([]string{"-o", target}, flags...), pkg))
}

// goBuildStatic builds a program of the checkout that needs no files of the machine it was built on, as an image wants it.
func (l *Landscape) goBuildStatic(ctx context.Context, target, pkg string) error {
	return l.runGoBuild(ctx, []string{"CGO_ENABLED=0"}, []string{"-trimpath", "-ldflags=-s -w", "-o", target, pkg})
}

func (l *Landscape) runGoBuild(ctx context.Context, env, args []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Env = l.site.Checkout, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", args[len(args)-1], err, out)
	}
	return nil
}

func (l *Landscape) startFlux(ctx context.Context) error {
	return together(ctx, l.startSourceController, l.startHelmController)
}

func (l *Landscape) startSourceController(ctx context.Context) error {
	storage := l.site.Path("source-data")
	if err := os.MkdirAll(storage, 0o700); err != nil {
		return fmt.Errorf("create the storage of source-controller: %w", err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	return l.runFlux(ctx, "source-controller", ports[0],
		"--storage-path="+storage, "--storage-addr="+loopback(ports[1]), "--storage-adv-addr="+loopback(ports[1]))
}

func (l *Landscape) startHelmController(ctx context.Context) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	return l.runFlux(ctx, "helm-controller", ports[0],
		"--requeue-dependency=1s", "--http-retry=1", "--graceful-shutdown-timeout=5s")
}

func (l *Landscape) runFlux(ctx context.Context, name string, health int, flags ...string) error {
	kubeconfig, err := l.Platform.UserKubeconfig(name, "system:masters")
	if err != nil {
		return err
	}
	flags = append(flags,
		"--metrics-addr=0", "--health-addr="+loopback(health), "--events-addr=", "--enable-leader-election=false",
		"--concurrent=4", "--interval-jitter-percentage=0", "--max-retry-delay=10s", "--log-encoding=json",
	)
	return l.run(ctx, process.Spec{
		Name: name, Program: name, Args: flags, Stage: site.StageController,
		Env: []string{"KUBECONFIG=" + kubeconfig, "RUNTIME_NAMESPACE=flux-system"}, // its flags do not know --kubeconfig
	}, "http://"+loopback(health)+"/readyz")
}

func (l *Landscape) startClusterProvider(ctx context.Context) error {
	kubeconfig, err := l.Platform.UserKubeconfig("cluster-provider-local", "system:masters")
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	return l.run(ctx, process.Spec{
		Name: "cluster-provider", Program: l.site.Path("bin", "landscape"), Stage: site.StageProvider,
		Args: []string{"cluster-provider", "--site=" + l.site.Dir, "--kubeconfig=" + kubeconfig, "--health=" + loopback(ports[0])},
	}, "http://"+loopback(ports[0])+"/readyz")
}

// run starts a component and waits until its URL answers.
func (l *Landscape) run(ctx context.Context, spec process.Spec, ready string) error {
	record, err := l.site.Start(spec)
	if err != nil {
		return err
	}
	if err := record.Await(ctx, readyLimit, answers(ready)); err != nil {
		return err
	}
	l.Report("%s is ready", spec.Name)
	return nil
}

func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}

func freePorts(count int) ([]int, error) {
	ports := make([]int, count)
	for i := range ports {
		port, err := site.FreePort()
		if err != nil {
			return nil, err
		}
		ports[i] = port
	}
	return ports, nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
