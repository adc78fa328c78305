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

{{/* Whether callers prove to the server itself who they are. */}}
{{- define "headwater.hasIdentity" -}}
{{- with .Values.server -}}
{{- if or .signingKeys.secretName .issuers.config .issuers.existingConfigMap -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "headwater.hasProxy" -}}
{{- if .Values.server.proxy.image.repository -}}true{{- end -}}
{{- end -}}

{{/* What is spoken on the port that clients reach, by which it is also named. */}}
{{- define "headwater.serverScheme" -}}
{{- if include "headwater.hasProxy" . -}}
{{- .Values.server.proxy.scheme -}}
{{- else if .Values.server.tlsSecret -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{/* What is spoken on the port of the probes: TLS where the server itself speaks it. */}}
{{- define "headwater.probeScheme" -}}
{{- if .Values.server.tlsSecret -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{/* The port of the pod that clients reach. */}}
{{- define "headwater.clientPort" -}}
{{- if include "headwater.hasProxy" . -}}{{- .Values.server.proxy.port -}}{{- else -}}8181{{- end -}}
{{- end -}}

{{/* Where workloads in the cluster reach the server. */}}
{{- define "headwater.serverUrl" -}}
{{- with .Values.server -}}
{{- .url | default (printf "%s://%s.%s.svc:%d" (include "headwater.serverScheme" $) (include "headwater.serverName" $) $.Release.Namespace (int .service.port)) -}}
{{- end -}}
{{- end -}}

{{/* The ConfigMap with the issuers; empty where there are none. */}}
{{- define "headwater.issuersMap" -}}
{{- with .Values.server.issuers -}}
{{- if .existingConfigMap -}}
{{- .existingConfigMap -}}
{{- else if .config -}}
{{- include "headwater.serverName" $ }}-issuers
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "headwater.proxyImage" -}}
{{- with .Values.server.proxy.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end -}}
