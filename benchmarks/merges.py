"""Merges: what finding the base of branches that parted long ago reads, and large merges and restorations.

Run it with ``make bench SUITE=merges``; ``--quick`` is small and shows that it works, ``--backends=memory,sqlite`` and
``--only=bases,large`` measure some only, ``--into=FOLDER`` keeps the figures there.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

import psutil
from benchmarks.catalog import plant_catalog, table
from benchmarks.counting import Counted, CountingBackend, counting_store
from benchmarks.disk import working_folder
from benchmarks.options import Options, read_options
from benchmarks.places import Place, open_places
from benchmarks.report import Row, at_most, at_most_of_floor, say, show, write_results
from benchmarks.tables import table_keys
from benchmarks.timing import timed

from headwater.catalogs import CATALOGS, CLAIMS, ContentKey, Put
from headwater.catalogs.history.merge_base import MergeBaseFinder
from headwater.clock import Micros
from headwater.commits import Commit, read_commit
from headwater.iceberg.metadata_json import MetadataParts, split_metadata
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.store import ObjectId, ObjectRow, RealmId, RealmKey, RealmStore, Store, id_text, open_store

SUITE = "merges"
REALM, KEY, FLOOR_KEY = RealmId("bench"), RealmKey(1003), RealmKey(1004)
PARTS = ("bases", "large")
TAIL = 20
"""Ancestors that a commit names: no walk reads more of them in one call."""
COMMITTED_AT_ONCE = 2000
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Scale:
    features: int
    """Branches that ``main`` has merged, since the old one parted."""
    parted: int
    """Commits on each side of two branches without any merge."""
    tables: int
    documents: int
    """Of the tables, those whose metadata is stored."""
    snapshots: int


FULL = Scale(features=1000, parted=10_000, tables=100_000, documents=20_000, snapshots=30)
QUICK = Scale(features=40, parted=100, tables=2000, documents=200, snapshots=3)


def main(arguments: list[str]) -> int:
    options = read_options(arguments, PARTS)
    scale = QUICK if options.is_quick else FULL
    found: list[Row] = []
    versions: dict[str, str] = {}
    with working_folder() as folder, open_places(folder, options.backends) as places:
        for place in places:
            versions |= place.versions()
            found += measure(place, scale, options)
    print(show(found))
    settings = {"tables": scale.tables, "documents": scale.documents, "load_before": options.load}
    kept = write_results(SUITE, found, settings=settings, is_quick=options.is_part, versions=versions, folder=options.into)
    print(f"\nwritten to {kept}")
    return 0


def measure(place: Place, scale: Scale, options: Options) -> Iterator[Row]:
    for part, case in (("bases", bases), ("large", large)):
        if options.wants(part):
            say(f"{place.name}: {part}")
            with open_store(place.url(f"merges_{part}")) as store:
                yield from case(place, store, scale)


# Merge bases


def bases(place: Place, store: Store, scale: Scale) -> Iterator[Row]:
    """Nothing is cached. The floor is what the main line alone takes: twenty commits in a call; of rows, every commit once."""
    for name, parents, line, source in (
        (f"merge base over {scale.features:,} fan-in merges", fan_in(scale.features), scale.features, 1),
        (f"merge base, {scale.parted:,} commits on each side", parted(scale.parted), scale.parted, -2),
    ):
        ids = planted(store.rows(REALM, KEY), parents)
        cold, counts = counting_store(store)
        calls = counted_calls(counts)
        rows = cold.rows(REALM, KEY)
        seconds = timed(find_base, rows, ids[-1], ids[source])
        yield Row(f"{name}: calls", place.name, calls[0], "calls", line / TAIL, at_most(2 * line / TAIL + TAIL))
        yield Row(f"{name}: commits read", place.name, counts.read.rows, "commits", len(ids), at_most_of_floor(2))
        yield Row(f"{name}: time", place.name, seconds * 1000, "ms")


def find_base(rows: RealmStore, into: ObjectId, source: ObjectId) -> None:
    head, other = read_commit(rows, into), read_commit(rows, source)
    MergeBaseFinder(rows, other).find_base(rows, into, head.commit)


def counted_calls(counts: CountingBackend) -> list[int]:
    calls, read = [0], counts.read_objects

    def counted(realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        calls[0] += 1
        return read(realm, keys)

    counts.read_objects = counted  # type: ignore[method-assign]  # one more thing to count
    return calls


def fan_in(features: int) -> list[tuple[int, ...]]:
    """A root, an old branch of one commit, and for each merge of the main line a feature of one commit."""
    parents: list[tuple[int, ...]] = [(), (0,)]
    line = 0
    for _ in range(features):
        parents += [(line,), (line, len(parents))]
        line = len(parents) - 1
    return parents


def parted(commits: int) -> list[tuple[int, ...]]:
    """A root, and two lines from it whose commits take turns."""
    return [(), *((max(number - 2, 0),) for number in range(1, 2 * commits + 1))]


def planted(rows: RealmStore, parents: Sequence[tuple[int, ...]]) -> list[ObjectId]:
    ids = [rows.new_id() for _ in parents]
    commits: list[Commit] = []
    for number, above in enumerate(parents):
        first = commits[above[0]] if above else None
        commits.append(
            Commit(
                seq=1 if first is None else first.seq + 1,
                tail=() if first is None else (ids[above[0]], *first.tail)[:TAIL],
                time=Micros(1_000_000 * (number + 1)),
                properties={"merged": [id_text(ids[merged]) for merged in above[1:]]},
            )
        )
    for start in range(0, len(ids), COMMITTED_AT_ONCE):
        rows.write_objects(zip(ids[start : start + COMMITTED_AT_ONCE], commits[start : start + COMMITTED_AT_ONCE], strict=True))
    return ids


# Large merges and restorations


@dataclass
class Watched:
    """What one action took: seconds, what memory grew by, and its bulk writes."""

    seconds: float = 0.0
    grown: float = 0.0
    writes: list[Counted] = field(default_factory=list)


def large(place: Place, store: Store, scale: Scale) -> Iterator[Row]:
    """Every table of a catalog has changed on a branch, in commits of 2,000. The floor of a time is to write as many bytes in as
    many rows and calls."""
    counting, counts = counting_store(store)
    rows = counting.rows(REALM, KEY)
    rows.ensure_references((CATALOGS, CLAIMS))
    keys = [ContentKey.from_index(key) for key in table_keys(scale.tables)]
    catalog = plant_catalog(rows, keys)
    first = catalog.branch("main").head
    catalog.create_branch("dev")
    change_all(scale, keys, catalog.commit, catalog.get_contents)
    what = f"{scale.tables:,} tables, {scale.documents:,} with documents"

    with watched(counts) as merge:
        catalog.merge("dev", "main")
    merged = catalog.branch("main").head
    assert first is not None
    assert merged is not None
    yield from rows_of(f"merge of {what}", place, store, merge)
    restored(rows, first)
    with watched(counts) as restoration:
        restored(rows, merged)
    yield from rows_of(f"restoration of {what}", place, store, restoration)


def change_all(scale: Scale, keys: Sequence[ContentKey], commit: Callable[..., object], contents: Callable[..., dict]) -> None:  # type: ignore[type-arg]  # of a catalog
    for start in range(0, len(keys), COMMITTED_AT_ONCE):
        part = keys[start : start + COMMITTED_AT_ONCE]
        there = contents("dev", part)
        commit(
            "dev",
            [
                Put(
                    key,
                    table(f"dev/{number}", there[key].id),
                    metadata=document(number, scale.snapshots) if number < scale.documents else None,
                )
                for number, key in enumerate(part, start)
            ],
        )


def document(number: int, snapshots: int) -> MetadataParts:
    place = f"s3://warehouse/dev/{number}"
    fields = [{"id": one, "name": f"column_{one}", "required": False, "type": "string"} for one in range(10)]
    history = [
        {
            "snapshot-id": number * 1000 + one,
            "sequence-number": one + 1,
            "timestamp-ms": 1_700_000_000_000 + one,
            "manifest-list": f"{place}/metadata/snap-{number * 1000 + one}.avro",
            "summary": {"operation": "append", "added-data-files": "3", "total-records": str(one * 1_000_000)},
            "schema-id": 0,
        }
        for one in range(snapshots)
    ]
    told = {
        "format-version": 2,
        "table-uuid": str(UUID(int=number + 1)),
        "location": place,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "snapshots": history,
    }
    return split_metadata(json.dumps(told).encode())


def restored(rows: RealmStore, commit: ObjectId) -> None:
    restore_state(rows, rows.new_id(), RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=commit)))


def rows_of(name: str, place: Place, store: Store, took: Watched) -> Iterator[Row]:
    yield Row(f"{name}: time", place.name, took.seconds, "s", write_seconds(store, took.writes))
    yield Row(f"{name}: memory that it takes", place.name, took.grown / MEGABYTE, "MB")
    yield Row(f"{name}: written", place.name, sum(one.bytes for one in took.writes) / MEGABYTE, "MB")
    staged = [one for one in took.writes[:-1] if one.rows]
    if staged:
        yield Row(
            f"{name}: rows of the largest batch", place.name, max(one.rows for one in staged), "rows", None, at_most(10_000)
        )


def write_seconds(store: Store, writes: Sequence[Counted]) -> float:
    """How long it takes to write as many rows of that size in as many calls, under a realm of nobody."""
    batches = [batch for batch in (alike(store, count) for count in writes) if batch]
    return timed(lambda: [store.backend.write_objects(batch, are_new=True) for batch in batches])


def alike(store: Store, count: Counted) -> list[ObjectRow]:
    size = count.bytes // max(count.rows, 1)
    values = [os.urandom(size) for _ in range(min(count.rows, 100))]
    now = Micros(store.clock.now())
    return [
        ObjectRow(
            realm=FLOOR_KEY,
            id=store.new_id(),
            part=0,
            type="bench",
            value=values[number % len(values)],
            created=now,
            token=None,
            parts=1,
        )
        for number in range(count.rows)
    ]


@contextmanager
def watched(counts: CountingBackend) -> Iterator[Watched]:
    took, process, is_over = Watched(), psutil.Process(), threading.Event()
    before = process.memory_info().rss

    def look() -> None:
        while not is_over.wait(0.02):
            took.grown = max(took.grown, process.memory_info().rss - before)

    looking = threading.Thread(target=look)
    counts.take_written()
    looking.start()
    started = time.perf_counter()
    try:
        yield took
    finally:
        took.seconds = time.perf_counter() - started
        is_over.set()
        looking.join()
        took.writes = counts.take_written()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
