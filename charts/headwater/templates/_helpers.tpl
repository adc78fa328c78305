{{/* Names, labels and images. */}}

{{- define "headwater.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough that every suffix of ours fits into 63 letters. */}}
{{- define "headwater.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "headwater.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "headwater.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* For objects of the cluster: two releases of one name in two namespaces must not claim the same. */}}
{{- define "headwater.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "headwater.fullname" .) -}}
{{- end -}}

{{- define "headwater.metricsName" -}}
{{- include "headwater.fullname" . }}-operator-metrics
{{- end -}}

{{- define "headwater.serverMetricsName" -}}
{{- include "headwater.fullname" . }}-server-metrics
{{- end -}}

{{- define "headwater.redisName" -}}
{{- include "headwater.fullname" . }}-redis
{{- end -}}

{{/* Labels that select pods of a component: (dict "root" $ "component" "operator"). They never change. */}}
{{- define "headwater.selector" -}}
app.kubernetes.io/name: {{ include "headwater.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object: (dict "root" $ "component" "operator"). */}}
{{- define "headwater.labels" -}}
{{ include "headwater.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: headwater
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The lines `labels` and `annotations` of an object: (dict "root" $ "component" "operator" "labels" {} "annotations" {}). */}}
{{- define "headwater.meta" -}}
labels:
  {{- include "headwater.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* (dict "root" $ "image" .Values.operator.image) */}}
{{- define "headwater.image" -}}
{{- $name := .image.repository -}}
{{- with .root.Values.image.registry -}}
{{- $name = printf "%s/%s" (trimSuffix "/" .) $name -}}
{{- end -}}
{{- if .image.digest -}}
{{ $name }}@{{ .image.digest }}
{{- else -}}
{{ $name }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "headwater.redisImage" -}}
{{- with .Values.redis.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end -}}

{{/* (dict "root" $ "component" "operator" "account" .Values.operator.serviceAccount) */}}
{{- define "headwater.serviceAccount" -}}
{{- if .account.create -}}
{{- default (printf "%s-%s" (include "headwater.fullname" .root) .component) .account.name -}}
{{- else -}}
{{- default "default" .account.name -}}
{{- end -}}
{{- end -}}

{{- define "headwater.operatorAccount" -}}
{{- include "headwater.serviceAccount" (dict "root" . "component" "operator" "account" .Values.operator.serviceAccount) -}}
{{- end -}}

{{- define "headwater.workerAccount" -}}
{{- include "headwater.serviceAccount" (dict "root" . "component" "worker" "account" .Values.worker.serviceAccount) -}}
{{- end -}}

{{- define "headwater.executorAccount" -}}
{{- include "headwater.serviceAccount" (dict "root" . "component" "executor" "account" .Values.spark.kubernetes.serviceAccount) -}}
{{- end -}}

{{- define "headwater.executorImage" -}}
{{- .Values.spark.kubernetes.image | default (include "headwater.image" (dict "root" . "image" .Values.worker.image)) -}}
{{- end -}}

{{/* Whether another pod of the component can run at the same time: (dict "values" .Values.worker). */}}
{{- define "headwater.hasSeveral" -}}
{{- $scaling := .values.autoscaling | default dict -}}
{{- if $scaling.enabled -}}
{{- if gt (int $scaling.maxReplicas) 1 }}true{{ end -}}
{{- else if gt (int .values.replicas) 1 -}}
true
{{- end -}}
{{- end -}}
