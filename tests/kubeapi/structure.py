"""What a real server refuses in a schema, and what is not done here: both are refused, with the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubeapi.causes import Cause
from kubeapi.expressions import ExpressionError, has_match
from kubeapi.schemas import INT_OR_STRING, PRESERVE, duplicates, prune, violations

__all__ = ["structural_faults"]

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_EVERYWHERE = {"type", "description", "title", "default", "example", "nullable", "enum", "format", "x-kubernetes-validations"}
_OWN = {
    "array": {"items", "maxItems", "minItems", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"},
    "boolean": set[str](),
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "object": {
        *("properties", "additionalProperties", "required", "maxProperties", "minProperties", "x-kubernetes-map-type"),
        PRESERVE,
    },
    "string": {"maxLength", "minLength", "pattern"},
}
_FORMATS = {"string": {"date-time", "uuid"}, "integer": {"int32", "int64"}, "number": {"double", "float"}}
_COUNTS = ("maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties")
_LIST_TYPES = ("atomic", "set", "map")


def structural_faults(schema: Any, path: str, *, is_root: bool = False) -> Iterator[Cause]:
    """Each place where the schema is not structural, not sound, or beyond what is done here."""
    if not isinstance(schema, dict):
        yield Cause.invalid(path, schema, "must be a schema")
        return
    if is_root and schema.get("type") != "object":
        yield Cause.invalid(f"{path}.type", schema.get("type", ""), "must be object at the root")
    if schema.get(INT_OR_STRING):
        kind, allowed = "integer", _EVERYWHERE | {INT_OR_STRING, "maxLength", "minLength", "pattern"}
    else:
        kind = schema.get("type", "")
        allowed = _EVERYWHERE | _OWN.get(kind, set()) | {PRESERVE}
        if not kind and not schema.get(PRESERVE):
            yield Cause.required(f"{path}.type", "must not be empty for specified object fields")
        elif kind and kind not in _TYPES:
            yield Cause.not_supported(f"{path}.type", kind, _TYPES)
    for name in sorted(schema.keys() - allowed):
        yield Cause.forbidden(
            f"{path}.{name}", f"not allowed in a structural schema of type {kind or 'none'}, or not done here"
        )
    yield from _value_faults(schema, path, kind)
    yield from _list_faults(schema, path)
    yield from _object_faults(schema, path)
    if "default" in schema:
        yield from _default_faults(schema, path)


def _value_faults(schema: Schema, path: str, kind: str) -> Iterator[Cause]:
    if "format" in schema and schema["format"] not in _FORMATS.get(kind, ()):
        yield Cause.forbidden(f"{path}.format", f"the format {schema['format']} of type {kind} is not checked here")
    for name in _COUNTS:
        if name in schema and not _is_count(schema[name]):
            yield Cause.invalid(f"{path}.{name}", schema[name], "must be greater than or equal to 0")
    enum = schema.get("enum", ["one"])
    if not isinstance(enum, list) or not enum or any(enum.count(word) > 1 for word in enum):
        yield Cause.invalid(f"{path}.enum", enum, "must be a list of different values")
    if "pattern" in schema:
        try:
            has_match("", schema["pattern"])
        except ExpressionError as error:
            yield Cause.invalid(f"{path}.pattern", schema["pattern"], f"must be a valid regular expression, but isn't: {error}")


def _list_faults(schema: Schema, path: str) -> Iterator[Cause]:
    if schema.get("type") != "array":
        return
    items = schema.get("items")
    if not isinstance(items, dict):
        yield Cause.required(f"{path}.items", "must be specified")
        return
    yield from structural_faults(items, f"{path}.items")
    list_type, keys = schema.get("x-kubernetes-list-type", "atomic"), schema.get("x-kubernetes-list-map-keys", [])
    if list_type not in _LIST_TYPES:
        yield Cause.not_supported(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES)
    if bool(keys) != (list_type == "map"):
        yield Cause.invalid(f"{path}.x-kubernetes-list-map-keys", keys, "belongs to a list of type map, which must have it")
    if list_type == "set" and items.get("type") in ("object", "array") and items.get("x-kubernetes-map-type") != "atomic":
        yield Cause.invalid(f"{path}.items", items.get("type"), "must be scalar, or atomic, in a list of type set")
    if items.get("nullable") and list_type in ("set", "map"):
        yield Cause.forbidden(f"{path}.items.nullable", f"must not be nullable in a list of type {list_type}")
    for key in keys:
        inner = items.get("properties", {}).get(key)
        if inner is None or inner.get("type") in ("object", "array"):
            yield Cause.invalid(f"{path}.x-kubernetes-list-map-keys", key, "must name a scalar property of the items")
        elif key not in items.get("required", ()) and "default" not in inner:
            where = f"{path}.items.properties[{key}].default"
            yield Cause.required(where, "a key of the list must have a default or be a required property")


def _object_faults(schema: Schema, path: str) -> Iterator[Cause]:
    properties = schema.get("properties", {})
    for name, inner in properties.items():
        yield from structural_faults(inner, f"{path}.properties[{name}]")
    if "additionalProperties" in schema:
        if properties:
            yield Cause.forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
        yield from structural_faults(schema["additionalProperties"], f"{path}.additionalProperties")
    for name in schema.get("required", ()):
        # a real server lets a required field be unknown; nobody could ever give it
        if name not in properties and not schema.get(PRESERVE) and "additionalProperties" not in schema:
            yield Cause.invalid(f"{path}.required", name, "is no property")
    if schema.get("x-kubernetes-map-type", "granular") not in ("granular", "atomic"):
        yield Cause.not_supported(f"{path}.x-kubernetes-map-type", schema["x-kubernetes-map-type"], ("granular", "atomic"))


def _default_faults(schema: Schema, path: str) -> Iterator[Cause]:
    where, default = f"{path}.default", schema["default"]
    if default is None and not schema.get("nullable"):
        yield Cause.invalid(where, default, "must not be null")
        return
    bare = {name: value for name, value in schema.items() if name != "default"}
    try:
        unknown = prune(_copy(default), bare)
        wrong = list(violations(default, bare)) + list(duplicates(default, bare))
    except (ExpressionError, KeyError, TypeError, AttributeError):
        return  # the schema itself is at fault, and that is said elsewhere
    for name in unknown:
        yield Cause.invalid(where, default, f"must be pruned: unknown field {name}")
    for cause in wrong:
        yield Cause.invalid(where, default, str(cause))


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(member) for name, member in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
