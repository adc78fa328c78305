"""The store against the bare drivers: rows of bytes at the Backend, and objects at the RealmStore, on each database.

Floor, Backend and RealmStore run by turns in short rounds, each in a database of its own on the same disk and server.
Run it with ``make bench SUITE=store``; ``--quick`` is small and shows that it works, ``--backends=memory,sqlite`` measures some only,
``--into=FOLDER`` keeps the figures there.
"""

from __future__ import annotations

import itertools
import os
import random
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from benchmarks.disk import working_folder
from benchmarks.floor import CREATED, RECENT_POINTERS, TYPE, Floor, ObjectValues, object_values
from benchmarks.places import KINDS, Place, open_places
from benchmarks.report import Row, Target, at_least, at_least_of_floor, at_most, say, show, write_results
from benchmarks.scanning import growth_of, growth_of_one, scan, scan_together
from benchmarks.timing import median, race, timed

from headwater.clock import Micros
from headwater.store import (
    Backend,
    ObjectId,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    RealmId,
    RealmKey,
    RealmStore,
    Reference,
    ReferenceRow,
    Split,
    Store,
    StoredObject,
    object_type,
    open_store,
)
from headwater.store.codec import decode, encode

SUITE = "store"
FLOORS, BYTES, OBJECTS, SCANNED = RealmKey(1000), RealmKey(1001), RealmKey(1002), RealmKey(1003)
NAME = "bench"
PROCESSES = 4
Shares = dict[str, float]
"""Of the floor's speed, by layer."""
BULK: Shares = {"Backend": 0.7, "RealmStore": 0.4}
SINGLE: Shares = {"Backend": 0.6, "RealmStore": 0.6}
SCAN: Shares = {"Backend": 0.7, "RealmStore": 0.7}
ANY = "any"
"""The backend of what never reaches a database."""


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


def main(arguments: list[str]) -> int:
    is_quick = "--quick" in arguments
    scale, load = (QUICK if is_quick else FULL), os.getloadavg()[0]
    wanted = option(arguments, "--backends=", ",".join(KINDS)).split(",")
    if unknown := sorted(set(wanted) - set(KINDS)):
        print(f"there is no backend {', '.join(unknown)}; there is: {', '.join(KINDS)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    versions: dict[str, str] = {}
    with working_folder() as folder, open_places(folder, wanted) as places:
        for place in places:
            versions |= place.versions()
            rows += measure(place, scale)
    rows += without_database(scale)
    print(show(rows))
    is_part = is_quick or len(wanted) < len(KINDS)
    into = option(arguments, "--into=", "")
    settings = {"bulk": scale.bulk, "keys": scale.keys, "rounds": scale.rounds, "load_before": load}
    kept = write_results(
        SUITE, rows, settings=settings, is_quick=is_part, versions=versions, folder=Path(into) if into else None
    )
    print(f"\nwritten to {kept}")
    return 0


def option(arguments: list[str], name: str, default: str) -> str:
    return next((one.removeprefix(name) for one in arguments if one.startswith(name)), default)


def measure(place: Place, scale: Scale) -> Iterator[Row]:
    """All that touches one database."""
    floor = place.floor("floor")
    try:
        with open_store(place.url("store")) as store:
            bench = Bench(place.name, scale, floor, store)
            for case in (bulk, points, swaps, commits, updateables, deletions, realm_deletions):
                say(f"{place.name}: {case.__name__.replace('_', ' ')}")
                yield from case(bench)
    finally:
        floor.close()
    yield from scans(place, scale)


@dataclass
class Bench:
    """One kind of database twice: under the bare driver, and under a store."""

    name: str
    scale: Scale
    floor: Floor
    store: Store
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1 << 40, 7))

    @property
    def backend(self) -> Backend:
        return self.store.backend

    @property
    def objects(self) -> RealmStore:
        return self.store.rows(RealmId("bench"), OBJECTS)

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


# The cases


def bulk(bench: Bench) -> Iterator[Row]:
    """Write rows that are new, then read some of them in any order, none of them cached."""
    count, written = bench.scale.bulk, Written()

    def floor_writes() -> float:
        values = bench.values(count)
        written.floor += [row[1] for row in values]
        return timed(bench.floor.write, values)

    def backend_writes() -> float:
        rows = bench.rows(count)
        written.bytes += [(row.id, 0) for row in rows]
        return timed(bench.backend.write_objects, rows)

    def objects_write() -> float:
        notes = bench.notes(count)
        written.objects += [number for number, _ in notes]
        return timed(bench.objects.write, notes)

    rounds = bench.scale.rounds
    seconds = race({"floor": floor_writes, "Backend": backend_writes, "RealmStore": objects_write}, rounds)
    yield from bench.rates(f"write {count:,} of 300 bytes at once", seconds, count, BULK)
    bench.floor.settle()
    readers = {
        "floor": lambda: timed(bench.floor.read, FLOORS, random.sample(written.floor, count)),
        "Backend": lambda: timed(bench.backend.read_objects, BYTES, random.sample(written.bytes, count)),
        "RealmStore": lambda: timed_cold(bench, random.sample(written.objects, count)),
    }
    yield from bench.rates(f"read {count:,} of 300 bytes at once", race(readers, rounds), count, BULK)


@dataclass
class Written:
    """What there is to read."""

    floor: list[int] = field(default_factory=list)
    bytes: list[tuple[ObjectId, int]] = field(default_factory=list)
    objects: list[ObjectId] = field(default_factory=list)


def timed_cold(bench: Bench, numbers: Sequence[ObjectId]) -> float:
    bench.store.cache.clear()
    return timed(bench.objects.read_many, numbers, Note)


def points(bench: Bench) -> Iterator[Row]:
    """Reads one by one, each of another row."""
    count, rows = bench.scale.points, bench.objects
    values, ours, notes = bench.values(4 * count), bench.rows(4 * count), bench.notes(4 * count)
    bench.floor.write(values)
    bench.backend.write_objects(ours)
    rows.write(notes)

    def floor_reads() -> float:
        numbers = [row[1] for row in random.sample(values, count)]
        return timed(lambda: [bench.floor.read_one(FLOORS, number) for number in numbers])

    def backend_reads() -> float:
        keys = [[(row.id, 0)] for row in random.sample(ours, count)]
        return timed(lambda: [bench.backend.read_objects(BYTES, key) for key in keys])

    def objects_are_read() -> float:
        numbers = [number for number, _ in random.sample(notes, count)]
        bench.store.cache.clear()
        return timed(lambda: [rows.read(number, Note) for number in numbers])

    seconds = race({"floor": floor_reads, "Backend": backend_reads, "RealmStore": objects_are_read}, bench.scale.rounds)
    yield from bench.rates("read one, cold", seconds, count, SINGLE)


def swaps(bench: Bench) -> Iterator[Row]:
    """One reference moves on, again and again."""
    heads = Heads(bench)

    def many(move: Callable[[ObjectId], None]) -> Callable[[], float]:
        def run() -> float:
            pointers = [ObjectId(number) for number in itertools.islice(bench.numbers, bench.scale.writes)]
            return timed(lambda: [move(pointer) for pointer in pointers])

        return run

    contenders = {"floor": many(heads.move_floor), "Backend": many(heads.move_row), "RealmStore": many(heads.move_reference)}
    seconds = race(contenders, bench.scale.rounds)
    yield from bench.rates("swap a reference", seconds, bench.scale.writes, SINGLE, "swaps/s")


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

    def move_row(self, pointer: ObjectId) -> None:
        seen = self._row
        new = ReferenceRow(
            realm=BYTES,
            name=self._name,
            pointer=pointer,
            version=seen.version + 1,
            created=seen.created,
            recent=seen.recent,
        )
        self._backend.swap_reference(seen, new)
        self._row = new

    def move_reference(self, pointer: ObjectId) -> None:
        self._reference = self._objects.advance_reference(self._reference, pointer)


def commits(bench: Bench) -> Iterator[Row]:
    """What every commit does: two rows in one call, and a swap to one of them."""
    heads, count = Heads(bench), bench.scale.writes
    objects = bench.objects

    def floor_commits() -> float:
        batches = [bench.values(2) for _ in range(count)]

        def run() -> None:
            for batch in batches:
                bench.floor.write(batch)
                heads.move_floor(ObjectId(batch[0][1]))

        return timed(run)

    def backend_commits() -> float:
        batches = [bench.rows(2) for _ in range(count)]

        def run() -> None:
            for batch in batches:
                bench.backend.write_objects(batch)
                heads.move_row(batch[0].id)

        return timed(run)

    def objects_commit() -> float:
        batches = [bench.notes(2) for _ in range(count)]

        def run() -> None:
            for batch in batches:
                objects.write(batch)
                heads.move_reference(batch[0][0])

        return timed(run)

    seconds = race({"floor": floor_commits, "Backend": backend_commits, "RealmStore": objects_commit}, bench.scale.rounds)
    yield from bench.rates("write two and swap, as a commit does", seconds, count, unit="commits/s")


def updateables(bench: Bench) -> Iterator[Row]:
    """Insert objects that are changed in place, then change each once."""
    count, objects = bench.scale.writes, bench.objects
    floor_rows: list[ObjectValues] = []
    rows: list[ObjectRow] = []
    seen = []

    def floor_inserts() -> float:
        floor_rows[:] = bench.values(count, token="a" * 16)
        return timed(lambda: [bench.floor.insert(row) for row in floor_rows])

    def backend_inserts() -> float:
        rows[:] = bench.rows(count, token="a" * 16)
        return timed(lambda: [bench.backend.insert_object(row) for row in rows])

    def objects_insert() -> float:
        new = [(ObjectId(next(bench.numbers)), work(0)) for _ in range(count)]

        def run() -> None:
            seen[:] = [objects.insert(number, value) for number, value in new]

        return timed(run)

    def floor_updates() -> float:
        pairs = [(row, object_values(row[0], row[1], token=secrets.token_hex(8))) for row in floor_rows]
        floor_rows[:] = [new for _, new in pairs]
        return timed(lambda: [bench.floor.update(new, str(old[5])) for old, new in pairs])

    def backend_updates() -> float:
        pairs = [(row, as_row(object_values(row.realm, row.id, token=secrets.token_hex(8)))) for row in rows]
        rows[:] = [new for _, new in pairs]
        return timed(lambda: [bench.backend.update_object(new, str(old.token)) for old, new in pairs])

    def objects_update() -> float:
        pairs = [(one, work(one.value.attempt + 1)) for one in seen]

        def run() -> None:
            seen[:] = [objects.update(old, new) for old, new in pairs]

        return timed(run)

    rounds = bench.scale.rounds
    inserts = {"floor": floor_inserts, "Backend": backend_inserts, "RealmStore": objects_insert}
    yield from bench.rates("insert one that is changed in place", race(inserts, rounds), count)
    updates = {"floor": floor_updates, "Backend": backend_updates, "RealmStore": objects_update}
    yield from bench.rates("update one by its token", race(updates, rounds), count)


def deletions(bench: Bench) -> Iterator[Row]:
    """Rows that are still as they were seen, a bulk of them in one call."""
    count, objects = bench.scale.bulk, bench.objects

    def floor_deletes() -> float:
        values = bench.values(count)
        bench.floor.write(values)
        return timed(
            bench.floor.delete, [(realm, number, 0, created, token) for realm, number, _, _, created, token, *_ in values]
        )

    def backend_deletes() -> float:
        rows = bench.rows(count)
        bench.backend.write_objects(rows)
        return timed(bench.backend.delete_objects, [key_of(row) for row in rows])

    def objects_delete() -> float:
        return timed(objects.delete_unchanged, objects.write(bench.notes(count)))

    contenders = {"floor": floor_deletes, "Backend": backend_deletes, "RealmStore": objects_delete}
    seconds = race(contenders, max(2, bench.scale.rounds // 2))
    yield from bench.rates(f"delete {count:,} if unchanged", seconds, count)


def realm_deletions(bench: Bench) -> Iterator[Row]:
    """A realm's rows: in one statement by the driver, in batches as the purge does it by us."""
    count, batch = bench.scale.realm, bench.store.settings.delete_batch
    realms = itertools.count(10_000)

    def floor_deletes() -> float:
        realm = next(realms)
        bench.floor.write(bench.values(count, realm))
        return timed(bench.floor.delete_realm, realm)

    def store_deletes() -> float:
        realm = RealmKey(next(realms))
        bench.backend.write_objects(bench.rows(count, realm))
        rows = bench.store.rows(RealmId("bench"), realm)
        return timed(lambda: sum(iter(lambda: rows.delete_rows(batch), 0)))

    seconds = race({"floor": floor_deletes, "RealmStore": store_deletes}, max(2, bench.scale.rounds // 10))
    yield from bench.rates(f"delete a realm of {count:,} rows, {batch} at a time", seconds, count, unit="rows/s")


def scans(place: Place, scale: Scale) -> Iterator[Row]:
    """Keys without values: floor and store read the same rows, which the bare driver wrote."""
    url, count = place.url("scanned"), scale.keys
    say(f"{place.name}: writing {count:,} rows to scan")
    with open_store(url) as store:
        floor = place.floor("scanned")
        try:
            fill(store, floor, count, is_shared=place.is_shared)
            yield from scans_of(place, scale, store, floor)
        finally:
            floor.close()


def fill(store: Store, floor: Floor, count: int, *, is_shared: bool) -> None:
    """Values that say nothing, to be quick; their size is right."""
    value, step = bytes(300), 10_000
    for start in range(0, count, step):
        some = [
            object_values(SCANNED, (1 << 40) + 7 * number, value=value) for number in range(start, min(count, start + step))
        ]
        floor.write(some)
        if not is_shared:
            store.backend.write_objects([as_row(values) for values in some])
    floor.settle()


def scans_of(place: Place, scale: Scale, store: Store, floor: Floor) -> Iterator[Row]:
    say(f"{place.name}: scanning {scale.keys:,} keys")
    count, whole = scale.keys, Split(SCANNED)
    objects = store.rows(RealmId("bench"), SCANNED)
    contenders = {
        "floor": lambda: timed(counted, count, floor.scan),
        "Backend": lambda: timed(counted, count, lambda: scan(store, whole)),
        "RealmStore": lambda: timed(counted, count, lambda: sum(len(batch) for batch in objects.scan_objects())),
    }
    seconds = race(contenders, scale.scans)
    case = f"scan {count:,} keys"
    for layer in ("Backend", "RealmStore"):
        target = target_of(place.name, layer, SCAN)
        yield Row(f"{layer}: {case}", place.name, count / seconds[layer], "keys/s", count / seconds["floor"], target)
    growth = growth_of_one(place.url("scanned"), whole) if place.is_shared else growth_of(store, whole)
    yield Row(f"Backend: {case}: growth of memory meanwhile", place.name, growth, "MiB", target=at_most(32))
    splits: list[Split[ObjectPosition]] = []
    cutting = timed(lambda: splits.extend(store.backend.split_objects(SCANNED, PROCESSES)))
    yield Row(f"Backend: cut that scan into {PROCESSES} splits", place.name, cutting, "s")
    if place.is_shared:
        rounds = scan_together(place.url("scanned"), splits, scale.scans)
        assert all(rows == count for rows, _ in rounds), rounds
        together = median(taken for _, taken in rounds)
        case += f" in {PROCESSES} splits, a process each"
    else:
        together = median(timed(counted, count, lambda: sum(scan(store, one) for one in splits)) for _ in range(scale.scans))
        case += f" in {PROCESSES} splits, one after the other"
    yield Row(f"Backend: {case}", place.name, count / together, "keys/s", count / seconds["floor"])
    if used := floor.bytes_used():
        yield Row("row of 300 bytes on disk, with its key", place.name, used / count, "bytes", 300)


def counted(expected: int, action: Callable[[], int]) -> None:
    found = action()
    assert found == expected, f"{found} rows, not {expected}"


def without_database(scale: Scale) -> Iterator[Row]:
    """What a store does by itself: ids, the codec, and what it remembers."""
    say("ids, codec and cache")
    with open_store("memory://") as store:
        yield from ids(store, scale)
        yield from coding(scale)
        yield from hits(store, scale)


def ids(store: Store, scale: Scale) -> Iterator[Row]:
    store.new_id()
    seconds = race({"one": lambda: timed(lambda: [store.new_id() for _ in range(scale.ids)])}, 5)
    yield Row("ids, one at a time", ANY, scale.ids / seconds["one"], "ids/s", target=at_least(500_000))
    seconds = race({"many": lambda: timed(store.new_ids, scale.many_ids)}, 3)
    yield Row(f"ids, {scale.many_ids:,} at once", ANY, scale.many_ids / seconds["many"], "ids/s", target=at_least(500_000))


def coding(scale: Scale) -> Iterator[Row]:
    """Against MessagePack alone: no checksum, no envelope."""
    value, number, times = note(1), ObjectId(1 << 40), range(scale.hits)
    packer, unpacker = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Note)
    name, envelope = encode(number, value)
    packed = packer.encode(value)
    coders: dict[str, Callable[[], object]] = {
        "floor, encode": lambda: packer.encode(value),
        "encode": lambda: encode(number, value),
        "floor, decode": lambda: unpacker.decode(packed),
        "decode": lambda: decode(number, name, envelope, Note, realm="bench"),
    }

    def repeated(action: Callable[[], object]) -> Callable[[], float]:
        return lambda: timed(lambda: [action() for _ in times])

    seconds = race({what: repeated(action) for what, action in coders.items()}, 5)
    for what in ("encode", "decode"):
        micros, floor = (seconds[one] / scale.hits * 1e6 for one in (what, f"floor, {what}"))
        yield Row(f"{what} an object of 300 bytes", ANY, micros, "µs", floor)
    yield Row("envelope of that object", ANY, len(envelope), "bytes", len(packed))


def hits(store: Store, scale: Scale) -> Iterator[Row]:
    """Reads that the cache answers, beside a look into a dictionary."""
    rows = store.rows(RealmId("bench"), OBJECTS)
    notes = [(ObjectId((1 << 40) + number), note(number)) for number in range(1000)]
    rows.write(notes)
    names = [f"{NAME}-{number}" for number in range(100)]
    for name in names:
        rows.create_reference(name, notes[0][0])
    plain = dict(notes)
    numbers = [number for number, _ in random.choices(notes, k=scale.hits)]
    asked = random.choices(names, k=scale.hits)
    contenders = {
        "floor": lambda: timed(lambda: [plain.get(number) for number in numbers]),
        "object": lambda: timed(lambda: [rows.find(number, Note) for number in numbers]),
        "reference": lambda: timed(lambda: [rows.find_reference(name) for name in asked]),
    }
    seconds = race(contenders, 9)
    floor = seconds["floor"] / scale.hits * 1e6
    for what in ("object", "reference"):
        yield Row(f"RealmStore: cached read of one {what}", ANY, seconds[what] / scale.hits * 1e6, "µs", floor, at_most(2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
