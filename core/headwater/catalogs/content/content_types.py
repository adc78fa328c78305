"""The five types of content, and the few bytes that an index holds for each.

An index value is 1 byte type, 16 bytes content id and 16 bytes digest, beside the id of the object with the content itself. The
highest bit of the type byte says that the Iceberg metadata is stored, too. Listing and conflict checks need no more than that.
Content is compared by its digest, never by the object's id: a copy is equal. The content id stands only in the index; objects
are stored without it, and get it back when they are read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from headwater.errors import CorruptionError, RefusedError
from headwater.index import IndexValue
from headwater.store import ObjectId, StoredObject, object_type

NO_SNAPSHOT = -1
CONTENT_VALUE_BYTES = 1 + 16 + 16
_HAS_METADATA = 0x80
"""A bit of the type byte."""


class ContentType(IntEnum):
    """The type byte of an index value."""

    ICEBERG_TABLE = 1
    DELTA_LAKE_TABLE = 2
    ICEBERG_VIEW = 3
    NAMESPACE = 4
    UDF = 5


class _Content(StoredObject, frozen=True, kw_only=True):
    """Base of all contents. The catalog assigns ``id``: it is None before the creation, and set in everything that was read."""

    id: UUID | None = None


@object_type("iceberg-table")
class IcebergTable(_Content, frozen=True, kw_only=True):
    """An Iceberg table. ``snapshot_id`` -1 is a table without a snapshot."""

    metadata_location: str
    snapshot_id: int = NO_SNAPSHOT
    schema_id: int = 0
    spec_id: int = 0
    sort_order_id: int = 0
    table_uuid: str | None = None


@object_type("delta-table")
class DeltaLakeTable(_Content, frozen=True, kw_only=True):
    """A Delta Lake table."""

    metadata_location_history: tuple[str, ...] = ()
    checkpoint_location_history: tuple[str, ...] = ()
    last_checkpoint: str | None = None


@object_type("iceberg-view")
class IcebergView(_Content, frozen=True, kw_only=True):
    """An Iceberg view. ``sql_text`` and ``dialect`` come from old clients and are only kept."""

    metadata_location: str
    version_id: int = 0
    schema_id: int = 0
    sql_text: str | None = None
    dialect: str | None = None
    view_uuid: str | None = None


@object_type("namespace")
class Namespace(_Content, frozen=True, kw_only=True):
    """A namespace, which other contents stand under; its elements are those of its key."""

    properties: dict[str, str] = {}


@object_type("udf")
class Udf(_Content, frozen=True, kw_only=True):
    """A user-defined function. ``sql_text`` and ``dialect`` come from old clients and are only kept."""

    metadata_location: str
    version_id: str = ""
    signature_id: str = ""
    sql_text: str | None = None
    dialect: str | None = None


Content = IcebergTable | DeltaLakeTable | IcebergView | Namespace | Udf
_C = TypeVar("_C", bound=_Content)

_TYPES: dict[type[StoredObject], ContentType] = {
    IcebergTable: ContentType.ICEBERG_TABLE,
    DeltaLakeTable: ContentType.DELTA_LAKE_TABLE,
    IcebergView: ContentType.ICEBERG_VIEW,
    Namespace: ContentType.NAMESPACE,
    Udf: ContentType.UDF,
}


@dataclass(frozen=True, slots=True)
class ContentValue:
    """The value of one content in an index. ``type`` may be a number that only a newer release knows.

    has_metadata  the index of content ids points to its Iceberg metadata
    """

    type: ContentType | int
    content_id: UUID
    digest: bytes
    object_id: ObjectId
    has_metadata: bool = False

    def to_value(self) -> IndexValue:
        kind = self.type | _HAS_METADATA if self.has_metadata else self.type
        return IndexValue(self.object_id, bytes([kind]) + self.content_id.bytes + self.digest)

    @classmethod
    def from_value(cls, value: IndexValue) -> ContentValue:
        """Decode a value that ``to_value`` wrote.

        raises        CorruptionError when the value has another length or no object
        """
        data = bytes(value.data)
        if len(data) != CONTENT_VALUE_BYTES or value.object_id is None:
            raise CorruptionError(
                f"index value of {len(data)} bytes and object {value.object_id} is no content: {CONTENT_VALUE_BYTES} bytes and an object"
            )
        number = data[0] & ~_HAS_METADATA
        known = ContentType(number) if number in _KNOWN else number
        return cls(known, UUID(bytes=data[1:17]), data[17:], value.object_id, bool(data[0] & _HAS_METADATA))


_KNOWN = frozenset(ContentType)
_NAMES = ", ".join(cls.__name__ for cls in _TYPES)
_PACKED = msgspec.msgpack.Encoder()
_DECODERS = {cls: msgspec.msgpack.Decoder(cls) for cls in _TYPES}
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def content_type_of(content: Content) -> ContentType:
    try:
        return _TYPES[type(content)]
    except KeyError:
        raise RefusedError(f"{type(content).__name__} is no content: use one of {_NAMES}") from None


def content_fault(content: Content) -> str:
    """Say why an object is no valid content: its class, or a field with a value of another type. Returns an empty text if it is valid."""
    if type(content) not in _TYPES:
        return f"is a {type(content).__name__}, and no content: use one of {_NAMES}"
    try:
        _DECODERS[type(content)].decode(_PACKED.encode(msgspec.structs.replace(content, unknown=None)))
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as fault:  # UnicodeEncodeError is a ValueError
        return f"is a {type(content).__name__} that nobody could read: {fault}"
    return ""


def content_digest(content: Content) -> bytes:
    """Digest a content: 16 bytes of BLAKE2b over the type and the canonical value (JSON with sorted names, without id and defaults).

    A field that a later release adds changes no digest as long as it has its default.
    """
    canonical = _CANONICAL.encode(_plain(content))
    return hashlib.blake2b(bytes([content_type_of(content)]) + canonical.encode(), digest_size=16).digest()


def with_id(content: _C, content_id: UUID) -> _C:
    return msgspec.structs.replace(content, id=content_id)


def without_id(content: _C) -> _C:
    return content if content.id is None else msgspec.structs.replace(content, id=None)


def type_text(kind: ContentType | int) -> str:
    return kind.name if isinstance(kind, ContentType) else f"type {kind}"


def _plain(content: Content) -> dict[str, Any]:
    found = ((name, getattr(content, name), default) for name, default in _defaults(type(content)).items())
    plain = {name: value for name, value, default in found if value != default}
    return plain if content.unknown is None else plain | content.unknown.fields


@cache
def _defaults(cls: type[Content]) -> dict[str, Any]:
    """The fields of a content's value, each with its default or ``NODEFAULT``."""
    return {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(cls)
        if field.name not in ("id", "unknown")
    }
