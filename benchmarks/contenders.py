"""The three that run by turns on each database, floor, Backend and RealmStore, and what they are made to write and read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.floor import CREATED, RECENT_POINTERS, TYPE, Floor, ObjectValues, object_values
from benchmarks.report import Row, Target, at_least_of_floor

from headwater.clock import Micros
from headwater.store import (
    Backend,
    ObjectId,
    ObjectKey,
    ObjectRow,
    RealmId,
    RealmKey,
    RealmStore,
    Reference,
    ReferenceRow,
    Store,
    StoredObject,
    object_type,
)

__all__ = [
    "BULK",
    "BYTES",
    "FLOORS",
    "FULL",
    "NAME",
    "OBJECTS",
    "QUICK",
    "SCAN",
    "SCANNED",
    "SINGLE",
    "Bench",
    "Heads",
    "Note",
    "Scale",
    "Work",
    "as_row",
    "key_of",
    "note",
    "target_of",
    "work",
]

FLOORS, BYTES, OBJECTS, SCANNED = RealmKey(1000), RealmKey(1001), RealmKey(1002), RealmKey(1003)
NAME = "bench"
Shares = dict[str, float]
"""Of the floor's speed, by layer."""
BULK: Shares = {"Backend": 0.7, "RealmStore": 0.4}
SINGLE: Shares = {"Backend": 0.6, "RealmStore": 0.6}
SCAN: Shares = {"Backend": 0.7, "RealmStore": 0.7}


@dataclass(frozen=True)
class Scale:
    bulk: int
    """Rows of a bulk call."""
    rounds: int
    points: int
    """Point reads of a round."""
    writes: int
    """Single writes of a round, each of which waits for the disk."""
    realm: int
    """Rows of a realm that is deleted."""
    keys: int
    """Rows of a scan."""
    scans: int
    hits: int
    """Cached reads, and objects through the codec, of a round."""
    ids: int
    many_ids: int


FULL = Scale(
    bulk=1000,
    rounds=30,
    points=500,
    writes=50,
    realm=20_000,
    keys=1_000_000,
    scans=5,
    hits=50_000,
    ids=250_000,
    many_ids=1_000_000,
)
QUICK = Scale(
    bulk=1000, rounds=3, points=100, writes=5, realm=2000, keys=20_000, scans=2, hits=5000, ids=50_000, many_ids=100_000
)


@object_type(TYPE)
class Note(StoredObject, frozen=True, kw_only=True):
    """A small object: some 300 bytes in the row, which do not compress."""

    name: str
    time: int
    labels: tuple[str, ...]
    body: bytes


@object_type("bench-task", updateable=True)
class Work(StoredObject, frozen=True, kw_only=True):
    """The same, changed in place."""

    name: str
    attempt: int
    body: bytes


def note(number: int) -> Note:
    return Note(name=f"note-{number}", time=CREATED, labels=("small", "bench"), body=os.urandom(235))


def work(attempt: int) -> Work:
    return Work(name="some work", attempt=attempt, body=os.urandom(265))


@dataclass
class Bench:
    """One kind of database twice: under the bare driver, and under a store."""

    name: str
    scale: Scale
    floor: Floor
    store: Store
    beside: Floor
    """The bare driver on the store's own database, where another can open it: to tend it, not to measure."""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1 << 40, 7))

    @property
    def backend(self) -> Backend:
        return self.store.backend

    @property
    def objects(self) -> RealmStore:
        return self.store.rows(RealmId("bench"), OBJECTS)

    def settle(self) -> None:
        """Both sides alike: PostgreSQL plans otherwise for a table that nobody analysed yet."""
        self.floor.settle()
        self.beside.settle()

    def values(self, count: int, realm: int = FLOORS, token: str | None = None) -> list[ObjectValues]:
        return [object_values(realm, next(self.numbers), token=token) for _ in range(count)]

    def rows(self, count: int, realm: RealmKey = BYTES, token: str | None = None) -> list[ObjectRow]:
        return [as_row(values) for values in self.values(count, realm, token)]

    def notes(self, count: int) -> list[tuple[ObjectId, Note]]:
        return [(ObjectId(number), note(number)) for number in itertools.islice(self.numbers, count)]

    def rates(
        self, case: str, seconds: dict[str, float], count: int, targets: Shares | None = None, unit: str = ""
    ) -> Iterator[Row]:
        """Rows of a race between floor, Backend and RealmStore, each of which did something ``count`` times."""
        for layer, own_unit in (("Backend", "rows/s"), ("RealmStore", "objects/s")):
            if layer in seconds:
                floor, target = count / seconds["floor"], target_of(self.name, layer, targets)
                yield Row(f"{layer}: {case}", self.name, count / seconds[layer], unit or own_unit, floor, target)


def target_of(backend: str, layer: str, targets: Shares | None) -> Target | None:
    """Memory is held to the Backend's bulk calls alone: a look into a dictionary takes less than any call that leads to it."""
    if targets is None or (backend == "memory" and (targets, layer) != (BULK, "Backend")):
        return None
    return at_least_of_floor(targets[layer])


def as_row(values: ObjectValues) -> ObjectRow:
    realm, number, part, type_name, created, token, parts, value = values
    return ObjectRow(
        realm=RealmKey(realm),
        id=ObjectId(number),
        part=part,
        type=type_name,
        value=value,
        created=Micros(created),
        token=token,
        parts=parts,
    )


def key_of(row: ObjectRow) -> ObjectKey:
    return ObjectKey(row.realm, row.id, row.part, row.type, row.created, row.token, row.parts, len(row.value))


class Heads:
    """A reference of each contender, as it is now, with as many former pointers as there can be."""

    def __init__(self, bench: Bench) -> None:
        self._floor, self._backend, self._objects = bench.floor, bench.backend, bench.objects
        self._name = f"{NAME}-{next(bench.numbers)}"
        first = ObjectId(next(bench.numbers))
        self._seen = (int(first), 1)
        self._floor.create_reference(FLOORS, self._name, self._seen)
        recent = tuple(ObjectId(number) for number in range(1, RECENT_POINTERS + 1))
        self._row = ReferenceRow(realm=BYTES, name=self._name, pointer=first, version=1, created=Micros(CREATED), recent=recent)
        self._backend.create_reference(self._row)
        self._reference: Reference = self._objects.create_reference(self._name, first)
        for number in recent:
            self.move_reference(number)

    def move_floor(self, pointer: ObjectId) -> None:
        new = (int(pointer), self._seen[1] + 1)
        self._floor.swap(FLOORS, self._name, self._seen, new)
        self._seen = new

    def commit_floor(self, rows: list[ObjectValues]) -> None:
        new = (rows[0][1], self._seen[1] + 1)
        self._floor.commit(rows, FLOORS, self._name, self._seen, new)
        self._seen = new

    def move_row(self, pointer: ObjectId) -> None:
        new = self._row_at(pointer)
        self._backend.swap_reference(self._row, new)
        self._row = new

    def commit_rows(self, rows: list[ObjectRow]) -> None:
        new = self._row_at(rows[0].id)
        self._backend.write_and_swap(rows, self._row, new)
        self._row = new

    def _row_at(self, pointer: ObjectId) -> ReferenceRow:
        seen = self._row
        return ReferenceRow(
            realm=BYTES,
            name=self._name,
            pointer=pointer,
            version=seen.version + 1,
            created=seen.created,
            recent=seen.recent,
        )

    def move_reference(self, pointer: ObjectId) -> None:
        self._reference = self._objects.advance_reference(self._reference, pointer)

    def commit_objects(self, objects: Sequence[tuple[ObjectId, StoredObject]]) -> None:
        self._reference = self._objects.write_and_advance(self._objects.pack(objects), self._reference, objects[0][0])
