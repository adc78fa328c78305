"""Patches: merge, JSON, and the strategic one of built-in kinds."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import jsonpointer

from kubeapi.failures import Failure

__all__ = ["json_patched", "merge_patched", "strategically_patched"]

_MERGE_KEYS = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "secrets": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_SETS = ("finalizers",)


def merge_patched(body: Any, patch: Any) -> Any:
    """RFC 7386: null takes away, lists are replaced."""
    if not isinstance(patch, dict):
        return patch
    result = dict(body) if isinstance(body, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), value)
    return result


def json_patched(body: Any, patch: Any) -> Any:
    """RFC 6902: all of it, or none where a test fails or a path leads nowhere."""
    if not isinstance(patch, list) or not all(isinstance(step, dict) and "op" in step and "path" in step for step in patch):
        raise Failure.bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    try:
        return jsonpatch.apply_patch(body, patch)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError) as error:
        raise Failure.rejected_patch() from error


def strategically_patched(body: Any, patch: Any, field: str = "") -> Any:
    """As kubectl sends it for built-in kinds: lists with keys are merged, and directives say what goes."""
    if isinstance(patch, dict):
        return _patched_map(body if isinstance(body, dict) else {}, patch)
    if isinstance(patch, list):
        return _patched_list(body if isinstance(body, list) else [], patch, field)
    return patch


def _patched_map(body: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    result = dict(body)
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            result[field] = [item for item in result.get(field) or [] if item not in value]
        elif name == "$retainKeys":
            result = {key: kept for key, kept in result.items() if key in value}
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = strategically_patched(result.get(name), value, name)
    return result


def _key_of(field: str, items: list[Any]) -> str | None:
    if field == "ports":
        return "containerPort" if any("containerPort" in item for item in items if isinstance(item, dict)) else "port"
    return _MERGE_KEYS.get(field)


def _patched_list(body: list[Any], patch: list[Any], field: str) -> list[Any]:
    if field in _SETS:
        return body + [item for item in patch if item not in body]
    key = _key_of(field, patch)
    if key is None or not all(isinstance(item, dict) for item in patch):
        return copy.deepcopy(patch)
    result = list(body)
    for item in patch:
        number = next((n for n, old in enumerate(result) if old.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            if number is not None:
                del result[number]
        elif number is None:
            result.append({name: value for name, value in item.items() if not name.startswith("$")})
        else:
            result[number] = _patched_map(result[number], item)
    return result
