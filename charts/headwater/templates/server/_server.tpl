{{/* What templates of the server share. */}}

{{- define "headwater.serverName" -}}
{{- include "headwater.fullname" . }}-server
{{- end -}}

{{- define "headwater.serverAccount" -}}
{{- include "headwater.serviceAccount" (dict "root" . "component" "server" "account" .Values.server.serviceAccount) -}}
{{- end -}}

{{/* Whether one of several servers has to be chosen. */}}
{{- define "headwater.elects" -}}
{{- if and .Values.server.enabled (gt (int .Values.server.replicas) 1) -}}true{{- end -}}
{{- end -}}

{{/* Names by which clients call the server: those of the world outside, and those of its Services. */}}
{{- define "headwater.serverHosts" -}}
{{- $hosts := .Values.server.hosts -}}
{{- $services := list (include "headwater.serverName" .) -}}
{{- if include "headwater.elects" . -}}
{{- $services = append $services (printf "%s-read" (include "headwater.serverName" .)) -}}
{{- end -}}
{{- range $service := $services -}}
{{- range $ending := list "" (printf ".%s" $.Release.Namespace) (printf ".%s.svc" $.Release.Namespace) (printf ".%s.svc.cluster.local" $.Release.Namespace) -}}
{{- $hosts = append $hosts (print $service $ending) -}}
{{- end -}}
{{- end -}}
{{- join "," $hosts -}}
{{- end -}}

{{/* Seconds in which the Services and a standby learn that this server goes, before it does. */}}
{{- define "headwater.handoverSeconds" -}}5{{- end -}}

{{- define "headwater.proxyImage" -}}
{{- with .Values.server.proxy.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end -}}
