package charts_test

import (
	"strings"
	"testing"
)

// Values people really write. Each must get through the schema and the templates; want is a part of what comes out, as JSON.
var accepted = map[string][]struct{ values, want string }{
	controlPlane: {
		{"image: 'velero/velero:v1.18.3-rc.1'", `"name":"velero"`},
		{"placeholder: {enabled: false}", `"CustomResourceDefinition"`},
		{"placeholder: {}", `"CustomResourceDefinition"`},
	},
	server: {
		{"image: 'harbor.internal/proxy/docker.io/velero/velero:v1.18.3_vmware.1'", `"image":"harbor.internal/proxy/docker.io/velero/velero:v1.18.3_vmware.1"`},
		{"image: '10.20.20.150:6690/team_x:v1'\nplugins: []", `"image":"10.20.20.150:6690/team_x:v1"`},
		{"plugins: [{name: velero.io/aws, image: 'reg:5000/a:v1'}, {name: my_plugin, image: 'a:v1'}, {name: AWS, image: 'b:v1'}]", `"name":"plugin-my-plugin-`},
		{"plugins: [{name: '" + strings.Repeat("a", 200) + "', image: 'a:v1'}]", `"name":"plugin-aaa`},
		{"resources: {requests: {cpu: 1, memory: 536870912}, limits: {memory: 1.5Gi, ephemeral-storage: 2Gi}}", `"ephemeral-storage":"2Gi"`},
		{"resources: {requests: {cpu: 0.5}, limits: {memory: 1e9}}", `"cpu":0.5`},
		{"resources: {limits: null}", `"requests"`},
		{"resources: {}", `"GOMEMLIMIT"`},
		{"resources: null", `"name":"velero"`},
		{"initResources: {limits: {cpu: 100m, memory: 64Mi}}", `"memory":"64Mi"`},
		{"tmp: {sizeLimit: 10G}", `"sizeLimit":"10G"`},
		{"scratch: {sizeLimit: 500M}", `"sizeLimit":"500M"`},
		{"nodeSelector: {kubernetes.io/os: linux, node.kubernetes.io/pool: ''}", `"kubernetes.io/os":"linux"`},
		{"tolerations: [{operator: Exists}, {key: a, effect: NoExecute, tolerationSeconds: 3600}]", `"tolerationSeconds":3600`},
		{"affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {topologyKey: kubernetes.io/hostname, namespaceSelector: {}}}]}}", `"weight":100`},
		{"affinity: null\ntolerations: null\nnodeSelector: null", `"name":"velero"`},
		{"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]", `"maxSkew":1`},
		{"priorityClassName: system-cluster-critical\nruntimeClassName: kata", `"runtimeClassName":"kata"`},
		{"podAnnotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}", `"cluster-autoscaler.kubernetes.io/safe-to-evict":"false"`},
		{"podAnnotations: {checksum/control-plane: mine}", `"checksum/control-plane":"5d2f46d4e511b0d9"`},
		{"podLabels: {azure.workload.identity/use: 'true'}", `"azure.workload.identity/use":"true"`},
		{"extraEnv: [{name: AWS_REGION, value: eu-central-1}, {name: EMPTY}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", `"fieldPath":"metadata.name"`},
		{"extraEnv: [{name: GOMEMLIMIT, value: 1GiB}]", `"name":"GOMEMLIMIT","value":"1GiB"`},
		{"proxy: {http: 'http://u:p%40@proxy.corp:3128', https: 'http://u:p%40@proxy.corp:3128', noProxy: '.svc, 10.0.0.0/8,localhost'}", `"NO_PROXY":`},
		{"caBundle: \"-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----\\n\"", `"ca-bundle.crt":"-----BEGIN`},
		{"pullSecrets: [{name: a.b, type: kubernetes.io/dockercfg, data: {.dockercfg: e30=}}]\nimagePullSecrets: [{name: a.b}]", `".dockercfg":"e30="`},
		{"server: {logLevel: debug, features: [EnableCSI]}", `"--features=EnableCSI"`},
		{"server: {extraArgs: ['--default-backup-ttl=720h0m0s', '--restore-resource-priorities=crds,-,a', '--default-volume-snapshot-locations=a:b,c:d', '--client-qps=']}", `"--restore-resource-priorities=crds,-,a"`},
		{"server: {disableControllers: [backup-repo, restore, restore-operations, restore-finalizer]}", `"--disable-controllers=backup-repo,restore,restore-operations,restore-finalizer"`},
		{"serviceAccount: {annotations: {iam.gke.io/gcp-service-account: v@p.iam.gserviceaccount.com}}", `"iam.gke.io/gcp-service-account"`},
		{"networkPolicy: {enabled: false}", `"Deployment"`},
		{"networkPolicy: {metricsFrom: [], extraEgress: [{to: [{podSelector: {}}]}]}", `"ingress":[]`},
		{"networkPolicy: {blockedCIDRs: ['0.0.0.0/8', '::1/128', '2001:db8::/32', '::ffff:0:0/96']}", `"::ffff:0:0/96"`},
		{"networkPolicy: {dns: {to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: openshift-dns}}}], ports: [53, 5353]}}", `"port":5353`},
		{"metrics: {service: {annotations: {prometheus.io/port: '8085'}}}", `"prometheus.io/port":"8085"`},
		{"metrics: {serviceMonitor: {enabled: true, interval: 1m30s}}", `"interval":"1m30s"`},
	},
}

func TestGoodValuesAreAccepted(t *testing.T) {
	h := newHelm(t)
	for chart, tests := range accepted {
		for _, test := range tests {
			r := overlay(t, chart, test.values)
			r.flags = monitoringServed
			objects, err := h.render(r)
			if err != nil {
				t.Errorf("%s: %s: %v", chart, test.values, err)
				continue
			}
			var text strings.Builder
			for _, o := range objects {
				text.WriteString(o.text(t))
			}
			if !strings.Contains(text.String(), test.want) {
				t.Errorf("%s: %s: lacks %s:\n%s", chart, test.values, test.want, text.String())
			}
		}
	}
}
