"""Spills an index into stripes: changes go into the embedded part, and what is too much for it moves into the children.

Also divides stripes that became too large, and merges small ones. The planning functions are pure; only ``_Spill`` reads.

    commit    recent changes · bounds of lists
    list      older changes         · bounds of stripes          as many lists as a list has stripes, about
    stripe    entries

Changes that leave the commit go into a few lists, and only those that are too many for a list go on into a few of its stripes. A key
that is set is written to its commit at once, to a list later, and to a stripe later still. While there are few stripes, there are no
lists: the commit holds the bounds of the stripes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isqrt
from typing import Generic, Protocol, Self, TypeVar

from headwater.index.index_nodes import (
    EMPTY,
    NO_CHILDREN,
    NO_PAGE,
    Change,
    Child,
    Children,
    EntryPage,
    IndexContainer,
    IndexLimits,
    PageRows,
    Stripe,
    StripeList,
    StripeReader,
    id_row,
    load_stripes,
    remember,
)
from headwater.index.page_columns import common
from headwater.store import ObjectId, StoredObject

_FIRST_GUESS = 0.4
"""What is left of a key's bytes when it is packed: a guess for the first stripe, measured from then on."""
_FULL = 0.87
"""How much of its limit a stripe gets: ids of later commits share fewer bytes than those of one, and take their place."""
_ENOUGH = 0.85
_TRIES = 3
"""A stripe that became smaller than so much of what it was cut for is cut again, so many times in all."""
_HEAD = 40
"""Bytes of a stripe that are not of its entries."""


@dataclass(frozen=True, slots=True)
class StripePiece:
    """A stripe to be: from which key on it holds, and its entries."""

    bound: bytes
    page: EntryPage

    @property
    def size(self) -> int:
        return len(self.page.raw)

    def begun_at(self, bound: bytes) -> StripePiece:
        return StripePiece(bound, self.page)


def changed_pieces(bound: bytes, page: EntryPage | None, changes: Sequence[Change], limit_bytes: int) -> list[StripePiece]:
    """The stripes that replace a stripe (None: there is none yet) after changes; none if it has no entries left."""
    if page is not None and all(value is not None and page.position(key) >= 0 for key, value in changes):
        updated = page.changed(changes)  # the same keys: their bytes stay as they are
        if len(updated.raw) <= limit_bytes or page.count == 1:
            return [StripePiece(bound, updated)]
        return list(cut_pieces(bound, updated.rows(), limit_bytes, is_appended=False))
    rows = PageRows([], [], []) if page is None else page.rows()
    is_appended = not rows.keys or changes[0][0] > rows.keys[-1]
    return list(cut_pieces(bound, _pieces_laid_over(rows, changes), limit_bytes, is_appended=is_appended))


def merge_pieces(left: StripePiece, right: StripePiece) -> StripePiece:
    """Two neighbouring stripes as one."""
    return StripePiece(left.bound, EntryPage.made(left.page.rows().joined(right.page.rows()), packed=True))


def cut_pieces(bound: bytes, rows: PageRows, limit_bytes: int, *, is_appended: bool) -> Iterator[StripePiece]:
    """Stripes of these entries, none beyond the limit but where a single entry is.

    is_appended   the entries grow at their end, as in loads in key order: all stripes but the last are filled. Otherwise they are even
    """
    scale = _Scale(rows)
    at, count = 0, len(rows.keys)
    while at < count:
        end, page = _piece(rows, scale, at, limit_bytes, is_appended)
        yield StripePiece(shortest_bound(rows.keys[at - 1], rows.keys[at]) if at else bound, page)
        at = end


def _piece(rows: PageRows, scale: _Scale, at: int, limit_bytes: int, is_appended: bool) -> tuple[int, EntryPage]:
    """Make the stripe that begins at a position. Returns it and its end. Packed sizes show only by packing, so it takes a few tries."""
    count, room = len(rows.keys), limit_bytes * _FULL - _HEAD
    for _ in range(_TRIES):
        total = scale.weigh(at, count)
        target = room if is_appended or total <= room else total / -(-total // room)
        end = count if total <= target else scale.reach(at, target)
        page = EntryPage.made(rows.part(at, end), packed=True)
        scale.learn(at, end, page)
        if end == count or _ENOUGH * (target + _HEAD) <= len(page.raw) <= limit_bytes:
            break
    while len(page.raw) > limit_bytes and end > at + 1:
        end = at + (end - at) * 3 // 4
        page = EntryPage.made(rows.part(at, end), packed=True)
    return end, page


class _Scale:
    """Estimates the size of entries in a stripe before they are packed."""

    def __init__(self, rows: PageRows) -> None:
        self._keys = list(accumulate(map(len, rows.keys), initial=0))
        self._data = list(accumulate(map(len, rows.data), initial=0))
        self._key, self._entry = _FIRST_GUESS, 8.0

    def weigh(self, start: int, end: int) -> float:
        keys, data = self._keys, self._data
        return data[end] - data[start] + self._entry * (end - start) + self._key * (keys[end] - keys[start])

    def reach(self, start: int, target: float) -> int:
        """The position at which entries from ``start`` on reach the target size; at least one entry."""
        places = range(start + 1, len(self._keys))
        return start + max(bisect_right(places, target, key=lambda end: self.weigh(start, end)), 1)

    def learn(self, start: int, end: int, page: EntryPage) -> None:
        """Adjust the estimate by a stripe that was made of these entries."""
        self._key = page.key_bytes / (self._keys[end] - self._keys[start])
        columns = len(page.raw) - page.key_bytes - _HEAD
        self._entry = (columns - self._data[end] + self._data[start]) / (end - start)


def shortest_bound(before: bytes, key: bytes) -> bytes:
    """The shortest bytes that come after one key and not after another."""
    return key[: common(before, key) + 1]


def _pieces_laid_over(rows: PageRows, changes: Sequence[Change]) -> PageRows:
    """The entries after changes, which come in key order."""
    keys: list[bytes] = []
    ids: list[bytes] = []
    data: list[bytes] = []
    at, old = 0, rows.keys
    for key, value in changes:
        place = bisect_right(old, key, at)
        is_there = place > at and old[place - 1] == key
        stop = place - is_there
        keys += old[at:stop]
        ids += rows.ids[at:stop]
        data += rows.data[at:stop]
        if value is not None:
            keys.append(key)
            ids.append(id_row(value.object_id))
            data.append(value.data)
        at = place
    return PageRows(keys + old[at:], ids + rows.ids[at:], data + rows.data[at:])


@dataclass(frozen=True, slots=True)
class SpillMove:
    """The entries of an embedded part that belong to one child: positions from ``start`` to ``end``."""

    child: int
    start: int
    end: int


def plan_spill(page: EntryPage, children: Children, *, limit_bytes: int, target_bytes: int) -> list[SpillMove]:
    """The fullest ranges of an embedded part, most entries first, until the rest has at most the target. In the order of children.

    Where one entry alone takes more than a quarter of the limit, its range moves in any case.
    """
    ranges = _ranges(page, children)
    chosen = [move for move in ranges if _has_large(page, move, limit_bytes)] if has_large(page, limit_bytes) else []
    left = len(page.raw) - sum(page.size(move.start, move.end) for move in chosen)
    if left > limit_bytes:
        for move in sorted(ranges, key=lambda move: move.start - move.end):
            if left <= target_bytes:
                break
            if move not in chosen:
                chosen.append(move)
                left -= page.size(move.start, move.end)
    return sorted(chosen, key=lambda move: move.child)


def has_large(page: EntryPage, limit_bytes: int) -> bool:
    """Whether an entry is too large to stay embedded: it takes more than a quarter of what may."""
    return page.longest() > limit_bytes // 4 and _has_large(page, SpillMove(0, 0, page.count), limit_bytes)


def neighbours(page: EntryPage, children: Children, moves: Sequence[SpillMove], *, small: int, shrink: int) -> list[int]:
    """Unchanged children to read as well, because their changing neighbors may become so small that they should be merged.

    small         below which a child is small, in the measure of ``Child.size``
    shrink        by how much one removal may make a child smaller
    """
    if len(children) < 2:
        return []
    changing = {move.child for move in moves}
    nearby = set()
    for move in moves:
        removals = page.removals(move.start, move.end) if shrink else 0
        if children.size(move.child) - shrink * removals < small:
            beside = [at for at in (move.child - 1, move.child + 1) if 0 <= at < len(children)]
            if changing.isdisjoint(beside):
                nearby.add(min(beside, key=children.size))
    return sorted(nearby)


def _ranges(page: EntryPage, children: Children) -> list[SpillMove]:
    """All ranges with entries."""
    keys = page.keys.between(0, page.count)
    starts = [0, *(bisect_left(keys, bound) for bound in children.bounds[1:])]
    ends = [*starts[1:], len(keys)]
    return [SpillMove(at, start, end) for at, (start, end) in enumerate(zip(starts, ends, strict=True)) if start < end]


def _has_large(page: EntryPage, move: SpillMove, limit_bytes: int) -> bool:
    return any(page.size(at, at + 1) > limit_bytes // 4 for at in range(move.start, move.end))


_DIRECT = 64
"""Stripes beyond which a commit has lists of stripes."""
_FEWEST, _MOST = 32, 1024
"""Stripes that a list has when there are few lists, and at most."""
_SMALL_LIST = 4
"""Stripes below which a list is merged with another."""
_TARGET = 0.8
"""Of the limit: what stays of an embedded part that was too large. Measured with a million entries: 0.95 makes the costliest one in a
hundred commits half as large, and 0.75 a fifth larger; what all commits write together is the same within a few percent."""
_REMOVAL_BYTES = 128
"""What a removal may free in a stripe: a guess on the high side."""

Written = list[tuple[ObjectId, StoredObject]]


class _Part(Protocol):
    @property
    def bound(self) -> bytes: ...
    @property
    def size(self) -> int: ...
    def begun_at(self, bound: bytes) -> Self: ...


P = TypeVar("P", bound=_Part)


@dataclass(frozen=True, slots=True)
class _Merging(Generic[P]):
    """The rule for merging two parts: one is smaller than ``small``, and together they are at most ``most``."""

    small: int
    most: int
    merge: Callable[[P, P], P]


@dataclass(frozen=True, slots=True)
class _Node:
    """A list of stripes to be, or the top: changes over children."""

    bound: bytes
    page: EntryPage
    children: Children

    @property
    def size(self) -> int:
        return len(self.children)

    def begun_at(self, bound: bytes) -> _Node:
        return _Node(bound, self.page, self.children)


def settled(
    container: IndexContainer,
    length: int,
    changes: Sequence[Change],
    objects: StripeReader | None,
    new_ids: Callable[[int], list[ObjectId]],
    limits: IndexLimits,
) -> tuple[IndexContainer, Written]:
    """The container after changes, and the objects that must be written with it.

    length        entries of the index after the changes
    raises        CorruptionError when a part that must be read is missing or damaged; nothing was written
    """
    if not changes:
        return container, []
    if not length:
        return IndexContainer(0, EMPTY), []
    page = container.page.changed(changes, keeps_removals=container.levels > 0)
    top = _Node(b"", page, container.children)
    return _within_limits(length, top, container.levels, _Spill(objects, new_ids, limits))


def settled_anew(
    rows: PageRows, new_ids: Callable[[int], list[ObjectId]], limits: IndexLimits
) -> tuple[IndexContainer, Written]:
    """The container of a new index with these entries, which come in key order, each key once, and the objects to be written with it."""
    if not rows.keys:
        return IndexContainer(0, EMPTY), []
    top = _Node(b"", EntryPage.made(rows, packed=False), NO_CHILDREN)
    return _within_limits(len(rows.keys), top, 0, _Spill(None, new_ids, limits))


def _within_limits(length: int, top: _Node, levels: int, spill: _Spill) -> tuple[IndexContainer, Written]:
    if _is_over(top.page, spill.limits.embedded_bytes):
        top, levels = spill.through_lists(top) if levels == 2 else spill.into_stripes_of_top(top)
    return _container(length, top, levels), spill.written


def _container(length: int, top: _Node, levels: int) -> IndexContainer:
    spilled = top.children.page.raw if levels else b""
    container = IndexContainer(length, top.page.raw, spilled, levels)
    remember(container, page=top.page, children=top.children)
    return container


def _is_over(page: EntryPage, limit_bytes: int) -> bool:
    return len(page.raw) > limit_bytes or has_large(page, limit_bytes)


class _Spill:
    """One spill: reads each level in one bulk read, and collects the objects to write."""

    def __init__(self, objects: StripeReader | None, new_ids: Callable[[int], list[ObjectId]], limits: IndexLimits) -> None:
        self._objects = objects
        self._new_ids = new_ids
        self.limits = limits
        self.written: Written = []

    def into_stripes_of_top(self, top: _Node) -> tuple[_Node, int]:
        (top,) = self._into_stripes([top])
        if len(top.children) <= _DIRECT:
            return top, 1
        each = max(_FEWEST, isqrt(len(top.children)))
        lists = _divided(_Node(b"", NO_PAGE, top.children), each, is_last=False)
        return _Node(b"", top.page, NO_CHILDREN.replaced(self._write_lists(lists))), 2

    def through_lists(self, top: _Node) -> tuple[_Node, int]:
        moves = self._plan(top)
        beside = neighbours(top.page, top.children, moves, small=_SMALL_LIST, shrink=0)
        wanted = [*(move.child for move in moves), *beside]
        lists = load_stripes(self._objects, [top.children.object_ids[at] for at in wanted], StripeList)
        lists_at = dict(zip(wanted, lists, strict=True))
        nodes = {at: _Node(top.children.bounds[at], lists_at[at].page, lists_at[at].children) for at in beside}
        changed = []
        for move in moves:
            page = lists_at[move.child].page.changed(top.page.between(move.start, move.end), keeps_removals=True)
            changed.append(_Node(top.children.bounds[move.child], page, lists_at[move.child].children))
        over = [at for at, node in enumerate(changed) if _is_over(node.page, self.limits.embedded_bytes)]
        for at, node in zip(over, self._into_stripes([changed[at] for at in over]), strict=True):
            changed[at] = node
        most = min(max(_FEWEST * 3 // 2, len(top.children) * 4 // 3), _MOST)
        after: dict[int, list[_Node]] = {
            move.child: _divided(node, most, is_last=move.child == len(top.children) - 1)
            if node.size > most
            else [node][: node.size]
            for move, node in zip(moves, changed, strict=True)
        }
        rest = top.page.without([(move.start, move.end) for move in moves])
        merging = _Merging(_SMALL_LIST, most // 2, _joined)
        children = self._replaced(top, after, nodes, self._write_lists, merging)
        return _Node(b"", rest, children), 2

    def _into_stripes(self, nodes: Sequence[_Node]) -> list[_Node]:
        """Move the fullest ranges of nodes into their stripes. One bulk read for all."""
        small = self.limits.stripe_bytes // 4
        moves = [self._plan(node) for node in nodes]
        beside = [
            neighbours(node.page, node.children, planned, small=small, shrink=_REMOVAL_BYTES)
            for node, planned in zip(nodes, moves, strict=True)
        ]
        wanted = [
            node.children.object_ids[at]
            for node, planned, extra in zip(nodes, moves, beside, strict=True)
            if len(node.children)
            for at in (*(move.child for move in planned), *extra)
        ]
        pages = {i: s.page for i, s in zip(wanted, load_stripes(self._objects, wanted, Stripe) if wanted else [], strict=True)}
        return [
            self._into_own_stripes(node, planned, extra, pages)
            for node, planned, extra in zip(nodes, moves, beside, strict=True)
        ]

    def _into_own_stripes(
        self, node: _Node, moves: Sequence[SpillMove], beside: Sequence[int], pages: dict[ObjectId, EntryPage]
    ) -> _Node:
        after: dict[int, list[StripePiece]] = {}
        limit = self.limits.stripe_bytes
        for move in moves:
            changes = node.page.between(move.start, move.end)
            if len(node.children):
                child = node.children[move.child]
                after[move.child] = changed_pieces(child.bound, pages[child.object_id], changes, limit)
            else:
                after[0] = changed_pieces(node.bound, None, changes, limit)
        loaded = {at: StripePiece(node.children.bounds[at], pages[node.children.object_ids[at]]) for at in beside}
        rest = node.page.without([(move.start, move.end) for move in moves])
        merging = _Merging(limit // 4, limit * 3 // 4, merge_pieces)
        children = self._replaced(node, after, loaded, self._write_stripes, merging)
        return _Node(node.bound, rest, children)

    def _plan(self, node: _Node) -> list[SpillMove]:
        limit = self.limits.embedded_bytes
        return plan_spill(node.page, node.children, limit_bytes=limit, target_bytes=int(limit * _TARGET))

    def _replaced(
        self,
        node: _Node,
        after: Mapping[int, Sequence[P]],
        beside: Mapping[int, P],
        write: Callable[[Sequence[P]], list[Child]],
        merging: _Merging[P],
    ) -> Children:
        """The children of a node after some of them became others. The first one has its bound, whatever was first before.

        after         what each changed child became: nothing, one, or several
        beside        unchanged ones that small ones may be merged with
        """
        children = node.children
        if len(children) and not beside and all(len(parts) == 1 and parts[0].size >= merging.small for parts in after.values()):
            written = write([parts[0] for parts in after.values()])
            return children.updated(dict(zip(after, written, strict=True)))
        parts: list[Child | P] = []
        for at, child in enumerate(children.all()):
            parts += after.get(at, [beside.get(at, child)])
        if not len(children):
            parts += after[0]
        parts = _merged(parts, merging)
        unchanged = {id(part): children[at] for at, part in beside.items()}
        known = [unchanged.get(id(part), part) for part in parts]
        if known:
            known[0] = known[0].begun_at(node.bound)
        new = iter(write([part for part in known if not isinstance(part, Child)]))
        return children.replaced([part if isinstance(part, Child) else next(new) for part in known])

    def _write_stripes(self, pieces: Sequence[StripePiece]) -> list[Child]:
        children = []
        for piece, object_id in zip(pieces, self._ids_for(pieces), strict=True):
            stripe = Stripe(entries=piece.page.raw)
            remember(stripe, page=piece.page)
            self.written.append((object_id, stripe))
            children.append(Child(piece.bound, object_id, piece.size))
        return children

    def _write_lists(self, nodes: Sequence[_Node]) -> list[Child]:
        children = []
        for node, object_id in zip(nodes, self._ids_for(nodes), strict=True):
            stripes = StripeList(embedded=node.page.raw, spilled=node.children.page.raw)
            remember(stripes, page=node.page, children=node.children)
            self.written.append((object_id, stripes))
            children.append(Child(node.bound, object_id, node.size))
        return children

    def _ids_for(self, parts: Sequence[object]) -> list[ObjectId]:
        return self._new_ids(len(parts)) if parts else []


def _merged(parts: Sequence[Child | P], merging: _Merging[P]) -> list[Child | P]:
    """Merge small parts with the one before, as far as both were read."""
    after: list[Child | P] = []
    for part in parts:
        before = after[-1] if after else None
        if before is None or isinstance(before, Child) or isinstance(part, Child):
            after.append(part)
        elif min(before.size, part.size) < merging.small and before.size + part.size <= merging.most:
            after[-1] = merging.merge(before, part)
        else:
            after.append(part)
    return after


def _joined(left: _Node, right: _Node) -> _Node:
    """Two neighbouring lists as one. The bound of the right one is that of its first stripe."""
    page = EntryPage.made(left.page.rows().joined(right.page.rows()), packed=False)
    return _Node(left.bound, page, left.children.replaced([*left.children.all(), *right.children.all()]))


def _divided(node: _Node, most: int, *, is_last: bool) -> list[_Node]:
    """Divide a list into lists of at most ``most`` stripes, each with its share of the changes.

    is_last       this is the last list, to which loads in key order append: all lists but the last are filled. Otherwise they are even
    """
    children, rows = node.children.all(), node.page.rows()
    count = -(-len(children) // most)
    cuts = [min(most * at, len(children)) if is_last else len(children) * at // count for at in range(count + 1)]
    nodes, start = [], 0
    for first, last in pairwise(cuts):
        end = bisect_left(rows.keys, children[last].bound) if last < len(children) else len(rows.keys)
        bound = children[first].bound if first else node.bound
        page = EntryPage.made(rows.part(start, end), packed=False)
        nodes.append(_Node(bound, page, NO_CHILDREN.replaced(children[first:last])))
        start = end
    return nodes
