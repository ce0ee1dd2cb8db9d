package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape/programs"
)

// TestChartTakesOnlyItsOwnDeployment: Flux has to take over the namespace and CRDs that a control plane has already, and cannot be told to
// leave out a Deployment. So the chart looks.
func TestChartTakesOnlyItsOwnDeployment(t *testing.T) {
	of := func(name, namespace string) map[string]string {
		return map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace}
	}
	for namespace, test := range map[string]struct {
		there       bool
		annotations map[string]string
		refused     bool
	}{
		"velero-none":           {},
		"velero-own":            {true, of(plan.ControlPlaneRelease, "velero-own"), false},
		"velero-foreign":        {true, nil, true},
		"velero-other-release":  {true, of("velero", "velero-other-release"), true},
		"velero-elsewhere":      {true, of(plan.ControlPlaneRelease, "another"), true},
		"velero-other-comments": {true, map[string]string{"deployment.kubernetes.io/revision": "1"}, true},
	} {
		t.Run(namespace, func(t *testing.T) {
			stage, err := theStage()
			must(t, err)
			must(t, stage.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
			if test.there {
				must(t, stage.Create(t.Context(), deployment(namespace, test.annotations)))
			}
			out, err := stage.tryInstall(t, namespace)
			switch {
			case test.refused && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`Deployment "velero" in namespace %q exists already and belongs to somebody else`, namespace))):
				t.Errorf("error %v, want that it belongs to somebody else", err)
			case !test.refused && (err != nil || !strings.Contains(out, "kind: Deployment")):
				t.Errorf("error %v, want a Deployment", err)
			}
		})
	}
}

func deployment(namespace string, annotations map[string]string) *appsv1.Deployment {
	labels := map[string]string{"app": "velero"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "velero", Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/somebody-elses:v1"}}},
		}},
	}
}

// tryInstall does what helm-controller does, up to the first write.
func (s *stage) tryInstall(t *testing.T, namespace string) (string, error) {
	t.Helper()
	helm, err := programs.Find(t.Context(), "helm")
	must(t, err)
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	must(t, os.WriteFile(kubeconfig, s.kubeconfig, 0o600))
	cmd := exec.CommandContext(t.Context(), helm, "install", plan.ControlPlaneRelease, filepath.Join("..", "..", "charts", plan.ControlPlaneRelease),
		"--dry-run=server", "--take-ownership", "--namespace", namespace, "--set", "image=velero/velero:v1.17.1")
	cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + kubeconfig}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm: %w: %s", err, stderr.String())
	}
	return stdout.String(), nil
}
