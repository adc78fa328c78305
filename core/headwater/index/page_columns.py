"""The columns and the keys of a page. Both are read and changed by slices, without decoding the rest.

A column has one row of bytes for each entry:

A fixed column has rows of one length: 4 length · 4 how many leading bytes all rows share · these bytes · the rest of every row.
A varied column has rows of any length: 4 bytes of 0xff · 4 for each row, its length · the rows. Numbers are big-endian.
A factored column is fixed whenever it can be and shares as much as it can, so that equal rows have equal bytes.

Keys are sorted and unique: plain where they change with every commit, packed where they seldom change.

Plain keys: 2 for each key, its length · the keys.
Packed keys: 4 length of the first part · two parts, each deflated by itself. The first part has, for all keys, how many bytes each
shares with the one before, and then, for all keys, how many follow; a byte for each number, or two if one is beyond 255. The second
part has what follows, joined. A key shares as much as it can; every 16th, from the first on, shares nothing: a search jumps between
these, and then walks along one block. Numbers are big-endian.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import xor
from typing import Protocol

from headwater.errors import CorruptionError

_NUMBERS = struct.Struct(">II")
_NUMBER = struct.Struct(">I")
_VARIED = 0xFFFFFFFF


Edit = tuple[int, int, bytes | None]
"""(at, gone, row): instead of ``gone`` rows from ``at`` on there is one row, or none. No class: a commit makes a dozen for each key."""


class FixedColumn:
    """Rows of one length, as they lie in ``raw`` from ``start`` on; ``prefix`` comes before each of them."""

    __slots__ = ("count", "end", "prefix", "raw", "start", "width")

    def __init__(self, raw: bytes, start: int, count: int, prefix: bytes, width: int) -> None:
        self.raw = raw
        self.start = start
        self.count = count
        self.prefix = prefix
        self.width = width
        self.end = start + count * width

    def row(self, at: int) -> bytes:
        start = self.start + at * self.width
        return self.prefix + self.raw[start : start + self.width]

    def rows(self, start: int, end: int) -> list[bytes]:
        raw, width, prefix, first = self.raw, self.width, self.prefix, self.start
        if not width:
            return [prefix] * (end - start)
        starts = range(first + start * width, first + end * width, width)
        if prefix:
            return [prefix + raw[at : at + width] for at in starts]
        return [raw[at : at + width] for at in starts]

    def size(self, start: int, end: int) -> int:
        """Bytes of the rows from ``start`` to ``end``."""
        return (end - start) * (len(self.prefix) + self.width)

    def longest(self) -> int:
        return len(self.prefix) + self.width

    def spliced(self, edits: Sequence[Edit], *, factored: bool) -> bytes:
        """The bytes of the column after these edits, which come in order and do not overlap."""
        prefix, width = self.prefix, self.width
        rows = [row for _, _, row in edits if row is not None]
        if not self.count and rows:
            prefix, width = b"", len(rows[0])
        length = len(prefix) + width
        count = self.count + len(rows) - sum(gone for _, gone, _ in edits)
        if any(len(row) != length for row in rows):
            return _varied(_NUMBER.pack(self.longest()) * self.count, self.whole(), edits, self.longest(), factored)
        if not count:
            return _NUMBERS.pack(0, 0)
        if prefix and not all(row.startswith(prefix) for row in rows):
            packed = splice(self.whole(), 0, self.count * length, length, edits)
            prefix = b""
        else:
            packed = splice(self.raw, self.start, self.end, width, edits, len(prefix))
        if factored:
            return _factored(count, prefix, packed)
        return _NUMBERS.pack(length, len(prefix)) + prefix + packed

    def whole(self, start: int = 0, end: int | None = None) -> bytes:
        """All rows from ``start`` to ``end``, each with the prefix."""
        prefix, width = self.prefix, self.width
        count = (self.count if end is None else end) - start
        rows = self.raw[self.start + start * width : self.start + (start + count) * width]
        if not prefix:
            return rows
        length = len(prefix) + width
        whole = bytearray(count * length)
        for at, byte in enumerate(prefix):
            whole[at::length] = bytes((byte,)) * count
        for at in range(width):
            whole[len(prefix) + at :: length] = rows[at::width]
        return bytes(whole)


class VariedColumn:
    """Rows of any length."""

    __slots__ = ("_ends", "_lengths", "_start", "count", "end", "raw")

    def __init__(self, raw: bytes, lengths: int, count: int) -> None:
        self.raw = raw
        self.count = count
        self._lengths = lengths
        self._start = lengths + 4 * count
        self._ends: array[int] | None = None
        try:
            self.end = self._start + sum(self._sizes())
        except struct.error as fault:
            raise CorruptionError(f"index page of {len(raw)} bytes: truncated") from fault

    @property
    def ends(self) -> array[int]:
        """The end of each row, counted from the first. Computed on demand, for writing a page does not need it."""
        if self._ends is None:
            self._ends = array("Q", accumulate(self._sizes()))
        return self._ends

    def row(self, at: int) -> bytes:
        ends = self.ends
        return self.raw[self._start + (ends[at - 1] if at else 0) : self._start + ends[at]]

    def rows(self, start: int, end: int) -> list[bytes]:
        raw, first = self.raw, self._start
        offsets = self.ends[max(start - 1, 0) : end].tolist()
        if not start:
            offsets.insert(0, 0)
        return [raw[first + at : first + stop] for at, stop in pairwise(offsets)]

    def size(self, start: int, end: int) -> int:
        return 4 * (end - start) + (self.ends[end - 1] if end else 0) - (self.ends[start - 1] if start else 0)

    def longest(self) -> int:
        return max(self._sizes(), default=0)

    def spliced(self, edits: Sequence[Edit], *, factored: bool) -> bytes:
        lengths = self.raw[self._lengths : self._start]
        return _varied(lengths, self.raw[self._start : self.end], edits, None, factored, self.ends)

    def _sizes(self) -> tuple[int, ...]:
        """Bytes of each row."""
        return struct.unpack_from(f">{self.count}I", self.raw, self._lengths)


Column = FixedColumn | VariedColumn


def read_column(raw: bytes, at: int, count: int) -> Column:
    """The column that begins at ``at``."""
    try:
        length, shared = _NUMBERS.unpack_from(raw, at)
    except struct.error as fault:
        raise CorruptionError(f"index page of {len(raw)} bytes: truncated") from fault
    if length == _VARIED:
        return VariedColumn(raw, at + 4, count)
    if shared > length:
        raise CorruptionError(f"index page of {len(raw)} bytes: rows of {length} bytes share {shared}")
    start = at + 8 + shared
    return FixedColumn(raw, start, count, raw[at + 8 : start], length - shared)


def packed_column(rows: Sequence[bytes], *, factored: bool) -> bytes:
    """The bytes of a column with these rows."""
    if not rows:
        return _NUMBERS.pack(0, 0)
    sizes = list(map(len, rows))
    if len(set(sizes)) == 1:
        if factored:
            return _factored(len(rows), b"", b"".join(rows))
        return b"".join((_NUMBERS.pack(sizes[0], 0), *rows))
    return b"".join((_NUMBER.pack(_VARIED), _numbers(sizes), *rows))


def _factored(count: int, prefix: bytes, rows: bytes) -> bytes:
    """What all rows begin with goes before them, once."""
    width, shared = len(rows) // count, 0
    while shared < width and rows[shared::width] == rows[shared : shared + 1] * count:
        shared += 1
    if shared:
        rest = bytearray(count * (width - shared))
        for at in range(width - shared):
            rest[at :: width - shared] = rows[shared + at :: width]
        prefix, rows = prefix + rows[:shared], bytes(rest)
    return _NUMBERS.pack(len(prefix) + len(rows) // count, len(prefix)) + prefix + rows


def _varied(
    lengths: bytes,
    rows: bytes,
    edits: Sequence[Edit],
    length: int | None,
    factored: bool,
    ends: Sequence[int] = (),
) -> bytes:
    """A varied column after edits; fixed, if it is to be factored and can be. ``length``: that of all rows before, or None."""
    row_edits = [(at, gone, None if row is None else _NUMBER.pack(len(row))) for at, gone, row in edits]
    new_lengths = splice(lengths, 0, len(lengths), 4, row_edits)
    pieces, done = [], 0
    for at, gone, row in edits:
        start, end = (_end(ends, at), _end(ends, at + gone)) if length is None else (at * length, (at + gone) * length)
        pieces.append(rows[done:start])
        if row is not None:
            pieces.append(row)
        done = end
    pieces.append(rows[done:])
    joined, count = b"".join(pieces), len(new_lengths) // 4
    if not count:
        return _NUMBERS.pack(0, 0)
    if new_lengths == new_lengths[:4] * count:
        if factored and joined:
            return _factored(count, b"", joined)
        return new_lengths[:4] + bytes(4) + joined
    return _NUMBER.pack(_VARIED) + new_lengths + joined


def splice(raw: bytes, start: int, end: int, width: int, edits: Sequence[Edit], cut: int = 0) -> bytes:
    """The rows from ``start`` to ``end`` after edits, whose first ``cut`` bytes are left out."""
    pieces, done = [], start
    for at, gone, row in edits:
        pieces.append(raw[done : start + at * width])
        if row is not None:
            pieces.append(row[cut:] if cut else row)
        done = start + (at + gone) * width
    pieces.append(raw[done:end])
    return b"".join(pieces)


def _end(ends: Sequence[int], count: int) -> int:
    return ends[count - 1] if count else 0


def _numbers(numbers: Sequence[int]) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


BLOCK = 16
KEY_BYTES = 500
_KEY_NUMBER = struct.Struct(">I")
_LENGTH = struct.Struct(">H")


class PageKeys(Protocol):
    """The sorted keys of a page."""

    count: int

    def position(self, key: bytes) -> int:
        """The position of the key; when it is absent, -1 minus the position where it would be."""
        ...

    def between(self, start: int, end: int) -> list[bytes]: ...
    def spliced(self, edits: Sequence[Edit]) -> tuple[bytes, PlainKeys | None]:
        """The bytes of the keys after these edits, and what is known of them."""
        ...


class PlainKeys:
    """Keys stored as they are; all of them are decoded."""

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
    """Packed keys. The first key of every block is decoded at once, the others on demand."""

    __slots__ = ("_area", "_firsts", "_lengths", "_shared", "_starts", "count")

    def __init__(self, raw: bytes, count: int) -> None:
        self.count = count
        self._shared, self._lengths, self._area = _unpacked(raw, count)
        ends = list(accumulate(self._lengths, initial=0))
        if ends[-1] != len(self._area) or any(self._shared[::BLOCK]):
            raise CorruptionError("the keys of an index page do not fit their lengths")
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
        raise CorruptionError("the keys of an index page are truncated") from fault
    area = start + 2 * count
    offsets = list(accumulate(lengths, initial=area))
    if offsets[-1] != end:
        raise CorruptionError("the keys of an index page do not fit their lengths")
    return PlainKeys([raw[at:stop] for at, stop in pairwise(offsets)], raw[start:area])


def packed_keys(keys: Sequence[bytes]) -> bytes:
    """Pack keys, which are sorted and unique."""
    shared = _shared(keys)
    lengths = [len(key) - common for key, common in zip(keys, shared, strict=True)]
    numbers = shared + lengths
    is_narrow = max(numbers, default=0) < 256
    first = _deflated(bytes(numbers) if is_narrow else struct.pack(f">{len(numbers)}H", *numbers))
    second = _deflated(b"".join([key[common:] for key, common in zip(keys, shared, strict=True)]))
    return _KEY_NUMBER.pack(len(first)) + first + second


def _unpacked(raw: bytes, count: int) -> tuple[Sequence[int], Sequence[int], bytes]:
    """How many bytes each key shares, how many follow, and these."""
    if len(raw) < 4:
        raise CorruptionError("the keys of an index page are truncated")
    (size,) = _KEY_NUMBER.unpack_from(raw)
    numbers = _inflated(raw[4 : 4 + size], 4 * count)
    area = _inflated(raw[4 + size :], KEY_BYTES * count)
    if len(numbers) == 2 * count:
        return numbers[:count], numbers[count:], area
    if len(numbers) == 4 * count:
        wide = struct.unpack(f">{2 * count}H", numbers)
        return wide[:count], wide[count:], area
    raise CorruptionError(f"an index page of {count} keys has {len(numbers)} bytes of lengths")


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


def common(left: bytes, right: bytes) -> int:
    length = min(len(left), len(right))
    bits = (int.from_bytes(left[:length], "big") ^ int.from_bytes(right[:length], "big")).bit_length()
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
        raise CorruptionError(f"the keys of an index page cannot be inflated: {fault}") from fault
    if not inflater.eof or inflater.unused_data or len(inflated) > most:
        raise CorruptionError("the keys of an index page are truncated, or too many")
    return inflated
