package landscape

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess"

	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

const (
	// Environment is the name of the environment that the operators share.
	Environment     = "landscape"
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
		"--environment=" + Environment, "--kubeconfig=" + kubeconfig, "--config=" + l.site.Path("openmcp-operator.yaml"),
	}
	if err := l.runOpenMCP(ctx, openMCPOperator, append([]string{"run", "--controllers=scheduler,accessrequest"}, flags...)); err != nil {
		return err
	}
	if err := l.grantOnboarding(ctx, "onboarding", "onboarding-init"); err != nil {
		return err
	}
	// The init command would have to come first on an empty cluster, but the CRD is there already.
	named := slices.Concat(flags, []string{"--provider-name=" + controlPlanes})
	return together(ctx,
		func(ctx context.Context) error {
			return l.once(ctx, controlPlanes+"-init", l.site.Programs[openMCPOperator], append([]string{"mcp", "init"}, named...))
		},
		func(ctx context.Context) error {
			return l.runOpenMCP(ctx, controlPlanes, append([]string{"mcp", "run"}, named...))
		},
	)
}

// grantOnboarding asks for the accesses of the ControlPlane controller in its place. It would do so itself, but look for the
// answers every 10 s only, which is most of the time a landscape takes to come up.
func (l *Landscape) grantOnboarding(ctx context.Context, names ...string) error {
	c, err := l.Platform.Client()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := create(ctx, c, onboardingAccess(name)...); err != nil {
			return err
		}
	}
	for _, name := range names {
		request := onboardingAccess(name)[1].(*clustersv1alpha1.AccessRequest)
		err := poll(ctx, readyLimit, func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
				return err
			}
			if !request.Status.IsGranted() {
				return fmt.Errorf("AccessRequest %s is not granted", request.Name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// onboardingAccess is the ClusterRequest and the AccessRequest the ControlPlane controller makes under a local name.
func onboardingAccess(name string) []client.Object {
	const controller = "ManagedControlPlane"
	meta := metav1.ObjectMeta{
		Namespace: SystemNamespace, Name: clusteraccess.StableRequestNameFromLocalName(controller, name),
		Labels: map[string]string{openmcpconst.ManagedByLabel: controller},
	}
	all := []string{"*"}
	request := &clustersv1alpha1.ClusterRequest{
		ObjectMeta: meta, Spec: clustersv1alpha1.ClusterRequestSpec{Purpose: clustersv1alpha1.PURPOSE_ONBOARDING},
	}
	access := &clustersv1alpha1.AccessRequest{ObjectMeta: meta, Spec: clustersv1alpha1.AccessRequestSpec{
		RequestRef: &commonapi.ObjectReference{Namespace: meta.Namespace, Name: meta.Name},
		Token: &clustersv1alpha1.TokenConfig{Permissions: []clustersv1alpha1.PermissionsRequest{
			{Rules: []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: all}}},
		}},
	}}
	return []client.Object{request, access}
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
	l.Report("%s is done", name)
	return nil
}

// podEnv is what openmcp-operator's Deployments tell a pod about itself.
func podEnv(name string) []string {
	return []string{
		"POD_NAME=" + name, "POD_NAMESPACE=" + SystemNamespace, "POD_IP=127.0.0.1", "POD_SERVICE_ACCOUNT_NAME=" + name,
	}
}
