{{/*
Labels of every object. "+" of a chart version (Flux appends the digest as build metadata) is not allowed in a label value.
*/}}
{{- define "velero-server.labels" -}}
{{ include "velero-server.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | regexFind "^.*[A-Za-z0-9]" | quote }}
{{- end }}

{{/*
Labels that never change: a Deployment's selector is immutable, and a new label on the pod would restart Velero, which
fails every backup that runs.
*/}}
{{- define "velero-server.selectorLabels" -}}
app.kubernetes.io/name: velero-server
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "velero-server.podLabels" -}}
{{- $own := include "velero-server.selectorLabels" . | fromYaml }}
{{- merge $own (.Values.podLabels | default dict | deepCopy) | toYaml }}
{{- end }}

{{/*
Labels of the objects Prometheus selects by label: the chart's own, and those in the list's second element.
*/}}
{{- define "velero-server.monitoringLabels" -}}
{{- $own := include "velero-server.labels" (first .) | fromYaml }}
{{- merge $own (last . | default dict | deepCopy) | toYaml }}
{{- end }}
