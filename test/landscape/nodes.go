package landscape

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

//go:embed stages.yaml
var stages []byte

// startNodes gives the workload cluster a scheduler and nodes. Unless real ones were asked for they are simulated: a pod that
// is scheduled becomes Running and Ready, and one that is deleted goes, without a container runtime and so without root.
func (l *Landscape) startNodes(ctx context.Context) error {
	if l.RealNodes() {
		return l.startRealNodes(ctx)
	}
	return together(ctx, func(context.Context) error { return l.startScheduler(l.Workload) }, l.startKwok)
}

func (l *Landscape) startScheduler(cluster Cluster) error {
	kubeconfig, err := cluster.UserKubeconfig("kube-scheduler", "system:masters")
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	_, err = l.site.Start(process.Spec{
		Name: "kube-scheduler-" + cluster.Name, Program: "kube-scheduler", Stage: site.StageController,
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", ports[0]), "--cert-dir=" + l.site.Path("servers", cluster.Name, "pki", "scheduler"),
		},
	})
	return err
}

func (l *Landscape) startKwok(ctx context.Context) error {
	if err := l.site.Write(stages, "kwok.yaml"); err != nil {
		return err
	}
	kubeconfig, err := l.Workload.UserKubeconfig("kwok", "system:masters")
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	return l.run(ctx, process.Spec{
		Name: "kwok", Program: "kwok", Stage: site.StageController,
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--config=" + l.site.Path("kwok.yaml"), "--manage-all-nodes=true",
			"--node-lease-duration-seconds=40", "--node-ip=127.0.0.1", "--server-address=" + loopback(ports[0]),
		},
	}, "http://"+loopback(ports[0])+"/healthz")
}
