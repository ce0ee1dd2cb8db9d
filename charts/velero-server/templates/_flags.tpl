{{/*
The flags of "velero server", besides those the chart sets itself, with the versions that know them: since the first, before
the second. One ProviderConfig serves several versions of Velero, and Velero does not start with a flag it does not know.
*/}}
{{- define "velero-server.flags" -}}
backup-repository-configmap: {since: 1.15.0}
backup-sync-period: {}
client-burst: {}
client-page-size: {}
client-qps: {}
colorized: {}
concurrent-backups: {since: 1.18.0}
default-backup-storage-location: {}
default-backup-ttl: {}
default-item-operation-timeout: {}
default-repo-maintain-frequency: {}
default-snapshot-move-data: {}
default-volume-snapshot-locations: {}
default-volumes-to-fs-backup: {}
disable-informer-cache: {}
fs-backup-timeout: {}
garbage-collection-frequency: {}
global-backup-volume-policies-configmap: {since: 1.18.3}
item-block-worker-count: {since: 1.16.0}
item-operation-sync-frequency: {}
keep-latest-maintenance-jobs: {before: 1.17.0}
maintenance-job-cpu-limit: {before: 1.17.0}
maintenance-job-cpu-request: {before: 1.17.0}
maintenance-job-mem-limit: {before: 1.17.0}
maintenance-job-mem-request: {before: 1.17.0}
max-concurrent-k8s-connections: {}
profiler-address: {}
repo-maintenance-job-configmap: {since: 1.15.0}
resource-timeout: {}
restore-only: {}
restore-resource-priorities: {}
schedule-skip-immediately: {}
store-validation-frequency: {}
terminating-resource-timeout: {}
uploader-type: {}
v: {}
vmodule: {}
volume-group-snapshot-label-key: {since: 1.17.0}
{{- end }}

{{- define "velero-server.controllers" -}}
backup-queue: {since: 1.18.0}
{{- end }}

{{/*
The version in the image's tag as X.Y.Z, without what follows (-rc.1, _vendor.1). Empty for a digest alone, latest or main.
*/}}
{{- define "velero-server.version" -}}
{{- $tag := regexReplaceAll "@sha256:[a-f0-9]+$" .Values.image "" | regexFind ":[^:/]+$" | trimPrefix ":" | trimPrefix "v" }}
{{- regexFind "^[0-9]+[.][0-9]+[.][0-9]+" $tag }}
{{- end }}

{{/*
"true" if the version is unknown or knows what has these bounds: (list version bounds).
*/}}
{{- define "velero-server.knows" -}}
{{- $version := first . }}{{ $bounds := last . | default dict }}
{{- if not $version }}true
{{- else if and $bounds.since (semverCompare (printf "<%s" $bounds.since) $version) }}
{{- else if and $bounds.before (semverCompare (printf ">=%s" $bounds.before) $version) }}
{{- else }}true{{ end }}
{{- end }}

{{/*
server.extraArgs that the version knows, as a YAML list. A flag no version knows is refused, unless this one is unknown or
not among those the table was made from.
*/}}
{{- define "velero-server.extraArgs" -}}
{{- $own := list "kubeconfig" "kubecontext" "namespace" "plugin-dir" "metrics-address" "features" "disable-controllers" "log-level" "log-format" }}
{{- $flags := include "velero-server.flags" . | fromYaml }}
{{- $version := include "velero-server.version" . }}
{{- $listed := and $version (semverCompare ">=1.14.0, <1.19.0" $version) }}
{{- $args := list }}
{{- range .Values.server.extraArgs }}
{{- $flag := splitList "=" . | first | trimPrefix "--" }}
{{- if has $flag $own }}
{{- fail (printf "server.extraArgs: --%s is set by the chart" $flag) }}
{{- end }}
{{- if and $listed (not (hasKey $flags $flag)) }}
{{- fail (printf "server.extraArgs: Velero has no flag --%s" $flag) }}
{{- end }}
{{- if eq . "--uploader-type=restic" }}
{{- fail "server.extraArgs: --uploader-type=restic keeps Velero 1.17 and later from starting" }}
{{- end }}
{{- if include "velero-server.knows" (list $version (get $flags $flag)) }}{{ $args = append $args . }}{{ end }}
{{- end }}
{{- toYaml $args }}
{{- end }}

{{- define "velero-server.disabledControllers" -}}
{{- $bounds := include "velero-server.controllers" . | fromYaml }}
{{- $version := include "velero-server.version" . }}
{{- $names := list }}
{{- range .Values.server.disableControllers }}
{{- if include "velero-server.knows" (list $version (get $bounds .)) }}{{ $names = append $names . }}{{ end }}
{{- end }}
{{- join "," $names }}
{{- end }}
