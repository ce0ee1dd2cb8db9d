{{- define "velero-server.credentialsDir" -}}
/var/run/secrets/velero/control-plane
{{- end }}

{{/*
Name of the init container of the plugin . (a name): "plugin-aws". Names that are no DNS label, or too long for one, are
made one and told apart by a hash: "plugin-velero-io-aws-8fe2ab91". Never derived from the image, so that a new image is a
changed container and not another one.
*/}}
{{- define "velero-server.pluginContainer" -}}
{{- if and (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" .) (le (len .) 56) -}}
plugin-{{ . }}
{{- else -}}
plugin-{{ regexReplaceAll "[^a-z0-9]+" (lower .) "-" | trimAll "-" | trunc 47 | trimSuffix "-" }}-{{ sha256sum . | trunc 8 }}
{{- end -}}
{{- end }}

{{- define "velero-server.args" -}}
{{- /* "server" must come first: Velero starts its plugins with everything that follows it. */ -}}
- server
- --kubeconfig={{ include "velero-server.credentialsDir" . }}/kubeconfig
- --plugin-dir=/plugins
- --metrics-address=:8085
- --profiler-address=
- --log-level={{ .Values.server.logLevel }}
- --log-format={{ .Values.server.logFormat }}
{{- with .Values.server.features }}
- {{ printf "--features=%s" (join "," .) | quote }}
{{- end }}
{{- with include "velero-server.disabledControllers" . }}
- {{ printf "--disable-controllers=%s" . | quote }}
{{- end }}
{{- range include "velero-server.extraArgs" . | fromYamlArray }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/*
The environment as one list without duplicates (server-side apply refuses those): defaults, replaced and extended by
extraEnv. What the pod cannot work without is not replaceable.
*/}}
{{- define "velero-server.env" -}}
{{- $inCluster := include "velero-server.inCluster" . | fromYaml }}
{{- $fixed := list
  (dict "name" "KUBERNETES_SERVICE_HOST" "value" $inCluster.host)
  (dict "name" "KUBERNETES_SERVICE_PORT" "value" $inCluster.port)
  (dict "name" "VELERO_NAMESPACE" "value" .Values.controlPlane.namespace)
  (dict "name" "VELERO_SCRATCH_DIR" "value" "/scratch")
  (dict "name" "HOME" "value" "/scratch")
  (dict "name" "LD_LIBRARY_PATH" "value" "/plugins") }}
{{- $default := list (dict "name" "AWS_EC2_METADATA_DISABLED" "value" "true") }}
{{- with include "velero-server.goMemLimit" (.Values.resources | default dict) }}
{{- $default = append $default (dict "name" "GOMEMLIMIT" "value" .) }}
{{- end }}
{{- $reserved := list "KUBECONFIG" "SSL_CERT_DIR" "SSL_CERT_FILE" "HTTP_PROXY" "HTTPS_PROXY" "NO_PROXY" "http_proxy" "https_proxy" "no_proxy" }}
{{- range $fixed }}{{ $reserved = append $reserved .name }}{{ end }}
{{- $extra := list }}
{{- range .Values.extraEnv }}
{{- if has .name $reserved }}
{{- fail (printf "extraEnv: %s is set by the chart" .name) }}
{{- end }}
{{- if has .name $extra }}
{{- fail (printf "extraEnv: %s is listed twice" .name) }}
{{- end }}
{{- $extra = append $extra .name }}
{{- end }}
{{- $env := concat $fixed (include "velero-server.trustEnv" . | fromYamlArray) }}
{{- range $default }}
{{- if not (has .name $extra) }}{{ $env = append $env . }}{{ end }}
{{- end }}
{{- concat $env (.Values.extraEnv | default list) | toYaml }}
{{- end }}

{{/*
80 % of the memory limit, so that Go collects garbage before the kernel kills the server. GOMEMLIMIT knows no fractions and
only some of the suffixes of a quantity, so it is always whole MiB.
*/}}
{{- define "velero-server.goMemLimit" -}}
{{- $limit := dig "limits" "memory" "" . | toString }}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?" $limit }}
{{- $factor := dict "" 1 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
  "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 }}
{{- with get $factor (trimPrefix $number $limit) }}
{{- $mebibytes := divf (mulf (float64 $number) . 0.8) 1048576 | int64 }}
{{- if $mebibytes }}{{ printf "%dMiB" $mebibytes }}{{ end }}
{{- end }}
{{- end }}

{{/*
Trust in the CA bundle, on top of the system's pool (SSL_CERT_DIR is read beside the system's bundle file, SSL_CERT_FILE
would replace it). It is always set, and the ConfigMap is an optional volume: a bundle that comes, changes or goes does not
change the pod. Plugins, which talk to the object stores, are started anew for each backup and see it from then on.
*/}}
{{- define "velero-server.trustEnv" -}}
- name: SSL_CERT_DIR
  value: /etc/velero/ca-bundle:/etc/ssl/certs
{{- end }}

{{- define "velero-server.trustMount" -}}
- name: ca-bundle
  mountPath: /etc/velero/ca-bundle
  readOnly: true
{{- end }}

{{/*
Name of the proxy's Secret, empty without a proxy. A process reads its environment once, so a changed proxy must restart the
pod: the name changes with the content, and the pod refers to the name.
*/}}
{{- define "velero-server.proxySecret" -}}
{{- $proxy := .Values.proxy }}
{{- if or $proxy.http $proxy.https $proxy.noProxy -}}
velero-proxy-{{ printf "%s\n%s\n%s" $proxy.http $proxy.https (include "velero-server.noProxy" .) | sha256sum | trunc 8 }}
{{- end -}}
{{- end }}

{{- define "velero-server.envFrom" -}}
{{- with include "velero-server.proxySecret" . }}
- secretRef:
    name: {{ . }}
{{- end }}
{{- end }}

{{- define "velero-server.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}
