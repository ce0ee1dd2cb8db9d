package landscape_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
	"github.com/openmcp-project/service-provider-velero/test/landscape/node"
	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
)

func TestRealNodesRunPodsAndLeaveNothing(t *testing.T) {
	if err := landscape.RealNodesPossible(); err != nil {
		t.Skip(err)
	}
	options := landscape.Options{
		Name: "real-nodes-test", State: t.TempDir(), RealNodes: true, Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
	l, err := landscape.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Down(context.Background()) })
	err = l.PublishImage(t.Context(), landscape.Image{
		Path: "kubectl:test", Programs: map[string]string{"/kubectl": l.Program("kubectl")}, Entrypoint: []string{"/kubectl"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []landscape.Cluster{l.Workload, l.Platform} {
		runProxy(t, cluster, l.ImageAt("kubectl:test"))
	}
	pods := inNodes(t, l)
	if running := strings.Join(pods.names(), " "); strings.Count(running, "kubectl") != 2 || strings.Count(running, "pause") != 2 {
		t.Errorf("the nodes run %s", running)
	}
	// Down knows the directory only, as it does after a run that was killed.
	if err := landscape.Down(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if left := pods.alive(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	assertNothingLeft(t, l.Dir())
}

// runProxy runs a pod that is Ready when it reaches the API server of its cluster, with nothing but what every pod has.
func runProxy(t *testing.T, cluster landscape.Cluster, image string) {
	t.Helper()
	c := clientOf(t, cluster)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "proxy"}}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	pod.Spec.Containers = []corev1.Container{{
		Name: "proxy", Image: image, Args: []string{"proxy", "--address=0.0.0.0", "--port=8001", "--accept-hosts=.*"},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8001)},
		}},
		SecurityContext: &corev1.SecurityContext{
			ReadOnlyRootFilesystem: ptr.To(true), AllowPrivilegeEscalation: ptr.To(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}}
	eventually(t, "a pod is accepted on "+cluster.Name, func() error { return c.Create(t.Context(), pod) })
	eventually(t, "the pod on "+cluster.Name+" is Ready", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("status %+v", pod.Status)
	})
	if logs := logsOf(t, cluster, pod); !strings.Contains(logs, "Starting to serve") {
		t.Errorf("the logs of the pod on %s are %q", cluster.Name, logs)
	}
}

// logsOf reads what a pod prints, through the API server, as kubectl logs does.
func logsOf(t *testing.T, cluster landscape.Cluster, pod *corev1.Pod) string {
	t.Helper()
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	logs, err := kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(logs)
}

// population is some processes of the machine.
type population []process.Record

// inNodes finds all processes in the nodes of a landscape: those whose namespace of processes is not that of this test.
func inNodes(t *testing.T, l *landscape.Landscape) population {
	t.Helper()
	namespaces := map[string]bool{}
	for _, record := range processes(t, l) {
		if record.Isolated {
			namespaces[namespaceOf(record.PID)] = true
		}
	}
	if len(namespaces) != node.Count {
		t.Errorf("%d nodes, want %d", len(namespaces), node.Count)
	}
	var found population
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pid, _ := strconv.Atoi(filepath.Base(entry))
		// A container has a namespace of its own below that of its node, so look at the parents too.
		for parent := pid; parent > 1; parent = parentOf(parent) {
			if namespaces[namespaceOf(parent)] {
				found = append(found, process.Record{PID: pid, Spec: process.Spec{Name: nameOf(pid)}})
				break
			}
		}
	}
	return found
}

func namespaceOf(pid int) string {
	target, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return target
}

func nameOf(pid int) string {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(content))
}

func parentOf(pid int) int {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(content)) {
		if rest, found := strings.CutPrefix(line, "PPid:"); found {
			parent, _ := strconv.Atoi(strings.TrimSpace(rest))
			return parent
		}
	}
	return 0
}

func (p population) names() []string {
	names := make([]string, 0, len(p))
	for _, record := range p {
		names = append(names, record.Name)
	}
	return names
}

// alive lists those that still run. A number that the system gave to somebody else since has another name.
func (p population) alive() []string {
	var left []string
	for _, record := range p {
		if nameOf(record.PID) == record.Name {
			left = append(left, record.Name)
		}
	}
	return left
}

// assertNothingLeft looks for what real nodes have outside of their landscape's directory.
func assertNothingLeft(t *testing.T, dir string) {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range interfaces {
		if strings.HasPrefix(found.Name, node.Identity(dir)) {
			t.Errorf("network interface %s is left", found.Name)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), dir) {
		t.Error("mounts are left")
	}
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		if left, _ := filepath.Glob(pattern + node.Identity(dir)); len(left) > 0 {
			t.Errorf("cgroups are left: %v", left)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the state is still there: %v", err)
	}
}
