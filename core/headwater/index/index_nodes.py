"""The stored parts of an index: pages of entries, and the nodes that hold pages: containers, stripes, lists of stripes; and their loading.

A container lies in a commit. Stripes and lists of stripes are loaded by id, some ahead; a missing one is an error, never an absent key.
A scan over many indexes loads the nodes that they share once.
Decoded values are cached on the object from which they were decoded (``memo``).

Format of a page, of entries in columns:

1 format version · 1 kind (0: plain keys; 1: packed keys and factored columns) · 4 number of entries · 4 bytes of the keys · a column
of object ids, 8 bytes each (0: none; all bits set: the key is removed, and hides what lies deeper) · a column of data · the keys.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

import msgspec

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
from headwater.store import ObjectId, StoredObject, id_text, object_type


class IndexValue(NamedTuple):
    """An object that the key points to, or none, and a few bytes."""

    object_id: ObjectId | None
    data: bytes = b""


_as_value: Callable[[tuple[int | None, bytes]], IndexValue] = partial(tuple.__new__, IndexValue)
"""As ``IndexValue`` itself makes one, in a third of the time: a table's metadata has hundreds, and all are read for each commit."""
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
        rows = zip([object_id or None for object_id in ids], data, strict=True)
        if _HIDDEN in ids:
            return [None if row[0] == _HIDDEN else _as_value(row) for row in rows]
        return list(map(_as_value, rows))

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


R = TypeVar("R")


class memo(Generic[R]):  # noqa: N801  # reads like property
    """A property that is computed once and then lies in the instance's dictionary.

    Unlike functools.cached_property it holds no lock, which a fork could leave locked for ever: threads that meet here compute the
    same thing twice.
    """

    def __init__(self, compute: Callable[[Any], R]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> memo[R]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> R: ...
    def __get__(self, instance: object | None, owner: type) -> memo[R] | R:
        if instance is None:
            return self
        value = self._compute(instance)
        remember(instance, **{self._name: value})
        return value


def remember(instance: object, **values: object) -> None:
    """Cache values on an instance as if ``memo`` had computed them: the writer knows them, so readers need not decode them."""
    vars(instance).update(values)


class Child(NamedTuple):
    """A stripe or a list of stripes, as its parent knows it.

    bound         keys from this one on are its own, up to the next child's; the first child has the smaller ones as well
    size          of a stripe: its bytes; of a list: its stripes
    """

    bound: bytes
    object_id: ObjectId
    size: int

    def begun_at(self, bound: bytes) -> Child:
        return self._replace(bound=bound)


class Children:
    """A page whose keys are bounds. These are decoded once, for every search begins with them."""

    __slots__ = ("_ids", "bounds", "page")

    def __init__(self, page: EntryPage, bounds: list[bytes] | None = None) -> None:
        self.page = page
        self.bounds = page.keys.between(0, page.count) if bounds is None else bounds
        self._ids: list[ObjectId] | None = None

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, at: int) -> Child:
        return Child(self.bounds[at], self.object_ids[at], self.size(at))

    def size(self, at: int) -> int:
        return int.from_bytes(self.page.data(at), "big")

    def position(self, key: bytes) -> int:
        """The child under which the key is, if it is anywhere."""
        return max(bisect_right(self.bounds, key) - 1, 0)

    def spread(self, start: bytes | None, end: bytes | None) -> tuple[int, int]:
        """The children that may have keys with ``start`` <= key < ``end``: from a position to another."""
        first = 0 if start is None else self.position(start)
        last = len(self.bounds) if end is None else max(bisect_left(self.bounds, end), 1)
        return first, max(first, min(last, len(self.bounds)))

    @property
    def object_ids(self) -> list[ObjectId]:
        if self._ids is None:
            self._ids = self.page.object_ids()
        return self._ids

    def all(self) -> list[Child]:
        sizes = [int.from_bytes(row, "big") for row in self.page.rows().data]
        return list(map(Child, self.bounds, self.object_ids, sizes))

    def updated(self, children: Mapping[int, Child]) -> Children:
        """These children with other objects at some positions, which come in order; the bounds stay."""
        ids = [(at, 1, child.object_id.to_bytes(8, "big")) for at, child in children.items()]
        sizes = [(at, 1, child.size.to_bytes(4, "big")) for at, child in children.items()]
        return Children(self.page.edited((), ids, sizes), self.bounds)

    def replaced(self, children: Sequence[Child]) -> Children:
        """A page of these children instead."""
        ids = [child.object_id.to_bytes(8, "big") for child in children]
        sizes = [child.size.to_bytes(4, "big") for child in children]
        bounds = [child.bound for child in children]
        return Children(EntryPage.made(PageRows(bounds, ids, sizes), packed=True), bounds)


NO_CHILDREN = Children(EntryPage.made(PageRows([], [], []), packed=True))


@object_type("stripe", compressed=False)
class Stripe(StoredObject, frozen=True, kw_only=True, dict=True):
    """Adjacent entries of an index. Equal entries give equal bytes."""

    entries: bytes

    def points_to(self) -> Iterable[ObjectId]:
        return self.page.object_ids()

    @memo
    def page(self) -> EntryPage:
        return EntryPage(self.entries)

    @memo
    def first_bytes(self) -> Counter[bytes]:
        """How many entries have data that begins with each byte, see ``count_first_bytes``."""
        return Counter(data[:1] for data in self.page.all_data())


@object_type("stripe-list", compressed=False)
class StripeList(StoredObject, frozen=True, kw_only=True, dict=True):
    """Adjacent stripes of an index, and changes to them: a commit spills into this list first, which spills into stripes in batches."""

    embedded: bytes
    spilled: bytes

    def points_to(self) -> Iterable[ObjectId]:
        return self.page.object_ids() + self.children.page.object_ids()

    @memo
    def page(self) -> EntryPage:
        return EntryPage(self.embedded)

    @memo
    def children(self) -> Children:
        return Children(EntryPage(self.spilled))


T = TypeVar("T", bound=StoredObject)


class IndexContainer(msgspec.Struct, frozen=True, dict=True, omit_defaults=True):
    """An index as a commit holds it: changes in the commit itself, over the list of spilled children.

    length        entries of the whole index
    embedded      a page: puts, and removals that hide what is spilled
    spilled       a page: from which key on each child holds, and its object; empty when nothing was spilled
    levels        0: nothing was spilled; 1: the children are stripes; 2: they are lists of stripes with changes of their own
    """

    length: int
    embedded: bytes
    spilled: bytes = b""
    levels: int = 0

    def points_to(self) -> Iterable[ObjectId]:
        """The objects that must stay as long as this container does: its children, and what its embedded part points to."""
        return self.page.object_ids() + self.children.page.object_ids()

    @memo
    def page(self) -> EntryPage:
        return EntryPage(self.embedded)

    @memo
    def children(self) -> Children:
        if self.levels not in (0, 1, 2) or bool(self.levels) != bool(self.spilled):
            raise CorruptionError(
                f"an index with {self.levels} levels and {len(self.spilled)} bytes of children; this release reads up to 2 levels"
            )
        return Children(EntryPage(self.spilled)) if self.spilled else NO_CHILDREN


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLimits:
    """Bytes that the embedded part of an index, and one stripe, may have before they are divided."""

    embedded_bytes: int
    stripe_bytes: int


class StripeReader(Protocol):
    """Reads stripes; a ``RealmStore`` is one."""

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | None]: ...


P = TypeVar("P", Stripe, StripeList)
_MOST = 16
_AT_ONCE = 8


def load_stripes(objects: StripeReader | None, object_ids: Sequence[ObjectId], cls: type[P]) -> list[P]:
    """Load parts of an index in one bulk read.

    raises        CorruptionError that names the part, when one is missing or damaged
    """
    present = _present(objects)
    parts = present.read_many(object_ids, cls)
    return [_opened(present, object_id, part, cls) for object_id, part in zip(object_ids, parts, strict=True)]


def load_stripe(objects: StripeReader | None, object_id: ObjectId, cls: type[P]) -> P:
    """Load one part of an index; see ``load_stripes``."""
    present = _present(objects)
    return _opened(present, object_id, present.read_many((object_id,), cls)[0], cls)


class ReadAheadWindow:
    """How many objects a range reads ahead: 1, 2, 4 ... 16, and no more than it takes for what is left to be read.

    left          how many entries are wanted yet; None: all
    """

    def __init__(self, left: int | None) -> None:
        self._left = left
        self._next = 1
        self._read = 0
        self._entries = 0

    def step(self) -> int:
        """How many objects to read now."""
        step, self._next = self._next, min(2 * self._next, _MOST)
        if self._left is not None and self._read:
            each = max(self._entries // self._read, 1)
            step = min(step, max(-(-self._left // each), 1))
        return step

    def record_read(self, objects: int, entries: int) -> None:
        """So many were read, with so many entries in the range."""
        self._read += objects
        self._entries += entries
        if self._left is not None:
            self._left -= entries


def load_ahead(
    objects: StripeReader | None, object_ids: Sequence[ObjectId], cls: type[P], pace: ReadAheadWindow
) -> Iterator[P]:
    """Yield parts one after another, reading ahead in growing bulks."""
    at = 0
    while at < len(object_ids):
        step = pace.step()
        yield from load_stripes(objects, object_ids[at : at + step], cls)
        at += step


def _present(objects: StripeReader | None) -> StripeReader:
    if objects is None:
        raise CorruptionError("an index with spilled parts was opened without the objects that hold them")
    return objects


def _opened(objects: StripeReader, object_id: ObjectId, part: P | None, cls: type[P]) -> P:
    """Check that a part exists and holds a page of this release."""
    fault: Exception | None = None
    if part is not None:
        if vars(part):  # it was opened before
            return part
        try:
            assert part.page
            return part
        except CorruptionError as raised:
            fault = raised
    realm = getattr(objects, "realm", None)
    place = "" if realm is None else f" in realm {realm!r}"
    raise CorruptionError(
        f"{cls.type_name} {id_text(object_id)} of an index{place}: {fault or 'it is not there'}. Run `headwater fsck`"
    ) from fault


class SharedIndexScan:
    """Visits indexes one after another and yields the data of their entries.

    An entry that an index hides (by a change above its stripe) is not yielded for that index. So a stripe of which an index hides
    nothing is yielded in full, once; other stripes are yielded again for each index that hides some of their entries.

    is_new        records an object, and returns whether this was the first time
    was_met       returns whether an object was recorded
    """

    def __init__(
        self, objects: StripeReader, *, is_new: Callable[[ObjectId], bool], was_met: Callable[[ObjectId], bool]
    ) -> None:
        self._objects = objects
        self._is_new = is_new
        self._was_met = was_met

    def data(self, container: IndexContainer) -> Iterator[Sequence[bytes]]:
        """The data of the entries of an index, in no order, in batches; without those in stripes that were yielded in full.

        raises        CorruptionError when a part is missing or damaged
        """
        yield _alive(container.page, ())
        hidden = _keys(container.page)
        if container.levels == 1:
            yield from self._stripes(container.children, hidden)
        elif container.levels == 2:
            yield from self._lists(container.children, hidden)

    def _lists(self, children: Children, hidden: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        for some in _handfuls(self._wanted(children, hidden)):
            ids = [object_id for object_id, _ in some]
            for (object_id, above), stripes in zip(some, load_stripes(self._objects, ids, StripeList), strict=True):
                yield _alive(stripes.page, above)
                yield from self._stripes(stripes.children, sorted({*above, *_keys(stripes.page)}))
                if not above:
                    self._is_new(object_id)

    def _stripes(self, children: Children, hidden: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        for some in _handfuls(self._wanted(children, hidden)):
            ids = [object_id for object_id, _ in some]
            for (object_id, above), stripe in zip(some, load_stripes(self._objects, ids, Stripe), strict=True):
                yield _alive(stripe.page, above) if above else stripe.page.all_data()
                if not above:
                    self._is_new(object_id)

    def _wanted(self, children: Children, hidden: Sequence[bytes]) -> list[_Hidden]:
        """The children that were not yielded in full yet, each with the keys above it that hide its entries."""
        return [(object_id, above) for object_id, above in _below(children, hidden) if not self._was_met(object_id)]


_Hidden = tuple[ObjectId, Sequence[bytes]]
"""A child, and the keys above it that hide its entries."""


def _below(children: Children, hidden: Sequence[bytes]) -> list[_Hidden]:
    ends = [bisect_left(hidden, bound) for bound in children.bounds[1:]]
    spans = zip([0, *ends], [*ends, len(hidden)], strict=True)
    return [(object_id, hidden[start:end]) for object_id, (start, end) in zip(children.object_ids, spans, strict=True)]


def count_first_bytes(objects: StripeReader, container: IndexContainer) -> Counter[bytes]:
    """How many entries of an index have data that begins with each byte; without data, under ``b""``.

    Reads every stripe that is not cached, and decodes no key but those that changes hide. A stripe is counted once while it is cached.

    raises        CorruptionError when a part is missing or damaged
    """
    counted = Counter(data[:1] for data in _alive(container.page, ()))
    above = _keys(container.page)
    if container.levels == 1:
        _count_stripes(objects, container.children, above, counted)
    elif container.levels == 2:
        for some in _handfuls(_below(container.children, above)):
            ids = [object_id for object_id, _ in some]
            for (_, hidden), stripes in zip(some, load_stripes(objects, ids, StripeList), strict=True):
                counted.update(data[:1] for data in _alive(stripes.page, hidden))
                _count_stripes(objects, stripes.children, sorted({*hidden, *_keys(stripes.page)}), counted)
    return +counted


def _count_stripes(objects: StripeReader, children: Children, above: Sequence[bytes], counted: Counter[bytes]) -> None:
    for some in _handfuls(_below(children, above)):
        for (_, hidden), stripe in zip(some, load_stripes(objects, [object_id for object_id, _ in some], Stripe), strict=True):
            counted.update(stripe.first_bytes)
            gone = (at for key in hidden if (at := stripe.page.position(key)) >= 0)
            counted.subtract(stripe.page.data(at)[:1] for at in gone)


def _alive(page: EntryPage, hidden: Sequence[bytes]) -> list[bytes]:
    """The data of a page's entries, without removals and without what is hidden."""
    gone = {page.position(key) for key in hidden}
    values = page.values(0, page.count)
    return [value.data for at, value in enumerate(values) if value is not None and at not in gone]


def _keys(page: EntryPage) -> list[bytes]:
    return page.keys.between(0, page.count)


def _handfuls(wanted: list[_Hidden]) -> Iterator[list[_Hidden]]:
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]
