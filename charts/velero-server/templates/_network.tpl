{{/*
Where a URL (of the control plane or of a proxy) leads, as YAML: host, port, whether that is inside, and the blocks of
addresses to allow, which are none where the rule for public addresses covers it. An address is that address. A name that
only internal DNS can know (no dot, .svc, .local, .internal) is in a private range. Any other name counts as public.
The URL may hold a password: no message may quote it.
*/}}
{{- define "velero-server.destination" -}}
{{- $port := get (dict "https:" "443" "socks5:" "1080") (regexFind "^[A-Za-z0-9]+:" .) | default "80" }}
{{- $address := regexReplaceAll "^([A-Za-z0-9]+://)?([^@/]*@)?([^/]*).*$" . "${3}" }}
{{- with regexFind ":[0-9]+$" $address }}{{ $port = trimPrefix ":" . }}{{ end }}
{{- $host := regexReplaceAll ":[0-9]+$" $address "" | trimAll "[]" }}
{{- $blocks := list }}
{{- $inside := regexMatch "^(10[.]|172[.](1[6-9]|2[0-9]|3[01])[.]|192[.]168[.]|100[.](6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])[.])[0-9.]+$|^f[cd][0-9a-fA-F]*:" $host }}
{{- if regexMatch "^([0-9]+[.]){3}[0-9]+$" $host }}{{ $blocks = list (dict "cidr" (printf "%s/32" $host)) }}
{{- else if regexMatch "^\\[[0-9A-Fa-f]+:[0-9A-Fa-f:]+\\](:[0-9]+)?$" $address }}{{ $blocks = list (dict "cidr" (printf "%s/128" $host)) }}
{{- else if not (regexMatch "^[A-Za-z0-9.-]+$" $host) }}{{ $host = "" }}
{{- else if or (not (contains "." $host)) (regexMatch "[.](svc|local|internal|localdomain)[.]?$" $host) }}
{{- $inside = true }}
{{- $blocks = include "velero-server.insideBlocks" . | fromYamlArray }}
{{- end }}
{{- dict "host" $host "port" (atoi $port) "inside" $inside "blocks" $blocks | toYaml }}
{{- end }}

{{/*
Private ranges, but for the metadata services in them (Alibaba; AWS, Google, Oracle).
*/}}
{{- define "velero-server.insideBlocks" -}}
- {cidr: 10.0.0.0/8}
- {cidr: 172.16.0.0/12}
- {cidr: 192.168.0.0/16}
- {cidr: 100.64.0.0/10, except: [100.100.100.200/32]}
- {cidr: "fc00::/7", except: ["fd00:ec2::254/128", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128"]}
{{- end }}

{{/*
The egress rules to the control plane and to the proxies, as a YAML list.
*/}}
{{- define "velero-server.insideRules" -}}
{{- $cluster := include "velero-server.cluster" . | fromYaml }}
{{- $destination := get $cluster "proxy-url" | default $cluster.server | include "velero-server.destination" | fromYaml }}
{{- with .Values.networkPolicy.controlPlane.cidrs }}
{{- $blocks := list }}
{{- range . }}{{ $blocks = append $blocks (dict "cidr" .) }}{{ end }}
{{- $_ := set $destination "blocks" $blocks }}
{{- end }}
{{- $rules := list }}
{{- range prepend (include "velero-server.proxies" . | fromYamlArray) $destination }}
{{- $peers := list }}
{{- range .blocks }}{{ $peers = append $peers (dict "ipBlock" .) }}{{ end }}
{{- if $peers }}
{{- $rules = append $rules (dict "to" $peers "ports" (list (dict "protocol" "TCP" "port" (int64 .port)))) }}
{{- end }}
{{- end }}
{{- uniq $rules | toYaml }}
{{- end }}

{{- define "velero-server.proxies" -}}
{{- $proxies := list }}
{{- range compact (list .Values.proxy.http .Values.proxy.https) }}
{{- $proxies = append $proxies (include "velero-server.destination" . | fromYaml) }}
{{- end }}
{{- toYaml $proxies }}
{{- end }}

{{/*
The blocks of public addresses, without those that are never reachable. A gateway between IPv6 and IPv4 (NAT64) makes every
IPv4 address reachable under an IPv6 address, too: what is blocked is blocked under both.
*/}}
{{- define "velero-server.publicBlocks" -}}
{{- $four := list }}{{ $six := list }}
{{- range .Values.networkPolicy.blockedCIDRs }}
{{- if contains ":" . }}
{{- $six = append $six . }}
{{- else }}
{{- $four = append $four . }}
{{- $six = append $six (include "velero-server.nat64" .) }}
{{- end }}
{{- end }}
{{- $blocks := list }}
{{- range list (list "0.0.0.0/0" $four) (list "::/0" $six) }}
{{- $block := dict "cidr" (first .) }}
{{- with last . }}{{ $_ := set $block "except" (uniq .) }}{{ end }}
{{- $blocks = append $blocks (dict "ipBlock" $block) }}
{{- end }}
{{- toYaml $blocks }}
{{- end }}

{{- define "velero-server.nat64" -}}
{{- $address := splitList "/" . | first | splitList "." }}
{{- $high := add (mul 256 (index $address 0 | atoi)) (index $address 1 | atoi) }}
{{- $low := add (mul 256 (index $address 2 | atoi)) (index $address 3 | atoi) }}
{{- printf "64:ff9b::%x:%x/%d" $high $low (splitList "/" . | last | atoi | add 96) }}
{{- end }}

{{/*
NO_PROXY. The control plane is added where no proxy of the outside could reach it.
*/}}
{{- define "velero-server.noProxy" -}}
{{- $cluster := include "velero-server.cluster" . | fromYaml }}
{{- $hosts := splitList "," .Values.proxy.noProxy | compact }}
{{- $destination := include "velero-server.destination" $cluster.server | fromYaml }}
{{- if and $destination.inside (or .Values.proxy.http .Values.proxy.https) (not (get $cluster "proxy-url")) }}
{{- $hosts = append $hosts $destination.host }}
{{- end }}
{{- uniq $hosts | join "," }}
{{- end }}
