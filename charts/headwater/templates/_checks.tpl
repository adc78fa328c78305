{{/* What a schema cannot say. Each failure is a sentence that says what to do. */}}

{{- define "headwater.check" -}}
{{- if not .Values.store.existingSecret -}}
{{- fail "store.existingSecret is missing: make a Secret with the URL of the store under the key `url`, and give its name, for example --set store.existingSecret=headwater-store" -}}
{{- end -}}
{{- $brokers := list -}}
{{- if .Values.broker.url -}}{{- $brokers = append $brokers "broker.url" -}}{{- end -}}
{{- if .Values.broker.existingSecret -}}{{- $brokers = append $brokers "broker.existingSecret" -}}{{- end -}}
{{- if .Values.redis.enabled -}}{{- $brokers = append $brokers "redis.enabled" -}}{{- end -}}
{{- if gt (len $brokers) 1 -}}
{{- fail (printf "%s are given: keep one broker" (join " and " $brokers)) -}}
{{- end -}}
{{- if and .Values.worker.enabled (not $brokers) (not .Values.store.volume.existingClaim) -}}
{{- fail "the workers need a broker: give broker.url or broker.existingSecret, or for a trial redis.enabled=true" -}}
{{- end -}}
{{- if and (gt (int .Values.operator.replicas) 1) (not .Values.operator.leaderElection) -}}
{{- fail "operator.replicas is above 1 and operator.leaderElection is off: two operators would act at once" -}}
{{- end -}}
{{- with .Values.worker.autoscaling -}}
{{- if .enabled -}}
{{- if lt (int .maxReplicas) (max 1 (int .minReplicas)) -}}
{{- fail "worker.autoscaling.maxReplicas is less than minReplicas, or 0" -}}
{{- end -}}
{{- if and (eq .provider "keda") (not .keda.prometheusUrl) -}}
{{- fail "worker.autoscaling.keda.prometheusUrl is missing: KEDA asks that Prometheus how many tasks are there to do" -}}
{{- end -}}
{{- if and (eq .provider "hpa") (lt (int .minReplicas) 1) -}}
{{- fail "worker.autoscaling.minReplicas must be at least 1 with a HorizontalPodAutoscaler; KEDA can go down to 0" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.spark.mode "master") (not .Values.spark.master) -}}
{{- fail "spark.master is missing: spark.mode is master" -}}
{{- end -}}
{{- if and .Values.spark.master (ne .Values.spark.mode "master") -}}
{{- fail (printf "spark.master is given, and spark.mode is %s: set spark.mode=master, or leave spark.master out" .Values.spark.mode) -}}
{{- end -}}
{{- if and .Values.crds.enabled (not .Values.crds.keep) .Values.watch.namespaces -}}
{{- fail "crds.keep=false would delete the Realms and Catalogs of all namespaces with this release, which manages some: keep them, or set crds.enabled=false" -}}
{{- end -}}
{{- end -}}
