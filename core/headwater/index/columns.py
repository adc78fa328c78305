"""A column of a page: one row of bytes for each entry, read and changed by slices, without decoding the rest.

A fixed column has rows of one length: 4 length · 4 how many leading bytes all rows share · these bytes · the rest of every row.
A varied column has rows of any length: 4 bytes of 0xff · 4 for each row, its length · the rows. Numbers are big-endian.
A factored column is fixed whenever it can be and shares as much as it can, so that equal rows have equal bytes.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

from headwater.errors import UnreadableError

__all__ = ["Column", "Edit", "Fixed", "Varied", "packed_column", "read_column", "splice"]

_NUMBERS = struct.Struct(">II")
_NUMBER = struct.Struct(">I")
_VARIED = 0xFFFFFFFF


Edit = tuple[int, int, bytes | None]
"""(at, gone, row): instead of ``gone`` rows from ``at`` on there is one row, or none. No class: a commit makes a dozen for each key."""


class Fixed:
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


class Varied:
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
            raise UnreadableError(f"index page of {len(raw)} bytes: truncated") from fault

    @property
    def ends(self) -> array[int]:
        """Where each row ends, counted from the first. Who only writes a page needs none of it."""
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


Column = Fixed | Varied


def read_column(raw: bytes, at: int, count: int) -> Column:
    """The column that begins at ``at``."""
    try:
        length, shared = _NUMBERS.unpack_from(raw, at)
    except struct.error as fault:
        raise UnreadableError(f"index page of {len(raw)} bytes: truncated") from fault
    if length == _VARIED:
        return Varied(raw, at + 4, count)
    if shared > length:
        raise UnreadableError(f"index page of {len(raw)} bytes: rows of {length} bytes share {shared}")
    start = at + 8 + shared
    return Fixed(raw, start, count, raw[at + 8 : start], length - shared)


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
