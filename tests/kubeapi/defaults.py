"""What the server fills in where the spec of a built-in kind says nothing.

Source: the zz_generated.defaults.go of k8s.io/kubernetes, as far as charts ask for them.
"""

from __future__ import annotations

from typing import Any

__all__ = ["default_deployment", "default_pod", "default_policy", "default_scaler", "default_service"]

Body = dict[str, Any]
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_POD = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_ADMITTED_POD = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
_SERVICE = {"sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster"}
_EVICTED = ("not-ready", "unreachable")
_MATCH = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}


def default_deployment(body: Body) -> None:
    spec = body.setdefault("spec", {})
    _fill(spec, {"replicas": 1, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10})
    spec.setdefault("strategy", {}).setdefault("type", "RollingUpdate")
    if spec["strategy"]["type"] == "RollingUpdate":
        _fill(spec["strategy"].setdefault("rollingUpdate", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})
    _default_pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))
    body.setdefault("status", {})


def default_pod(body: Body) -> None:
    spec = body.setdefault("spec", {})
    _default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for status in (body.get("status") or {}).get("containerStatuses") or ():
        status.setdefault("lastState", {})
        for state in (status.get("state") or {}).values():
            state.setdefault("startedAt", None)
    if not body["metadata"].get("uid"):
        return
    _fill(spec, _ADMITTED_POD)
    noted = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for why in _EVICTED
    ]
    spec.setdefault("tolerations", noted)
    is_burstable = any((one.get("resources") or {}).get("requests") for one in spec.get("containers") or ())
    _fill(body.setdefault("status", {}), {"phase": "Pending", "qosClass": "Burstable" if is_burstable else "BestEffort"})


def default_service(body: Body) -> None:
    spec = body.setdefault("spec", {})
    _fill(spec, _SERVICE)
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    if spec["type"] != "ExternalName" and body["metadata"].get("uid"):
        spec.setdefault("clusterIP", _address(body["metadata"]["uid"]))
        _fill(spec, {"clusterIPs": [spec["clusterIP"]], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"})
    body.setdefault("status", {}).setdefault("loadBalancer", {})


def default_policy(body: Body) -> None:
    spec = body.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    if spec.get("matchConstraints") is not None:
        _fill(spec["matchConstraints"], _MATCH)
        for rule in spec["matchConstraints"].get("resourceRules") or ():
            rule.setdefault("scope", "*")
    body.setdefault("status", {})


def default_scaler(body: Body) -> None:
    for direction in (body.setdefault("spec", {}).get("behavior") or {}).values():
        direction.setdefault("selectPolicy", "Max")
    _fill(body.setdefault("status", {}), {"desiredReplicas": 0, "currentMetrics": None})


def _default_pod_spec(spec: Body) -> None:
    _fill(spec, _POD)
    spec.setdefault("securityContext", {})
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for volume in spec.get("volumes") or ():
        for source in ("configMap", "secret"):
            if isinstance(volume.get(source), dict):
                volume[source].setdefault("defaultMode", 420)
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        _default_container(container)


def _default_container(container: Body) -> None:
    _fill(container, _CONTAINER)
    container.setdefault("resources", {})
    is_latest = ":" not in container.get("image", "").rpartition("/")[2] or container["image"].endswith(":latest")
    container.setdefault("imagePullPolicy", "Always" if is_latest else "IfNotPresent")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        if variable.get("value") == "":
            del variable["value"]
        if "fieldRef" in (variable.get("valueFrom") or {}):
            variable["valueFrom"]["fieldRef"].setdefault("apiVersion", "v1")
    for probe in filter(None, map(container.get, _PROBES)):
        _fill(probe, _PROBE)
        if isinstance(probe.get("httpGet"), dict):
            probe["httpGet"].setdefault("scheme", "HTTP")


def _fill(body: Body, values: Body) -> None:
    for name, value in values.items():
        body.setdefault(name, dict(value) if isinstance(value, dict) else value)


def _address(uid: str) -> str:
    """Of the range of the cluster; another one for each service, as good as."""
    return f"10.0.{int(uid[:2], 16)}.{max(int(uid[2:4], 16), 1)}"
