{{/* Matchers of this release's series, as a ServiceMonitor labels them. */}}
{{- define "headwater.series" -}}
namespace="{{ .Release.Namespace }}",job="{{ include "headwater.metricsName" . }}"
{{- end -}}

{{- define "headwater.serverSeries" -}}
namespace="{{ .Release.Namespace }}",job="{{ include "headwater.serverMetricsName" . }}"
{{- end -}}
