"""What an index is made of when it lies in a commit, and how large its parts may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from headwater.store import ObjectId, StoredObject

__all__ = ["IndexContainer", "Limits", "Objects"]

T = TypeVar("T", bound=StoredObject)


class IndexContainer(msgspec.Struct, frozen=True, dict=True, omit_defaults=True):
    """An index as a commit holds it: changes that lie in the commit itself, over a list of what was spilled.

    length        entries of the whole index
    embedded      a page: puts, and removals that hide what is spilled; see ``headwater.index.layout``
    spilled       a page: the first key of each child, and its object; empty when nothing was spilled
    levels        0: nothing was spilled; 1: the children are stripes; 2: they are lists of stripes with changes of their own
    """

    length: int
    embedded: bytes
    spilled: bytes = b""
    levels: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes that the embedded part of an index, and one stripe, may have before they are divided."""

    embedded_bytes: int
    stripe_bytes: int


class Objects(Protocol):
    """Where stripes are read; a ``RealmStore`` is one."""

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | None]: ...
