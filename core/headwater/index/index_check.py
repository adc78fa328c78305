"""Checks the structure of an index: keys ascend and are unique, every key is under the child that searches look in, counts match."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import pairwise

from headwater.errors import CorruptionError
from headwater.index.index_nodes import (
    Child,
    Children,
    EntryPage,
    IndexContainer,
    Stripe,
    StripeList,
    StripeReader,
    load_stripes,
)
from headwater.index.ordered_index import Index
from headwater.store import ObjectId, id_text

_AT_ONCE = 32
"""Stripes that are read together: usually half a MiB, at most 4 MiB."""
_Range = tuple[bytes | None, bytes | None]


class IndexChecker:
    """Checks indexes of one realm. A stripe at the same place in several indexes is checked once."""

    def __init__(self, objects: StripeReader) -> None:
        self._objects = objects
        self._seen: set[tuple[ObjectId, bytes | None, bytes | None]] = set()
        self._counted: set[bytes] = set()

    def faults(self, container: IndexContainer) -> Iterator[str]:
        """Yield the faults of an index, each as half a sentence; none if it is sound."""
        try:
            yield from self._structure(container)
            name = hashlib.blake2b(container.spilled + container.embedded, digest_size=16).digest()
            if name not in self._counted:
                self._counted.add(name)
                yield from _count(Index(container, self._objects), container.length)
        except CorruptionError as fault:
            yield str(fault)

    def _structure(self, container: IndexContainer) -> Iterator[str]:
        yield from _unordered(container.page, "its embedded part")
        children = container.children
        if container.levels == 1:
            yield from self._stripes(children, (None, None))
        elif container.levels == 2:
            yield from _bounds(children, (None, None))
            for child, within in self._fresh(children, (None, None)):
                yield from self._list(child, within)

    def _list(self, child: Child, within: _Range) -> Iterator[str]:
        [stripes] = load_stripes(self._objects, [child.object_id], StripeList)
        where = f"its list {id_text(child.object_id)}"
        yield from _unordered(stripes.page, where)
        yield from _outside(stripes.page, within, where)
        if child.size != len(stripes.children):
            yield f"{where} has {len(stripes.children)} stripes; {child.size} are noted"
        yield from self._stripes(stripes.children, within)

    def _stripes(self, children: Children, within: _Range) -> Iterator[str]:
        yield from _bounds(children, within)
        fresh = list(self._fresh(children, within))
        for start in range(0, len(fresh), _AT_ONCE):
            some = fresh[start : start + _AT_ONCE]
            for (child, inside), stripe in zip(
                some, load_stripes(self._objects, [c.object_id for c, _ in some], Stripe), strict=True
            ):
                where = f"its stripe {id_text(child.object_id)}"
                yield from _unordered(stripe.page, where)
                yield from _outside(stripe.page, inside, where)
                if child.size != len(stripe.entries):
                    yield f"{where} has {len(stripe.entries)} bytes; {child.size} are noted"

    def _fresh(self, children: Children, within: _Range) -> Iterator[tuple[Child, _Range]]:
        """The children that were not checked at the same place before, each with the range of keys that searches look for in it."""
        every = children.all()
        ends: Sequence[bytes | None] = [*(child.bound for child in every[1:]), within[1]]
        for at, (child, end) in enumerate(zip(every, ends, strict=True)):
            inside = (child.bound if at else within[0], end)
            if (child.object_id, *inside) not in self._seen:
                self._seen.add((child.object_id, *inside))
                yield child, inside


def _unordered(page: EntryPage, where: str) -> Iterator[str]:
    keys = page.keys.between(0, page.count)
    if len(keys) != page.count:
        yield f"{where} has {len(keys)} keys; {page.count} are noted"
    if any(before >= after for before, after in pairwise(keys)):
        yield f"the keys of {where} do not ascend"


def _outside(page: EntryPage, within: _Range, where: str) -> Iterator[str]:
    """Keys that no search finds, because it looks in another child."""
    if not page.count:
        return
    [first] = page.keys.between(0, 1)
    [last] = page.keys.between(page.count - 1, page.count)
    start, end = within
    if (start is not None and first < start) or (end is not None and last >= end):
        yield f"{where} holds keys from {first!r} to {last!r}, beyond its bounds {start!r} to {end!r}"


def _bounds(children: Children, within: _Range) -> Iterator[str]:
    bounds = children.bounds
    if any(before >= after for before, after in pairwise(bounds)):
        yield "the bounds of its children do not ascend"
    start, end = within
    inner = bounds[1:]
    if inner and ((start is not None and inner[0] < start) or (end is not None and inner[-1] >= end)):
        yield f"the bounds of a list go from {inner[0]!r} to {inner[-1]!r}, beyond its own {start!r} to {end!r}"


def _count(index: Index, length: int) -> Iterator[str]:
    count, before = 0, None
    for key in index.keys():  # noqa: SIM118 - not a dictionary
        if before is not None and before >= key:
            yield f"its keys do not ascend at {bytes(key)!r}"
            return
        count, before = count + 1, key
    if count != length:
        yield f"it has {count} entries; {length} are noted"
