"""The rules of schemas: columns, their ids and types, defaults, identifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from headwater.iceberg.spec.document_shape import (
    Int,
    JsonRecord,
    Long,
    Uuid,
    check_unique,
    inconsistent,
    invalid,
    is_of,
    read_value,
    shown_value,
)

_FIRST = (
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid", "binary",
)  # fmt: skip
_THIRD = ("unknown", "timestamp_ns", "timestamptz_ns", "variant", "geometry", "geography")
_PLAIN = dict.fromkeys(_FIRST, 1) | dict.fromkeys(_THIRD, 3)
"""Each with the format version that it came with."""
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d{1,9})\s*\]")
_GEOMETRY = re.compile(r"geometry\(\s*([^,()]+?)\s*\)")
_GEOGRAPHY = re.compile(r"geography\(\s*([^,()]+?)\s*(?:,\s*(\w+)\s*)?\)")
_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")
_PRECISION = 38

_NULL_DEFAULTS = ("unknown", "variant", "geometry", "geography")
"""Types whose columns default to null and to nothing else."""

_DATE, _TIME = r"[+-]?\d{4,9}-\d\d-\d\d", r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
_NANO_TIME = r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?"
_UTC = r"(\+00:00|Z)"
_SHAPES = {"boolean": bool, "int": Int, "long": Long, "float": int | float, "double": int | float, "string": str, "uuid": Uuid}
_TEXTUAL = {
    "date": re.compile(_DATE),
    "time": re.compile(_TIME),
    "timestamp": re.compile(f"{_DATE}T{_TIME}"),
    "timestamptz": re.compile(f"{_DATE}T{_TIME}{_UTC}"),
    "timestamp_ns": re.compile(f"{_DATE}T{_NANO_TIME}"),
    "timestamptz_ns": re.compile(f"{_DATE}T{_NANO_TIME}{_UTC}"),
    "binary": re.compile(r"([0-9a-fA-F]{2})*"),
    "fixed": re.compile(r"([0-9a-fA-F]{2})*"),
    "decimal": re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?"),
}


class Primitive(NamedTuple):
    """A type that holds no others. ``length`` is that of a fixed type."""

    name: str
    since: int
    length: int = 0


_KNOWN = {name: Primitive(name, since) for name, since in _PLAIN.items()}


def read_primitive(text: str, where: str) -> Primitive:
    """Parse a primitive type's name.

    raises        FaultError: no type has this name, or one of its arguments is out of bounds
    """
    known = _KNOWN.get(text)
    if known is not None:
        return known
    if match := _DECIMAL.fullmatch(text):
        if not 1 <= int(match[1]) <= _PRECISION:
            raise invalid(f"has {where} {text}, whose precision is not 1 to {_PRECISION}")
        return Primitive("decimal", 1)
    if match := _FIXED.fullmatch(text):
        return Primitive("fixed", 1, int(match[1]))
    if _GEOMETRY.fullmatch(text):
        return Primitive("geometry", 3)
    if match := _GEOGRAPHY.fullmatch(text):
        if match[2] and match[2].lower() not in _ALGORITHMS:
            raise invalid(f"has {where} {text}, whose edges are none of {', '.join(_ALGORITHMS)}")
        return Primitive("geography", 3)
    raise invalid(f"has {where} {shown_value(text)}, which is not a type")


def is_default(kind: Primitive, value: Any) -> bool:
    """True if a value other than null is one of the type, as the specification writes single values in JSON."""
    if kind.name in _NULL_DEFAULTS:
        return False
    if kind.name in _SHAPES:
        return is_of(value, _SHAPES[kind.name])
    if not isinstance(value, str) or not _TEXTUAL[kind.name].fullmatch(value):
        return False
    return kind.name != "fixed" or len(value) == 2 * kind.length


MOST_FIELD_ID = 2**31 - 1 - 200
"""Beyond are the ids of metadata columns."""
_DEEPEST = 100
_DEFAULTS_SINCE = 3
_NO_IDENTIFIERS = ("float", "double")


class NestedField(JsonRecord, frozen=True):
    name: str
    required: bool
    id: Int
    type: Any = None
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None


class StructType(JsonRecord, frozen=True):
    type: Literal["struct"]
    fields: Sequence[NestedField]


class ListType(JsonRecord, frozen=True):
    element_required: bool
    element_id: Int
    element: Any = None


class MapType(JsonRecord, frozen=True):
    key_id: Int
    value_required: bool
    value_id: Int
    key: Any = None
    value: Any = None


class SingleSchema(StructType, frozen=True):
    """A schema that stands alone, as format version 1 allows."""

    schema_id: Int | None = None
    identifier_field_ids: Sequence[Any] | None = None


class Schema(SingleSchema, frozen=True, kw_only=True):
    schema_id: Int


class SchemaColumn(msgspec.Struct, frozen=True, gc=False):
    """A field at any depth of a schema, as the rules of specs, orders and identifiers need it.

    kind          None if it is nested
    is_repeated   it lies within a list or a map
    is_required   it and every struct around it is required
    """

    kind: Primitive | None
    is_repeated: bool
    is_required: bool


Columns = dict[int, SchemaColumn]
"""By field id."""


class _Around(NamedTuple):
    """The context of a field in its schema."""

    depth: int
    is_repeated: bool
    is_required: bool


def check_schema(schema: SingleSchema, version: int, where: str) -> Columns:
    """Check a schema of a table of this format version; returns its columns.

    where         the schema's place in the document: ``schemas[0]``
    raises        FaultError
    """
    reader = _ColumnReader(version)
    reader.read_struct(schema, where, _Around(0, False, True))
    _check_identifiers(schema, reader.columns, where)
    return reader.columns


class _ColumnReader:
    def __init__(self, version: int) -> None:
        self.columns: Columns = {}
        self._version = version

    def read_struct(self, struct: StructType, where: str, around: _Around) -> None:
        for at, field in enumerate(struct.fields):
            kind = self._read_member(field.id, field.type, f"{where}.fields[{at}].type", around, field.required)
            if field.initial_default is not None or field.write_default is not None:
                self._check_defaults(field, kind, f"{where}.fields[{at}]")
            if field.required and kind is not None and kind.name == "unknown":
                raise invalid(f"has {where}.fields[{at}], which is required and of type unknown: such columns hold nothing")
        check_unique([field.name for field in struct.fields], f"has the column {{}} twice in {where}")

    def _read_member(self, number: int, type_: Any, where: str, around: _Around, is_required: bool) -> Primitive | None:
        """Read a field, an element, a key or a value, with all nested ones. Returns its type if that is primitive."""
        if number > MOST_FIELD_ID:
            raise invalid(f"has the field id {number} in {where}: ids beyond {MOST_FIELD_ID} are reserved")
        if number in self.columns:
            raise inconsistent(f"has the field id {number} twice, again in {where}")
        is_required = is_required and around.is_required
        kind = read_primitive(type_, where) if isinstance(type_, str) else None
        self.columns[number] = SchemaColumn(kind, around.is_repeated, is_required)
        if kind is None:
            self._read_nested(type_, where, _Around(around.depth + 1, around.is_repeated, is_required))
        elif kind.since > self._version:
            raise invalid(f"has {where} {type_}, a type of format version {kind.since}")
        return kind

    def _read_nested(self, type_: Any, where: str, around: _Around) -> None:
        if not isinstance(type_, dict):
            raise invalid(f"has no {where}" if type_ is None else f"has {where} {shown_value(type_)}, which is not a type")
        if around.depth > _DEEPEST:
            raise invalid(f"has {where[:200]} nested deeper than {_DEEPEST} levels")
        within = around._replace(is_repeated=True)
        match type_.get("type"):
            case "struct":
                self.read_struct(read_value(type_, StructType, where), where, around)
            case "list":
                a_list: ListType = read_value(type_, ListType, where)
                self._read_member(a_list.element_id, a_list.element, f"{where}.element", within, a_list.element_required)
            case "map":
                a_map: MapType = read_value(type_, MapType, where)
                self._read_member(a_map.key_id, a_map.key, f"{where}.key", within, True)
                self._read_member(a_map.value_id, a_map.value, f"{where}.value", within, a_map.value_required)
            case other:
                raise invalid(f"has {where}.type {shown_value(other)}, which is not one of struct, list, map")

    def _check_defaults(self, field: NestedField, kind: Primitive | None, place: str) -> None:
        """Check defaults. Older formats may have ``write-default``, for writers only; ``initial-default`` changes what readers see."""
        if field.initial_default is not None and self._version < _DEFAULTS_SINCE:
            raise invalid(f"has {place}.initial-default, a field of format version {_DEFAULTS_SINCE}")
        for name, value in (("initial-default", field.initial_default), ("write-default", field.write_default)):
            if value is None or (_is_nested_default(field.type, value) if kind is None else is_default(kind, value)):
                continue
            what = "its nested type" if kind is None else field.type
            raise invalid(f"has {place}.{name} {shown_value(value)}, which is not a value of {what}")


def _is_nested_default(nested: dict[str, Any], value: Any) -> bool:
    """True if a nested type may have this default; a struct only the one without fields, which have defaults of their own."""
    if nested["type"] == "struct":
        return value == {} and isinstance(value, dict)
    if nested["type"] == "list":
        return isinstance(value, list)
    keys, values = (value.get("keys"), value.get("values")) if isinstance(value, dict) else (None, None)
    return isinstance(keys, list) and isinstance(values, list) and len(keys) == len(values)


def _check_identifiers(schema: SingleSchema, columns: Columns, where: str) -> None:
    for number in schema.identifier_field_ids or ():
        column = columns.get(number) if is_of(number, Int) else None
        if column is None:
            raise inconsistent(f"has {where}.identifier-field-ids with {shown_value(number)}, which is no field of it")
        if column.kind is None or column.is_repeated or not column.is_required or column.kind.name in _NO_IDENTIFIERS:
            raise inconsistent(
                f"has {where}.identifier-field-ids with {number}: identifiers are primitive, required, not in lists or maps,"
                " and no floating-point numbers"
            )
