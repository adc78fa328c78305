"""Schemas: columns, their ids and types, defaults, identifiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from headwater.catalogs.iceberg.validation.faults import inconsistent, invalid, shown
from headwater.catalogs.iceberg.validation.fields import INT, LIST, TEXT, TRUTH, Object, entries, find, is_int, need
from headwater.catalogs.iceberg.validation.shapes import PlainColumn, fitting
from headwater.catalogs.iceberg.validation.types import Primitive, find_primitive, is_default, primitive

__all__ = ["Column", "Schema", "check_schema"]

MOST_FIELD_ID = 2**31 - 1 - 200
"""Beyond are the ids of metadata columns."""
_DEEPEST = 100
_DEFAULTS_SINCE = 3
_NO_IDENTIFIERS = ("float", "double")


class Column(msgspec.Struct, frozen=True, gc=False):
    """A field of a schema, at any depth.

    kind          None: it is nested
    is_repeated   it lies within a list or a map
    is_required   it and every struct around it is required
    """

    kind: Primitive | None
    is_repeated: bool
    is_required: bool


@dataclass(slots=True)
class Schema:
    """What a schema holds, by field id."""

    columns: dict[int, Column] = field(default_factory=dict)


class _Around(NamedTuple):
    """What a field lies in."""

    depth: int
    is_repeated: bool
    is_required: bool


def check_schema(schema: Object, version: int, where: str) -> Schema:
    """A schema of a table of this format version.

    where         the schema's place in the document: ``schemas[0]``
    raises        FaultError
    """
    if need(schema, "type", TEXT, f"{where}.") != "struct":
        raise invalid(f"has {where}.type {shown(schema['type'])}, which is no struct")
    found = Schema()
    _Reader(found, version).struct(schema, where, _Around(0, False, True))
    _check_identifiers(schema, found, where)
    return found


@dataclass(frozen=True, slots=True)
class _Reader:
    found: Schema
    version: int

    def struct(self, struct: Object, where: str, around: _Around) -> None:
        if around.depth > _DEEPEST:
            raise invalid(f"has {where[:200]} nested deeper than {_DEEPEST} levels")
        need(struct, "fields", LIST, f"{where}.")
        fields = entries(struct, "fields", f"{where}.")
        plain = fitting(fields, PlainColumn)
        if plain is not None and self.take(plain, around):
            return
        names = set()
        for at, column in enumerate(fields):
            place = f"{where}.fields[{at}]"
            name = need(column, "name", TEXT, f"{place}.")
            if name in names:
                raise inconsistent(f"has the column {shown(name)} twice in {where}")
            names.add(name)
            is_required = need(column, "required", TRUTH, f"{place}.")
            kind = self.member(need(column, "id", INT, f"{place}."), column.get("type"), f"{place}.type", around, is_required)
            if column.get("initial-default") is not None or column.get("write-default") is not None:
                self.defaults(column, kind, place)
            if kind is not None and kind.name == "unknown" and is_required:
                raise invalid(f"has {place}, which is required and of type unknown: such columns hold nothing")

    def take(self, columns: list[PlainColumn], around: _Around) -> bool:
        """All columns of a struct, if they are sound; none otherwise."""
        kinds = {text: find_primitive(text) for text in {one.type for one in columns}}
        found = {one.id: Column(kinds[one.type], around.is_repeated, one.required and around.is_required) for one in columns}
        is_sound = (
            all(kind is not None and kind.since <= self.version for kind in kinds.values())
            and len(found) == len(columns) == len({one.name for one in columns})
            and found.keys().isdisjoint(self.found.columns)
            and max(found, default=0) <= MOST_FIELD_ID
            and not any(one.required and one.type == "unknown" for one in columns if "unknown" in kinds)
        )
        if is_sound:
            self.found.columns.update(found)
        return is_sound

    def member(self, number: int, type_: Any, where: str, around: _Around, is_required: bool) -> Primitive | None:
        """A field, an element, a key or a value, with all that lies in it. Returns its type, if that is primitive."""
        if number > MOST_FIELD_ID:
            raise invalid(f"has the field id {number} in {where}: ids beyond {MOST_FIELD_ID} are reserved")
        if number in self.found.columns:
            raise inconsistent(f"has the field id {number} twice, again in {where}")
        is_required = is_required and around.is_required
        if isinstance(type_, str):
            kind = primitive(type_, where)
            if kind.since > self.version:
                raise invalid(f"has {where} {type_}, a type of format version {kind.since}")
            self.found.columns[number] = Column(kind, around.is_repeated, is_required)
            return kind
        self.found.columns[number] = Column(None, around.is_repeated, is_required)
        self.nested(type_, where, _Around(around.depth + 1, around.is_repeated, is_required))
        return None

    def nested(self, type_: Any, where: str, around: _Around) -> None:
        if not isinstance(type_, dict):
            raise invalid(f"has no {where}" if type_ is None else f"has {where} {shown(type_)}, which is no type")
        if around.depth > _DEEPEST:
            raise invalid(f"has {where[:200]} nested deeper than {_DEEPEST} levels")
        kind = type_.get("type")
        within = around._replace(is_repeated=True)
        if kind == "struct":
            self.struct(type_, where, around)
        elif kind == "list":
            is_required = need(type_, "element-required", TRUTH, f"{where}.")
            number = need(type_, "element-id", INT, f"{where}.")
            self.member(number, type_.get("element"), f"{where}.element", within, is_required)
        elif kind == "map":
            self.member(need(type_, "key-id", INT, f"{where}."), type_.get("key"), f"{where}.key", within, True)
            is_required = need(type_, "value-required", TRUTH, f"{where}.")
            number = need(type_, "value-id", INT, f"{where}.")
            self.member(number, type_.get("value"), f"{where}.value", within, is_required)
        else:
            raise invalid(f"has {where}.type {shown(kind)}, which is no struct, list or map")

    def defaults(self, column: Object, kind: Primitive | None, place: str) -> None:
        """``write-default`` is only for writers, so that older formats may have it; ``initial-default`` changes what is read."""
        if column.get("initial-default") is not None and self.version < _DEFAULTS_SINCE:
            raise invalid(f"has {place}.initial-default, a field of format version {_DEFAULTS_SINCE}")
        for name in ("initial-default", "write-default"):
            value = column.get(name)
            if value is None or (_is_nested_default(column["type"], value) if kind is None else is_default(kind, value)):
                continue
            what = "its nested type" if kind is None else column["type"]
            raise invalid(f"has {place}.{name} {shown(value)}, which is no value of {what}")


def _is_nested_default(nested: Object, value: Any) -> bool:
    """Of a struct only the one without fields: these have defaults of their own."""
    if nested["type"] == "struct":
        return value == {} and isinstance(value, dict)
    if nested["type"] == "list":
        return isinstance(value, list)
    keys, values = (value.get("keys"), value.get("values")) if isinstance(value, dict) else (None, None)
    return isinstance(keys, list) and isinstance(values, list) and len(keys) == len(values)


def _check_identifiers(schema: Object, found: Schema, where: str) -> None:
    for number in find(schema, "identifier-field-ids", LIST, f"{where}.") or ():
        column = found.columns.get(number) if is_int(number) else None
        if column is None:
            raise inconsistent(f"has {where}.identifier-field-ids with {shown(number)}, which is no field of it")
        if column.kind is None or column.is_repeated or not column.is_required or column.kind.name in _NO_IDENTIFIERS:
            raise inconsistent(
                f"has {where}.identifier-field-ids with {number}: identifiers are primitive, required, not in lists or maps,"
                " and no floating-point numbers"
            )
