// Package demo shows the whole way of a Velero on a landscape: charts are published, a platform operator offers versions, a
// tenant asks for one, and it becomes Ready.
package demo

import (
	"context"
	"embed"
	"fmt"
	"io"
	"strings"
	"time"

	corev2alpha1 "github.com/openmcp-project/openmcp-operator/api/core/v2alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// The tenant of the demo.
const (
	namespace = "default"
	name      = "test-mcp"
)

// limit is how long each step may take.
const limit = 2 * time.Minute

//go:embed *.yaml
var manifests embed.FS

// demo is one run.
type demo struct {
	*landscape.Landscape
	out      io.Writer
	operator *landscape.Operator
}

// Run shows the demo on a landscape that is up, and leaves it up. The error is nil only when the Velero became Ready.
func Run(ctx context.Context, l *landscape.Landscape, out io.Writer) error {
	d := &demo{Landscape: l, out: out}
	for _, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"publishing the charts", d.publish},
		{"starting the operator", d.start},
		{"offering Velero on the platform cluster", d.offer},
		{"waiting for the control plane", d.awaitControlPlane},
		{"waiting for the Velero", d.awaitVelero},
	} {
		d.Report("%s ...", step.title)
		if err := step.run(ctx); err != nil {
			return err
		}
	}
	return d.show(ctx)
}

func (d *demo) publish(ctx context.Context) error {
	return d.PublishCharts(ctx, "charts/velero-control-plane", "charts/velero-server")
}

// start runs the operator as the checkout has it now, also where an older one runs already.
func (d *demo) start(ctx context.Context) error {
	if err := d.StopOperators(ctx); err != nil {
		return err
	}
	// The control plane takes its time, so the tenant asks for it first.
	if err := d.apply(ctx, d.Onboarding, "controlplane.yaml"); err != nil {
		return err
	}
	operator, err := d.StartOperator(ctx, landscape.OperatorOptions{})
	d.operator = operator
	return err
}

func (d *demo) offer(ctx context.Context) error {
	for _, file := range []string{"privateregcred.yaml", "providerconfig.yaml"} {
		if err := d.apply(ctx, d.Platform, file); err != nil {
			return err
		}
	}
	return d.apply(ctx, d.Onboarding, "velero.yaml")
}

func (d *demo) apply(ctx context.Context, cluster landscape.Cluster, file string) error {
	content, err := manifests.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the manifest %s: %w", file, err)
	}
	manifest := strings.ReplaceAll(string(content), "${CHARTS}", d.ChartRepository())
	if err := cluster.Apply(ctx, []byte(manifest)); err != nil {
		return err
	}
	d.Report("applied %s to cluster %s", file, cluster.Name)
	return nil
}

func (d *demo) awaitControlPlane(ctx context.Context) error {
	onboarding, err := d.Onboarding.Client()
	if err != nil {
		return err
	}
	return d.await(ctx, func(ctx context.Context) (bool, error) {
		plane := &corev2alpha1.ControlPlane{}
		err := onboarding.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, plane)
		return plane.Status.Phase == "Ready", err
	})
}

// await polls until done, or says what the operator printed last.
func (d *demo) await(ctx context.Context, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		ready, err := done(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ready {
			return nil
		}
		if err := d.operator.Running(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready after %s; the operator's log is %s", limit, d.operator.Log)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
