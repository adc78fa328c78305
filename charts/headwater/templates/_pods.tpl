{{/* What pods have in common. */}}

{{- define "headwater.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "headwater.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
{{- end -}}

{{/* Metadata of a pod template: (dict "root" $ "component" "operator" "values" .Values.operator). */}}
{{- define "headwater.podMeta" -}}
labels:
  {{- include "headwater.labels" . | nindent 2 }}
  {{- if .root.Values.store.volume.existingClaim }}
  headwater.dev/store: volume
  {{- end }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/settings: {{ include (print .root.Template.BasePath "/settings.yaml") .root | sha256sum }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Where a pod runs: (dict "root" $ "component" "operator" "values" .Values.operator). */}}
{{- define "headwater.placement" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "headwater.affinity" . }}
affinity:
  {{- . | nindent 2 }}
{{- end }}
{{- if .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else if and (include "headwater.hasSeveral" .) (not .root.Values.store.volume.existingClaim) }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "headwater.selector" . | nindent 8 }}
{{- end }}
{{- end -}}

{{/* A SQLite file serves processes of one machine: all pods that mount it are bound to the node of the first. */}}
{{- define "headwater.affinity" -}}
{{- $affinity := deepCopy (.values.affinity | default dict) -}}
{{- if .root.Values.store.volume.existingClaim -}}
{{- $labels := dict "app.kubernetes.io/instance" .root.Release.Name "headwater.dev/store" "volume" -}}
{{- $ours := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- $pods := $affinity.podAffinity | default dict -}}
{{- $required := append ($pods.requiredDuringSchedulingIgnoredDuringExecution | default list) $ours -}}
{{- $_ := set $pods "requiredDuringSchedulingIgnoredDuringExecution" $required -}}
{{- $_ := set $affinity "podAffinity" $pods -}}
{{- end -}}
{{- with $affinity }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Environment of operator, workers and servers: (dict "root" $ "component" "operator" "values" .Values.operator). */}}
{{- define "headwater.environment" -}}
- name: HEADWATER_STORE
  valueFrom:
    secretKeyRef:
      name: {{ .root.Values.store.existingSecret }}
      key: {{ .root.Values.store.secretKey }}
- name: HEADWATER_LOG_FORMAT
  value: {{ .root.Values.logFormat }}
- name: HOME
  value: /tmp
{{- if include "headwater.reachesStorage" . }}
- name: HEADWATER_STORAGE_FILE
  value: /etc/headwater/storage
{{- end }}
{{- end -}}

{{/* Whether a pod has the file that says how buckets are reached: (dict "root" $ "component" "server"). */}}
{{- define "headwater.reachesStorage" -}}
{{- if and .root.Values.storage.existingSecret (has .component (list "server" "worker")) -}}true{{- end -}}
{{- end -}}

{{- define "headwater.environmentFrom" -}}
envFrom:
  - configMapRef:
      name: {{ include "headwater.fullname" .root }}-settings
  {{- with .values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The name of the operator, and what it watches. */}}
{{- define "headwater.operatorEnvironment" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: HEADWATER_OPERATOR_NAMESPACES
  value: {{ join "," .Values.watch.namespaces | quote }}
- name: HEADWATER_OPERATOR_LABEL_SELECTOR
  value: {{ .Values.watch.labelSelector | quote }}
{{- with .Values.cluster }}
- name: HEADWATER_OPERATOR_CLUSTER
  value: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* (dict "root" $ "component" "operator" "values" .Values.operator) */}}
{{- define "headwater.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .root.Values.store.volume.existingClaim }}
- name: store
  mountPath: {{ .root.Values.store.volume.mountPath }}
{{- end }}
{{- if include "headwater.reachesStorage" . }}
# The whole Secret: a mount by subPath would never see it renewed.
- name: storage
  mountPath: /etc/headwater/storage
  readOnly: true
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (dict "root" $ "component" "operator" "values" .Values.operator) */}}
{{- define "headwater.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .values.tmpSizeLimit | default "256Mi" }}
{{- if .root.Values.store.volume.existingClaim }}
- name: store
  persistentVolumeClaim:
    claimName: {{ .root.Values.store.volume.existingClaim }}
{{- end }}
{{- if include "headwater.reachesStorage" . }}
- name: storage
  secret:
    secretName: {{ .root.Values.storage.existingSecret }}
{{- end }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
