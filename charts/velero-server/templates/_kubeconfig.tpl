{{/*
The cluster of the kubeconfig's current context, as YAML. Fails on a kubeconfig Velero could not work with for long. No
message may carry a part of it: Helm's errors end up in the status of the HelmRelease.
*/}}
{{- define "velero-server.cluster" -}}
{{- $config := fromYaml .Values.kubeconfig }}
{{- if not (and (kindIs "slice" $config.users) (kindIs "slice" $config.clusters) (kindIs "slice" $config.contexts)) }}
{{- fail "kubeconfig: it is no kubeconfig with clusters, users and contexts" }}
{{- end }}
{{- $context := include "velero-server.entry" (list $config.contexts "context" (get $config "current-context")) | fromYaml }}
{{- $cluster := include "velero-server.entry" (list $config.clusters "cluster" $context.cluster) | fromYaml }}
{{- $user := include "velero-server.entry" (list $config.users "user" $context.user) | fromYaml }}
{{- if not (and $cluster $user) }}
{{- fail "kubeconfig: its current context does not lead to a cluster and a user" }}
{{- end }}
{{- $tokenFile := printf "%s/token" (include "velero-server.credentialsDir" .) }}
{{- if ne (toJson $user) (dict "tokenFile" $tokenFile | toJson) }}
{{- fail (printf "kubeconfig: its user must have tokenFile: %s and nothing else, or Velero would never see a renewed token" $tokenFile) }}
{{- end }}
{{- if not (regexMatch "^https?://(\\[[0-9A-Fa-f:]+\\]|[A-Za-z0-9.-]+)(:[0-9]+)?(/|$)" (toString $cluster.server)) }}
{{- fail "kubeconfig: its server is not like https://host:port" }}
{{- end }}
{{- if hasKey $cluster "certificate-authority" }}
{{- fail "kubeconfig: its certificate authority is a file, which the pod does not have; use certificate-authority-data" }}
{{- end }}
{{- toYaml $cluster }}
{{- end }}

{{/*
What the first of a kubeconfig's entries with that name holds: (list entries field name).
*/}}
{{- define "velero-server.entry" -}}
{{- $field := index . 1 }}{{ $name := index . 2 }}{{ $found := dict }}
{{- range first . }}
{{- if and (not $found) (kindIs "map" .) $name }}
{{- if and (eq (toString .name) (toString $name)) (kindIs "map" (get . $field)) }}{{ $found = get . $field }}{{ end }}
{{- end }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{/*
Host and port of the control plane for plugins that only know the in-cluster configuration of Kubernetes, as YAML. Both are
empty where that configuration cannot express how to reach it. They are always set in the pod, because the kubelet would
set those of the cluster the pod runs on.
*/}}
{{- define "velero-server.inCluster" -}}
{{- $cluster := include "velero-server.cluster" . | fromYaml }}
{{- $host := "" }}{{ $port := "" }}
{{- $special := or (get $cluster "tls-server-name") (get $cluster "proxy-url") (get $cluster "insecure-skip-tls-verify") }}
{{- if and (not $special) (regexMatch "^https://[^/]+/?$" $cluster.server) }}
{{- $address := $cluster.server | trimPrefix "https://" | trimSuffix "/" }}
{{- $port = regexFind ":[0-9]+$" $address | trimPrefix ":" | default "443" }}
{{- $host = regexReplaceAll ":[0-9]+$" $address "" | trimAll "[]" }}
{{- end }}
{{- dict "host" $host "port" $port | toYaml }}
{{- end }}

{{- define "velero-server.inClusterMount" -}}
{{- if (include "velero-server.inCluster" . | fromYaml).host }}
- name: control-plane
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end }}
{{- end }}

{{/*
What Velero reads of the kubeconfig only once: where the control plane is, and which certificates it trusts.
*/}}
{{- define "velero-server.podAnnotations" -}}
{{- $own := dict "checksum/control-plane" (include "velero-server.cluster" . | sha256sum | trunc 16) }}
{{- merge $own (.Values.podAnnotations | default dict | deepCopy) | toYaml }}
{{- end }}
