package charts_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func hash8(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:8]
}

// eachCase runs check on the objects of every golden case of the chart.
func eachCase(t *testing.T, chart string, check func(t *testing.T, objects []object)) {
	t.Helper()
	h := newHelm(t)
	for _, dir := range cases(t, chart) {
		t.Run(filepath.Join(chart, filepath.Base(dir)), func(t *testing.T) {
			check(t, h.mustRender(t, caseRelease(t, chart, dir)))
		})
	}
}

func TestPodsAreRestricted(t *testing.T) {
	check := func(t *testing.T, objects []object) {
		for _, o := range objects {
			if o.kind() != "Deployment" {
				continue
			}
			pod := decode[appsv1.Deployment](t, o).Spec.Template.Spec
			for _, violation := range restrictedViolations(pod) {
				t.Error(violation)
			}
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
				t.Error("the pod gets a ServiceAccount token")
			}
		}
	}
	eachCase(t, controlPlane, check)
	eachCase(t, server, check)
}

// restrictedViolations are the rules of the Pod Security Standard "restricted", and a read-only root on top.
func restrictedViolations(pod corev1.PodSpec) []string {
	var found []string
	must := func(ok bool, format string, args ...any) {
		if !ok {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	must(!pod.HostNetwork && !pod.HostPID && !pod.HostIPC, "the pod is in a namespace of its host")
	sc := pod.SecurityContext
	must(sc != nil && sc.RunAsNonRoot != nil && *sc.RunAsNonRoot, "runAsNonRoot is not set")
	must(sc != nil && sc.RunAsUser != nil && *sc.RunAsUser != 0, "runAsUser is not numeric and above 0")
	must(sc != nil && sc.SeccompProfile != nil && sc.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "seccomp profile is not RuntimeDefault")
	must(sc == nil || (len(sc.Sysctls) == 0 && sc.SELinuxOptions == nil && sc.AppArmorProfile == nil), "sysctls, SELinux or AppArmor options")
	for _, v := range pod.Volumes {
		must(v.EmptyDir != nil || v.Secret != nil || v.ConfigMap != nil, "volume %s has a type that is not expected", v.Name)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		sc := c.SecurityContext
		if sc == nil || sc.Capabilities == nil {
			must(false, "container %s has no security context", c.Name)
			continue
		}
		must(sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation, "%s may escalate privileges", c.Name)
		must(sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem, "%s has a writable root", c.Name)
		must(slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) && len(sc.Capabilities.Add) == 0, "%s keeps capabilities", c.Name)
		must(sc.Privileged == nil && sc.RunAsUser == nil && sc.RunAsNonRoot == nil && sc.SeccompProfile == nil && sc.ProcMount == nil, "%s overrides the pod", c.Name)
		for _, p := range c.Ports {
			must(p.HostPort == 0, "%s has a host port", c.Name)
		}
	}
	return found
}

func TestPodIsConsistent(t *testing.T) {
	eachCase(t, server, func(t *testing.T, objects []object) {
		pod := find[appsv1.Deployment](t, objects, "Deployment", "velero").Spec.Template.Spec
		volumes := map[string]bool{}
		for _, v := range pod.Volumes {
			volumes[v.Name] = true
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			if len(env(c)) != len(c.Env) {
				t.Errorf("%s lists a variable twice, which server-side apply refuses", c.Name)
			}
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] || m.SubPath != "" {
					t.Errorf("%s: mount %s has no volume, or a subPath, which is never renewed", c.Name, m.Name)
				}
			}
		}
		if first := pod.Containers[0].Args[0]; first != "server" {
			t.Errorf("first argument %q, want server: plugins are started with what follows it", first)
		}
	})
}

const (
	canaryToken    = "canary-token-3b1f"
	canaryPull     = "Y2FuYXJ5LXB1bGw="
	canaryPassword = "canary-password-77aa"
)

func TestSecretValuesAreInSecretsOnly(t *testing.T) {
	h := newHelm(t)
	r := overlay(t, server, fmt.Sprintf(`
token: %s
pullSecrets: [{name: a, type: kubernetes.io/dockerconfigjson, data: {.dockerconfigjson: %s}}]
proxy: {http: "http://u:%[3]s@p:1", https: "http://u:%[3]s@p:2"}
caBundle: PEM
metrics: {serviceMonitor: {enabled: true}, rules: {enabled: true}}
`, canaryToken, canaryPull, canaryPassword))
	r.flags = monitoringServed
	inSecrets := 0
	for _, o := range h.mustRender(t, r) {
		for _, canary := range []string{canaryToken, encode(canaryToken), canaryPull, canaryPassword} {
			if !strings.Contains(o.text(t), canary) {
				continue
			}
			inSecrets++
			if o.kind() != "Secret" {
				t.Errorf("%s %s contains a secret value", o.kind(), o.name())
			}
		}
	}
	if inSecrets == 0 {
		t.Error("no Secret contains the values: the test looks for the wrong thing")
	}
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestRefusalsNeverQuoteSecretValues(t *testing.T) {
	h := newHelm(t)
	for _, values := range []string{
		"kubeconfig: CANARY",
		"kubeconfig: '[CANARY'",
		"kubeconfig: {CANARY: CANARY}",
		"kubeconfig: [CANARY]",
		"kubeconfig: 'users: CANARY'",
		"kubeconfig: '{users: [CANARY], clusters: [CANARY], contexts: [CANARY]}'",
		"kubeconfig: '{users: [{name: CANARY, user: CANARY}], clusters: [{name: CANARY, cluster: CANARY}], contexts: [{name: CANARY, context: {user: CANARY}}], current-context: CANARY}'",
		"kubeconfig: '{users: [], clusters: [], contexts: [{name: {CANARY: CANARY}, context: CANARY}], current-context: [CANARY]}'",
		strings.Replace(kubeconfigValue("server: \"https://a\""), "tokenFile: ", "token: CANARY, tokenFile: ", 1),
		strings.Replace(kubeconfigValue("server: \"https://a\""), "tokenFile: ", "client-key-data: CANARY, tokenFile: ", 1),
		kubeconfigValue("server: \"https://CANARY@x:y\""),
		kubeconfigValue("server: {CANARY: CANARY}"),
		kubeconfigValue("server: \"https://a:b/CANARY\""),
		kubeconfigValue("server: \"https://a\", certificate-authority: CANARY"),
		"token: [CANARY]",
		"token: {a: CANARY}",
		"pullSecrets: CANARY",
		"pullSecrets: [{name: a, type: kubernetes.io/dockercfg, data: CANARY}]",
		"pullSecrets: [{name: a, type: kubernetes.io/dockercfg, data: {.dockercfg: [CANARY]}}]",
		"proxy: CANARY",
		"proxy: {http: [CANARY]}",
		"caBundle: [CANARY]",
	} {
		if _, err := h.render(overlay(t, server, values)); err == nil {
			t.Errorf("%s: accepted", values)
		} else if strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: the message quotes the value: %v", values, err)
		}
	}
}

func TestValuesAreNeverEvaluated(t *testing.T) {
	h := newHelm(t)
	const payload = `{{ 7 }}{{ fail "evaluated" }}`
	r := overlay(t, server, strings.ReplaceAll(`
token: 'PAYLOAD'
caBundle: 'PAYLOAD'
priorityClassName: 'PAYLOAD'
runtimeClassName: 'PAYLOAD'
topologySpreadConstraints: [{topologyKey: 'PAYLOAD'}]
server: {extraArgs: ['--vmodule=PAYLOAD']}
extraEnv: [{name: A, value: 'PAYLOAD'}]
podLabels: {a: 'PAYLOAD'}
podAnnotations: {a: 'PAYLOAD'}
nodeSelector: {a: 'PAYLOAD'}
tolerations: [{key: 'PAYLOAD'}]
affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: 'PAYLOAD'}]}}
serviceAccount: {annotations: {a: 'PAYLOAD'}}
metrics: {service: {annotations: {a: 'PAYLOAD'}}, serviceMonitor: {enabled: true, labels: {a: 'PAYLOAD'}}, rules: {enabled: true, labels: {a: 'PAYLOAD'}}}
networkPolicy: {metricsFrom: [{a: 'PAYLOAD'}], extraEgress: [{a: 'PAYLOAD'}], dns: {to: [{a: 'PAYLOAD'}]}}
`, "PAYLOAD", payload))
	r.flags = monitoringServed
	literal := 0
	for _, o := range h.mustRender(t, r) {
		literal += strings.Count(o.text(t), strings.ReplaceAll(payload, `"`, `\"`)) + strings.Count(o.text(t), encode(payload))
	}
	if literal != 19 {
		t.Errorf("%d payloads came out as they went in, want 19", literal)
	}
}
