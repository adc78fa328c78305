"""Pages of an index: sorted entries stored in columns, in a commit, a stripe or a list of stripes. Also the entry types.

Format of a page:

1 format version · 1 kind (0: plain keys; 1: packed keys and factored columns) · 4 number of entries · 4 bytes of the keys · a column
of object ids, 8 bytes each (0: none; all bits set: the key is removed, and hides what lies deeper) · a column of data · the keys.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from headwater.errors import CorruptionError
from headwater.index.page_columns import (
    KEY_BYTES,
    Column,
    Edit,
    FixedColumn,
    PackedKeys,
    PageKeys,
    packed_column,
    packed_keys,
    plain_keys,
    read_column,
    read_plain_keys,
)
from headwater.store import ObjectId


class IndexValue(NamedTuple):
    """An object that the key points to, or none, and a few bytes."""

    object_id: ObjectId | None
    data: bytes = b""


Entry = tuple[bytes, IndexValue]
Change = tuple[bytes, IndexValue | None]
"""A key and what it holds from now on; None: nothing, it is removed."""


FORMAT = 2
_PLAIN, _PACKED = 0, 1
_HEADER = struct.Struct(">BBII")
_NONE, _REMOVED = bytes(8), b"\xff" * 8
_ENTRY = 10
"""Bytes that an entry takes beside a plain key and its data."""
_HIDDEN = 0xFFFFFFFFFFFFFFFF


class PageRows(NamedTuple):
    """Entries as three lists: keys, object ids in 8 bytes, data."""

    keys: list[bytes]
    ids: list[bytes]
    data: list[bytes]

    def part(self, start: int, end: int) -> PageRows:
        return PageRows(self.keys[start:end], self.ids[start:end], self.data[start:end])

    def joined(self, after: PageRows) -> PageRows:
        return PageRows(self.keys + after.keys, self.ids + after.ids, self.data + after.data)


class EntryPage:
    """Sorted entries over their bytes, of which only what is asked for is decoded. Never changes.

    raises        CorruptionError, from whatever call first meets it, for another format version and for bytes that are no page
    """

    __slots__ = ("_data", "_ids", "_keys", "_keys_start", "count", "is_packed", "raw")

    def __init__(self, raw: bytes, keys: PageKeys | None = None) -> None:
        self.raw = raw
        if len(raw) < _HEADER.size:
            raise CorruptionError(f"index page of {len(raw)} bytes: truncated")
        version, kind, count, key_bytes = _HEADER.unpack_from(raw)
        if version != FORMAT:
            raise CorruptionError(f"index format {version}; this release reads {FORMAT}")
        if kind > _PACKED:
            raise CorruptionError(f"index page of kind {kind}; this release reads {_PLAIN} and {_PACKED}")
        self.count: int = count
        self.is_packed = kind == _PACKED
        ids = read_column(raw, _HEADER.size, count)
        if not isinstance(ids, FixedColumn) or ids.longest() != (8 if count else 0):
            raise CorruptionError(f"index page of {len(raw)} bytes: its object ids have another length than 8")
        self._ids = ids
        self._data: Column = read_column(raw, ids.end, count)
        self._keys_start = self._data.end
        self._keys = keys
        if self._keys_start + key_bytes != len(raw):
            raise CorruptionError(f"index page of {len(raw)} bytes: truncated, or too long")

    @classmethod
    def made(cls, rows: PageRows, *, packed: bool) -> EntryPage:
        """A page of entries that come in key order, each key once."""
        ids = packed_column(rows.ids, factored=packed)
        data = packed_column(rows.data, factored=packed)
        return _page(packed, len(rows.keys), ids, data, packed_keys(rows.keys) if packed else plain_keys(rows.keys), None)

    @property
    def keys(self) -> PageKeys:
        if self._keys is None:
            self._keys = (
                PackedKeys(self.raw[self._keys_start :], self.count)
                if self.is_packed
                else read_plain_keys(self.raw, self._keys_start, len(self.raw), self.count)
            )
        return self._keys

    def position(self, key: bytes) -> int:
        """The position of a key; when it is absent, -1 minus the position where it would be."""
        keys = self._keys
        return (self.keys if keys is None else keys).position(key)

    def first_at(self, key: bytes) -> int:
        """The position of the first key that is not smaller than this one."""
        at = self.position(key)
        return at if at >= 0 else -1 - at

    def value(self, at: int) -> IndexValue | None:
        """The value of an entry; None means that its key is removed."""
        object_id = int.from_bytes(self._ids.row(at), "big")
        if object_id == _HIDDEN:
            return None
        return IndexValue(ObjectId(object_id) if object_id else None, self._data.row(at))

    def data(self, at: int) -> bytes:
        return self._data.row(at)

    def between(self, start: int, end: int) -> list[Change]:
        """Entries from a position to another."""
        return list(zip(self.keys.between(start, end), self.values(start, end), strict=True))

    def all_data(self) -> list[bytes]:
        """The data of all entries, of a page without removals."""
        return self._data.rows(0, self.count)

    def values(self, start: int, end: int) -> list[IndexValue | None]:
        ids = struct.unpack(f">{end - start}Q", self._ids.whole(start, end))
        data = self._data.rows(start, end)
        if 0 not in ids and _HIDDEN not in ids:
            return list(map(IndexValue, ids, data))
        return [
            None if object_id == _HIDDEN else IndexValue(ObjectId(object_id) if object_id else None, row)
            for object_id, row in zip(ids, data, strict=True)
        ]

    def object_ids(self) -> list[ObjectId]:
        """The objects that its entries point to."""
        return [ObjectId(i) for i in struct.unpack(f">{self.count}Q", self._ids.whole()) if i and i != _HIDDEN]

    def rows(self) -> PageRows:
        return PageRows(self.keys.between(0, self.count), self._ids.rows(0, self.count), self._data.rows(0, self.count))

    def size(self, start: int, end: int) -> int:
        """Bytes that these entries take, when their keys lie plain."""
        keys = self.keys.between(start, end)
        return _ENTRY * len(keys) + sum(map(len, keys)) + self._data.size(start, end)

    def longest(self) -> int:
        """Bytes that no entry goes beyond, when its key lies plain."""
        return _ENTRY + KEY_BYTES + self._data.longest()

    @property
    def key_bytes(self) -> int:
        return len(self.raw) - self._keys_start

    def removals(self, start: int, end: int) -> int:
        return self._ids.rows(start, end).count(_REMOVED)

    def changed(self, changes: Sequence[Change], *, keeps_removals: bool = False) -> EntryPage:
        """The page after changes, which come in key order.

        keeps_removals  a removed key stays and hides what lies deeper; otherwise it goes
        """
        if not self.count and not keeps_removals:
            return EntryPage.made(_rows_of(changes), packed=self.is_packed)
        keys: list[Edit] = []
        ids: list[Edit] = []
        data: list[Edit] = []
        fill = bytes(self._data.longest()) if isinstance(self._data, FixedColumn) else b""
        for key, value in changes:
            at = self.keys.position(key)
            is_there, at = at >= 0, at if at >= 0 else -1 - at
            if value is None and not keeps_removals:
                if is_there:
                    gone = (at, 1, None)
                    keys.append(gone)
                    ids.append(gone)
                    data.append(gone)
                continue
            if not is_there:
                keys.append((at, 0, key))
            ids.append((at, int(is_there), _REMOVED if value is None else id_row(value.object_id)))
            data.append((at, int(is_there), fill if value is None else value.data))
        return self.edited(keys, ids, data)

    def without(self, ranges: Sequence[tuple[int, int]]) -> EntryPage:
        """The page without some ranges of positions, which come in order."""
        edits = [(start, end - start, None) for start, end in ranges]
        return self.edited(edits, edits, edits)

    def edited(self, keys: Sequence[Edit], ids: Sequence[Edit], data: Sequence[Edit]) -> EntryPage:
        is_packed = self.is_packed
        count = self.count + sum((row is not None) - gone for _, gone, row in keys)
        new_ids = self._ids.spliced(ids, factored=is_packed)
        new_data = self._data.spliced(data, factored=is_packed)
        if not keys:
            return _page(is_packed, count, new_ids, new_data, self.raw[self._keys_start :], self._keys)
        raw, decoded = self.keys.spliced(keys)
        return _page(is_packed, count, new_ids, new_data, raw, decoded)


def _page(packed: bool, count: int, ids: bytes, data: bytes, keys: bytes, decoded: PageKeys | None) -> EntryPage:
    header = _HEADER.pack(FORMAT, _PACKED if packed else _PLAIN, count, len(keys))
    return EntryPage(b"".join((header, ids, data, keys)), decoded)


def _rows_of(changes: Sequence[Change]) -> PageRows:
    """The entries that changes leave where there were none."""
    put = [(key, value) for key, value in changes if value is not None]
    return PageRows([key for key, _ in put], [id_row(value.object_id) for _, value in put], [value.data for _, value in put])


def id_row(object_id: ObjectId | None) -> bytes:
    return object_id.to_bytes(8, "big") if object_id else _NONE


NO_PAGE = EntryPage.made(PageRows([], [], []), packed=False)
EMPTY = NO_PAGE.raw
