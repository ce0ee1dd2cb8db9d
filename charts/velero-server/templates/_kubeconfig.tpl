{{/*
Fails on a kubeconfig Velero could not work with for long. No message may carry a part of it: Helm's errors end up in the
status of the HelmRelease.
*/}}
{{- define "velero-server.checkKubeconfig" -}}
{{- $config := fromYaml .Values.kubeconfig }}
{{- if not (and (kindIs "slice" $config.users) (kindIs "slice" $config.clusters)) }}
{{- fail "kubeconfig: it is no kubeconfig with clusters and users" }}
{{- end }}
{{- $tokenFile := printf "%s/token" (include "velero-server.credentialsDir" .) }}
{{- range $config.users }}
{{- if ne (dig "user" "tokenFile" "" .) $tokenFile }}
{{- fail (printf "kubeconfig: every user needs tokenFile: %s, or Velero would never see a renewed token" $tokenFile) }}
{{- end }}
{{- end }}
{{- range $config.clusters }}
{{- if not (regexMatch "^https?://(\\[[0-9A-Fa-f:]+\\]|[A-Za-z0-9.-]+)(:[0-9]+)?(/|$)" (dig "cluster" "server" "" .)) }}
{{- fail "kubeconfig: every cluster needs a server like https://host:port" }}
{{- end }}
{{- end }}
{{- end }}
