"""The difference between two indexes. Stripes and lists of stripes that both share are not read.

    before   [ changes ][ stripe 1 ][ stripe 2 ][ stripe 3 ]
    after    [ changes ][ stripe 1 ][ stripe 4 ][ stripe 3 ]      keys to be compared: of 2, of 4, and of both sets of changes

A key that differs is in the changes above the stripes of at least one index, or in a stripe that they do not share: otherwise both
would read it from the same stripe. So it does not matter whether a shared stripe has the same neighbors in both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice
from typing import NamedTuple

from headwater.index.index_nodes import (
    EntryPage,
    IndexContainer,
    IndexValue,
    ReadAheadWindow,
    Stripe,
    StripeList,
    load_ahead,
    load_stripes,
)
from headwater.index.ordered_index import Index, IndexEditor
from headwater.store import ObjectId

_FIRST, _MOST = 64, 4096
"""Keys that are compared together: few at first, for callers that want only one page."""


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
    step = _FIRST
    while some := list(islice(keys, step)):
        then, now = before._find_many(some), after._find_many(some)
        yield from (IndexDifference(key, then[key], now[key]) for key in some if then[key] != now[key])
        step = min(4 * step, _MOST)


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


def _candidates(one: _Side, other: _Side) -> Iterator[Iterator[bytes]]:
    """Streams of keys in order, with every key that may differ in one of them at least."""
    if one.start is not None and one.end is not None and one.start >= one.end:
        return
    stripes: list[list[ObjectId]] = []
    shared_lists = _shared_lists(one, other)
    for side in (one, other):
        yield iter(side.edited)
        yield iter(side.keys(side.container.page))
        found = side.below(side.container) if side.container.levels else []
        if side.container.levels == 2:
            lists = load_stripes(side.index._objects, [i for i in found if i not in shared_lists], StripeList)
            yield from (iter(side.keys(opened.page)) for opened in lists)
            found = [stripe for opened in lists for stripe in side.below(opened)]
        stripes.append(found)
    shared = set(stripes[0]).intersection(stripes[1])
    for side, found in zip((one, other), stripes, strict=True):
        yield side.stripe_keys([i for i in found if i not in shared])


def _shared_lists(one: _Side, other: _Side) -> frozenset[ObjectId]:
    if one.container.levels != 2 or other.container.levels != 2:
        return frozenset()
    return frozenset(one.below(one.container)).intersection(other.below(other.container))
