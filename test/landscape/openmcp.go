package landscape

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"

	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

const (
	environment     = "landscape"
	controlPlanes   = "openmcp-controlplane" // the process, and the PlatformService it stands for
	openMCPOperator = "openmcp-operator"
)

//go:embed openmcp-operator.yaml
var openMCPConfig []byte

// startOpenMCP runs openmcp-operator twice, as its own deployment does: the scheduler with the AccessRequest controller, and
// the ControlPlane controller.
func (l *Landscape) startOpenMCP(ctx context.Context) error {
	if err := l.site.Write(openMCPConfig, "openmcp-operator.yaml"); err != nil {
		return err
	}
	kubeconfig, err := l.Platform.UserKubeconfig(openMCPOperator, "system:masters")
	if err != nil {
		return err
	}
	flags := []string{
		"--environment=" + environment, "--kubeconfig=" + kubeconfig, "--config=" + l.site.Path("openmcp-operator.yaml"),
	}
	if err := l.runOpenMCP(ctx, openMCPOperator, append([]string{"run", "--controllers=scheduler,accessrequest"}, flags...)); err != nil {
		return err
	}
	// Both wait in steps of 10 s for their access to the onboarding cluster, so they do it side by side. The init command
	// would have to come first on an empty cluster, but the CRD is there already.
	named := append(flags, "--provider-name="+controlPlanes)
	return together(ctx,
		func(ctx context.Context) error {
			return l.once(ctx, controlPlanes+"-init", l.site.Programs[openMCPOperator], append([]string{"mcp", "init"}, named...))
		},
		func(ctx context.Context) error {
			return l.runOpenMCP(ctx, controlPlanes, append([]string{"mcp", "run"}, named...))
		},
	)
}

func (l *Landscape) runOpenMCP(ctx context.Context, name string, args []string) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	args = append(args, "--health-probe-bind-address="+loopback(ports[0]))
	return l.run(ctx, process.Spec{
		Name: name, Program: openMCPOperator, Args: args, Env: podEnv(name), Stage: site.StageController,
	}, "http://"+loopback(ports[0])+"/readyz")
}

// once runs a command to its end, with its output in a log.
func (l *Landscape) once(ctx context.Context, name, program string, args []string) error {
	log, err := os.OpenFile(l.site.Log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), podEnv(name)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s failed: %w; %s", name, err, process.LogTail(log.Name()))
	}
	l.report("%s is done", name)
	return nil
}

// podEnv is what openmcp-operator's Deployments tell a pod about itself.
func podEnv(name string) []string {
	return []string{
		"POD_NAME=" + name, "POD_NAMESPACE=" + SystemNamespace, "POD_IP=127.0.0.1", "POD_SERVICE_ACCOUNT_NAME=" + name,
	}
}
