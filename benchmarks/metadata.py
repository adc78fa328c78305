"""Iceberg metadata in pieces: what the next version of a table writes, and how long taking, judging, storing and reading one takes.

Run it with ``make bench SUITE=metadata``; ``--quick`` is small and shows that it works, ``--only=bytes`` measures some only,
``--into=FOLDER`` keeps the figures there. Bytes are the same on every database, so all of it runs in memory.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.counting import counting_store
from benchmarks.options import Options, read_options
from benchmarks.report import Row, at_most, say, show, write_results
from benchmarks.timing import median, timed

from headwater.catalogs.stored_metadata import read_metadata, store_metadata
from headwater.commits import Transaction, commit_change
from headwater.iceberg.metadata_json import decode_metadata, join_metadata, split_metadata
from headwater.iceberg.spec import check_table
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, open_store

SUITE = "metadata"
MEMORY = "memory"
REALM, KEY = RealmId("bench"), RealmKey(1003)
TABLES = "tables"
PARTS = ("bytes", "times")
KIB, MICROS = 1024, 1_000_000
PATH = "v1.metadata.json"
LOGGED = 100
"""Entries of the metadata log, as engines keep them."""


@dataclass(frozen=True)
class Scale:
    small: int
    """Snapshots of a table."""
    large: int
    versions: int
    """Of each table, whose bytes are counted."""
    rounds: int


FULL = Scale(small=20, large=10_000, versions=200, rounds=200)
QUICK = Scale(small=5, large=200, versions=5, rounds=3)


def main(arguments: list[str]) -> int:
    options = read_options(arguments, PARTS)
    scale = QUICK if options.is_quick else FULL
    found = list(measure(scale, options))
    print(show(found))
    is_part = options.is_quick or bool(options.only)
    settings = {"snapshots": scale.large, "versions": scale.versions, "load_before": options.load}
    kept = write_results(SUITE, found, settings=settings, is_quick=is_part, versions={}, folder=options.into)
    print(f"\nwritten to {kept}")
    return 0


def measure(scale: Scale, options: Options) -> Iterator[Row]:
    for part, case in (("bytes", growth), ("times", times)):
        if options.wants(part):
            say(part)
            yield from case(scale)


class Table:
    """A table in a store of its own, each version on top of the one before."""

    def __init__(self) -> None:
        store, self.written = counting_store(open_store("memory://"))
        self.rows = store.rows(REALM, KEY)
        self.rows.ensure_reference(TABLES)
        self.newest: ObjectId | None = None

    def store(self, text: bytes) -> None:
        parts, before = split_metadata(text), self.newest

        def change(tx: Transaction) -> ObjectId:
            made = store_metadata(tx, parts, before=before)
            tx.index("tables").put(b"t", IndexValue(made))
            return made

        self.newest = commit_change(self.rows, TABLES, change).result

    def cold(self) -> RealmStore:
        """The same rows in a process that has read nothing."""
        store, _ = counting_store(self.rows.store)
        return store.rows(REALM, KEY)

    def take_bytes(self) -> int:
        return sum(one.bytes for one in self.written.take_written())


# The cases


def growth(scale: Scale) -> Iterator[Row]:
    """All objects of the commit count, itself included."""
    for count in (scale.small, scale.large):
        for how, expired in (("one more each", 0), ("one more and one less each", 1)):
            table = Table()
            table.store(document(0, count))
            first = table.take_bytes()
            if not expired:
                yield Row(f"first version of {count:,} snapshots", MEMORY, first / KIB, "KiB")
            written = []
            for number in range(1, scale.versions + 1):
                table.store(document(number * expired, count + number))
                written.append(table.take_bytes())
            case = f"next version of {count:,} snapshots, {how}"
            yield Row(f"{case}: mean", MEMORY, sum(written) / len(written) / KIB, "KiB", None, at_most(64))
            yield Row(f"{case}: most", MEMORY, max(written) / KIB, "KiB")


def times(scale: Scale) -> Iterator[Row]:
    for count in (scale.small, scale.large):
        rounds = max(scale.rounds * scale.small // count, 5)
        text = document(0, count)
        read = decode_metadata(text, path=PATH)
        table = Table()
        table.store(text)
        parts = read_metadata(table.rows, known(table))
        steps: tuple[tuple[str, Callable[[Any], object], Any], ...] = (
            ("read as JSON", lambda text: decode_metadata(text, path=PATH), text),
            ("judged", check_table, read),
            ("taken apart", split_metadata, text),
            ("read, warm", lambda table: read_metadata(table.rows, known(table)), table),
            ("put together", join_metadata, parts),
        )
        for what, step, of in steps:
            yield row(what, count, median([timed(step, of) for _ in range(rounds)]))
        yield row("read, cold", count, median([cold(table) for _ in range(rounds)]))
        yield row("next version committed", count, median([following(table, count, number) for number in range(1, rounds + 1)]))


def row(what: str, count: int, seconds: float) -> Row:
    return Row(f"{count:,} snapshots {what}", MEMORY, seconds * MICROS, "µs")


def cold(table: Table) -> float:
    rows = table.cold()
    return timed(lambda: read_metadata(rows, known(table)))


def following(table: Table, count: int, number: int) -> float:
    text = document(number, count + number)
    return timed(lambda: table.store(text))


def known(table: Table) -> ObjectId:
    assert table.newest is not None
    return table.newest


# What is stored


def document(first: int, end: int) -> bytes:
    """A table of thirty columns that has the snapshots from one number to another, as a Spark job writes it."""
    snapshots = [snapshot(number) for number in range(first, end)]
    now, current = snapshots[-1]["timestamp-ms"], snapshots[-1]["snapshot-id"]
    columns = [{"id": at, "name": f"column_{at}", "required": False, "type": "string"} for at in range(1, 31)]
    made = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://lake/sales.db/orders",
        "last-sequence-number": end,
        "last-updated-ms": now,
        "last-column-id": 30,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": columns}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {"owner": "etl", "write.parquet.compression-codec": "zstd"},
        "current-snapshot-id": current,
        "refs": {"main": {"snapshot-id": current, "type": "branch"}},
        "snapshots": snapshots,
        "snapshot-log": [{"timestamp-ms": one["timestamp-ms"], "snapshot-id": one["snapshot-id"]} for one in snapshots],
        "metadata-log": [logged(number) for number in range(max(end - LOGGED, 0), end)],
    }
    return json.dumps(made, separators=(",", ":")).encode()


def logged(number: int) -> dict[str, Any]:
    name = f"{number:05}-{random.Random(-number).getrandbits(128):032x}.metadata.json"
    return {"timestamp-ms": snapshot(number)["timestamp-ms"], "metadata-file": f"s3://lake/sales.db/orders/metadata/{name}"}


@cache
def snapshot(number: int) -> dict[str, Any]:
    chance = random.Random(number)
    snapshot_id, added = chance.getrandbits(62), chance.randrange(1000, 1_000_000)
    return {
        "sequence-number": number + 1,
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": random.Random(number - 1).getrandbits(62),
        "timestamp-ms": 1_750_000_000_000 + number * 60_000,
        "summary": {
            "operation": "append",
            "spark.app.id": f"spark-{chance.getrandbits(64):016x}",
            "added-data-files": str(chance.randrange(1, 100)),
            "added-records": str(added),
            "added-files-size": str(added * 87),
            "changed-partition-count": "1",
            "total-records": str(added * number),
            "total-files-size": str(added * number * 87),
            "total-data-files": str(number * 12),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
            "engine-version": "3.5.1",
            "engine-name": "spark",
            "iceberg-version": "Apache Iceberg 1.6.1 (commit 8e9d59d299be42b0bca9461457cd1e95dbaad086)",
        },
        "manifest-list": f"s3://lake/sales.db/orders/metadata/snap-{snapshot_id}-1-{chance.getrandbits(128):032x}.avro",
        "schema-id": 0,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
