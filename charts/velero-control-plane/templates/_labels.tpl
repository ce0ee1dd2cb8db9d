{{/*
Labels of every object. Velero excludes what carries its label from all backups: a restored CRD or placeholder would be
an older one. There is no "component: velero" here, because the command "velero uninstall" deletes CRDs by that label.
"+" of a chart version (Flux appends the digest as build metadata) is not allowed in a label value.
*/}}
{{- define "velero-control-plane.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ include "velero-control-plane.labelValue" .Chart.AppVersion | quote }}
helm.sh/chart: {{ include "velero-control-plane.labelValue" (printf "%s-%s" .Chart.Name .Chart.Version) | quote }}
velero.io/exclude-from-backup: "true"
{{- end }}

{{- define "velero-control-plane.labelValue" -}}
{{- . | replace "+" "_" | trunc 63 | regexFind "^.*[A-Za-z0-9]" -}}
{{- end }}
