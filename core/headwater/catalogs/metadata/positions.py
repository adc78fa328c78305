"""Where the elements of a list stand, so that those which stay keep their place from version to version. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["placed"]

_FIRST = 1 << 62
_STEP = 1 << 20
"""Between neighbours that were written one after the other: there is room for twenty insertions in the same place, at the least."""
_END = 1 << 63


def placed(held: Sequence[int], before: Sequence[bytes], after: Sequence[bytes]) -> list[int]:
    """A position for each element of a list, ascending; as many elements as can be keep the position that they had.

    held          the positions of the version before, ascending
    before        its elements, one for each position
    after         the elements to be placed
    """
    if not held:
        return _fresh(len(after))
    kept = _kept(before, after)
    positions: list[int] = []
    start = 0
    while start < len(kept):
        if kept[start] >= 0:
            positions.append(held[kept[start]])
            start += 1
            continue
        end = start + 1
        while end < len(kept) and kept[end] < 0:
            end += 1
        low = kept[start - 1] if start else -1
        high = kept[end] if end < len(kept) else len(held)
        new = _between(held, low, high, end - start)
        if new is None:
            return _fresh(len(after))
        positions += new
        start = end
    return positions


def _fresh(count: int) -> list[int]:
    return list(range(_FIRST, _FIRST + _STEP * count, _STEP))


def _kept(before: Sequence[bytes], after: Sequence[bytes]) -> list[int]:
    """For each element which one of before it is, ascending, or -1."""
    if after and after[0] in before:  # the rule: some went from the front, and some came at the end
        first = before.index(after[0])
        stay = len(before) - first
        if after[:stay] == before[first:] and set(before[:first]).isdisjoint(after[stay:]):
            return [*range(first, len(before)), *[-1] * (len(after) - stay)]
    places: dict[bytes, deque[int]] = {}
    for at, element in enumerate(before):
        places.setdefault(element, deque()).append(at)
    found = []
    for element in after:
        there = places.get(element)
        found.append(there.popleft() if there else -1)
    met = [at for at in found if at >= 0]
    if any(left > right for left, right in pairwise(met)):
        stays = _ascending(met)
        found = [at if at in stays else -1 for at in found]
    return found


def _ascending(numbers: Sequence[int]) -> set[int]:
    """The most of these numbers, of which none stands twice, that ascend."""
    tails: list[int] = []
    previous: dict[int, int] = {}
    for number in numbers:
        at = bisect_left(tails, number)
        previous[number] = tails[at - 1] if at else -1
        tails[at : at + 1] = [number]
    chosen, last = set(), tails[-1] if tails else -1
    while last >= 0:
        chosen.add(last)
        last = previous[last]
    return chosen


def _between(held: Sequence[int], low: int, high: int, count: int) -> list[int] | None:
    """Ascending positions for elements between two that stay, first of all those that became free. None: there is no room.

    low, high     which of ``held`` stay: -1 and its length stand for its ends
    """
    free = list(held[low + 1 : high])
    more = count - len(free)
    if more <= 0:
        return free[:count]
    if high == len(held):
        free += [held[-1] + _STEP * at for at in range(1, more + 1)]
        return free if free[-1] < _END else None
    if low < 0:
        new = [held[0] - _STEP * at for at in range(more, 0, -1)]
        return new + free if new[0] >= 0 else None
    room = (held[high] - held[low]) // (count + 1)
    return [held[low] + room * at for at in range(1, count + 1)] if room else None
