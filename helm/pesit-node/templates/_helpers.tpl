{{- define "pesit.name" -}}
{{- .Values.fullnameOverride | default (printf "%s-%s" .Release.Name .Chart.Name) | trunc 46 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels of an object; takes (dict "root" $ "app" "server"), app "" for what both share. */}}
{{- define "pesit.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: pesit-node
{{ include "pesit.selector" . }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "pesit.selector" -}}
app.kubernetes.io/name: pesit-node
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- if .app }}
app.kubernetes.io/component: {{ .app }}
{{- end }}
{{- end -}}

{{- define "pesit.adminSecret" -}}
{{- .Values.admin.existingSecret | default (printf "%s-admin" (include "pesit.name" .)) -}}
{{- end -}}

{{- define "pesit.keySecret" -}}
{{- .Values.secretsKey.existingSecret | default (printf "%s-secrets-key" (include "pesit.name" .)) -}}
{{- end -}}

{{- define "pesit.image" -}}
{{- $image := .values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* One pod alone: its volume cannot be shared. */}}
{{- define "pesit.isAlone" -}}
{{- if ne .values.persistence.accessMode "ReadWriteMany" }}true{{ end -}}
{{- end -}}

{{/* Whether one pod alone is ever ready: the others stand by, and an upgrade that waits for them would not end. */}}
{{- define "pesit.standsBy" -}}
{{- $given := merge (deepCopy .values.config) .root.Values.config -}}
{{- if and (eq .app "server") (eq (index $given "cluster.listeners" | default "all") "leader") }}true{{ end -}}
{{- end -}}

{{/* Configuration file of an app. */}}
{{- define "pesit.config" -}}
{{- $given := merge (deepCopy .values.config) .root.Values.config -}}
{{- $own := dict "server.port" 8080 "data.directory" "/data" "cluster.enabled" true "cluster.name" (.root.Values.cluster.name | default (include "pesit.name" .root)) "shutdown.drain-timeout" (int .root.Values.drainTimeout) -}}
{{- with .root.Values.https -}}
{{- if .enabled -}}
{{- $_ := set $own "server.ssl.enabled" true -}}
{{- if .existingSecret -}}
{{- $_ := set $own "server.ssl.certificate-file" "/etc/pesit/tls/tls.crt" -}}
{{- $_ := set $own "server.ssl.key-file" "/etc/pesit/tls/tls.key" -}}
{{- else -}}
{{- $_ := set $own "server.ssl.keystore-name" .keystoreName -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key := compact (.root.Files.Lines "secret-keys.txt") -}}
{{- if hasKey $given $key }}{{ fail (printf "config: %s is a secret, and a ConfigMap is none: see admin, declared, database, redis, secretsKey, license and extraEnv" $key) }}{{ end -}}
{{- end -}}
{{- range $key, $_ := $own -}}
{{- if hasKey $given $key }}{{ fail (printf "config: %s is given by the chart" $key) }}{{ end -}}
{{- end -}}
{{- range $key, $_ := $given -}}
{{- if not (regexMatch "^[a-z][a-z0-9-]*(\\.[a-z0-9-]+)+$" $key) }}{{ fail (printf "config: %s is not written as a key of docs/configuration.md: one line a key, as transfer.sync-window: 8" $key) }}{{ end -}}
{{- end -}}
{{- $declared := .root.Values.declared -}}
{{- range $list := ternary (list "partners" "files" "servers") (list "servers") (eq .app "server") -}}
{{- range $index, $item := index $declared $list -}}
{{- range $field := list "password" "preconnectPassword" -}}
{{- if hasKey $item $field }}{{ fail (printf "declared.%s[%d]: %s is a secret, and a ConfigMap is none: put it into declared.passwordsSecret, and say %sFile: /etc/pesit/passwords/<key>" $list $index $field $field) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with index $declared $list }}{{ $_ := set $own $list . }}{{ end -}}
{{- end -}}
{{ toYaml (merge $own $given) }}
{{- end -}}

{{/* What cannot work is said before anything is installed. */}}
{{- define "pesit.check" -}}
{{- if not .Values.database.url }}{{ fail "database.url is required: postgresql://user@host:5432/name, without the password" }}{{ end -}}
{{- if not (or .Values.server.enabled .Values.client.enabled) }}{{ fail "server.enabled and client.enabled are both false: there is nothing to install" }}{{ end -}}
{{- range $app := list "server" "client" -}}
{{- $values := index $.Values $app -}}
{{- $pods := ternary $values.autoscaling.maxReplicas $values.replicas $values.autoscaling.enabled -}}
{{- if and $values.enabled (include "pesit.isAlone" (dict "values" $values)) (gt (int $pods) 1) -}}
{{- fail (printf "%s: %d pods need a volume of access mode ReadWriteMany, or replicas: 1" $app (int $pods)) -}}
{{- end -}}
{{- if and $values.ingress.enabled (not (and $values.ingress.host $values.ingress.tlsSecret)) -}}
{{- fail (printf "%s.ingress: host and tlsSecret are required" $app) -}}
{{- end -}}
{{- end -}}
{{- with .Values.https -}}
{{- if and .enabled (eq (empty .existingSecret) (empty .keystoreName)) }}{{ fail "https: existingSecret or keystoreName is required, and not both" }}{{ end -}}
{{- end -}}
{{- $ports := list -}}
{{- range .Values.server.listeners -}}
{{- if or (has (int .port) $ports) (eq (int .port) 8080) }}{{ fail (printf "server.listeners: port %d is taken twice" (int .port)) }}{{ end -}}
{{- $ports = append $ports (int .port) -}}
{{- end -}}
{{- end -}}
