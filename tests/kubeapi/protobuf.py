"""Reading the few objects that clients send as protobuf, because they know them as types: enough of each to make it.

Source: the generated.proto files of k8s.io/api; field numbers there do not change.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kubeapi.failures import Failure

__all__ = ["MEDIA_TYPE", "OPENAPI", "decode"]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"

OPENAPI = b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.2B\x00"
"""An OpenAPI v2 document that says nothing of any kind: clients then go by what the other documents say."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    type: Any = "text"
    """``text``, ``bytes``, ``integer``, ``boolean``, ``time``, ``micro``, a mapping of fields, or the same in a list (many)."""
    is_list: bool = False
    is_map: bool = False


_Message = Mapping[int, _Field]


def _texts(*names: str) -> dict[int, _Field]:
    return {number: _Field(name) for number, name in enumerate(names, 1) if name}


_OWNER: _Message = {
    1: _Field("kind"),
    3: _Field("name"),
    4: _Field("uid"),
    5: _Field("apiVersion"),
    6: _Field("controller", "boolean"),
    7: _Field("blockOwnerDeletion", "boolean"),
}
_METADATA: _Message = {
    1: _Field("name"),
    2: _Field("generateName"),
    3: _Field("namespace"),
    5: _Field("uid"),
    6: _Field("resourceVersion"),
    7: _Field("generation", "integer"),
    11: _Field("labels", is_map=True),
    12: _Field("annotations", is_map=True),
    13: _Field("ownerReferences", _OWNER, is_list=True),
    14: _Field("finalizers", is_list=True),
}
_META = {1: _Field("metadata", _METADATA)}
_REFERENCE: _Message = _texts("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_ATTRIBUTES: _Message = _texts("namespace", "verb", "group", "version", "resource", "subresource", "name")
_ACCESS: _Message = {1: _Field("resourceAttributes", _ATTRIBUTES), 2: _Field("nonResourceAttributes", _texts("path", "verb"))}
_LEASE: _Message = {
    1: _Field("holderIdentity"),
    2: _Field("leaseDurationSeconds", "integer"),
    3: _Field("acquireTime", "micro"),
    4: _Field("renewTime", "micro"),
    5: _Field("leaseTransitions", "integer"),
}
_RULE: _Message = {
    1: _Field("verbs", is_list=True),
    2: _Field("apiGroups", is_list=True),
    3: _Field("resources", is_list=True),
    4: _Field("resourceNames", is_list=True),
    5: _Field("nonResourceURLs", is_list=True),
}
_SUBJECT: _Message = _texts("kind", "apiGroup", "name", "namespace")
_BINDING: _Message = {
    **_META,
    2: _Field("subjects", _SUBJECT, is_list=True),
    3: _Field("roleRef", _texts("apiGroup", "kind", "name")),
}
_EVENT: _Message = {
    **_META,
    2: _Field("involvedObject", _REFERENCE),
    3: _Field("reason"),
    4: _Field("message"),
    5: _Field("source", _texts("component", "host")),
    6: _Field("firstTimestamp", "time"),
    7: _Field("lastTimestamp", "time"),
    8: _Field("count", "integer"),
    9: _Field("type"),
    10: _Field("eventTime", "micro"),
    12: _Field("action"),
    14: _Field("reportingComponent"),
    15: _Field("reportingInstance"),
}
_KINDS: Mapping[str, _Message] = {
    "Namespace": {**_META, 2: _Field("spec", {1: _Field("finalizers", is_list=True)})},
    "ConfigMap": {**_META, 2: _Field("data", is_map=True), 4: _Field("immutable", "boolean")},
    "Secret": {
        **_META,
        2: _Field("data", "bytes", is_map=True),
        3: _Field("type"),
        4: _Field("stringData", is_map=True),
        5: _Field("immutable", "boolean"),
    },
    "ServiceAccount": _META,
    "SelfSubjectAccessReview": {**_META, 2: _Field("spec", _ACCESS)},
    "SelfSubjectReview": _META,
    "SelfSubjectRulesReview": {**_META, 2: _Field("spec", _texts("namespace"))},
    "Lease": {**_META, 2: _Field("spec", _LEASE)},
    "Role": {**_META, 2: _Field("rules", _RULE, is_list=True)},
    "ClusterRole": {**_META, 2: _Field("rules", _RULE, is_list=True)},
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Event": _EVENT,
    "DeleteOptions": {
        1: _Field("gracePeriodSeconds", "integer"),
        2: _Field("preconditions", _texts("uid", "resourceVersion")),
        3: _Field("orphanDependents", "boolean"),
        4: _Field("propagationPolicy"),
        5: _Field("dryRun", is_list=True),
    },
}


def decode(raw: bytes) -> dict[str, Any]:
    """The object in an envelope of Kubernetes. raises Failure (415) for a kind that is not known here"""
    if not raw.startswith(MAGIC):
        raise Failure.bad_request("the object provided is unrecognized: no protobuf envelope")
    envelope = dict(_parts(raw[len(MAGIC) :]))
    about = {number: value.decode() for number, value in _parts(envelope.get(1, b""))}
    kind = about.get(2, "")
    if kind not in _KINDS:
        raise Failure.unsupported_media(["application/json", "application/yaml"])
    return {"apiVersion": about.get(1, ""), "kind": kind, **_read(_KINDS[kind], envelope.get(2, b""))}


def _read(message: _Message, raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _parts(raw):
        field = message.get(number)
        if field is None:
            continue
        if field.is_map:
            pair = dict(_parts(value))
            found.setdefault(field.name, {})[pair.get(1, b"").decode()] = _value(field.type, pair.get(2, b""))
        elif field.is_list:
            found.setdefault(field.name, []).append(_value(field.type, value))
        else:
            found[field.name] = _value(field.type, value)
    return {name: value for name, value in found.items() if value not in ("", None)}


def _value(kind: Any, value: Any) -> Any:
    if isinstance(kind, Mapping):
        return _read(kind, value)
    if kind in ("time", "micro"):
        return _time(value, is_micro=kind == "micro")
    if kind == "text":
        return value.decode()
    if kind == "bytes":
        return base64.b64encode(value).decode()
    return bool(value) if kind == "boolean" else value


def _time(raw: bytes, *, is_micro: bool) -> str | None:
    parts = dict(_parts(raw))
    if not parts:
        return None
    moment = datetime.fromtimestamp(parts.get(1, 0), UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{parts.get(2, 0) // 1000:06d}Z" if is_micro else "Z")


def _parts(raw: bytes) -> list[tuple[int, Any]]:
    """Field numbers and values: integers, or the bytes of what has a length."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(raw, at)
            found.append((number, value))
        elif wire == 2:
            length, at = _varint(raw, at)
            found.append((number, raw[at : at + length]))
            at += length
        else:
            at += 8 if wire == 1 else 4
    return found


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw):
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
    raise Failure.bad_request("the protobuf that was sent ends in the middle")
