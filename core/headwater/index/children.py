"""The children of a container: from which key on each holds, which object it is, and how large."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headwater.index.pages import Page, Rows
from headwater.store import ObjectId

__all__ = ["NO_CHILDREN", "Child", "Children"]


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

    def __init__(self, page: Page, bounds: list[bytes] | None = None) -> None:
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
        """Other objects at some positions, which come in order, with the same bounds."""
        ids = [(at, 1, child.object_id.to_bytes(8, "big")) for at, child in children.items()]
        sizes = [(at, 1, child.size.to_bytes(4, "big")) for at, child in children.items()]
        return Children(self.page.edited((), ids, sizes), self.bounds)

    def replaced(self, children: Sequence[Child]) -> Children:
        """These children instead."""
        ids = [child.object_id.to_bytes(8, "big") for child in children]
        sizes = [child.size.to_bytes(4, "big") for child in children]
        bounds = [child.bound for child in children]
        return Children(Page.made(Rows(bounds, ids, sizes), packed=True), bounds)


NO_CHILDREN = Children(Page.made(Rows([], [], []), packed=True))
