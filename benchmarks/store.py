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
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from benchmarks.contenders import (
    BULK,
    BYTES,
    FLOORS,
    FULL,
    NAME,
    OBJECTS,
    QUICK,
    SCAN,
    SCANNED,
    SINGLE,
    Bench,
    Heads,
    Note,
    Scale,
    as_row,
    key_of,
    note,
    target_of,
    work,
)
from benchmarks.disk import working_folder
from benchmarks.floor import Floor, ObjectValues, object_values
from benchmarks.places import KINDS, Place, open_places
from benchmarks.report import Row, at_least, at_most, say, show, write_results
from benchmarks.scanning import growth_of, growth_of_one, scan, scan_together
from benchmarks.timing import median, race, timed

from headwater.store import (
    ObjectId,
    ObjectPosition,
    ObjectRow,
    RealmId,
    RealmKey,
    ScanSplit,
    Store,
    open_store,
)
from headwater.store.stored_objects import decode_object, encode_object

SUITE = "store"
PROCESSES = 4
ANY = "any"
"""The backend of what never reaches a database."""


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
    with (
        open_store(place.url("store")) as store,
        closing(place.floor("floor")) as floor,
        closing(place.floor("store")) as beside,
        place.apart(),
    ):
        bench = Bench(place.name, scale, floor, store, beside)
        for case in (bulk, points, swaps, commits, updateables, deletions, realm_deletions):
            say(f"{place.name}: {case.__name__.replace('_', ' ')}")
            yield from case(bench)
    yield from scans(place, scale)


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
        return timed(bench.objects.write_objects, notes)

    rounds = bench.scale.rounds
    seconds = race({"floor": floor_writes, "Backend": backend_writes, "RealmStore": objects_write}, rounds)
    yield from bench.rates(f"write {count:,} of 300 bytes at once", seconds, count, BULK)
    bench.settle()
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
    rows.write_objects(notes)

    def floor_reads() -> float:
        numbers = [row[1] for row in random.sample(values, count)]
        return timed(lambda: [bench.floor.read_one(FLOORS, number) for number in numbers])

    def backend_reads() -> float:
        keys = [[(row.id, 0)] for row in random.sample(ours, count)]
        return timed(lambda: [bench.backend.read_objects(BYTES, key) for key in keys])

    def objects_are_read() -> float:
        numbers = [number for number, _ in random.sample(notes, count)]
        bench.store.cache.clear()
        return timed(lambda: [rows.read_object(number, Note) for number in numbers])

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


def commits(bench: Bench) -> Iterator[Row]:
    """What every commit does: two rows, and a swap to one of them; the floor does it in one transaction where the database can."""
    heads, count = Heads(bench), bench.scale.writes

    def floor_commits() -> float:
        batches = [bench.values(2) for _ in range(count)]

        def run() -> None:
            for batch in batches:
                heads.commit_floor(batch)

        return timed(run)

    def backend_commits() -> float:
        batches = [bench.rows(2) for _ in range(count)]

        def run() -> None:
            for batch in batches:
                heads.commit_rows(batch)

        return timed(run)

    def objects_commit() -> float:
        batches = [bench.notes(2) for _ in range(count)]

        def run() -> None:
            for batch in batches:
                heads.commit_objects(batch)

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
            seen[:] = [objects.insert_object(number, value) for number, value in new]

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
            seen[:] = [objects.update_object(old, new) for old, new in pairs]

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
        return timed(objects.delete_unchanged, objects.write_objects(bench.notes(count)))

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
    with open_store(url) as store, closing(place.floor("scanned")) as floor:
        fill(store, floor, count, is_shared=place.is_shared)
        yield from scans_of(place, scale, store, floor)


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
    count, whole = scale.keys, ScanSplit(SCANNED)
    objects = store.rows(RealmId("bench"), SCANNED)
    contenders = {
        "floor": lambda: timed(counted, count, floor.scan),
        "Backend": lambda: timed(counted, count, lambda: scan(store, whole)),
        "RealmStore": lambda: timed(counted, count, lambda: sum(len(batch) for batch in objects.scan_objects())),
    }
    with place.apart():
        seconds = race(contenders, scale.scans)
    case = f"scan {count:,} keys"
    for layer in ("Backend", "RealmStore"):
        target = target_of(place.name, layer, SCAN)
        yield Row(f"{layer}: {case}", place.name, count / seconds[layer], "keys/s", count / seconds["floor"], target)
    growth = growth_of_one(place.url("scanned"), whole) if place.is_shared else growth_of(store, whole)
    yield Row(f"Backend: {case}: growth of memory meanwhile", place.name, growth, "MiB", target=at_most(32))
    splits: list[ScanSplit[ObjectPosition]] = []
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
    name, envelope = encode_object(number, value)
    packed = packer.encode(value)
    coders: dict[str, Callable[[], object]] = {
        "floor, encode": lambda: packer.encode(value),
        "encode": lambda: encode_object(number, value),
        "floor, decode": lambda: unpacker.decode(packed),
        "decode": lambda: decode_object(number, name, envelope, Note, realm="bench"),
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
    rows.write_objects(notes)
    names = [f"{NAME}-{number}" for number in range(100)]
    for name in names:
        rows.create_reference(name, notes[0][0])
    plain = dict(notes)
    numbers = [number for number, _ in random.choices(notes, k=scale.hits)]
    asked = random.choices(names, k=scale.hits)
    contenders = {
        "floor": lambda: timed(lambda: [plain.get(number) for number in numbers]),
        "object": lambda: timed(lambda: [rows.find_object(number, Note) for number in numbers]),
        "reference": lambda: timed(lambda: [rows.find_reference(name) for name in asked]),
    }
    seconds = race(contenders, 9)
    floor = seconds["floor"] / scale.hits * 1e6
    for what in ("object", "reference"):
        yield Row(f"RealmStore: cached read of one {what}", ANY, seconds[what] / scale.hits * 1e6, "µs", floor, at_most(2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
