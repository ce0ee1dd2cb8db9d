package landscape

import (
	"context"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/test/landscape/node"
	"github.com/openmcp-project/service-provider-velero/test/landscape/programs"
)

// RealNodesPossible says why this machine cannot run real nodes; nil when it can.
func RealNodesPossible() error { return node.Possible() }

// RealNodes says whether the nodes of the landscape are real ones.
func (l *Landscape) RealNodes() bool { return l.site.Network != nil }

// realNodes are the clusters with a real node, by the index of the node in the landscape's network.
var realNodes = []string{Workload, Platform}

const pauseImage = "pause:landscape"

// plug makes the network of real nodes, or says why there will be none.
func (l *Landscape) plug(ctx context.Context, shelf programs.Shelf) error {
	if !l.options.RealNodes {
		return nil
	}
	if err := node.Possible(); err != nil {
		l.Report("the nodes will be simulated: %s", err)
		return nil
	}
	found, err := shelf.All(ctx, programs.NodeNames()...)
	if err != nil {
		return err
	}
	for name, path := range found {
		l.site.Programs[name] = path
	}
	unlock, err := lock(filepath.Join(shelf.Cache, "network"))
	if err != nil {
		return err
	}
	defer unlock()
	return node.Plug(ctx, l.site)
}

// services is the range of the Services of a cluster with a real node; empty for the others.
func (l *Landscape) services(cluster string) string {
	for index, name := range realNodes {
		if l.RealNodes() && name == cluster {
			return l.site.Network.Services(index)
		}
	}
	return ""
}

// startRealNodes gives the workload and the platform cluster a scheduler and a real node each.
func (l *Landscape) startRealNodes(ctx context.Context) error {
	pause := l.site.Path("bin", "pause")
	if err := l.goBuildStatic(ctx, pause, "./test/landscape/pause"); err != nil {
		return err
	}
	image := Image{Path: pauseImage, Programs: map[string]string{"/pause": pause}, Entrypoint: []string{"/pause"}}
	if err := l.PublishImage(ctx, image); err != nil {
		return err
	}
	var steps []func(context.Context) error
	for index, cluster := range []Cluster{l.Workload, l.Platform} {
		steps = append(steps,
			func(context.Context) error { return l.startScheduler(cluster) },
			func(ctx context.Context) error { return l.startRealNode(ctx, cluster, index) })
	}
	return together(ctx, steps...)
}

func (l *Landscape) startRealNode(ctx context.Context, cluster Cluster, index int) error {
	name := cluster.Name + "-node"
	kubeconfig, err := cluster.UserKubeconfig("system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	record, err := node.Start(ctx, l.site, node.Spec{
		Name: name, Index: index, Kubeconfig: kubeconfig, CA: l.site.Path("servers", cluster.Name, "pki", "ca.crt"),
		Registry: l.Registry, Pause: l.ImageAt(pauseImage), Command: l.site.Path("bin", "landscape"),
	})
	if err != nil {
		return err
	}
	c, err := cluster.Client()
	if err != nil {
		return err
	}
	if err := record.Await(ctx, readyLimit, func(ctx context.Context) error { return nodeReady(ctx, c, name) }); err != nil {
		return err
	}
	l.Report("node %s is ready", name)
	return nil
}

func nodeReady(ctx context.Context, c client.Client, name string) error {
	found := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
		return err
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node %s has the conditions %+v", name, found.Status.Conditions)
}
