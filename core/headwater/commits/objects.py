"""What a commit is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.clock import Micros
from headwater.index import Index, IndexContainer
from headwater.store import ObjectId, RealmStore, StoredObject, object_type

__all__ = ["TAIL", "Commit", "Head", "Operation"]

TAIL = 20
"""Ancestors that a commit names, so that a walk reads them in one go."""


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of one key of one index: put (with what it holds now) or removed."""

    index: str
    key: bytes
    object_id: ObjectId | None = None
    data: bytes = b""
    removed: bool = False


@object_type("commit")
class Commit(StoredObject, frozen=True, kw_only=True):
    """One step of a reference's history: what it changed (``operations``) and what holds now (``indexes``).

    seq           1 for the first, then one more each
    tail          ids of up to 20 ancestors, nearest first
    time          microseconds since 1970; always later than the parent's
    indexes       empty for an inner member of a group
    base          an inner member's: the commit beneath its group, over whose indexes its operations hold
    depth         an inner member's: how many commits there are from the base, exclusive, to this one, inclusive; otherwise 0
    """

    seq: int
    tail: tuple[ObjectId, ...] = ()
    time: Micros
    message: str = ""
    properties: dict[str, Any] = {}
    operations: tuple[Operation, ...] = ()
    indexes: dict[str, IndexContainer] = {}
    base: ObjectId | None = None
    depth: int = 0

    def points_to(self) -> Iterable[ObjectId]:
        for container in self.indexes.values():
            for _, value in Index(container).range():
                if value.object_id is not None:
                    yield value.object_id


@dataclass(frozen=True, slots=True)
class Head:
    """A commit, its id, and the rows that it was read from."""

    id: ObjectId
    commit: Commit
    rows: RealmStore

    def index(self, name: str) -> Index:
        """What holds at this commit; empty when there never was an index of that name."""
        return Index(self.commit.indexes.get(name), self.rows)
