package charts_test

import (
	"strings"
	"testing"
)

// Values the charts refuse, and what the message says. The message ends up in the status of the HelmRelease.
var refused = map[string][]struct{ values, message string }{
	controlPlane: {
		{"image: null", "'/image': got null, want string"},
		{"image: ''", "'/image'"},
		{"image: velero/velero", "'/image': 'velero/velero' does not match pattern"},
		{"image: https://r/velero:v1", "'/image'"},
		{"image: velero/Velero:v1", "'/image'"},
		{"placeholder: {enabled: 'yes'}", "'/placeholder/enabled': got string, want boolean"},
		{"placeholder: {replicas: 1}", "additional properties 'replicas' not allowed"},
		{"unknown: 1", "additional properties 'unknown' not allowed"},
	},
	server: {
		{"image: null", "'/image': got null, want string"},
		{"token: null", "'/token': got null, want string"},
		{"token: ''", "'/token': minLength: got 0, want 1"},
		{"token: 5", "'/token': got number, want string"},
		{"kubeconfig: null", "'/kubeconfig': got null, want string"},
		{"kubeconfig: 'a: b'", "kubeconfig: it is no kubeconfig with clusters, users and contexts"},
		{"kubeconfig: '{users: [], clusters: [], contexts: {}}'", "it is no kubeconfig"},
		{"kubeconfig: '{users: [], clusters: [], contexts: []}'", "its current context does not lead to a cluster and a user"},
		{kubeconfigValue("server: \"https://a\"") + "\ntoken: ' '", "token: it is blank"},
		{strings.Replace(kubeconfigValue("server: \"https://a\""), "current-context: a", "current-context: b", 1), "its current context does not lead"},
		{strings.Replace(kubeconfigValue("server: \"https://a\""), "current-context: a, ", "", 1), "its current context does not lead"},
		{strings.Replace(kubeconfigValue("server: \"https://a\""), "tokenFile: /var", "token: t, tokenFile: /var", 1), "its user must have tokenFile: /var/run/secrets/velero/control-plane/token and nothing else"},
		{strings.Replace(kubeconfigValue("server: \"https://a\""), "tokenFile: /var", "tokenFile: /tmp", 1), "its user must have tokenFile"},
		{strings.Replace(kubeconfigValue("server: \"https://a\""), "tokenFile: ", "exec: ", 1), "its user must have tokenFile"},
		{kubeconfigValue("server: a"), "its server is not like https://host:port"},
		{kubeconfigValue("server: \"https://a\", certificate-authority: /etc/ca.crt"), "its certificate authority is a file"},
		{"image: velero/velero", "does not match pattern"},
		{"image: 'velero/velero:v1.17.1+vmware.1'", "does not match pattern"},
		{"image: ' velero/velero:v1'", "does not match pattern"},
		{"image: 'velero/velero@sha256:abc'", "does not match pattern"},
		{"image: 'velero/velero:'", "does not match pattern"},
		{"image: 'velero/velero/:v1'", "does not match pattern"},
		{"image: 'oci://velero/velero:v1'", "does not match pattern"},
		{"image: 'reg.io/Team/velero:v1'", "does not match pattern"},
		{"image: 'velero/velero:" + strings.Repeat("a", 129) + "'", "does not match pattern"},
		{"image: {repository: velero/velero, tag: v1}", "'/image': got object, want string"},
		{"plugins: {aws: v1}", "'/plugins': got object, want array"},
		{"plugins: [{name: 'é', image: a:b}]", "'/plugins/0/name': 'é' does not match pattern"},
		{"plugins: [{name: aws, image: 'a:b', version: v1}]", "additional properties 'version' not allowed"},
		{"nodeSelector: [a]", "'/nodeSelector': got array, want object"},
		{"tolerations: {key: a}", "'/tolerations': got object, want array"},
		{"resources: {limits: {memory: -1}}", "'/resources/limits/memory': minimum: got -1, want 0"},
		{"resources: {limits: {memory: 1GB}}", "'/resources/limits/memory': '1GB' does not match pattern"},
		{"networkPolicy: null", "missing property 'networkPolicy'"},
		{"networkPolicy: {enabled: 'false'}", "'/networkPolicy/enabled': got string, want boolean"},
		{"networkPolicy: {blockedCIDRs: [10.0.0.0/33]}", "does not match pattern"},
		{"networkPolicy: {blockedCIDRs: [10.0.0.256/32]}", "does not match pattern"},
		{"networkPolicy: {blockedCIDRs: ['fe80::/129']}", "does not match pattern"},
		{"extraEnv: {A: b}", "'/extraEnv': got object, want array"},
		{"extraEnv: [{name: KUBERNETES_SERVICE_HOST, value: x}]", "extraEnv: KUBERNETES_SERVICE_HOST is set by the chart"},
		{"plugins: [{name: aws}]", "'/plugins/0': missing property 'image'"},
		{"plugins: [{name: '', image: a:b}]", "'/plugins/0/name'"},
		{"plugins: [{name: 'a b', image: a:b}]", "'/plugins/0/name': 'a b' does not match pattern"},
		{"plugins: [{name: a, image: a:b}, {name: a, image: a:c}]", `plugins: "a" is listed twice`},
		{"plugins: '{{ 7 }}'", "'/plugins': got string, want array"},
		{"plugins: [{name: a, image: a:b, command: [sh]}]", "additional properties 'command' not allowed"},
		{"controlPlane: {namespace: Velero}", "'/controlPlane/namespace': 'Velero' does not match pattern"},
		{"imagePullSecrets: [a]", "'/imagePullSecrets/0': got string, want object"},
		{"pullSecrets: [{name: a, type: Opaque, data: {.dockercfg: a}}]", "'/pullSecrets/0/type'"},
		{"pullSecrets: [{name: a, type: kubernetes.io/dockercfg, data: {}}]", "'/pullSecrets/0/data': minProperties: got 0, want 1"},
		{"pullSecrets: [{name: velero-control-plane, type: kubernetes.io/dockercfg, data: {.dockercfg: a}}]", `the name "velero-control-plane" is reserved`},
		{"pullSecrets: [{name: a, type: kubernetes.io/dockercfg, data: {.dockercfg: a}}, {name: a, type: kubernetes.io/dockercfg, data: {.dockercfg: b}}]", `pullSecrets: "a" is listed twice`},
		{"server: {logLevel: loud}", "'/server/logLevel': value must be one of"},
		{"server: {logFormat: xml}", "'/server/logFormat': value must be one of 'text', 'json'"},
		{"server: {features: ['A,B']}", "'/server/features/0': 'A,B' does not match pattern"},
		{"server: {disableControllers: [backups]}", "'/server/disableControllers/0': value must be one of"},
		{"server: {extraArgs: [-n]}", "'/server/extraArgs/0': '-n' does not match pattern"},
		{"server: {extraArgs: ['--kubeconfig=/x']}", "server.extraArgs: --kubeconfig is set by the chart"},
		{"server: {extraArgs: ['--restore-only']}", "'--restore-only' does not match pattern"},
		{"server: {extraArgs: [\"--client-qps=1\\n--x\"]}", "does not match pattern"},
		{"server: {extraArgs: ['--client-qsp=5']}", "server.extraArgs: Velero has no flag --client-qsp"},
		{"server: {extraArgs: ['--uploader-type=restic']}", "--uploader-type=restic keeps Velero 1.17 and later from starting"},
		{"server: {extraArgs: ['--namespace=x']}", "server.extraArgs: --namespace is set by the chart"},
		{"extraEnv: [{name: VELERO_NAMESPACE, value: x}]", "extraEnv: VELERO_NAMESPACE is set by the chart"},
		{"extraEnv: [{name: HTTPS_PROXY, value: x}]", "extraEnv: HTTPS_PROXY is set by the chart"},
		{"extraEnv: [{name: KUBECONFIG, value: x}]", "extraEnv: KUBECONFIG is set by the chart"},
		{"extraEnv: [{name: A, value: a}, {name: A, value: b}]", "extraEnv: A is listed twice"},
		{"extraEnv: [{name: A, value: 1}]", "'/extraEnv/0/value': got number, want string"},
		{"resources: {limits: {memory: lots}}", "'/resources/limits/memory': 'lots' does not match pattern"},
		{"resources: {limit: {memory: 1Gi}}", "additional properties 'limit' not allowed"},
		{"tmp: {sizeLimit: big}", "'/tmp/sizeLimit'"},
		{"podLabels: {a: true}", "'/podLabels/a': got boolean, want string"},
		{"metrics: {serviceMonitor: {enabled: true}, service: {enabled: false}}", "metrics.serviceMonitor: it needs metrics.service.enabled"},
		{"metrics: {serviceMonitor: {interval: often}}", "'/metrics/serviceMonitor/interval': 'often' does not match pattern"},
		{"networkPolicy: {blockedCIDRs: [10.0.0.1]}", "'/networkPolicy/blockedCIDRs/0': '10.0.0.1' does not match pattern"},
		{"networkPolicy: {dns: {ports: [70000]}}", "'/networkPolicy/dns/ports/0': maximum: got 70,000, want 65,535"},
		{"replicas: 2", "additional properties 'replicas' not allowed"},
		{"securityContext: {}", "additional properties 'securityContext' not allowed"},
	},
}

func TestBadValuesAreRefusedByName(t *testing.T) {
	h := newHelm(t)
	for chart, tests := range refused {
		for _, test := range tests {
			_, err := h.render(overlay(t, chart, test.values))
			if err == nil {
				t.Errorf("%s: %s: accepted", chart, test.values)
			} else if !strings.Contains(err.Error(), test.message) {
				t.Errorf("%s: %s: message lacks %q: %v", chart, test.values, test.message, err)
			}
		}
	}
}

func TestMissingValuesAreNamed(t *testing.T) {
	h := newHelm(t)
	for chart, message := range map[string]string{
		controlPlane: "missing property 'image'",
		server:       "missing properties 'image', 'kubeconfig', 'token'",
	} {
		if _, err := h.render(release{chart: chart}); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s without values: %v, want %q", chart, err, message)
		}
	}
}

func TestImageReferencesOfAllKindsAreAccepted(t *testing.T) {
	h := newHelm(t)
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for _, image := range []string{
		"velero:v1", "velero/velero:latest", "docker.io/velero/velero:v1.18.3", "localhost:5000/velero:v1", "[fd00::1]:5000/x:v1",
		"10.20.20.150:6690/velero/velero-plugin-for-aws:v1.13.0", "harbor.internal/proxy/docker.io/velero/velero:v1.18.3-rc.1",
		"reg.io/team_x/a.b/velero:v1.18.3_vmware.1", "velero/velero" + digest, "velero/velero:v1.18.3" + digest,
	} {
		if _, err := h.render(overlay(t, server, "image: '"+image+"'")); err != nil {
			t.Errorf("%s: %v", image, err)
		}
	}
}

func TestControlPlaneChartRefusesSharedNamespaces(t *testing.T) {
	h := newHelm(t)
	for _, namespace := range []string{"default", "kube-system"} {
		_, err := h.run("template", controlPlane, controlPlane, "--namespace", namespace, "--values", minimalValues(controlPlane))
		if err == nil || !strings.Contains(err.Error(), "install it into a namespace of its own") {
			t.Errorf("namespace %s: %v", namespace, err)
		}
	}
}
