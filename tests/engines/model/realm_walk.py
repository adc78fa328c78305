"""What a realm must hold, found by a walk that shares no code with the collector: references, what they keep, and all that is read there.

It knows the rules as docs/concepts tell them, not as the collector carries them out, and it is slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from engines.model.index_promises import keys_are_in_order
from headwater.clock import Micros
from headwater.commits import Commit, Head, read_pins
from headwater.errors import HeadwaterError
from headwater.store import (
    Backend,
    ObjectId,
    ObjectKey,
    ObjectRow,
    RealmKey,
    RealmStore,
    ReferenceRow,
    ScanSplit,
    StoredObject,
    UnknownObject,
    id_text,
)
from headwater.store.backends.memory import MemoryBackend
from headwater.store.stored_objects import decode_object


def all_references(backend: Backend) -> Iterator[tuple[int, str]]:
    """The realm key and name of every reference row of a database, tombstones included."""
    after = None
    while batch := backend.scan_references(ScanSplit(), after, 1000):
        yield from ((row.realm, row.name) for row in batch)
        after = batch[-1].position


def all_objects(backend: Backend) -> Iterator[ObjectKey]:
    """Every object row of a database."""
    after = None
    while batch := backend.scan_objects(ScanSplit(), after, 1000):
        yield from batch
        after = batch[-1].position


def references_of(rows: RealmStore) -> list[ReferenceRow]:
    """Every reference row of a realm, whether or not it is listed anywhere."""
    backend = rows.store.backend
    names = sorted({name for realm, name in all_references(backend) if realm == rows.key})
    return [row for row in backend.read_references(rows.key, names) if row is not None]


@dataclass
class Walk:
    """Reads all that commits lead to, each object once.

    seen          every object that was reached
    faults        what could not be read, or contradicts itself
    """

    rows: RealmStore
    seen: set[ObjectId] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def commit(self, commit_id: ObjectId, where: str) -> Commit | None:
        """Read all that holds at a commit: every entry of every index, and the objects that they lead to."""
        found = self.rows.find_object(commit_id, Commit)
        if found is None:
            self.faults.append(f"{where}: commit {id_text(commit_id)} is not there")
            return None
        head = Head(commit_id, found, self.rows)
        try:
            for name in head.names:
                index = head.index(name)
                entries = list(index.range())
                self.faults += keys_are_in_order(f"{where}, index {name}", len(index), [key for key, _ in entries])
                self._objects(
                    [value.object_id for _, value in entries if value.object_id is not None], f"{where}, index {name}"
                )
        except HeadwaterError as fault:
            self.faults.append(f"{where}: {type(fault).__name__}: {fault}")
        self._objects([commit_id], where)
        return found

    def _objects(self, object_ids: Iterable[ObjectId], where: str) -> None:
        waiting = [object_id for object_id in object_ids if object_id not in self.seen]
        while waiting:
            object_id = waiting.pop()
            if object_id in self.seen:
                continue
            self.seen.add(object_id)
            try:
                found = self.rows.find_object(object_id, StoredObject)
            except HeadwaterError as fault:
                self.faults.append(f"{where}: {type(fault).__name__}: {fault}")
                continue
            if found is None or isinstance(found, UnknownObject):
                what = "is not there" if found is None else f"is of the unknown type {found.name}"
                self.faults.append(f"{where}: object {id_text(object_id)} {what}")
            else:
                waiting += found.points_to()


@dataclass
class RowWalk:
    """Looks for what is missing below a commit, straight over the rows of a database in memory: quick enough for every deletion."""

    backend: MemoryBackend
    _below: dict[tuple[RealmKey, ObjectId], tuple[ObjectId, ...]] = field(default_factory=dict)
    _whole: set[tuple[RealmKey, ObjectId]] = field(default_factory=set)

    def begin(self, deleted: Iterable[ObjectKey] = ()) -> None:
        """Look anew, after a deletion of these rows."""
        self._whole.clear()
        for key in deleted:
            self._below.pop((key.realm, key.id), None)

    def missing(self, realm: RealmKey, root: ObjectId) -> ObjectId | None:
        """The first object below that is not there. What was walked since ``begin`` is not walked again."""
        waiting = [root]
        while waiting:
            object_id = waiting.pop()
            if (realm, object_id) in self._whole:
                continue
            row = self.backend._objects.rows.get((realm, object_id, 0))
            if row is None:
                return object_id
            self._whole.add((realm, object_id))
            waiting += self._targets(row)
        return None

    def _targets(self, row: ObjectRow) -> tuple[ObjectId, ...]:
        key = (row.realm, row.id)
        if row.token is not None or key not in self._below:
            body = b"".join(self.backend._objects.rows[row.realm, row.id, part].value for part in range(row.parts))
            found = decode_object(row.id, row.type, body, StoredObject, realm=str(row.realm), token=row.token)
            self._below[key] = _targets_of(found)
        return self._below[key]


def _targets_of(found: StoredObject) -> tuple[ObjectId, ...]:
    """What an object needs. Commits are taken apart here, by their entries; all else is asked."""
    if not isinstance(found, Commit):
        return tuple(found.points_to())
    put = [operation.object_id for operation in found.operations if found.depth and not operation.removed]
    below = list(found.beneath()) if found.depth else []
    for container in found.indexes.values():
        put += [container.page.value(at).object_id for at in range(container.page.count) if container.page.value(at)]  # type: ignore[union-attr]
        below += container.children.object_ids
    return tuple(one for one in (*put, *below) if one is not None)


@dataclass(frozen=True)
class Chain:
    """A pointer and its history as far as it can be read, newest first."""

    rows: RealmStore
    pointer: ObjectId

    def commits(self) -> Iterator[tuple[ObjectId, Commit]]:
        wanted: ObjectId | None = self.pointer
        while wanted is not None:
            found = self.rows.find_object(wanted, Commit)
            if found is None:
                return
            yield wanted, found
            wanted = found.tail[0] if found.tail else None

    def faults(self, where: str) -> list[str]:
        """Where the order of a history is wrong: numbers go down by one, times fall, each names its ancestors."""
        faults, line = [], list(self.commits())
        for (above_id, above), (below_id, below) in pairwise(line):
            if above.seq != below.seq + 1:
                faults.append(f"{where}: commit {id_text(above_id)} has seq {above.seq}, and its parent {below.seq}")
            if above.time <= below.time:
                faults.append(f"{where}: commit {id_text(above_id)} is not later than its parent {id_text(below_id)}")
            if above.tail[1:20] != below.tail[: len(above.tail) - 1]:
                faults.append(f"{where}: commit {id_text(above_id)} names other ancestors than its parent {id_text(below_id)}")
        return faults

    def kept(self, *, superseded: Micros | None, commits: int, cutoff: int) -> Iterator[ObjectId]:
        """The commits that may still be there: the newest so many, and those that were HEAD at the cut-off or later.

        superseded    when the pointer was left; None: it is HEAD
        """
        for position, (commit_id, commit) in enumerate(self.commits()):
            if superseded is not None and superseded < cutoff and position >= commits:
                return
            yield commit_id
            superseded = commit.time


def pinned(rows: RealmStore) -> list[ObjectId]:
    return [one.commit for one in read_pins(rows)]
