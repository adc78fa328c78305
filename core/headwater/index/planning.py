"""What moves from an embedded part into the children. Pure: nothing is loaded here."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from headwater.index.children import Children
from headwater.index.pages import Page

__all__ = ["Move", "has_large", "neighbours", "plan"]


@dataclass(frozen=True, slots=True)
class Move:
    """The entries of an embedded part that belong to one child: positions from ``start`` to ``end``."""

    child: int
    start: int
    end: int


def plan(page: Page, children: Children, *, limit_bytes: int, target_bytes: int) -> list[Move]:
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


def has_large(page: Page, limit_bytes: int) -> bool:
    """Whether an entry is too large to stay embedded: it takes more than a quarter of what may."""
    return page.longest() > limit_bytes // 4 and _has_large(page, Move(0, 0, page.count), limit_bytes)


def neighbours(page: Page, children: Children, moves: Sequence[Move], *, small: int, shrink: int) -> list[int]:
    """Children to be read beside those that change, because these may become so small that they should be merged.

    small         below which a child is small, in the measure of ``Child.size``
    shrink        by how much one removal may make a child smaller
    """
    if len(children) < 2:
        return []
    changing = {move.child for move in moves}
    found = set()
    for move in moves:
        removals = page.removals(move.start, move.end) if shrink else 0
        if children.size(move.child) - shrink * removals < small:
            beside = [at for at in (move.child - 1, move.child + 1) if 0 <= at < len(children)]
            if changing.isdisjoint(beside):
                found.add(min(beside, key=children.size))
    return sorted(found)


def _ranges(page: Page, children: Children) -> list[Move]:
    """All ranges with entries."""
    keys = page.keys.between(0, page.count)
    starts = [0, *(bisect_left(keys, bound) for bound in children.bounds[1:])]
    ends = [*starts[1:], len(keys)]
    return [Move(at, start, end) for at, (start, end) in enumerate(zip(starts, ends, strict=True)) if start < end]


def _has_large(page: Page, move: Move, limit_bytes: int) -> bool:
    return any(page.size(at, at + 1) > limit_bytes // 4 for at in range(move.start, move.end))
