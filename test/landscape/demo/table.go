package demo

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	libutils "github.com/openmcp-project/openmcp-operator/lib/utils"

	velerov1alpha1 "github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// show prints what was created where, and how to look at it.
func (d *demo) show(ctx context.Context) error {
	plane, err := d.ControlPlane(ctx, namespace, name)
	if err != nil {
		return err
	}
	tenant, err := libutils.StableMCPNamespace(name, namespace)
	if err != nil {
		return err
	}
	workload := strings.Replace(tenant, "mcp--", "velero--", 1)
	for _, part := range []func() error{
		func() error { return d.showVelero(ctx) },
		func() error { return d.showReleases(ctx, tenant) },
		func() error { return d.showNamespaces(ctx, plane) },
		func() error { return d.showDeployment(ctx, workload) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	d.showCommands(plane, tenant, workload)
	return nil
}

func (d *demo) showVelero(ctx context.Context) error {
	onboarding, err := d.veleroClient()
	if err != nil {
		return err
	}
	velero := &velerov1alpha1.Velero{}
	if err := onboarding.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, velero); err != nil {
		return err
	}
	return d.table(fmt.Sprintf("VELERO %s/%s: %s", namespace, name, velero.Status.Phase), func(row func(...any)) {
		for _, condition := range velero.Status.Conditions {
			row(condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	})
}

func (d *demo) showReleases(ctx context.Context, tenant string) error {
	platform, err := d.Platform.Client()
	if err != nil {
		return err
	}
	releases := &helmv2.HelmReleaseList{}
	if err := platform.List(ctx, releases, client.InNamespace(tenant)); err != nil {
		return err
	}
	return d.table("HELMRELEASES on platform, namespace "+tenant, func(row func(...any)) {
		for _, release := range releases.Items {
			message := "no condition yet"
			if ready := meta.FindStatusCondition(release.Status.Conditions, "Ready"); ready != nil {
				message = fmt.Sprintf("Ready=%s: %s", ready.Status, ready.Message)
			}
			row(release.Name, "installs into "+release.Spec.TargetNamespace, message)
		}
	})
}

func (d *demo) showNamespaces(ctx context.Context, plane landscape.Cluster) error {
	rows := map[string][]string{}
	clusters := []landscape.Cluster{d.Onboarding, d.Platform, plane, d.Workload}
	for _, cluster := range clusters {
		c, err := cluster.Client()
		if err != nil {
			return err
		}
		found := &corev1.NamespaceList{}
		if err := c.List(ctx, found); err != nil {
			return err
		}
		for _, item := range found.Items {
			if item.Name != "default" && !strings.HasPrefix(item.Name, "kube-") {
				rows[cluster.Name] = append(rows[cluster.Name], item.Name)
			}
		}
	}
	return d.table("NAMESPACES by cluster", func(row func(...any)) {
		for _, cluster := range clusters {
			row(cluster.Name, strings.Join(rows[cluster.Name], ", "))
		}
	})
}

func (d *demo) showDeployment(ctx context.Context, workload string) error {
	c, err := d.Workload.Client()
	if err != nil {
		return err
	}
	deployments := &appsv1.DeploymentList{}
	if err := c.List(ctx, deployments, client.InNamespace(workload)); err != nil {
		return err
	}
	return d.table("DEPLOYMENT on workload, namespace "+workload, func(row func(...any)) {
		for _, deployment := range deployments.Items {
			pod := deployment.Spec.Template.Spec
			for _, container := range pod.InitContainers {
				row(deployment.Name, "init container "+container.Name, container.Image)
			}
			for _, container := range pod.Containers {
				row(deployment.Name, "container "+container.Name, container.Image)
			}
			row(deployment.Name, "ready", fmt.Sprintf("%d of %d", deployment.Status.ReadyReplicas, deployment.Status.Replicas))
		}
	})
}

func (d *demo) showCommands(plane landscape.Cluster, tenant, workload string) {
	fmt.Fprintln(d.out, "\nLOOK FOR YOURSELF")
	for _, line := range []struct {
		cluster landscape.Cluster
		args    string
	}{
		{d.Onboarding, "get controlplanes,veleros -A"},
		{d.Platform, "get providerconfigs"},
		{d.Platform, "get helmreleases,ocirepositories,accessrequests -n " + tenant},
		{plane, "get crds,deployments -A"},
		{d.Workload, "get all,secrets,networkpolicies -n " + workload},
	} {
		fmt.Fprintf(d.out, "  %s --kubeconfig %s %s\n", d.Program("kubectl"), line.cluster.Kubeconfig(), line.args)
	}
	fmt.Fprintf(d.out, "\noperator log  %s\nother logs    %s\n\nTake it down with: ./task landscape:down\n",
		d.operator.Log, d.Logs())
}

// table prints aligned rows under a title.
func (d *demo) table(title string, fill func(row func(...any))) error {
	fmt.Fprintf(d.out, "\n%s\n", title)
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fill(func(cells ...any) {
		fmt.Fprint(table, "  ")
		for _, cell := range cells {
			fmt.Fprintf(table, "%v\t", cell)
		}
		fmt.Fprintln(table)
	})
	return table.Flush()
}
