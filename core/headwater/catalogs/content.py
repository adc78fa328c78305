"""Content of a catalog: its keys, its five types, and the few bytes that an index holds for each.

An index key is the UTF-8 of a key's elements joined by 0x00. No element holds a control character, so keys sort element by
element, and everything below a namespace has the namespace's key and one 0x00 as prefix.

An index value is 1 byte type, 16 bytes content id and 16 bytes digest, beside the id of the object with the content itself. The
highest bit of the type byte says that the Iceberg metadata is stored, too. Listing and conflict checks need no more than that.
Content is compared by its digest, never by the object's id: a copy is equal. The content id stands only in the index; objects
are stored without it, and get it back when they are read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from typing import Any, TypeVar
from uuid import UUID, uuid5

import msgspec

from headwater.errors import CorruptionError, RefusedError
from headwater.index import IndexValue, after_prefix
from headwater.store import ObjectId, StoredObject, object_type
from headwater.typed_values import msgpack_decoder

ELEMENTS_LIMIT = 20
KEY_CHARACTERS_LIMIT = 500
KEY_BYTES_LIMIT = 500
_SEPARATOR = b"\0"
_ILLEGAL = re.compile("[\\x00-\\x1f\\x7f\\ud800-\\udfff]")


@dataclass(frozen=True, slots=True, order=True)
class ContentKey:
    """The path of a content in a catalog: ``ContentKey(("sales", "orders"))``. Case-sensitive, and ordered element by element.

    raises        RefusedError that names the element and what is wrong with it
    """

    elements: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.elements, str):
            raise RefusedError(
                f"{self.elements!r} is one string, and a content key is a list of them: take it apart with parse"
            )
        object.__setattr__(self, "elements", tuple(self.elements))
        _check(self.elements)

    @classmethod
    def of(cls, *elements: str) -> ContentKey:
        return cls(elements)

    @classmethod
    def parse(cls, text: str) -> ContentKey:
        r"""Parse a key's text form: elements joined by dots, ``\.`` for a dot and ``\\`` for a backslash inside an element.

        raises        RefusedError when a backslash stands before anything else, or the elements make no key
        """
        return cls(tuple(_unescaped_elements(text)))

    @classmethod
    def from_index(cls, data: bytes) -> ContentKey:
        """Decode a key from the bytes that ``to_index`` wrote.

        raises        CorruptionError when no such key has these bytes
        """
        try:
            return cls(tuple(data.decode().split("\0")))
        except (UnicodeDecodeError, RefusedError) as fault:
            raise CorruptionError(f"index key {data!r} is not a content key: {fault}") from fault

    def to_index(self) -> bytes:
        return _SEPARATOR.join(element.encode() for element in self.elements)

    def child_prefix(self) -> bytes:
        """The prefix shared by the index keys of everything below this key, and by nothing else."""
        return self.to_index() + _SEPARATOR

    @property
    def name(self) -> str:
        return self.elements[-1]

    @property
    def parent(self) -> ContentKey | None:
        return ContentKey(self.elements[:-1]) if len(self.elements) > 1 else None

    def ancestors(self) -> Iterator[ContentKey]:
        """The namespaces that contain this key, innermost first."""
        return iter(_namespaces(self.elements[:-1]))

    def child(self, name: str) -> ContentKey:
        return ContentKey((*self.elements, name))

    def is_below(self, other: ContentKey) -> bool:
        return len(self.elements) > len(other.elements) and self.elements[: len(other.elements)] == other.elements

    def __str__(self) -> str:
        return ".".join(element.replace("\\", "\\\\").replace(".", "\\.") for element in self.elements)


def index_bounds(
    prefix: ContentKey | None,
    start: ContentKey | None,
    end: ContentKey | None,
    *,
    with_prefix: bool = False,
    with_end: bool = False,
) -> tuple[bytes | None, bytes | None]:
    """The range of index keys below ``prefix``, from ``start`` on and before ``end``; None: no bound on that side.

    with_prefix   the prefix itself belongs to it
    with_end      the end itself belongs to it, without what is below that
    """
    below = b"" if prefix is None else prefix.child_prefix()
    last = None if end is None else end.to_index() + b"\0" * with_end  # no key lies between the two
    lasts = [bound for bound in (after_prefix(below), last) if bound is not None]
    first = below[:-1] if with_prefix else below
    return max(first, b"" if start is None else start.to_index()) or None, min(lasts, default=None)


def check_namespace_key(key: ContentKey) -> None:
    """Check that a namespace's own name is not a single dot.

    raises        RefusedError
    """
    if key.name == ".":
        raise RefusedError(f"namespace key {list(key.elements)}: the last element must not be '.'")


@lru_cache(maxsize=1000)
def _namespaces(elements: tuple[str, ...]) -> tuple[ContentKey, ...]:
    """The keys of these elements and of all namespaces above them; cached, because neighboring keys share them and checks take long."""
    return tuple(ContentKey(elements[:length]) for length in range(len(elements), 0, -1))


def _check(elements: tuple[str, ...]) -> None:
    if not elements:
        raise RefusedError("a content key needs at least one element")
    if len(elements) > ELEMENTS_LIMIT:
        raise RefusedError(
            f"content key starting {str(elements[0])[:40]!r} has {len(elements)} elements; {ELEMENTS_LIMIT} are allowed"
        )
    for number, element in enumerate(elements, start=1):
        fault = _fault(element)
        if fault:
            raise RefusedError(f"content key {_shown(elements)}: element {number} {fault}")
    characters = sum(map(len, elements))
    if characters > KEY_CHARACTERS_LIMIT:
        raise RefusedError(
            f"content key starting {elements[0][:40]!r} has {characters} characters; {KEY_CHARACTERS_LIMIT} are allowed in all,"
            f" and {_longest(elements)}"
        )
    size = sum(len(element.encode()) for element in elements) + len(elements) - 1
    if size > KEY_BYTES_LIMIT:
        raise RefusedError(
            f"content key starting {elements[0][:40]!r} takes {size} bytes in UTF-8, one of them between every two elements; "
            f"{KEY_BYTES_LIMIT} are allowed, and {_longest(elements)}"
        )


def _shown(elements: tuple[str, ...]) -> str:
    """A key in a sentence: each element in a few words."""
    return str([element if not isinstance(element, str) or len(element) <= 40 else f"{element[:40]}…" for element in elements])


def _longest(elements: tuple[str, ...]) -> str:
    sizes = [len(element.encode()) for element in elements]
    at = sizes.index(max(sizes))
    return f"element {at + 1} is the longest, with {len(elements[at])} characters in {sizes[at]} bytes"


def _fault(element: str) -> str:
    if not isinstance(element, str):
        return f"is {type(element).__name__}; elements are strings"
    if not element:
        return "is empty"
    illegal = _ILLEGAL.search(element)
    if illegal is None:
        return ""
    kind = "control character" if illegal[0] <= "\x7f" else "half of a surrogate pair"
    return f"({_shown((element,))[1:-1]}) contains the {kind} {illegal[0]!r}"


def _unescaped_elements(text: str) -> Iterator[str]:
    element, characters = "", iter(text)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", "."):
                raise RefusedError(f"key {text!r}: a backslash stands only before a dot or another backslash")
            element += escaped
        elif character == ".":
            yield element
            element = ""
        else:
            element += character
    yield element


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
                f"index value of {len(data)} bytes and object {value.object_id} is not a content: {CONTENT_VALUE_BYTES} bytes and an object"
            )
        return cls(stored_type_of(data), UUID(bytes=data[1:17]), data[17:], value.object_id, bool(data[0] & _HAS_METADATA))


def stored_type_of(data: bytes) -> ContentType | int:
    """The type that the data of a content's entry begin with. Raises CorruptionError where there are none."""
    if not data:
        raise CorruptionError("index value of 0 bytes is not a content")
    number = data[0] & ~_HAS_METADATA
    return ContentType(number) if number in _KNOWN else number


_KNOWN = frozenset(ContentType)
_NAMES = ", ".join(cls.__name__ for cls in _TYPES)
_PACKED = msgspec.msgpack.Encoder()
_DECODERS = {cls: msgpack_decoder(cls) for cls in _TYPES}
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def derive_content_id(table_uuid: UUID) -> UUID:
    """The content id that a table or view gets when it is created or registered, derived from its own uuid.

    The same table has the same id on every branch and in every attempt. So a creation that was broken off after its claim was taken
    can be repeated, and a table that was dropped can be registered again where it lies: the claim is its own.
    """
    return uuid5(_CONTENT_IDS, str(table_uuid))


_CONTENT_IDS = UUID("3f0c2f5e-7d5b-4c1a-9d63-0b8b6a1a9c47")
"""Part of the format: another namespace would give the tables of earlier releases other ids."""


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
    fields = ((name, getattr(content, name), default) for name, default in _defaults(type(content)).items())
    plain = {name: value for name, value, default in fields if value != default}
    return plain if content.unknown is None else plain | content.unknown.fields


@cache
def _defaults(cls: type[Content]) -> dict[str, Any]:
    """The fields of a content's value, each with its default or ``NODEFAULT``."""
    return {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(cls)
        if field.name not in ("id", "unknown")
    }
