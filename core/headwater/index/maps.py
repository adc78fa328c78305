"""The ordered map: ``Index`` reads it, ``IndexEditor`` collects changes on top of one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from headwater.errors import RefusedError
from headwater.index.containers import IndexContainer, Limits, Objects
from headwater.index.layout import BLOCK, EMPTY, Entry, Value, block_at, block_count, entry_count, first_key, packed
from headwater.store import ObjectId, StoredObject

__all__ = ["KEY_BYTES", "Index", "IndexEditor", "Stored", "after_prefix"]

KEY_BYTES = 500

V = TypeVar("V")


class Index:
    """A sorted map from key bytes to values, as it lies in bytes. Never changes; decodes only the blocks that are asked for."""

    def __init__(self, container: IndexContainer | None = None, objects: Objects | None = None) -> None:
        self._container = container
        self._objects = objects
        data = EMPTY if container is None else container.embedded
        self._data = data
        self._count = entry_count(data)
        self._blocks: dict[int, list[Entry]] = {}

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def get(self, key: bytes) -> Value | None:
        for found, value in self.range(key):
            return value if found == key else None
        return None

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, Value]:
        """Those of the keys that are there."""
        found = ((key, self.get(key)) for key in keys)
        return {key: value for key, value in found if value is not None}

    def range(
        self, start: bytes | None = None, end: bytes | None = None, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Entry]:
        """Entries with ``start`` <= key < ``end`` in key order, or backwards."""
        entries = self._backwards(end) if reverse else self._forwards(start)
        return islice(_between(entries, start, end, reverse=reverse), limit)

    def prefix(
        self, prefix: bytes, *, after: bytes | None = None, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Entry]:
        """Entries whose key begins with ``prefix``; with ``after``, those beyond that key in the direction of reading."""
        start, end = prefix, after_prefix(prefix)
        if after is not None and reverse:
            end = after if end is None else min(end, after)
        elif after is not None:
            start = max(start, after + b"\0")
        return self.range(start, end, reverse=reverse, limit=limit)

    def _forwards(self, start: bytes | None) -> Iterator[Entry]:
        block = 0 if start is None else self._block_of(start)
        for number in range(block, block_count(self._data)):
            entries = self._block(number)
            yield from entries if start is None or number > block else entries[bisect_left(entries, (start,)) :]

    def _backwards(self, end: bytes | None) -> Iterator[Entry]:
        last = block_count(self._data) - 1 if end is None else self._block_of(end)
        for number in range(last, -1, -1):
            yield from reversed(self._block(number))

    def _block_of(self, key: bytes) -> int:
        """The block in which the key is, or would be."""
        low, high = 0, block_count(self._data)
        while low < high:
            middle = (low + high) // 2
            if first_key(self._data, middle) <= key:
                low = middle + 1
            else:
                high = middle
        return max(low - 1, 0)

    def _block(self, number: int) -> list[Entry]:
        if number not in self._blocks:
            self._blocks[number] = block_at(self._data, number) if self._count > number * BLOCK else []
        return self._blocks[number]


class Stored(NamedTuple):
    """An index as it is to be stored: what the commit holds, and the objects that must be written with it."""

    container: IndexContainer
    objects: list[tuple[ObjectId, StoredObject]]


class IndexEditor(Index):
    """An index with changes on top: reads like the index that ``stored`` will make."""

    def __init__(self, base: Index) -> None:
        super().__init__(base._container, base._objects)
        self._base = base
        self._changes: dict[bytes, Value | None] = {}

    def put(self, key: bytes, value: Value) -> bool:
        """Set a key. Returns whether it was absent.

        raises        RefusedError for a key that is empty or longer than 500 bytes
        """
        if not 0 < len(key) <= KEY_BYTES:
            raise RefusedError(f"index key {key[:40]!r} has {len(key)} bytes: 1 to {KEY_BYTES} are possible")
        was_absent = self.get(key) is None
        self._changes[key] = value
        self._count += was_absent
        return was_absent

    def remove(self, key: bytes) -> bool:
        """Remove a key. Returns whether it was there."""
        was_there = self.get(key) is not None
        if was_there:
            self._changes[key] = None
            self._count -= 1
        return was_there

    def get(self, key: bytes) -> Value | None:
        return self._changes[key] if key in self._changes else self._base.get(key)

    def range(
        self, start: bytes | None = None, end: bytes | None = None, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Entry]:
        if not self._changes:
            return self._base.range(start, end, reverse=reverse, limit=limit)
        stored = self._base.range(start, end, reverse=reverse)
        changed = sorted(self._changes.items(), key=lambda change: change[0], reverse=reverse)
        merged = _merged(stored, _between(changed, start, end, reverse=reverse), reverse=reverse)
        return islice(merged, limit)

    def changes(self) -> list[tuple[bytes, Value | None]]:
        """What differs from the base, in key order; None says removed."""
        return [
            (key, value) for key, value in sorted(self._changes.items(), key=lambda c: c[0]) if self._base.get(key) != value
        ]

    def absorb(self, editor: IndexEditor) -> None:
        """Take over the edits of an editor that was made on top of this one."""
        for key, value in editor.changes():
            if value is None:
                self.remove(key)
            else:
                self.put(key, value)

    def stored(self, new_ids: Callable[[int], list[ObjectId]], limits: Limits) -> Stored:
        """The index as it is to be stored. May be called again.

        new_ids       makes ids for the objects to be written
        raises        UnreadableError when a stripe that must be read is not there or is damaged; nothing was written
        """
        return Stored(IndexContainer(len(self), packed(self.range())), [])


def after_prefix(prefix: bytes) -> bytes | None:
    """The smallest key beyond all keys with this prefix; None when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _between(
    entries: Iterable[tuple[bytes, V]], start: bytes | None, end: bytes | None, *, reverse: bool
) -> Iterator[tuple[bytes, V]]:
    for key, value in entries:
        if (not reverse and end is not None and key >= end) or (reverse and start is not None and key < start):
            return
        if (start is None or key >= start) and (end is None or key < end):
            yield key, value


def _merged(stored: Iterator[Entry], changed: Iterator[tuple[bytes, Value | None]], *, reverse: bool) -> Iterator[Entry]:
    """Two ordered streams as one; a change hides what is stored under its key, and a removal hides itself too."""
    left, right = next(stored, None), next(changed, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left[0] != right[0] and (left[0] < right[0]) != reverse):
            assert left is not None
            yield left
            left = next(stored, None)
            continue
        if left is not None and left[0] == right[0]:
            left = next(stored, None)
        if right[1] is not None:
            yield right[0], right[1]
        right = next(changed, None)
