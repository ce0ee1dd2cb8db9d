package charts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func podTemplate(t *testing.T, h helm, r release) corev1.PodTemplateSpec {
	t.Helper()
	return find[appsv1.Deployment](t, h.mustRender(t, r), "Deployment", "velero").Spec.Template
}

// The cluster of the minimal release, under other names.
const renamedKubeconfig = `
kubeconfig: |
  clusters: [{name: a, cluster: {server: "https://api.mcp.example.com:6443"}}]
  contexts: [{name: b, context: {cluster: a, user: c}}]
  current-context: b
  users: [{name: c, user: {tokenFile: /var/run/secrets/velero/control-plane/token}}]
`

func TestVeleroIsNotRestartedBy(t *testing.T) {
	h := newHelm(t)
	monitored := overlay(t, server, "metrics: {serviceMonitor: {enabled: true}, rules: {enabled: true}}")
	monitored.flags = monitoringServed
	bumped := release{chart: server, version: "0.2.0+0123456789ab", values: []string{minimalValues(server)}}
	changes := map[string]release{
		"a renewed token":                 overlay(t, server, "token: another"),
		"a kubeconfig that says the same": overlay(t, server, renamedKubeconfig),
		"another chart version":           bumped,
		"a pull secret's content":         overlay(t, server, `pullSecrets: [{name: a, type: kubernetes.io/dockercfg, data: {.dockercfg: e30=}}]`),
		"a CA bundle that comes":          overlay(t, server, "caBundle: PEM"),
		"metrics switched off":            overlay(t, server, "metrics: {service: {enabled: false}}"),
		"monitoring switched on":          monitored,
		"the NetworkPolicy":               overlay(t, server, "networkPolicy: {enabled: false}"),
		"the identity's annotations":      overlay(t, server, "serviceAccount: {annotations: {a: b}}"),
	}
	want := podTemplate(t, h, release{chart: server, values: []string{minimalValues(server)}})
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, podTemplate(t, h, change)); diff != "" {
				t.Errorf("the pod template changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestVeleroIsRestartedBy(t *testing.T) {
	h := newHelm(t)
	changes := map[string]release{
		// A process reads its environment once.
		"a proxy that comes":  overlay(t, server, `proxy: {http: "http://proxy:1"}`),
		"another image":       overlay(t, server, "image: velero/velero:v1.18.3"),
		"another plugin":      overlay(t, server, "plugins: [{name: gcp, image: g:v1}]"),
		"another pull secret": overlay(t, server, "imagePullSecrets: [{name: a}]"),
		// Both are read once: with the old ones, Velero would stay ready and reach nothing.
		"another address":   overlay(t, server, kubeconfigValue(`server: "https://api.mcp.example.com:443"`)),
		"another authority": overlay(t, server, kubeconfigValue(`server: "https://api.mcp.example.com:6443", certificate-authority-data: YQ==`)),
	}
	before := podTemplate(t, h, release{chart: server, values: []string{minimalValues(server)}})
	for name, change := range changes {
		if cmp.Equal(before, podTemplate(t, h, change)) {
			t.Errorf("%s does not reach the pod", name)
		}
	}
}

func TestChangedProxyRestartsAndAnUnchangedOneDoesNot(t *testing.T) {
	h := newHelm(t)
	first := podTemplate(t, h, overlay(t, server, `proxy: {https: "http://u:one@proxy:1"}`))
	again := podTemplate(t, h, overlay(t, server, "proxy: {https: \"http://u:one@proxy:1\"}\ntoken: another"))
	second := podTemplate(t, h, overlay(t, server, `proxy: {https: "http://u:two@proxy:1"}`))
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same proxy changed the pod template:\n%s", diff)
	}
	if cmp.Equal(first, second) {
		t.Error("another password does not reach the pod")
	}
}

func TestSelectorHoldsNothingThatChanges(t *testing.T) {
	h := newHelm(t)
	r := overlay(t, server, "podLabels: {a: b, app.kubernetes.io/instance: x}")
	r.version = "9.9.9+build"
	deployment := find[appsv1.Deployment](t, h.mustRender(t, r), "Deployment", "velero")
	want := map[string]string{"app.kubernetes.io/name": server, "app.kubernetes.io/instance": server}
	if diff := cmp.Diff(want, deployment.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	want["a"] = "b"
	if diff := cmp.Diff(want, deployment.Spec.Template.Labels); diff != "" {
		t.Errorf("pod labels (-want +got):\n%s", diff)
	}
}

func TestGoMemoryLimitIsBelowTheContainersLimit(t *testing.T) {
	h := newHelm(t)
	for limit, want := range map[string]string{
		"1Gi": "819MiB", "512Mi": "409MiB", "4Gi": "3276MiB", "1500M": "1144MiB", "1.5Gi": "1228MiB", "1e9": "762MiB",
		"1073741824": "819MiB", "'1073741824'": "819MiB", "'1e9'": "762MiB", "1048576Ki": "819MiB", "1073741824000m": "819MiB", "0.5Ti": "419430MiB",
		"1000": "", "null": "",
	} {
		pod := podTemplate(t, h, overlay(t, server, "resources: {limits: {memory: "+limit+"}}"))
		if got := env(pod.Spec.Containers[0])["GOMEMLIMIT"]; got != want {
			t.Errorf("limit %s: GOMEMLIMIT %q, want %q", limit, got, want)
		}
	}
}

func env(c corev1.Container) map[string]string {
	values := map[string]string{}
	for _, e := range c.Env {
		values[e.Name] = e.Value
	}
	return values
}

func TestPluginContainersAreNamedAfterThePlugin(t *testing.T) {
	h := newHelm(t)
	names := []string{
		"aws", "velero.io/aws", "velero-io-aws", "velero.io.aws", "AWS", "my_plugin", "0", "a--b",
		strings.Repeat("a", 56), strings.Repeat("a", 57), strings.Repeat("a", 253), strings.Repeat("a.", 100) + "a", strings.Repeat("-x", 40)[1:],
	}
	var values strings.Builder
	for _, name := range names {
		values.WriteString("\n- {name: \"" + name + "\", image: \"i:v1\"}")
	}
	containers := podTemplate(t, h, overlay(t, server, "plugins:"+values.String())).Spec.InitContainers
	seen := map[string]string{}
	for i, c := range containers {
		if !dnsLabel.MatchString(c.Name) || len(c.Name) > 63 {
			t.Errorf("plugin %q: container name %q is no DNS label", names[i], c.Name)
		}
		if other, taken := seen[c.Name]; taken {
			t.Errorf("plugins %q and %q share the container name %q", other, names[i], c.Name)
		}
		seen[c.Name] = names[i]
	}
	if len(containers) != len(names) || containers[0].Name != "plugin-aws" || containers[1].Name != "plugin-velero-io-aws-"+hash8("velero.io/aws") {
		t.Errorf("names %v", seen)
	}
}

func TestPluginsKeepTheirOrder(t *testing.T) {
	h := newHelm(t)
	pod := podTemplate(t, h, overlay(t, server, "plugins: [{name: b, image: b:v1}, {name: c, image: c:v1}, {name: a, image: a:v1}]"))
	var got []string
	for _, c := range pod.Spec.InitContainers {
		got = append(got, c.Name+" "+c.Image)
	}
	if diff := cmp.Diff([]string{"plugin-b b:v1", "plugin-c c:v1", "plugin-a a:v1"}, got); diff != "" {
		t.Errorf("init containers (-want +got):\n%s", diff)
	}
}
