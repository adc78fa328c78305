"""The kinds that every cluster has, as far as an operator and its chart need them. Most are kept and do nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubeapi.columns import BUILT_IN
from kubeapi.fields import METADATA
from kubeapi.kinds import ALL_VERBS, Kind

__all__ = ["BUILT_IN_KINDS", "CRDS", "NAMESPACES"]

_ASKED = ("create",)
_OPEN = {"x-kubernetes-preserve-unknown-fields": True}
_ATOMIC = {"type": "object", "x-kubernetes-map-type": "atomic"}
_CONDITIONS = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": _OPEN}


def _keyed(*keys: str, items: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), "items": items or _OPEN}


def _record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **_OPEN}


_PORT = {"properties": {"protocol": {"type": "string", "default": "TCP"}}, **_OPEN}
_CONTAINER = _record(
    env=_keyed("name"), ports=_keyed("containerPort", "protocol", items=_PORT), volumeMounts=_keyed("mountPath")
)
_POD_SPEC = _record(
    containers=_keyed("name", items=_CONTAINER),
    initContainers=_keyed("name", items=_CONTAINER),
    volumes=_keyed("name"),
    imagePullSecrets=_keyed("name"),
    nodeSelector=_ATOMIC,
)
_SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
_STATUS = _record(conditions=_CONDITIONS)
_FIELDS: dict[str, dict[str, Any]] = {
    "Event": {"involvedObject": _ATOMIC, "regarding": _ATOMIC, "related": _ATOMIC},
    "Pod": {"spec": _POD_SPEC, "status": _STATUS},
    "Deployment": {"spec": _record(selector=_ATOMIC, template=_record(spec=_POD_SPEC)), "status": _STATUS},
    "Service": {"spec": _record(ports=_keyed("port", "protocol", items=_PORT), selector=_ATOMIC)},
    "Namespace": {"status": _STATUS},
    "RoleBinding": {"roleRef": _ATOMIC},
    "ClusterRoleBinding": {"roleRef": _ATOMIC},
    "CustomResourceDefinition": {"status": _STATUS},
    "ValidatingAdmissionPolicy": {
        "status": _STATUS,
        "spec": _record(validations={"type": "array"}, matchConditions=_keyed("name"), matchConstraints=_ATOMIC),
    },
    "ValidatingAdmissionPolicyBinding": {"spec": _record(validationActions=_SET, matchResources=_ATOMIC)},
}
_BASELINES: dict[str, dict[str, Any]] = {
    "CustomResourceDefinition": {
        "spec": {"names": {}},
        "status": {"acceptedNames": {}, "conditions": [], "storedVersions": []},
    },
    "Lease": {"spec": {}},
    "Namespace": {"spec": {"finalizers": ["kubernetes"]}, "status": {}},
    "Pod": {"spec": {}, "status": {}},
    "Service": {"spec": {}, "status": {}},
    "Deployment": {"spec": {"strategy": {}, "template": {"spec": {}}}, "status": {}},
    "SelfSubjectAccessReview": {"spec": {}, "status": {}},
    "SelfSubjectRulesReview": {"spec": {}, "status": {}},
    "SubjectAccessReview": {"spec": {}, "status": {}},
    "TokenReview": {"spec": {}, "status": {}},
    "ValidatingAdmissionPolicy": {"spec": {}, "status": {}},
    "ValidatingAdmissionPolicyBinding": {"spec": {}},
}
_EVENT_BASELINE = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_NEW_EVENT_BASELINE = {"deprecatedSource": {}, "deprecatedFirstTimestamp": None, "deprecatedLastTimestamp": None}
_EVENT_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENT_FIELDS = {
    **{
        f"involvedObject.{name}": f".involvedObject.{name}"
        for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
    "reason": ".reason",
    "reportingComponent": ".reportingComponent",
    "source": ".source.component",
    "type": ".type",
}


def _kind(group: str, version: str, kind: str, plural: str = "", **more: Any) -> Kind:
    plural = plural or f"{kind.lower()}s"
    resource = f"{plural}.{group}" if group else plural
    text = {"type": "string"}
    schema = {"properties": {"apiVersion": text, "kind": text, "metadata": METADATA, **_FIELDS.get(kind, {})}, **_OPEN}
    defaults = {
        "singular": kind.lower(),
        "list_kind": f"{kind}List",
        "columns": BUILT_IN.get(resource, ()),
        "schema": schema,
        "baseline": _BASELINES.get(kind, {}),
    }
    return Kind(group, version, kind, plural, **(defaults | more))


def _kinds(group: str, version: str, *rows: tuple[str, str, dict[str, Any]]) -> Iterable[Kind]:
    return (_kind(group, version, kind, plural, **more) for kind, plural, more in rows)


_CLUSTER = {"is_namespaced": False}
_RUNS = {"subresources": ("status",), "has_generation": True}
_ASK = {"verbs": _ASKED, "is_namespaced": False}

BUILT_IN_KINDS: tuple[Kind, ...] = (
    *_kinds(
        "",
        "v1",
        ("ConfigMap", "", {"short_names": ("cm",)}),
        (
            "Event",
            "",
            {
                "short_names": ("ev",),
                "selectable": _EVENT_FIELDS,
                "baseline": _EVENT_BASELINE,
                "is_made_by_put": True,
                "name_rule": "any",  # those of events.k8s.io are looked at, these never were
            },
        ),
        (
            "Namespace",
            "",
            {
                "short_names": ("ns",),
                "is_namespaced": False,
                "subresources": ("finalize", "status"),
                "name_rule": "label",
                "verbs": tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
                "selectable": {"status.phase": ".status.phase"},
            },
        ),
        ("Node", "", {"short_names": ("no",), "subresources": ("status",), **_CLUSTER}),
        (
            "PersistentVolumeClaim",
            "",
            {"short_names": ("pvc",), "subresources": ("status",)},
        ),
        (
            "Pod",
            "",
            {
                "has_generation": True,
                "is_shown_when_deleted": True,
                "short_names": ("po",),
                "categories": ("all",),
                "subresources": ("log", "status"),
                "selectable": {"status.phase": ".status.phase", "spec.nodeName": ".spec.nodeName"},
            },
        ),
        ("Secret", "", {"selectable": {"type": ".type"}}),
        (
            "Service",
            "",
            {
                "short_names": ("svc",),
                "categories": ("all",),
                "subresources": ("status",),
                "name_rule": "service",
                "is_shown_when_deleted": True,
            },
        ),
        ("ServiceAccount", "", {"short_names": ("sa",), "is_shown_when_deleted": True}),
    ),
    *_kinds(
        "apps",
        "v1",
        ("Deployment", "", {"short_names": ("deploy",), "categories": ("all",), **_RUNS}),
        ("ReplicaSet", "", {"short_names": ("rs",), "categories": ("all",), **_RUNS}),  # helm looks for those of a Deployment
    ),
    _kind(
        "events.k8s.io",
        "v1",
        "Event",
        short_names=("ev",),
        selectable=_EVENT_FIELDS,
        stored_as="events",
        renamed=_EVENT_NAMES,
        baseline=_NEW_EVENT_BASELINE,
        is_made_by_put=True,
    ),
    *_kinds("authentication.k8s.io", "v1", ("SelfSubjectReview", "", _ASK), ("TokenReview", "", _ASK)),
    *_kinds(
        "authorization.k8s.io",
        "v1",
        ("SelfSubjectAccessReview", "", _ASK),
        ("SelfSubjectRulesReview", "", _ASK),
        ("SubjectAccessReview", "", _ASK),
    ),
    *_kinds(
        "autoscaling",
        "v2",
        ("HorizontalPodAutoscaler", "", {"short_names": ("hpa",), "categories": ("all",), "subresources": ("status",)}),
    ),
    *_kinds(
        "batch",
        "v1",
        ("CronJob", "", {"short_names": ("cj",), "categories": ("all",), **_RUNS}),
        ("Job", "", {"categories": ("all",), **_RUNS}),
    ),
    *_kinds(
        "networking.k8s.io", "v1", ("NetworkPolicy", "networkpolicies", {"short_names": ("netpol",), "has_generation": True})
    ),
    *_kinds("policy", "v1", ("PodDisruptionBudget", "", {"short_names": ("pdb",), **_RUNS})),
    *_kinds(
        "rbac.authorization.k8s.io",
        "v1",
        ("ClusterRole", "", {"name_rule": "path", "is_made_by_put": True, **_CLUSTER}),
        ("ClusterRoleBinding", "", {"name_rule": "path", "is_made_by_put": True, **_CLUSTER}),
        ("Role", "", {"name_rule": "path", "is_made_by_put": True}),
        ("RoleBinding", "", {"name_rule": "path", "is_made_by_put": True}),
    ),
    *_kinds(
        "admissionregistration.k8s.io",
        "v1",
        (
            "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies",
            {"categories": ("api-extensions",), "is_unconditional": False, **_CLUSTER, **_RUNS},
        ),
        (
            "ValidatingAdmissionPolicyBinding",
            "",
            {"categories": ("api-extensions",), "is_unconditional": False, "has_generation": True, **_CLUSTER},
        ),
    ),
    *_kinds(
        "apiextensions.k8s.io",
        "v1",
        (
            "CustomResourceDefinition",
            "",
            {
                "short_names": ("crd", "crds"),
                "categories": ("api-extensions",),
                "is_unconditional": False,
                **_CLUSTER,
                **_RUNS,
            },
        ),
    ),
    *_kinds("coordination.k8s.io", "v1", ("Lease", "", {"is_unconditional": False, "is_made_by_put": True})),
)

NAMESPACES = next(kind for kind in BUILT_IN_KINDS if kind.resource == "namespaces")
CRDS = next(kind for kind in BUILT_IN_KINDS if kind.kind == "CustomResourceDefinition")
