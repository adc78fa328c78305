#!/usr/bin/env bash
# An executor of Spark on Kubernetes, in the workers' image: starts the JVM as Spark's driver says by environment variables.
set -euo pipefail

spark=$(python -c 'import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("pyspark").origin))')

# SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 and so on are one option each, in this order.
options=()
while IFS= read -r name; do
    options+=("${!name}")
done < <(compgen -v | grep '^SPARK_JAVA_OPT_[0-9]*$' | sort -t_ -k4 -n)

exec java \
    "${options[@]}" \
    -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$spark/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID:-0}" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
