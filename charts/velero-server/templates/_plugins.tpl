{{/*
One init container per plugin, in the order given. Each copies its binary to the volume the server loads plugins from.
*/}}
{{- define "velero-server.initContainers" -}}
{{- $seen := dict }}
{{- range .Values.plugins }}
{{- if hasKey $seen .name }}
{{- fail (printf "plugins: %q is listed twice" .name) }}
{{- end }}
{{- $_ := set $seen .name true }}
- name: {{ include "velero-server.pluginContainer" .name }}
  image: {{ .image | quote }}
  env:
    {{- include "velero-server.trustEnv" $ | nindent 2 }}
  {{- with include "velero-server.envFrom" $ }}
  envFrom:
    {{- . | nindent 2 }}
  {{- end }}
  {{- with $.Values.initResources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "velero-server.containerSecurity" $ | nindent 4 }}
  volumeMounts:
  - name: plugins
    mountPath: /target
  {{- include "velero-server.trustMount" $ | nindent 2 }}
{{- end }}
{{- end }}
