"""The stored parts of an index: the container in a commit, stripes of entries, lists of stripes, their children, and their size limits.

Also caches decoded values on the object from which they were decoded (``memo``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

import msgspec

from headwater.errors import CorruptionError
from headwater.index.page import EntryPage, PageRows
from headwater.store import ObjectId, StoredObject, object_type

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
