"""What a real server refuses while it reads an object into a Go type, before it looks whether the object is valid.

Source: encoding/json of Go, metav1.MicroTime of k8s.io/apimachinery, and the types of k8s.io/api.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from kubeapi.failures import Failure
from kubeapi.kinds import Kind

__all__ = ["check_delete_options", "check_types"]

Body = Mapping[str, Any]
_MICRO_TIME = "2006-01-02T15:04:05.000000Z07:00"
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{6})?(.*)")

_INTEGERS = {
    "Deployment": {"spec.replicas": "DeploymentSpec.spec.replicas"},
    "Event": {"count": "Event.count"},
    "Lease": {
        "spec.leaseDurationSeconds": "LeaseSpec.spec.leaseDurationSeconds",
        "spec.leaseTransitions": "LeaseSpec.spec.leaseTransitions",
    },
}
"""The int32 fields that programs here write, with the name that Go has for them."""
_MICRO_TIMES = {"Lease": ("spec.acquireTime", "spec.renewTime"), "Event": ("eventTime",)}


def check_types(kind: Kind, body: Body) -> None:
    """raises Failure (400) for the first field of another type"""
    if kind.is_custom:
        return
    try:
        for path, name in _INTEGERS.get(kind.kind, {}).items():
            _check(body, path, lambda value, name=name: _check_integer(value, name))
        for path in _MICRO_TIMES.get(kind.kind, ()):
            _check(body, path, _check_micro_time)
        if kind.kind == "Secret":
            for value in (body.get("data") or {}).values():
                _check_bytes(value)
    except ValueError as error:
        start = f"{kind.kind} in version {json.dumps(kind.version)} cannot be handled as a {kind.kind}"
        raise Failure.bad_request(f"{start}: {error}") from None


def check_delete_options(options: Body) -> None:
    """raises Failure (400) for a period that is no int64"""
    try:
        _check(options, "gracePeriodSeconds", lambda value: _check_integer(value, "DeleteOptions.gracePeriodSeconds", bits=64))
    except ValueError as error:
        start = 'DeleteOptions in version "v1" cannot be handled as a DeleteOptions'
        raise Failure.bad_request(f"{start}: {error}") from None


def _check(body: Any, path: str, check: Callable[[Any], None]) -> None:
    for name in path.split("."):
        body = body.get(name) if isinstance(body, Mapping) else None
    if body is not None:
        check(body)


def _check_integer(value: Any, name: str, *, bits: int = 32) -> None:
    most = 2 ** (bits - 1)
    if isinstance(value, int) and not isinstance(value, bool) and -most <= value < most:
        return
    told = f"number {json.dumps(value)}" if isinstance(value, int | float) and not isinstance(value, bool) else _type_of(value)
    raise ValueError(f"json: cannot unmarshal {told} into Go struct field {name} of type int{bits}")


def _check_micro_time(value: Any) -> None:
    found = _TIME.fullmatch(str(value))
    if found is None:
        raise ValueError(f'parsing time "{value}" as "{_MICRO_TIME}": cannot parse "{value}" as "2006"')
    if not found[2]:
        raise ValueError(f'parsing time "{value}" as "{_MICRO_TIME}": cannot parse "{found[3]}" as ".000000"')
    if not re.fullmatch(r"Z|[+-]\d\d:\d\d", found[3]):
        raise ValueError(f'parsing time "{value}" as "{_MICRO_TIME}": cannot parse "{found[3]}" as "Z07:00"')


def _check_bytes(value: Any) -> None:
    text = value if isinstance(value, str) else ""
    try:
        base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except binascii.Error:
        wrong = next((at for at, sign in enumerate(text) if not re.match(r"[A-Za-z0-9+/=\r\n]", sign)), len(text))
        raise ValueError(f"illegal base64 data at input byte {wrong}") from None


def _type_of(value: Any) -> str:
    return {str: "string", bool: "bool", dict: "object", list: "array"}.get(type(value), "value")
