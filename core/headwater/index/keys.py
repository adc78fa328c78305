"""The keys of a page, sorted, each once: plain where they change with every commit, packed where they rest.

Plain keys: 2 for each key, its length · the keys.
Packed keys: 4 length of the first part · two parts, each deflated by itself. The first part has, for all keys, how many bytes each
shares with the one before, and then, for all keys, how many follow; a byte for each number, or two if one is beyond 255. The second
part has what follows, joined. A key shares as much as it can; every 16th, from the first on, shares nothing: a search jumps between
these, and then walks along one block. Numbers are big-endian.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import xor
from typing import Protocol

from headwater.errors import UnreadableError
from headwater.index.columns import Edit, splice

__all__ = ["BLOCK", "KEY_BYTES", "Keys", "PackedKeys", "PlainKeys", "common", "packed_keys", "plain_keys", "read_plain_keys"]

BLOCK = 16
KEY_BYTES = 500
_NUMBER = struct.Struct(">I")
_LENGTH = struct.Struct(">H")


class Keys(Protocol):
    """The sorted keys of a page."""

    count: int

    def position(self, key: bytes) -> int:
        """Where the key is; when it is not there, -1 minus where it would be."""
        ...

    def between(self, start: int, end: int) -> list[bytes]: ...
    def spliced(self, edits: Sequence[Edit]) -> tuple[bytes, PlainKeys | None]:
        """The bytes of the keys after these edits, and what is known of them."""
        ...


class PlainKeys:
    """Keys that lie as they are; all of them are decoded."""

    __slots__ = ("_lengths", "count", "keys")

    def __init__(self, keys: list[bytes], lengths: bytes) -> None:
        self.keys = keys
        self.count = len(keys)
        self._lengths = lengths

    def position(self, key: bytes) -> int:
        keys = self.keys
        at = bisect_left(keys, key)
        return at if at < len(keys) and keys[at] == key else -1 - at

    def between(self, start: int, end: int) -> list[bytes]:
        return self.keys[start:end]

    def spliced(self, edits: Sequence[Edit]) -> tuple[bytes, PlainKeys | None]:
        keys = _edited(self.keys, edits)
        rows = [(at, gone, None if row is None else _LENGTH.pack(len(row))) for at, gone, row in edits]
        lengths = splice(self._lengths, 0, len(self._lengths), 2, rows)
        return lengths + b"".join(keys), PlainKeys(keys, lengths)


class PackedKeys:
    """Keys that lie packed. What every block begins with is decoded at once, the rest when it is asked for."""

    __slots__ = ("_area", "_firsts", "_lengths", "_shared", "_starts", "count")

    def __init__(self, raw: bytes, count: int) -> None:
        self.count = count
        self._shared, self._lengths, self._area = _unpacked(raw, count)
        ends = list(accumulate(self._lengths, initial=0))
        if ends[-1] != len(self._area) or any(self._shared[::BLOCK]):
            raise UnreadableError("the keys of an index page do not fit their lengths")
        self._starts = ends[:count:BLOCK]
        self._firsts = [self._area[at : at + length] for at, length in zip(self._starts, self._lengths[::BLOCK], strict=True)]

    def position(self, key: bytes) -> int:
        block = bisect_right(self._firsts, key) - 1
        if block < 0:
            return -1
        first, at = self._firsts[block], block * BLOCK
        if first == key:
            return at
        matched, offset, area = common(first, key), self._starts[block] + len(first), self._area
        rest = key[matched:]
        for shared, length in zip(self._shared[at + 1 : at + BLOCK], self._lengths[at + 1 : at + BLOCK], strict=True):
            at += 1
            # the key before is smaller than ours and has ``matched`` bytes in common with it
            if shared < matched:
                return -1 - at
            if shared == matched and area[offset] >= key[matched]:
                suffix = area[offset : offset + length]
                if suffix >= rest:
                    return at if suffix == rest else -1 - at
                matched += common(suffix, rest)
                rest = key[matched:]
            offset += length
        return -2 - at

    def between(self, start: int, end: int) -> list[bytes]:
        if start >= end:
            return []
        block = start // BLOCK
        first, area, offset, key = block * BLOCK, self._area, self._starts[block], b""
        lengths = self._lengths[first:end]
        stops = list(accumulate(lengths, initial=offset))
        keys = [
            key := key[:shared] + area[at:stop] if shared else area[at:stop]
            for shared, at, stop in zip(self._shared[first:end], stops, stops[1:], strict=False)
        ]
        return keys[start - first :] if start > first else keys

    def spliced(self, edits: Sequence[Edit]) -> tuple[bytes, PlainKeys | None]:
        return packed_keys(_edited(self.between(0, self.count), edits)), None


def plain_keys(keys: Sequence[bytes]) -> bytes:
    return struct.pack(f">{len(keys)}H", *map(len, keys)) + b"".join(keys)


def read_plain_keys(raw: bytes, start: int, end: int, count: int) -> PlainKeys:
    """The keys that lie plain in these bytes."""
    try:
        lengths = struct.unpack_from(f">{count}H", raw, start)
    except struct.error as fault:
        raise UnreadableError("the keys of an index page are truncated") from fault
    area = start + 2 * count
    offsets = list(accumulate(lengths, initial=area))
    if offsets[-1] != end:
        raise UnreadableError("the keys of an index page do not fit their lengths")
    return PlainKeys([raw[at:stop] for at, stop in pairwise(offsets)], raw[start:area])


def packed_keys(keys: Sequence[bytes]) -> bytes:
    """Keys, sorted and each once, as they rest."""
    shared = _shared(keys)
    lengths = [len(key) - common for key, common in zip(keys, shared, strict=True)]
    numbers = shared + lengths
    is_narrow = max(numbers, default=0) < 256
    first = _deflated(bytes(numbers) if is_narrow else struct.pack(f">{len(numbers)}H", *numbers))
    second = _deflated(b"".join([key[common:] for key, common in zip(keys, shared, strict=True)]))
    return _NUMBER.pack(len(first)) + first + second


def _unpacked(raw: bytes, count: int) -> tuple[Sequence[int], Sequence[int], bytes]:
    """How many bytes each key shares, how many follow, and these."""
    if len(raw) < 4:
        raise UnreadableError("the keys of an index page are truncated")
    (size,) = _NUMBER.unpack_from(raw)
    numbers = _inflated(raw[4 : 4 + size], 4 * count)
    area = _inflated(raw[4 + size :], KEY_BYTES * count)
    if len(numbers) == 2 * count:
        return numbers[:count], numbers[count:], area
    if len(numbers) == 4 * count:
        wide = struct.unpack(f">{2 * count}H", numbers)
        return wide[:count], wide[count:], area
    raise UnreadableError(f"an index page of {count} keys has {len(numbers)} bytes of lengths")


def _shared(keys: Sequence[bytes]) -> list[int]:
    """How many leading bytes each key has in common with the one before; none at the beginning of a block.

    Keys as numbers of the same width differ from their first different byte on: no loop over bytes.
    """
    if not keys:
        return []
    lengths = list(map(len, keys))
    width = max(lengths)
    numbers = [int.from_bytes(key.ljust(width, b"\0"), "big") for key in keys]
    differing = map(int.bit_length, map(xor, numbers, numbers[1:]))
    shared = [0]
    shared += [
        min(width - (bits + 7 >> 3), before, length)
        for bits, before, length in zip(differing, lengths, lengths[1:], strict=False)
    ]
    shared[::BLOCK] = [0] * len(range(0, len(keys), BLOCK))
    return shared


def common(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    bits = (int.from_bytes(one[:length], "big") ^ int.from_bytes(other[:length], "big")).bit_length()
    return length - (bits + 7 >> 3)


def _edited(keys: list[bytes], edits: Sequence[Edit]) -> list[bytes]:
    edited: list[bytes] = []
    done = 0
    for at, gone, row in edits:
        edited += keys[done:at]
        if row is not None:
            edited.append(row)
        done = at + gone
    edited += keys[done:]
    return edited


def _deflated(data: bytes) -> bytes:
    deflater = zlib.compressobj(6, zlib.DEFLATED, -15, 9)
    return deflater.compress(data) + deflater.flush()


def _inflated(data: bytes, most: int) -> bytes:
    inflater = zlib.decompressobj(-15)
    try:
        inflated = inflater.decompress(data, most + 1)
    except zlib.error as fault:
        raise UnreadableError(f"the keys of an index page cannot be inflated: {fault}") from fault
    if not inflater.eof or inflater.unused_data or len(inflated) > most:
        raise UnreadableError("the keys of an index page are truncated, or too many")
    return inflated
