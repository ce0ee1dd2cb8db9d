package charts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

const (
	credentialsDir    = "/var/run/secrets/velero/control-plane"
	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// kubeconfigValue is the value kubeconfig for a cluster, whose fields are given as YAML.
func kubeconfigValue(cluster string) string {
	return "kubeconfig: '{current-context: a, contexts: [{name: a, context: {cluster: b, user: c}}], clusters: [{name: b, cluster: {" +
		cluster + "}}], users: [{name: c, user: {tokenFile: " + credentialsDir + "/token}}]}'"
}

// mounted writes the Secret with the identity as the kubelet would, below a directory of the test, which the kubeconfig then names.
func mounted(t *testing.T, objects []object) string {
	t.Helper()
	dir := t.TempDir()
	for key, value := range find[corev1.Secret](t, objects, "Secret", "velero-control-plane").Data {
		content := strings.ReplaceAll(string(value), credentialsDir, dir)
		if err := os.WriteFile(filepath.Join(dir, key), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// config is what Velero makes of --kubeconfig.
func config(dir string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = filepath.Join(dir, "kubeconfig")
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
}

// Without its identity Velero must end, and never work on the cluster it runs on.
func TestVeleroFailsWithoutItsIdentity(t *testing.T) {
	objects := newHelm(t).mustRender(t, overlay(t, server, kubeconfigValue(`server: "https://mcp.example.com:6443"`)))
	for name, value := range env(find[appsv1.Deployment](t, objects, "Deployment", "velero").Spec.Template.Spec.Containers[0]) {
		t.Setenv(name, value)
	}
	good, err := config(mounted(t, objects))
	if err != nil || good.Host != "https://mcp.example.com:6443" || good.BearerToken != "the-token" || !strings.HasSuffix(good.BearerTokenFile, "/token") {
		t.Fatalf("Velero would use %v, %v", good, err)
	}
	for _, file := range []string{"kubeconfig", "token"} {
		dir := mounted(t, objects)
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		if got, err := config(dir); err == nil {
			t.Errorf("without %s Velero would use %s", file, got.Host)
		}
	}
	dir := mounted(t, objects)
	if err := os.Truncate(filepath.Join(dir, "kubeconfig"), 0); err != nil {
		t.Fatal(err)
	}
	if got, err := config(dir); err == nil && got.Host != good.Host {
		t.Errorf("with an empty kubeconfig Velero would use %s", got.Host)
	}
	dir = mounted(t, objects)
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config(dir)
	if err != nil || got.Host != good.Host {
		t.Fatalf("with an empty token Velero would use %v, %v", got, err)
	}
	if _, err := transport.NewCachedFileTokenSource(got.BearerTokenFile).Token(); err == nil {
		t.Error("an empty token is taken for one")
	}
}

// Plugins such as that for AWS ask for the in-cluster configuration. They get the control plane, or nothing.
func TestInClusterConfigurationIsTheControlPlane(t *testing.T) {
	h := newHelm(t)
	for cluster, want := range map[string]string{
		`server: "https://mcp.example.com:6443"`:                            "mcp.example.com 6443",
		`server: "https://mcp.example.com/"`:                                "mcp.example.com 443",
		`server: "https://10.1.2.3:6443", certificate-authority-data: YQ==`: "10.1.2.3 6443 a",
		`server: "https://[fd00::1]:6443"`:                                  "fd00::1 6443",
		`server: "https://[fd00::1]"`:                                       "fd00::1 443",
		`server: "http://mcp.example.com"`:                                  "",
		`server: "https://mcp.example.com/clusters/root"`:                   "",
		`server: "https://mcp.example.com", tls-server-name: other`:         "",
		`server: "https://mcp.example.com", proxy-url: "http://proxy:1"`:    "",
		`server: "https://mcp.example.com", insecure-skip-tls-verify: true`: "",
	} {
		objects := h.mustRender(t, overlay(t, server, kubeconfigValue(cluster)))
		container := find[appsv1.Deployment](t, objects, "Deployment", "velero").Spec.Template.Spec.Containers[0]
		values := env(container)
		_, set := values["KUBERNETES_SERVICE_HOST"]
		if !set {
			t.Errorf("%s: the kubelet would set the address of the cluster the pod runs on", cluster)
		}
		var mount string
		for _, m := range container.VolumeMounts {
			if m.MountPath == serviceAccountDir {
				mount = m.Name
			}
		}
		data := find[corev1.Secret](t, objects, "Secret", "velero-control-plane").Data
		got := strings.TrimSpace(values["KUBERNETES_SERVICE_HOST"] + " " + values["KUBERNETES_SERVICE_PORT"] + " " + string(data["ca.crt"]))
		if diff := cmp.Diff(want, got); diff != "" || (mount == "control-plane") != (want != "") {
			t.Errorf("%s: mount %q, address and authority (-want +got):\n%s", cluster, mount, diff)
		}
		if string(data["namespace"]) != "velero" || string(data["token"]) != "the-token" {
			t.Errorf("%s: namespace %q, token %q", cluster, data["namespace"], data["token"])
		}
	}
}
