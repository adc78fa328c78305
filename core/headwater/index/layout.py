"""How an index lies in bytes.

1 format version · 4 number of entries · 4 number of restart points · 4 for each restart point: where it begins, counted from the
first entry · the entries in key order. An entry: varint length shared with the key before · varint length of the rest · the rest ·
8 object id (0: none) · varint length of the data · the data. Every 16th entry is a restart point: it shares nothing, so that a
search jumps between restart points and decodes one block. All fixed-width numbers are big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from headwater.errors import UnreadableError
from headwater.store import ObjectId

__all__ = ["BLOCK", "EMPTY", "Entry", "Value", "block_at", "block_count", "entry_count", "first_key", "packed"]

FORMAT = 1
BLOCK = 16
_HEADER = struct.Struct(">BII")
_OFFSET = struct.Struct(">I")
_ID = struct.Struct(">Q")


class Value(NamedTuple):
    """What an index holds under a key: an object that it points to, or none, and a few bytes."""

    object_id: ObjectId | None
    data: bytes = b""


Entry = tuple[bytes, Value]


def packed(entries: Iterable[Entry]) -> bytes:
    """The bytes of entries that come in key order, each key once."""
    body = bytearray()
    offsets = bytearray()
    before, count = b"", 0
    for key, value in entries:
        shared = 0
        if count % BLOCK == 0:
            offsets += _OFFSET.pack(len(body))
        else:
            shared = _shared(before, key)
        _put_varint(body, shared)
        _put_varint(body, len(key) - shared)
        body += key[shared:]
        body += _ID.pack(value.object_id or 0)
        _put_varint(body, len(value.data))
        body += value.data
        before, count = key, count + 1
    return _HEADER.pack(FORMAT, count, len(offsets) // 4) + bytes(offsets) + bytes(body)


EMPTY = packed([])


def entry_count(data: bytes) -> int:
    return _header(data)[1]


def block_count(data: bytes) -> int:
    return _header(data)[2]


def first_key(data: bytes, block: int) -> bytes:
    """The key at a restart point, without decoding the block."""
    try:
        length, at = _varint(data, _start(data, block) + 1)  # shares nothing: one byte of zero
    except (IndexError, struct.error) as fault:
        raise _truncated(data, block) from fault
    return data[at : at + length]


def block_at(data: bytes, block: int) -> list[Entry]:
    """The up to 16 entries from a restart point on."""
    _, count, _ = _header(data)
    entries, key = [], b""
    try:
        at = _start(data, block)
        for _ in range(min(BLOCK, count - block * BLOCK)):
            shared, at = _varint(data, at)
            length, at = _varint(data, at)
            key = key[:shared] + data[at : at + length]
            at += length
            (object_id,) = _ID.unpack_from(data, at)
            length, at = _varint(data, at + 8)
            entries.append((key, Value(ObjectId(object_id) if object_id else None, data[at : at + length])))
            at += length
    except (IndexError, struct.error) as fault:
        raise _truncated(data, block) from fault
    if at > len(data):
        raise _truncated(data, block)
    return entries


def _truncated(data: bytes, block: int) -> UnreadableError:
    return UnreadableError(f"index of {len(data)} bytes: block {block} is truncated")


def _header(data: bytes) -> tuple[int, int, int]:
    if len(data) < _HEADER.size:
        raise UnreadableError(f"index of {len(data)} bytes: truncated")
    version, count, blocks = _HEADER.unpack_from(data)
    if version != FORMAT:
        raise UnreadableError(f"index format {version}; this release reads {FORMAT}")
    return version, count, blocks


def _start(data: bytes, block: int) -> int:
    _, _, blocks = _header(data)
    (offset,) = _OFFSET.unpack_from(data, _HEADER.size + 4 * block)
    return int(_HEADER.size + 4 * blocks + offset)


def _shared(before: bytes, key: bytes) -> int:
    shared = 0
    for one, other in zip(before, key, strict=False):
        if one != other:
            break
        shared += 1
    return shared


def _put_varint(into: bytearray, number: int) -> None:
    while number >= 0x80:
        into.append(number & 0x7F | 0x80)
        number >>= 7
    into.append(number)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
