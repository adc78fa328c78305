"""What an archive holds, as bytes: objects as they lay in the store, and references with what they pointed to.

An object's record: 8 id · 1 flags (bit 0: updateable) · 1 length of the type's name · the name · 4 length · the envelope.
A reference's record: 2 length of the name · the name · 8 pointer, 0 for none. Numbers are big-endian.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.errors import UnreadableError
from headwater.store import ObjectId

__all__ = ["Contents", "Pointer", "Sealed", "read_objects", "read_pointers"]

_NONE = ObjectId(0)
_UPDATEABLE = 1
_OBJECT = struct.Struct(">QBB")
_LENGTH = struct.Struct(">I")
_NAME = struct.Struct(">H")
_POINTER = struct.Struct(">Q")


class Sealed(NamedTuple):
    """An object in its envelope, byte for byte."""

    id: ObjectId
    type: str
    is_updateable: bool
    envelope: bytes

    def record(self) -> bytes:
        name = self.type.encode()
        flags = _UPDATEABLE if self.is_updateable else 0
        return _OBJECT.pack(self.id, flags, len(name)) + name + _LENGTH.pack(len(self.envelope)) + self.envelope


class Pointer(NamedTuple):
    """A reference, and the commit that it is at; None: nothing was committed yet."""

    name: str
    commit: ObjectId | None

    def record(self) -> bytes:
        name = self.name.encode()
        return _NAME.pack(len(name)) + name + _POINTER.pack(self.commit or 0)


@dataclass(slots=True)
class Contents:
    """What was seen of a realm: counts, and a digest that depends neither on the realm's id and key nor on any order of reading."""

    objects: int = 0
    size_bytes: int = 0
    newest: ObjectId = _NONE
    types: Counter[str] = field(default_factory=Counter)
    pointers: dict[str, ObjectId | None] = field(default_factory=dict)
    _sum: int = 0

    def add(self, sealed: Sealed, record: bytes) -> None:
        """Count an object, which must not come twice."""
        self.objects += 1
        self.size_bytes += len(sealed.envelope)
        self.newest = max(self.newest, sealed.id)
        self.types[sealed.type] += 1
        self._sum += int.from_bytes(hashlib.sha256(record).digest(), "big")

    def digest(self) -> str:
        """SHA-256 of: 8 number of references · their records by name · 8 number of objects · 32 sum of the SHA-256 of their records."""
        told = hashlib.sha256(len(self.pointers).to_bytes(8, "big"))
        for name in sorted(self.pointers, key=str.encode):
            told.update(Pointer(name, self.pointers[name]).record())
        told.update(self.objects.to_bytes(8, "big") + (self._sum % (1 << 256)).to_bytes(32, "big"))
        return told.hexdigest()


def read_objects(body: bytes) -> Iterator[tuple[Sealed, bytes]]:
    """The objects of a block, each with its record.

    raises        UnreadableError for bytes that are no records
    """
    at = 0
    try:
        while at < len(body):
            start = at
            object_id, flags, length = _OBJECT.unpack_from(body, at)
            at += _OBJECT.size
            name = _slice(body, at, length).decode()
            at += length
            (size,) = _LENGTH.unpack_from(body, at)
            at += _LENGTH.size
            envelope = _slice(body, at, size)
            at += size
            yield Sealed(ObjectId(object_id), name, bool(flags & _UPDATEABLE), envelope), body[start:at]
    except (struct.error, UnicodeDecodeError) as fault:
        raise UnreadableError(f"an object's record at byte {at} of its block cannot be read: {fault}") from fault


def read_pointers(body: bytes) -> Iterator[Pointer]:
    """The references of a block. Raises as ``read_objects`` does."""
    at = 0
    try:
        while at < len(body):
            (length,) = _NAME.unpack_from(body, at)
            at += _NAME.size
            name = _slice(body, at, length).decode()
            at += length
            (pointer,) = _POINTER.unpack_from(body, at)
            at += _POINTER.size
            yield Pointer(name, ObjectId(pointer) if pointer else None)
    except (struct.error, UnicodeDecodeError) as fault:
        raise UnreadableError(f"a reference's record at byte {at} of its block cannot be read: {fault}") from fault


def _slice(body: bytes, at: int, length: int) -> bytes:
    if at + length > len(body):
        raise UnreadableError(f"a record ends {at + length - len(body)} bytes behind its block")
    return body[at : at + length]
