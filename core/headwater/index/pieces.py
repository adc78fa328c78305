"""How stripes take changes, and how they are divided and merged. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from headwater.index.keys import common
from headwater.index.pages import Page, Rows, id_row
from headwater.index.values import Change

__all__ = ["Piece", "changed_pieces", "cut", "merged", "shortest_bound"]

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
class Piece:
    """A stripe to be: from which key on it holds, and its entries."""

    bound: bytes
    page: Page

    @property
    def size(self) -> int:
        return len(self.page.raw)

    def begun_at(self, bound: bytes) -> Piece:
        return Piece(bound, self.page)


def changed_pieces(bound: bytes, page: Page | None, changes: Sequence[Change], limit_bytes: int) -> list[Piece]:
    """What a stripe (None: there is none yet) becomes by changes; nothing, if it has no entries left."""
    if page is not None and all(value is not None and page.position(key) >= 0 for key, value in changes):
        updated = page.changed(changes)  # the same keys: their bytes stay as they are
        if len(updated.raw) <= limit_bytes or page.count == 1:
            return [Piece(bound, updated)]
        return list(cut(bound, updated.rows(), limit_bytes, is_appended=False))
    rows = Rows([], [], []) if page is None else page.rows()
    is_appended = not rows.keys or changes[0][0] > rows.keys[-1]
    return list(cut(bound, _laid_over(rows, changes), limit_bytes, is_appended=is_appended))


def merged(left: Piece, right: Piece) -> Piece:
    """Two neighbouring stripes as one."""
    return Piece(left.bound, Page.made(left.page.rows().joined(right.page.rows()), packed=True))


def cut(bound: bytes, rows: Rows, limit_bytes: int, *, is_appended: bool) -> Iterator[Piece]:
    """Stripes of these entries, none beyond the limit but where a single entry is.

    is_appended   the entries grow at their end, as in loads in key order: all stripes but the last are filled. Otherwise they are even
    """
    scale = _Scale(rows)
    at, count = 0, len(rows.keys)
    while at < count:
        end, page = _piece(rows, scale, at, limit_bytes, is_appended)
        yield Piece(shortest_bound(rows.keys[at - 1], rows.keys[at]) if at else bound, page)
        at = end


def _piece(rows: Rows, scale: _Scale, at: int, limit_bytes: int, is_appended: bool) -> tuple[int, Page]:
    """The stripe that begins at a position, and where it ends. How well keys pack shows only when they are packed: a few tries."""
    count, room = len(rows.keys), limit_bytes * _FULL - _HEAD
    for _ in range(_TRIES):
        total = scale.weigh(at, count)
        target = room if is_appended or total <= room else total / -(-total // room)
        end = count if total <= target else scale.reach(at, target)
        page = Page.made(rows.part(at, end), packed=True)
        scale.learn(at, end, page)
        if end == count or _ENOUGH * (target + _HEAD) <= len(page.raw) <= limit_bytes:
            break
    while len(page.raw) > limit_bytes and end > at + 1:
        end = at + (end - at) * 3 // 4
        page = Page.made(rows.part(at, end), packed=True)
    return end, page


class _Scale:
    """What entries weigh in a stripe, before they are in one."""

    def __init__(self, rows: Rows) -> None:
        self._keys = list(accumulate(map(len, rows.keys), initial=0))
        self._data = list(accumulate(map(len, rows.data), initial=0))
        self._key, self._entry = _FIRST_GUESS, 8.0

    def weigh(self, start: int, end: int) -> float:
        keys, data = self._keys, self._data
        return data[end] - data[start] + self._entry * (end - start) + self._key * (keys[end] - keys[start])

    def reach(self, start: int, target: float) -> int:
        """Where entries that begin at ``start`` come to the target; they are one at least."""
        places = range(start + 1, len(self._keys))
        return start + max(bisect_right(places, target, key=lambda end: self.weigh(start, end)), 1)

    def learn(self, start: int, end: int, page: Page) -> None:
        """From a stripe that was made of these entries."""
        self._key = page.key_bytes / (self._keys[end] - self._keys[start])
        columns = len(page.raw) - page.key_bytes - _HEAD
        self._entry = (columns - self._data[end] + self._data[start]) / (end - start)


def shortest_bound(before: bytes, key: bytes) -> bytes:
    """The shortest bytes that come after one key and not after another."""
    return key[: common(before, key) + 1]


def _laid_over(rows: Rows, changes: Sequence[Change]) -> Rows:
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
    return Rows(keys + old[at:], ids + rows.ids[at:], data + rows.data[at:])
