"""Structural schemas: what may stand in one, what of an object it keeps and fills in, and what is wrong with an object by it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from kubeapi.causes import Cause
from kubeapi.expressions import has_match

__all__ = ["duplicates", "fill", "is_date_time", "prune", "violations"]

Schema = Mapping[str, Any]

INT_OR_STRING = "x-kubernetes-int-or-string"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


def prune(value: Any, schema: Schema, path: str = "") -> list[str]:
    """Take away every field that the schema does not name. Returns their paths."""
    if isinstance(value, list):
        return [name for number, item in enumerate(value) for name in prune(item, schema.get("items", {}), f"{path}[{number}]")]
    if not isinstance(value, dict) or INT_OR_STRING in schema:
        return []
    pruned = []
    for name in list(value):
        inner = _field_schema(schema, name)
        if inner is not None:
            pruned += prune(value[name], inner, _child(path, name))
        elif not schema.get(PRESERVE):
            del value[name]
            pruned.append(_child(path, name))
    return pruned


def fill(value: Any, schema: Schema) -> None:
    """Put defaults where nothing is, and take away each null that may not be one."""
    if isinstance(value, list):
        for item in value:
            fill(item, schema.get("items", {}))
    if not isinstance(value, dict):
        return
    properties: Mapping[str, Schema] = schema.get("properties", {})
    for name, inner in properties.items():
        if name in value and value[name] is None and not inner.get("nullable"):
            del value[name]
        if name not in value and "default" in inner:
            value[name] = copy.deepcopy(inner["default"])
    for name, member in value.items():
        fill(member, _field_schema(schema, name) or {})


def violations(value: Any, schema: Schema, path: str = "") -> Iterator[Cause]:
    """What is wrong with the value by everything but its rules."""
    if value is None and schema.get("nullable"):
        return
    if not _has_type(value, schema):
        wanted = schema.get("type", "integer,string")
        shown = _type_name(value)
        yield Cause.type_invalid(path, shown, f"{path} in body must be of type {wanted}: {json.dumps(shown)}")
        return
    if "enum" in schema and value not in schema["enum"]:
        yield Cause.not_supported(path, value, schema["enum"])
    if isinstance(value, str):
        yield from _text_violations(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_violations(value, schema, path)
    elif isinstance(value, list):
        yield from _list_violations(value, schema, path)
    elif isinstance(value, dict):
        yield from _object_violations(value, schema, path)


def duplicates(value: Any, schema: Schema, path: str = "") -> Iterator[Cause]:
    """Members that stand twice in a list of type set or map."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from duplicates(member, _field_schema(schema, name) or {}, _child(path, name))
    if not isinstance(value, list):
        return
    items = schema.get("items", {})
    seen = []
    for number, item in enumerate(value):
        key = _list_key(item, schema)
        if key is not None and key in seen:
            yield Cause.duplicate(f"{path}[{number}]", key)
        seen.append(key)
        yield from duplicates(item, items, f"{path}[{number}]")


def is_date_time(text: str) -> bool:
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True


def _text_violations(value: str, schema: Schema, path: str) -> Iterator[Cause]:
    if len(value) > schema.get("maxLength", len(value)):
        yield Cause.too_long(path, schema["maxLength"])
    if len(value) < schema.get("minLength", 0):
        yield Cause.invalid(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
    if "pattern" in schema and not has_match(value, schema["pattern"]):
        yield Cause.invalid(path, value, f"{path} in body should match '{schema['pattern']}'")
    kind = schema.get("format")
    if (kind == "date-time" and not is_date_time(value)) or (kind == "uuid" and not _UUID.fullmatch(value)):
        yield Cause.type_invalid(path, value, f"{path} in body must be of type {kind}: {json.dumps(value)}")


def _number_violations(value: float, schema: Schema, path: str) -> Iterator[Cause]:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    if value < least or (schema.get("exclusiveMinimum") and value == least):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield Cause.invalid(path, value, f"{path} in body should be {word} {least}")
    if value > most or (schema.get("exclusiveMaximum") and value == most):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield Cause.invalid(path, value, f"{path} in body should be {word} {most}")
    bits = {"int32": 31, "int64": 63}.get(schema.get("format", ""), 63)
    if isinstance(value, int) and not -(2**bits) <= value < 2**bits:
        yield Cause.type_invalid(path, value, f"{path} in body must be of type {schema.get('format', 'int64')}: {value}")


def _list_violations(value: list[Any], schema: Schema, path: str) -> Iterator[Cause]:
    if len(value) > schema.get("maxItems", len(value)):
        yield Cause.too_many(path, len(value), schema["maxItems"])
    if len(value) < schema.get("minItems", 0):
        yield Cause.invalid(path, value, f"{path} in body should have at least {schema['minItems']} items")
    for number, item in enumerate(value):
        yield from violations(item, schema["items"], f"{path}[{number}]")


def _object_violations(value: dict[str, Any], schema: Schema, path: str) -> Iterator[Cause]:
    if len(value) > schema.get("maxProperties", len(value)):
        yield Cause.too_many(path, len(value), schema["maxProperties"])
    if len(value) < schema.get("minProperties", 0):
        yield Cause.invalid(path, value, f"{path} in body should have at least {schema['minProperties']} properties")
    for name in schema.get("required", ()):
        if name not in value:
            yield Cause.required(_child(path, name))
    for name, member in value.items():
        inner = _field_schema(schema, name)
        if inner is not None:
            yield from violations(member, inner, _child(path, name))


def _has_type(value: Any, schema: Schema) -> bool:
    if schema.get(INT_OR_STRING):
        return isinstance(value, int | str) and not isinstance(value, bool)
    if "type" not in schema:
        return True
    right = _TYPES[schema["type"]]
    return isinstance(value, right) and (schema["type"] == "boolean" or not isinstance(value, bool))


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return next((name for name, types in _TYPES.items() if isinstance(value, types)), "")


def _list_key(item: Any, schema: Schema) -> Any:
    """By what the items of a list are told apart; None where nobody asks."""
    if schema.get("x-kubernetes-list-type") == "set":
        return item
    if schema.get("x-kubernetes-list-type") == "map" and isinstance(item, dict):
        return {name: item.get(name) for name in schema["x-kubernetes-list-map-keys"]}
    return None


def _field_schema(schema: Schema, name: str) -> Schema | None:
    inner = schema.get("properties", {}).get(name)
    return inner if inner is not None else schema.get("additionalProperties")


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
