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
{{- if and .Values.storage.existingSecret (hasKey .Values.settings "HEADWATER_STORAGE_FILE") -}}
{{- fail "storage.existingSecret and settings.HEADWATER_STORAGE_FILE are given: keep one" -}}
{{- end -}}
{{- with .Values.server -}}
{{- if .enabled -}}
{{- if not (or (include "headwater.hasProxy" $) (include "headwater.hasIdentity" $)) -}}
{{- fail "server.signingKeys.secretName, server.issuers or server.proxy.image.repository is missing: the server has to know who calls. Give it keys for its tokens (ci/identity-values.yaml is an example), issuers of OpenID Connect, or a proxy in its pod that proves who calls and forwards to 127.0.0.1:8181 (ci/server-values.yaml is an example)" -}}
{{- end -}}
{{- if and .issuers.config .issuers.existingConfigMap -}}
{{- fail "server.issuers.config and server.issuers.existingConfigMap are given: keep one" -}}
{{- end -}}
{{- if and .tlsSecret (include "headwater.hasProxy" $) -}}
{{- fail "server.tlsSecret is given, and server.proxy.image.repository: beside a proxy the server listens on loopback, without TLS. Give the certificate to the proxy by server.proxy.tlsSecret, or leave the proxy out" -}}
{{- end -}}
{{- if and (include "headwater.hasProxy" $) (not (or .proxy.image.tag .proxy.image.digest)) -}}
{{- fail "server.proxy.image.tag or server.proxy.image.digest is missing: name the proxy's image with a version" -}}
{{- end -}}
{{- if has (int .proxy.port) (list 8181 8182) -}}
{{- fail (printf "server.proxy.port is %d, which is the server's own: choose another one for the proxy" (int .proxy.port)) -}}
{{- end -}}
{{- if and (or .ingress.enabled .httpRoute.enabled) (not .hosts) -}}
{{- fail "server.hosts is empty: server.ingress and server.httpRoute need the names by which clients call the server" -}}
{{- end -}}
{{- if and .httpRoute.enabled (not .httpRoute.parentRefs) -}}
{{- fail "server.httpRoute.parentRefs is empty: name the Gateway that the route is for, as in [{name: public, namespace: gateways}]" -}}
{{- end -}}
{{- range list "LISTEN" "PROBES" "DRAIN_TIMEOUT" "HOSTS" "PROXIES" "SIGNING_KEYS" "ISSUERS" "AUDIT_FILE" -}}
{{- if hasKey $.Values.settings (print "HEADWATER_SERVER_" .) -}}
{{- fail (printf "settings.HEADWATER_SERVER_%s would not count: the chart sets it, from the values of `server`" .) -}}
{{- end -}}
{{- end -}}
{{- range list "CERTIFICATE" "PRIVATE_KEY" -}}
{{- if hasKey $.Values.settings (print "HEADWATER_SERVER_" .) -}}
{{- fail (printf "settings.HEADWATER_SERVER_%s would not reach the pods' files: give the certificate to the server by server.tlsSecret, or to its proxy by server.proxy.tlsSecret" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.crds.enabled (not .Values.crds.keep) .Values.watch.namespaces -}}
{{- fail "crds.keep=false would delete the Realms and Catalogs of all namespaces with this release, which manages some: keep them, or set crds.enabled=false" -}}
{{- end -}}
{{- end -}}

{{/* A name that stands twice: Kubernetes takes the last one, and a later merge may drop either. Whole documents are rendered to see all names. */}}
{{- define "headwater.checkEnvironment" -}}
{{- range $component := list "operator" "worker" "server" -}}
{{- $text := include (printf "%s/%s/deployment.yaml" $.Template.BasePath $component) $ -}}
{{- range $container := dig "spec" "template" "spec" "containers" list ($text | fromYaml) -}}
{{- $names := dict -}}
{{- range $container.env -}}
{{- if hasKey $names .name -}}
{{- fail (printf "%s.extraEnv has %s, which the chart sets itself: use the value of the chart for it (README.md lists all), or `settings` for another variable of Headwater" $component .name) -}}
{{- end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
