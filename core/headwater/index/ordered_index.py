"""The ordered map: reading an index, editing it, building a new one, and comparing two.

Edits are laid over the stored entries as a stream of chunks. A chunk is a list in key order, never an empty one; its items are
entries, or only keys when the caller wants no values. A stream that is read backwards has its last chunk first; within each chunk,
key order stays.

Two indexes are compared without reading the stripes and lists of stripes that both share:

    before   [ changes ][ stripe 1 ][ stripe 2 ][ stripe 3 ]
    after    [ changes ][ stripe 1 ][ stripe 4 ][ stripe 3 ]      keys to be compared: of 2, of 4, and of both sets of changes

A key that differs is in the changes above the stripes of at least one index, or in a stripe that they do not share: otherwise both
would read it from the same stripe. So it does not matter whether a shared stripe has the same neighbors in both.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

from headwater.errors import RefusedError
from headwater.index.index_nodes import (
    EMPTY,
    Change,
    Children,
    Entry,
    EntryPage,
    IndexContainer,
    IndexLimits,
    IndexValue,
    PageRows,
    ReadAheadWindow,
    Stripe,
    StripeList,
    StripeReader,
    id_row,
    load_ahead,
    load_stripe,
    load_stripes,
)
from headwater.index.page_columns import KEY_BYTES
from headwater.index.spill import settled, settled_anew
from headwater.store import ObjectId, StoredObject

Chunk = list[Any]
"""Entries, or keys."""
Chunks = Iterator[Chunk]
_FIRST = 16
_LARGEST = 4096
_MANY = 8
"""Changes are looked up in a chunk one by one, unless they are so many: more than one for so many entries."""
_COMPARED, _COMPARED_MOST = 64, 4096
"""Keys that are compared together: few at first, for callers that want only one page."""


@dataclass(frozen=True, slots=True)
class ChangeLayer:
    """Changes to be laid over a stream: their keys in order, and what the keys of a slice hold from now on (None: it is removed)."""

    keys: Sequence[bytes]
    values: Callable[[int, int], Sequence[IndexValue | None]]


def merge_layers(stream: Chunks, layer: ChangeLayer, *, reverse: bool, keys_only: bool) -> Chunks:
    """The stream with the changes; a change hides what the stream has under its key, and a removal hides itself too."""
    if not layer.keys:
        return stream
    return (_backwards if reverse else _forwards)(stream, layer, keys_only)


def growing(start: int, end: int, *, reverse: bool, step: int = _FIRST) -> Iterator[tuple[int, int]]:
    """Split a range of positions into parts that begin small, for callers that want few entries, and grow."""
    while start < end:
        if reverse:
            cut = max(end - step, start)
            yield cut, end
            end = cut
        else:
            cut = min(start + step, end)
            yield start, cut
            start = cut
        step = min(4 * step, _LARGEST)


def _forwards(stream: Chunks, layer: ChangeLayer, keys_only: bool) -> Chunks:
    keys, at = layer.keys, 0
    for chunk in stream:
        if at < len(keys) and keys[at] <= (last := _key(chunk[-1], keys_only)):
            stop = bisect_right(keys, last, at)
            chunk = _patched(chunk, layer, at, stop, keys_only)
            at = stop
        if chunk:
            yield chunk
    for start, end in growing(at, len(keys), reverse=False):
        if rest := _patched([], layer, start, end, keys_only):
            yield rest


def _backwards(stream: Chunks, layer: ChangeLayer, keys_only: bool) -> Chunks:
    keys, at = layer.keys, len(layer.keys)
    for chunk in stream:
        if at and keys[at - 1] >= (first := _key(chunk[0], keys_only)):
            stop = bisect_left(keys, first, 0, at)
            chunk = _patched(chunk, layer, stop, at, keys_only)
            at = stop
        if chunk:
            yield chunk
    for start, end in growing(0, at, reverse=True):
        if rest := _patched([], layer, start, end, keys_only):
            yield rest


def _patched(chunk: Chunk, layer: ChangeLayer, start: int, end: int, keys_only: bool) -> Chunk:
    """The chunk after the changes from a position to another."""
    changes = zip(layer.keys[start:end], layer.values(start, end), strict=True)
    if not chunk:
        return [key if keys_only else (key, value) for key, value in changes if value is not None]
    if _MANY * (end - start) > len(chunk):
        merged: dict[bytes, Any] = dict.fromkeys(chunk, chunk) if keys_only else dict(chunk)
        merged |= changes
        kept = sorted(key for key, value in merged.items() if value is not None)
        return kept if keys_only else [(key, merged[key]) for key in kept]
    patched: Chunk = []
    at = 0
    for key, value in changes:
        place = bisect_left(chunk, key if keys_only else (key,), at)
        patched += chunk[at:place]
        if value is not None:
            patched.append(key if keys_only else (key, value))
        at = place + (place < len(chunk) and _key(chunk[place], keys_only) == key)
    patched += chunk[at:]
    return patched


def _key(item: Any, keys_only: bool) -> bytes:
    key: bytes = item if keys_only else item[0]
    return key


_NOTHING = IndexContainer(0, EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    """A query of an index: the range of keys, the direction, and the limit."""

    start: bytes | None
    end: bytes | None
    reverse: bool
    limit: int | None
    keys_only: bool

    def selects_nothing(self) -> bool:
        return self.limit == 0 or (self.start is not None and self.end is not None and self.start >= self.end)


class Index:
    """A sorted map from key bytes to values, as it lies in bytes. Never changes, and decodes only what is asked for.

    raises        CorruptionError, from every call but ``len``, when a part that it needs is missing or damaged
    """

    def __init__(self, container: IndexContainer | None = None, objects: StripeReader | None = None) -> None:
        self._container = _NOTHING if container is None else container
        self._objects = objects
        self._length = self._container.length

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def get(self, key: bytes) -> IndexValue | None:
        """The value of a key. Reads at most a list and a stripe."""
        return self._find(key)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, IndexValue]:
        """Those of the keys that are there, in the order given. One bulk read for each level of what is not in the cache."""
        wanted = list(dict.fromkeys(keys))
        values = self._find_many(wanted)
        return {key: value for key in wanted if (value := values[key]) is not None}

    def range(
        self, start: bytes | None = None, end: bytes | None = None, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Entry]:
        """Entries with ``start`` <= key < ``end`` in key order, or backwards. Stripes are read ahead, in growing bulks."""
        return self._read(IndexQuery(start=start, end=end, reverse=reverse, limit=limit, keys_only=False))

    def keys(
        self, start: bytes | None = None, end: bytes | None = None, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[bytes]:
        """Yield only the keys of a range, in half the time of ``range``."""
        return self._read(IndexQuery(start=start, end=end, reverse=reverse, limit=limit, keys_only=True))

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

    def bounds(self, start: bytes | None = None, end: bytes | None = None) -> list[bytes]:
        """Keys between ``start`` and ``end``, in order, that divide this stretch into parts of about one stripe each.

        For parallel readers. Reads the lists of stripes, and no stripe; entries that are not spilled are not divided.
        """
        container = self._container
        lists = [container.children] if container.levels else []
        if container.levels == 2:
            wanted = _in_order(container.children, IndexQuery(start=start, end=end, reverse=False, limit=None, keys_only=True))
            lists += [stripes.children for stripes in load_stripes(self._objects, wanted, StripeList)]
        bounds = sorted({bound for children in lists for bound in children.bounds})
        return [key for key in bounds[1:] if (start is None or key > start) and (end is None or key < end)]

    def _read(self, query: IndexQuery) -> Iterator[Any]:
        if query.selects_nothing():
            return iter(())
        chunks = self._chunks(query)
        return islice(chain.from_iterable(map(reversed, chunks) if query.reverse else chunks), query.limit)

    def _find(self, key: bytes) -> IndexValue | None:
        container = self._container
        if not container.length:
            return None
        page, children, levels = container.page, container.children, container.levels
        at = page.position(key)
        if at < 0 and levels == 2:
            stripes = load_stripe(self._objects, children.object_ids[children.position(key)], StripeList)
            page, children = stripes.page, stripes.children
            at = page.position(key)
        if at < 0 and levels:
            page = load_stripe(self._objects, children.object_ids[children.position(key)], Stripe).page
            at = page.position(key)
        return page.value(at) if at >= 0 else None

    def _find_many(self, keys: list[bytes]) -> dict[bytes, IndexValue | None]:
        """The value of each of the keys."""
        values: dict[bytes, IndexValue | None] = {}
        deeper = _read_values(self._container.page, keys, values)
        children, levels = self._container.children, self._container.levels
        below = _spread(children, deeper) if levels else {}
        if levels == 2:
            lists = load_stripes(self._objects, list(below), StripeList)
            asked, below = below.values(), {}
            for stripes, rest in zip(lists, asked, strict=True):
                below |= _spread(stripes.children, _read_values(stripes.page, rest, values))
        if below:
            for stripe, rest in zip(load_stripes(self._objects, list(below), Stripe), below.values(), strict=True):
                _read_values(stripe.page, rest, values)
        return dict.fromkeys(keys) | values

    def _chunks(self, query: IndexQuery) -> Chunks:
        container = self._container
        below: Chunks = iter(())
        if container.levels == 1:
            below = self._stripes(container.children, query, ReadAheadWindow(query.limit))
        elif container.levels == 2:
            below = self._lists(container.children, query)
        return _laid_over(below, container.page, query)

    def _lists(self, children: Children, query: IndexQuery) -> Chunks:
        wanted = _in_order(children, query)
        pace = ReadAheadWindow(query.limit)
        for stripes in load_ahead(self._objects, wanted, StripeList, ReadAheadWindow(query.limit)):
            yield from _laid_over(self._stripes(stripes.children, query, pace), stripes.page, query)

    def _stripes(self, children: Children, query: IndexQuery, pace: ReadAheadWindow) -> Chunks:
        for stripe in load_ahead(self._objects, _in_order(children, query), Stripe, pace):
            page = stripe.page
            start, end = _spread_in(page, query)
            pace.record_read(1, end - start)
            take = page.keys.between if query.keys_only else page.between
            for first, last in growing(start, end, reverse=query.reverse):
                yield take(first, last)


def after_prefix(prefix: bytes) -> bytes | None:
    """The smallest key beyond all keys with this prefix; None when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _in_order(children: Children, query: IndexQuery) -> list[ObjectId]:
    first, last = children.spread(query.start, query.end)
    wanted = children.object_ids[first:last]
    return wanted[::-1] if query.reverse else wanted


def _read_values(page: EntryPage, keys: list[bytes], values: dict[bytes, IndexValue | None]) -> list[bytes]:
    """Record the values that a page holds for the keys. Returns the keys that it does not hold."""
    rest = []
    for key in keys:
        at = page.position(key)
        if at >= 0:
            values[key] = page.value(at)
        else:
            rest.append(key)
    return rest


def _spread(children: Children, keys: list[bytes]) -> dict[ObjectId, list[bytes]]:
    """The keys by the child under which they are."""
    spread: dict[int, list[bytes]] = {}
    for key in keys:
        spread.setdefault(children.position(key), []).append(key)
    return {children.object_ids[at]: below for at, below in spread.items()}


def _laid_over(below: Chunks, page: EntryPage, query: IndexQuery) -> Chunks:
    start, end = _spread_in(page, query)
    layer = ChangeLayer(page.keys.between(start, end), lambda first, last: page.values(start + first, start + last))
    return merge_layers(below, layer, reverse=query.reverse, keys_only=query.keys_only)


def _spread_in(page: EntryPage, query: IndexQuery) -> tuple[int, int]:
    """The positions between which a page holds keys of the query."""
    start = 0 if query.start is None else page.first_at(query.start)
    end = page.count if query.end is None else page.first_at(query.end)
    return start, max(start, end)


class StoredIndex(NamedTuple):
    """An index as it is to be stored: what the commit holds, and the objects that must be written with it."""

    container: IndexContainer
    objects: list[tuple[ObjectId, StoredObject]]


class IndexEditor(Index):
    """An index with changes on top: reads like the index that ``stored`` will make. Editors may stand on editors.

    The base's value of every requested key is cached, so that nothing is looked up twice: the base must not change while its
    editor is in use. All values that an editor hands out come through ``get`` and ``range``.
    """

    def __init__(self, base: Index) -> None:
        super().__init__(base._container, base._objects)
        self._base = base
        self._length = len(base)
        self._before: dict[bytes, IndexValue | None] = {}
        self._changes: dict[bytes, IndexValue | None] = {}
        self._sorted: list[bytes] | None = []

    def put(self, key: bytes, value: IndexValue) -> bool:
        """Set a key. Returns whether it was absent.

        raises        RefusedError for a key that is empty or longer than 500 bytes
        """
        if not 0 < len(key) <= KEY_BYTES:
            raise _impossible(key)
        was_absent = self._find(key) is None
        self._change(key, value)
        self._length += was_absent
        return was_absent

    def remove(self, key: bytes) -> bool:
        """Remove a key. Returns whether it was there."""
        was_there = self._find(key) is not None
        if was_there:
            self._change(key, None)
            self._length -= 1
        return was_there

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, IndexValue]:
        wanted = list(dict.fromkeys(keys))
        self._find_many(wanted)
        return {key: value for key in wanted if (value := self.get(key)) is not None}

    def changes(self) -> list[Change]:
        """The changes relative to the base, in key order; None means removed."""
        before, changes = self._before, self._changes
        return [(key, changes[key]) for key in self._keys() if changes[key] != before[key]]

    def has_changes(self) -> bool:
        """Whether anything differs from the base."""
        return any(value != self._before[key] for key, value in self._changes.items())

    def absorb(self, editor: IndexEditor) -> None:
        """Adopt the edits of an editor that was created on top of this one, after all of this one's edits."""
        for key, value in editor.changes():
            if key not in self._changes:
                self._before[key] = editor._before[key]
            self._change(key, value)
        self._length = len(editor)

    def stored(self, new_ids: Callable[[int], list[ObjectId]], limits: IndexLimits) -> StoredIndex:
        """The index as it is to be stored. May be called again.

        new_ids       makes ids for the objects to be written
        raises        CorruptionError when a stripe that must be read is not there or is damaged; nothing was written
        """
        return StoredIndex(*settled(self._container, self._length, self._all_changes(), self._objects, new_ids, limits))

    def _find(self, key: bytes) -> IndexValue | None:
        if key in self._changes:
            return self._changes[key]
        if key not in self._before:
            self._before[key] = self._base._find(key)
        return self._before[key]

    def _find_many(self, keys: list[bytes]) -> dict[bytes, IndexValue | None]:
        self._before |= self._base._find_many([key for key in keys if key not in self._before])
        return {key: self._changes[key] if key in self._changes else self._before[key] for key in keys}

    def _change(self, key: bytes, value: IndexValue | None) -> None:
        if key not in self._changes:
            self._sorted = None
        self._changes[key] = value

    def _keys(self) -> list[bytes]:
        """The changed keys in order. Sorted again after a new key, which is cheap for a list that is sorted except at its end."""
        if self._sorted is None:
            self._sorted = sorted(self._changes)
        return self._sorted

    def _chunks(self, query: IndexQuery) -> Chunks:
        keys = self._keys()
        start = 0 if query.start is None else bisect_left(keys, query.start)
        end = len(keys) if query.end is None else bisect_left(keys, query.end)
        changed = {key: self._changes[key] for key in keys[start:end]}  # a copy: edits do not disturb who is reading
        within = list(changed)
        layer = ChangeLayer(within, lambda first, last: [changed[key] for key in within[first:last]])
        return merge_layers(self._base._chunks(query), layer, reverse=query.reverse, keys_only=query.keys_only)

    def _all_changes(self) -> list[Change]:
        """The changes relative to the bottom index, which is not an editor."""
        if not isinstance(self._base, IndexEditor):
            return self.changes()
        beneath = dict(self._base._all_changes())
        return sorted((beneath | dict(self.changes())).items(), key=lambda change: change[0])


class NewIndex:
    """An index whose entries are all there at once: stored as an editor on an empty index would store it, in a fraction of the time."""

    def __init__(self, data: Mapping[bytes, bytes], objects: Mapping[bytes, ObjectId]) -> None:
        """
        data          what each key holds
        objects       of the keys that point to an object: to which
        raises        RefusedError for a key that is empty or longer than 500 bytes
        """
        for key in data:
            if not 0 < len(key) <= KEY_BYTES:
                raise _impossible(key)
        keys = sorted(data)
        ids = [id_row(objects.get(key)) for key in keys] if objects else [id_row(None)] * len(keys)
        self._rows = PageRows(keys, ids, [data[key] for key in keys])

    def stored(self, new_ids: Callable[[int], list[ObjectId]], limits: IndexLimits) -> StoredIndex:
        """The index as it will be stored; see ``IndexEditor.stored``."""
        return StoredIndex(*settled_anew(self._rows, new_ids, limits))


def _impossible(key: bytes) -> RefusedError:
    return RefusedError(f"index key {key[:40]!r} has {len(key)} bytes: 1 to {KEY_BYTES} are possible")


class IndexDifference(NamedTuple):
    """A key, and what it holds in each of two indexes; None: it is not there."""

    key: bytes
    before: IndexValue | None
    after: IndexValue | None


def index_differences(
    before: Index, after: Index, *, start: bytes | None = None, end: bytes | None = None
) -> Iterator[IndexDifference]:
    """The keys with ``start`` <= key < ``end`` that hold different values, in key order. Both indexes are of one realm.

    Reads the parts that the indexes do not share, and for a key that one of them has changed above its stripes, that stripe.

    raises        CorruptionError when a part that it needs is missing or damaged
    """
    sides = _side(before, start, end), _side(after, start, end)
    keys = (key for key, _ in groupby(merge(*_candidates(*sides))))
    step = _COMPARED
    while some := list(islice(keys, step)):
        then, now = before._find_many(some), after._find_many(some)
        yield from (IndexDifference(key, then[key], now[key]) for key in some if then[key] != now[key])
        step = min(4 * step, _COMPARED_MOST)


@dataclass(frozen=True, slots=True)
class _Side:
    """One index as it lies in a commit, and the keys that were edited above that."""

    index: Index
    container: IndexContainer
    edited: Sequence[bytes]
    start: bytes | None
    end: bytes | None

    def keys(self, page: EntryPage) -> list[bytes]:
        first = 0 if self.start is None else page.first_at(self.start)
        last = page.count if self.end is None else page.first_at(self.end)
        return page.keys.between(first, max(first, last))

    def below(self, holder: IndexContainer | StripeList) -> list[ObjectId]:
        """The children that may have keys of the range."""
        first, last = holder.children.spread(self.start, self.end)
        return holder.children.object_ids[first:last]

    def stripe_keys(self, stripes: Sequence[ObjectId]) -> Iterator[bytes]:
        for stripe in load_ahead(self.index._objects, stripes, Stripe, ReadAheadWindow(None)):
            yield from self.keys(stripe.page)


def _side(index: Index, start: bytes | None, end: bytes | None) -> _Side:
    edited: set[bytes] = set()
    beneath = index
    while isinstance(beneath, IndexEditor):
        edited.update(beneath._changes)
        beneath = beneath._base
    ordered = sorted(edited)
    first = 0 if start is None else bisect_left(ordered, start)
    last = len(ordered) if end is None else bisect_left(ordered, end)
    return _Side(index, index._container, ordered[first:last], start, end)


def _candidates(before: _Side, after: _Side) -> Iterator[Iterator[bytes]]:
    """Streams of keys in order, with every key that may differ in one of them at least."""
    if before.start is not None and before.end is not None and before.start >= before.end:
        return
    stripes: list[list[ObjectId]] = []
    shared_lists = _shared_lists(before, after)
    for side in (before, after):
        yield iter(side.edited)
        yield iter(side.keys(side.container.page))
        children = side.below(side.container) if side.container.levels else []
        if side.container.levels == 2:
            lists = load_stripes(side.index._objects, [i for i in children if i not in shared_lists], StripeList)
            yield from (iter(side.keys(opened.page)) for opened in lists)
            children = [stripe for opened in lists for stripe in side.below(opened)]
        stripes.append(children)
    shared = set(stripes[0]).intersection(stripes[1])
    for side, children in zip((before, after), stripes, strict=True):
        yield side.stripe_keys([i for i in children if i not in shared])


def _shared_lists(before: _Side, after: _Side) -> frozenset[ObjectId]:
    if before.container.levels != 2 or after.container.levels != 2:
        return frozenset()
    return frozenset(before.below(before.container)).intersection(after.below(after.container))
