package landscape_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	corev2alpha1 "github.com/openmcp-project/openmcp-operator/api/core/v2alpha1"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
	"github.com/openmcp-project/service-provider-velero/test/landscape/clusterprovider"
	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
)

func TestControlPlaneComesAndGoesWithItsServer(t *testing.T) {
	l := up(t)
	cluster := controlPlane(t, l, "comes-and-goes", nil)
	// On a busy machine openMCP calls a ControlPlane Ready that is granted but still starting.
	eventually(t, "its API server is ready", func() error { return cluster.Ready(t.Context()) })
	if !serves(t, cluster, "apps/v1") {
		t.Error("a control plane does not serve apps/v1")
	}
	plane := &corev2alpha1.ControlPlane{}
	plane.Namespace, plane.Name = "default", "comes-and-goes"
	onboarding := clientOf(t, l.Onboarding)
	if err := onboarding.Delete(t.Context(), plane); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ControlPlane is gone", func() error { return gone(t.Context(), onboarding, plane) })
	if err := cluster.Ready(t.Context()); err == nil {
		t.Error("its API server still answers")
	}
	if _, err := os.Stat(cluster.Kubeconfig()); !os.IsNotExist(err) {
		t.Errorf("its files are still there: %v", err)
	}
	clusters := &clustersv1alpha1.ClusterList{}
	if err := clientOf(t, l.Platform).List(t.Context(), clusters); err != nil {
		t.Fatal(err)
	}
	for _, found := range clusters.Items {
		if clusterprovider.ServerName(&found) == cluster.Name {
			t.Errorf("its Cluster object is still there: %s", found.Name)
		}
	}
}

func TestControlPlaneWithoutApps(t *testing.T) {
	cluster := controlPlane(t, up(t), "without-apps", map[string]string{
		corev2alpha1.MCPPurposeOverrideLabel: clusterprovider.PurposeWithoutApps,
	})
	if serves(t, cluster, "apps/v1") {
		t.Error("it serves apps/v1")
	}
}

func TestControlPlaneFinishesTheDeletionOfNamespaces(t *testing.T) {
	cluster := controlPlane(t, up(t), "namespaces", nil)
	c := clientOf(t, cluster)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() error { return gone(t.Context(), c, namespace) })
}

func TestDeploymentRunsOnTheWorkloadCluster(t *testing.T) {
	c := clientOf(t, up(t).Workload)
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "plugin", Image: "example.com/plugin:1"}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "example.com/web:1"}}
	if err := c.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Deployment is available", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if deployment.Status.AvailableReplicas != 1 {
			return fmt.Errorf("status %+v", deployment.Status)
		}
		return nil
	})
	if err := c.Delete(t.Context(), deployment, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Deployment is gone", func() error { return gone(t.Context(), c, deployment) })
}

func TestAuditLogTellsWhoDidWhat(t *testing.T) {
	cluster := up(t).Onboarding
	begin := time.Now()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "audited"}}
	if err := clientOf(t, cluster).Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	events, err := cluster.AuditEvents(begin, func(e landscape.AuditEvent) bool {
		return e.Writes() && e.Object.Resource == "namespaces" && e.Object.Name == "audited"
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].User.Username != "admin" || events[0].Response.Code != 201 {
		t.Errorf("events: %+v", events)
	}
}

func TestSecondUpReturnsTheRunningLandscape(t *testing.T) {
	l := up(t)
	begin := time.Now()
	again, err := landscape.Up(t.Context(), landscape.Options{Name: "landscape-test"})
	if err != nil {
		t.Fatal(err)
	}
	if again.Platform.Port != l.Platform.Port || time.Since(begin) > 5*time.Second {
		t.Errorf("got another landscape: %+v after %s", again.Platform, time.Since(begin))
	}
}

func TestDumpHoldsObjectsAndLogs(t *testing.T) {
	dir := t.TempDir()
	if err := up(t).Dump(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	platform, err := os.ReadFile(dir + "/platform.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(platform), "kind: ClusterProfile") {
		t.Error("the dump of the platform cluster lacks the ClusterProfile")
	}
	if strings.Contains(string(platform), "client-certificate-data") || strings.Contains(string(platform), "kubeconfig: YXBp") {
		t.Error("the dump shows the value of a Secret")
	}
	if _, err := os.Stat(dir + "/logs/cluster-provider.log"); err != nil {
		t.Error(err)
	}
}

func TestCrashedLandscapeIsCleanedUpAndReplaced(t *testing.T) {
	up(t) // the programs are there, and it is skipped where the others are
	options := landscape.Options{Name: "crash-test", State: t.TempDir()}
	l, err := landscape.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Down(t.Context()) })
	records := processes(t, l)
	for _, record := range records {
		if record.Name == "etcd" {
			if err := record.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for record.Alive() {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	l, err = landscape.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		if record.Alive() {
			t.Errorf("%s of the crashed landscape still runs", record.Name)
		}
	}
	records = processes(t, l)
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		if record.Alive() {
			t.Errorf("%s survived the end of the landscape", record.Name)
		}
	}
	if _, err := os.Stat(l.Dir()); !os.IsNotExist(err) {
		t.Errorf("the state is still there: %v", err)
	}
}

func processes(t *testing.T, l *landscape.Landscape) []process.Record {
	t.Helper()
	records, err := process.Table{Dir: l.Dir() + "/processes"}.Records()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func serves(t *testing.T, cluster landscape.Cluster, groupVersion string) bool {
	t.Helper()
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := kinds.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if version.GroupVersion == groupVersion {
				return true
			}
		}
	}
	return false
}
