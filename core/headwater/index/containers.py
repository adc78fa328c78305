"""What an index is made of when it lies in a commit, and how large its parts may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from headwater.errors import UnreadableError
from headwater.index.children import NO_CHILDREN, Children
from headwater.index.memo import memo
from headwater.index.pages import Page
from headwater.store import ObjectId, StoredObject

__all__ = ["IndexContainer", "Limits", "Objects"]

T = TypeVar("T", bound=StoredObject)


class IndexContainer(msgspec.Struct, frozen=True, dict=True, omit_defaults=True):
    """An index as a commit holds it: changes that lie in the commit itself, over a list of what was spilled.

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
    def page(self) -> Page:
        return Page(self.embedded)

    @memo
    def children(self) -> Children:
        if self.levels not in (0, 1, 2) or bool(self.levels) != bool(self.spilled):
            raise UnreadableError(
                f"an index with {self.levels} levels and {len(self.spilled)} bytes of children; this release reads up to 2 levels"
            )
        return Children(Page(self.spilled)) if self.spilled else NO_CHILDREN


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes that the embedded part of an index, and one stripe, may have before they are divided."""

    embedded_bytes: int
    stripe_bytes: int


class Objects(Protocol):
    """Where stripes are read; a ``RealmStore`` is one."""

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | None]: ...
