"""What a commit is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.clock import Micros
from headwater.index import Index
from headwater.store import ObjectId, StoredObject, object_type

__all__ = ["TAIL", "Commit", "Head", "IndexContainer", "Operation"]

TAIL = 20
"""Ancestors that a commit names, so that a walk reads them in one go."""


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of one key of one index: put (with what it holds now) or removed."""

    index: str
    key: bytes
    object_id: ObjectId | None = None
    data: bytes = b""
    removed: bool = False


class IndexContainer(msgspec.Struct, frozen=True):
    """An index as a commit holds it. ``embedded`` lies in the commit itself; see ``headwater.index.layout``."""

    embedded: bytes


@object_type("commit")
class Commit(StoredObject, frozen=True, kw_only=True):
    """One step of a reference's history: what it changed (``operations``) and what holds now (``indexes``).

    seq           1 for the first, then one more each
    tail          ids of up to 20 ancestors, nearest first
    time          microseconds since 1970; always later than the parent's
    """

    seq: int
    tail: tuple[ObjectId, ...] = ()
    time: Micros
    message: str = ""
    properties: dict[str, Any] = {}
    operations: tuple[Operation, ...] = ()
    indexes: dict[str, IndexContainer] = {}

    def points_to(self) -> Iterable[ObjectId]:
        for container in self.indexes.values():
            for _, value in Index(container.embedded).range():
                if value.object_id is not None:
                    yield value.object_id

    def index(self, name: str) -> Index:
        container = self.indexes.get(name)
        return Index() if container is None else Index(container.embedded)


@dataclass(frozen=True, slots=True)
class Head:
    """A commit and its id."""

    id: ObjectId
    commit: Commit

    def index(self, name: str) -> Index:
        """What holds at this commit; empty when there never was an index of that name."""
        return self.commit.index(name)
