{{/*
Where the control plane's API is, if the rule for public addresses does not cover it: a list of CIDRs as YAML, and the port.
An address in the kubeconfig is that address. A name that only internal DNS can know (no dot, .svc, .local, .internal) is in
a private range. Any other name counts as public; networkPolicy.controlPlane.cidrs is for those that are not.
*/}}
{{- define "velero-server.controlPlane" -}}
{{- $cidrs := .Values.networkPolicy.controlPlane.cidrs }}
{{- $port := 443 }}
{{- with include "velero-server.cluster" . | fromYaml }}
{{- $url := urlParse .server }}
{{- $host := $url.hostname }}
{{- if eq $url.scheme "http" }}{{ $port = 80 }}{{ end }}
{{- with regexFind ":[0-9]+$" $url.host }}{{ $port = trimPrefix ":" . | int64 }}{{ end }}
{{- if not $cidrs }}
{{- if regexMatch "^[0-9.]+$" $host }}{{ $cidrs = list (printf "%s/32" $host) }}
{{- else if contains ":" $host }}{{ $cidrs = list (printf "%s/128" $host) }}
{{- else if or (not (contains "." $host)) (regexMatch "\\.(svc|local|internal|localdomain)\\.?$" $host) }}
{{- $cidrs = list "10.0.0.0/8" "172.16.0.0/12" "192.168.0.0/16" "100.64.0.0/10" "fc00::/7" }}
{{- end }}
{{- end }}
{{- end }}
{{- dict "cidrs" $cidrs "port" $port | toYaml }}
{{- end }}

{{- define "velero-server.publicBlock" -}}
- ipBlock:
    cidr: {{ .cidr }}
    {{- with .except }}
    except:
      {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
