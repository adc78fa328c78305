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
_FULL = 0.97


@dataclass(frozen=True, slots=True)
class Piece:
    """A stripe to be: from which key on it holds, and its entries."""

    bound: bytes
    page: Page

    @property
    def size(self) -> int:
        return len(self.page.raw)


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
    keys = list(accumulate(map(len, rows.keys), initial=0))
    values = list(accumulate(map(len, rows.data), initial=0))
    ratio, at, count = _FIRST_GUESS, 0, len(rows.keys)

    def weight(end: int) -> float:
        return values[end] - values[at] + 8 * (end - at) + ratio * (keys[end] - keys[at])

    while at < count:
        total = weight(count)
        target = limit_bytes * _FULL if is_appended else total / -(-total // (limit_bytes * _FULL))
        end = count if total <= target else max(bisect_right(range(count + 1), target, lo=at, key=weight) - 1, at + 1)
        page = Page.made(rows.part(at, end), packed=True)
        while len(page.raw) > limit_bytes and end > at + 1:
            end = at + max(min(end - at - 1, int((end - at) * limit_bytes * _FULL) // len(page.raw)), 1)
            page = Page.made(rows.part(at, end), packed=True)
        yield Piece(shortest_bound(rows.keys[at - 1], rows.keys[at]) if at else bound, page)
        ratio = page.key_bytes / (keys[end] - keys[at])
        at = end


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
            ids.append(id_row(value))
            data.append(value.data)
        at = place
    return Rows(keys + old[at:], ids + rows.ids[at:], data + rows.data[at:])
