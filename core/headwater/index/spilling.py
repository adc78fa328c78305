"""How an index settles into bytes: changes go into the embedded part, and what is too much for it into stripes.

    commit    changes of lately · bounds of lists
    list      changes of a while ago · bounds of stripes          as many lists as a list has stripes, about
    stripe    entries

What leaves the commit goes into a few lists, and only what is too much for one of these goes on into a few of its stripes: a key that
is set writes its commit at once, its share of a list later, its share of a stripe later still. While there are few stripes, there are
no lists: the commit has the bounds of the stripes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt
from typing import Generic, Protocol, Self, TypeVar

from headwater.index.children import NO_CHILDREN, Child, Children
from headwater.index.containers import IndexContainer, Limits, Objects
from headwater.index.loading import load
from headwater.index.memo import remember
from headwater.index.pages import EMPTY, NO_PAGE, Page, Rows
from headwater.index.pieces import Piece, changed_pieces, merged
from headwater.index.planning import Move, has_large, neighbours, plan
from headwater.index.stripes import Stripe, StripeList
from headwater.index.values import Change
from headwater.store import ObjectId, StoredObject

__all__ = ["settled", "settled_anew"]

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
    """Which parts go together: one is smaller than ``small``, and both have no more than ``most``."""

    small: int
    most: int
    merge: Callable[[P, P], P]


@dataclass(frozen=True, slots=True)
class _Node:
    """A list of stripes to be, or the top: changes over children."""

    bound: bytes
    page: Page
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
    objects: Objects | None,
    new_ids: Callable[[int], list[ObjectId]],
    limits: Limits,
) -> tuple[IndexContainer, Written]:
    """The container after changes, and the objects that must be written with it.

    length        entries of the index after the changes
    raises        UnreadableError when a part that must be read is missing or damaged; nothing was written
    """
    if not changes:
        return container, []
    if not length:
        return IndexContainer(0, EMPTY), []
    page = container.page.changed(changes, keeps_removals=container.levels > 0)
    top = _Node(b"", page, container.children)
    return _within_limits(length, top, container.levels, _Spill(objects, new_ids, limits))


def settled_anew(rows: Rows, new_ids: Callable[[int], list[ObjectId]], limits: Limits) -> tuple[IndexContainer, Written]:
    """As ``settled``, for an index of these entries, which come in key order, each key once."""
    if not rows.keys:
        return IndexContainer(0, EMPTY), []
    top = _Node(b"", Page.made(rows, packed=False), NO_CHILDREN)
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


def _is_over(page: Page, limit_bytes: int) -> bool:
    return len(page.raw) > limit_bytes or has_large(page, limit_bytes)


class _Spill:
    """One spill: reads a level in one go, and collects what is to be written."""

    def __init__(self, objects: Objects | None, new_ids: Callable[[int], list[ObjectId]], limits: Limits) -> None:
        self._objects = objects
        self._new_ids = new_ids
        self.limits = limits
        self.written: Written = []

    # the top

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
        lists = load(self._objects, [top.children.object_ids[at] for at in wanted], StripeList)
        found = dict(zip(wanted, lists, strict=True))
        nodes = {at: _Node(top.children.bounds[at], found[at].page, found[at].children) for at in beside}
        changed = []
        for move in moves:
            page = found[move.child].page.changed(top.page.between(move.start, move.end), keeps_removals=True)
            changed.append(_Node(top.children.bounds[move.child], page, found[move.child].children))
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

    # stripes

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
        pages = {i: s.page for i, s in zip(wanted, load(self._objects, wanted, Stripe) if wanted else [], strict=True)}
        return [
            self._into_own_stripes(node, planned, extra, pages)
            for node, planned, extra in zip(nodes, moves, beside, strict=True)
        ]

    def _into_own_stripes(
        self, node: _Node, moves: Sequence[Move], beside: Sequence[int], pages: dict[ObjectId, Page]
    ) -> _Node:
        after: dict[int, list[Piece]] = {}
        limit = self.limits.stripe_bytes
        for move in moves:
            changes = node.page.between(move.start, move.end)
            if len(node.children):
                child = node.children[move.child]
                after[move.child] = changed_pieces(child.bound, pages[child.object_id], changes, limit)
            else:
                after[0] = changed_pieces(node.bound, None, changes, limit)
        loaded = {at: Piece(node.children.bounds[at], pages[node.children.object_ids[at]]) for at in beside}
        rest = node.page.without([(move.start, move.end) for move in moves])
        merging = _Merging(limit // 4, limit * 3 // 4, merged)
        children = self._replaced(node, after, loaded, self._write_stripes, merging)
        return _Node(node.bound, rest, children)

    # both

    def _plan(self, node: _Node) -> list[Move]:
        limit = self.limits.embedded_bytes
        return plan(node.page, node.children, limit_bytes=limit, target_bytes=int(limit * _TARGET))

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

    def _write_stripes(self, pieces: Sequence[Piece]) -> list[Child]:
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
    """Small parts go together with the one before, as far as both were read."""
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
    page = Page.made(left.page.rows().joined(right.page.rows()), packed=False)
    return _Node(left.bound, page, left.children.replaced([*left.children.all(), *right.children.all()]))


def _divided(node: _Node, most: int, *, is_last: bool) -> list[_Node]:
    """Lists with at most so many stripes; each with its part of the changes.

    is_last       it is the last list, which loads in key order append to: all but its rest are filled. Otherwise they are even
    """
    children, rows = node.children.all(), node.page.rows()
    count = -(-len(children) // most)
    cuts = [min(most * at, len(children)) if is_last else len(children) * at // count for at in range(count + 1)]
    nodes, start = [], 0
    for first, last in pairwise(cuts):
        end = bisect_left(rows.keys, children[last].bound) if last < len(children) else len(rows.keys)
        bound = children[first].bound if first else node.bound
        page = Page.made(rows.part(start, end), packed=False)
        nodes.append(_Node(bound, page, NO_CHILDREN.replaced(children[first:last])))
        start = end
    return nodes
