"""Metadata documents without the optional fields that are null: the specification writes an absent value by leaving its field out.

Iceberg's Java library reads null in only some of its optional fields, and refuses the whole document for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, get_args, get_origin

import msgspec

from headwater.iceberg.spec import RAW_VERSION, is_view
from headwater.iceberg.spec.document_shape import JsonRecord, without_none
from headwater.iceberg.spec.schema_rules import ListType, MapType, NestedField, SingleSchema, StructType
from headwater.iceberg.spec.table_rules import NO_PARENT, PartitionField, TableSnapshot, TableV3
from headwater.iceberg.spec.view_rules import ViewMetadata
from headwater.typed_values import json_decoder

_NULL = b"null"
_NULL_MEMBER = b":null"
_NO_PARENT = f'"parent-snapshot-id":{NO_PARENT}'.encode()
_OBJECT = json_decoder(dict[str, msgspec.Raw])
_LIST = json_decoder(list[msgspec.Raw])
_NESTED_TYPES = {b'"struct"': StructType, b'"list"': ListType, b'"map"': MapType}
_TYPE = "a column's type"
"""Stands for the declaration of a type, whose record depends on the value."""


class _WholeTable(TableV3, frozen=True, kw_only=True):
    """All fields of a table in any format version, with those that version 1 states without a list."""

    schema: SingleSchema | None = None
    partition_spec: Sequence[PartitionField] | None = None


def plain_metadata(text: bytes) -> bytes:
    """Leave out the optional fields of the format that are null, and the parent -1 (``NO_PARENT``) of a snapshot without one.

    Everything else stays as it was written: required fields, which the rules refuse, unknown ones, and values of columns.

    text          a JSON object in UTF-8, without white space between its tokens
    """
    if not _may_change(text):
        return text
    document = _OBJECT.decode(text)
    if bytes(document.get("format-version", b"")) == str(RAW_VERSION).encode():
        return text
    return _plain_record(document, ViewMetadata if is_view(document) else _WholeTable)


def _may_change(piece: bytes) -> bool:
    return _NULL_MEMBER in piece or _NO_PARENT in piece


def _plain_record(record: dict[str, msgspec.Raw], shape: type[JsonRecord]) -> bytes:
    members, optional = _members(shape)
    plain = {name: bytes(value) for name, value in record.items()}
    kept = {
        name: _plain_value(value, members.get(name))
        for name, value in plain.items()
        if not (name in optional and _is_absent(name, value, shape))
    }
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + value for name, value in kept.items()) + b"}"


def _is_absent(name: str, value: bytes, shape: type[JsonRecord]) -> bool:
    return value == _NULL or (
        value == str(NO_PARENT).encode() and name == "parent-snapshot-id" and issubclass(shape, TableSnapshot)
    )


def _plain_value(value: bytes, shape: Any) -> bytes:
    """The value without what is null in it; one that is not of its declared shape stays as it is."""
    if shape is None or value[:1] not in b"[{" or not _may_change(value):
        return value
    if shape is _TYPE:
        shape = _NESTED_TYPES.get(bytes(_OBJECT.decode(value).get("type", b""))) if value[:1] == b"{" else None
    holder = get_origin(shape) or shape
    if holder is Sequence and value[:1] == b"[":
        of = get_args(shape)[0]
        return b"[" + b",".join(_plain_value(bytes(element), of) for element in _LIST.decode(value)) + b"]"
    if value[:1] != b"{":
        return value
    if holder is dict:
        of, members = get_args(shape)[1], _OBJECT.decode(value).items()
        return (
            b"{" + b",".join(msgspec.json.encode(name) + b":" + _plain_value(bytes(each), of) for name, each in members) + b"}"
        )
    return (
        _plain_record(_OBJECT.decode(value), holder) if isinstance(holder, type) and issubclass(holder, JsonRecord) else value
    )


@cache
def _members(shape: type[JsonRecord]) -> tuple[dict[str, Any], frozenset[str]]:
    """The declarations of the members that hold objects, and the names of the optional fields."""
    fields = msgspec.structs.fields(shape)
    types = {field.encode_name: without_none(field.type) for field in fields}
    if issubclass(shape, NestedField):
        types["type"] = _TYPE
    elif issubclass(shape, ListType):
        types["element"] = _TYPE
    elif issubclass(shape, MapType):
        types["key"] = types["value"] = _TYPE
    return types, frozenset(field.encode_name for field in fields if not field.required)
