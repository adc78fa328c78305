"""A lake of tables with metadata alone, and one import of it: run in a process of its own, ``python -m benchmarks.lakes ENGINE URL LAKE``.

Prints one line of JSON: what the process took to start, to survey and to commit, and its memory.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
from benchmarks.disk import ROOT, working_folder
from benchmarks.peak import peak_bytes
from benchmarks.tables import SEED

from headwater.catalogs import Catalogs, ImportSpec, TableClaims, import_tables, survey_scope
from headwater.iceberg import SurveyOutcome, SurveyScope, survey_in_process
from headwater.realms import RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.store import Store, open_store
from headwater_workers.pipeline.spark_session import SparkOptions, session
from headwater_workers.pipeline.spark_survey import survey_in

__all__ = ["ENGINES", "Imported", "import_apart", "make_lake", "metadata_files"]

ENGINES = ("process", "spark")
REALM, CATALOG = "bench", "lake"
TABLES_PER_NAMESPACE = 100
SNAPSHOTS = 20
COLUMNS = 30
FIRST_MS = 1_750_000_000_000


@dataclass(frozen=True)
class Imported:
    """Seconds and bytes.

    start         until one table was surveyed: a session, what a JVM loads and compiles the first time, Python's own workers
    survey, commit  of the import after that
    again         the import run once more
    idle          the process after the start
    """

    tables: int
    commits: int
    start: float
    survey: float
    commit: float
    again: float
    commits_again: int
    idle: int
    peak: int


def make_lake(folder: Path, tables: int) -> Path:
    """A new folder with so many tables of 20 snapshots and 30 columns: about 20 KB of metadata each, and nothing else."""
    chance = random.Random(SEED)
    for number in range(tables):
        directory = folder / f"ns{number // TABLES_PER_NAMESPACE:05}" / f"t{number:07}"
        (directory / "metadata").mkdir(parents=True)
        name = f"{SNAPSHOTS:05}-{_uuid(chance)}.metadata.json"
        file = directory / "metadata" / name
        file.write_text(json.dumps(_document(directory.as_uri(), chance)), encoding="utf-8")
        os.utime(file, (FIRST_MS // 1000,) * 2)  # what was written minutes ago is looked at twice
    return folder


def metadata_files(lake: Path) -> Iterator[tuple[tuple[str, str], Path]]:
    """Each table's name and metadata file."""
    for file in sorted(lake.glob("*/*/metadata/*.metadata.json")):
        yield (file.parts[-4], file.parts[-3]), file


def import_apart(engine: str, url: str, lake: Path) -> Imported:
    """One import into a new store, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.lakes", engine, url, str(lake)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Imported(**json.loads(done.stdout.splitlines()[-1]))


def main(engine: str, url: str, lake: str) -> None:
    with open_store(url) as store, working_folder() as folder:
        _make_realm(store)
        scope, one = (_scope(store, name, place) for name, place in ((CATALOG, lake), ("one", make_lake(folder, 1))))
        started = time.perf_counter()
        with _surveying(engine) as survey:
            survey(one)
            start = time.perf_counter() - started
            idle = psutil.Process().memory_info().rss
            first = _timed_import(store, scope, survey)
            again = _timed_import(store, scope, survey)
    print(
        json.dumps(
            asdict(
                Imported(
                    tables=first[2].imported,
                    commits=len(first[2].commits),
                    start=start,
                    survey=first[0],
                    commit=first[1],
                    again=again[0] + again[1],
                    commits_again=len(again[2].commits),
                    idle=idle,
                    peak=peak_bytes(),
                )
            )
        )
    )


@contextmanager
def _surveying(engine: str) -> Iterator[Any]:
    """What surveys; started."""
    if engine == "process":
        yield survey_in_process
        return
    with session("benchmark", SparkOptions(master="local[*]")) as spark:
        yield lambda scope: survey_in(spark, scope)


def _timed_import(store: Store, scope: SurveyScope, survey: Any) -> tuple[float, float, Any]:
    """Seconds of the survey, seconds of the commits, and the report."""
    rows = RealmRegistry(store).open_realm(REALM)
    started = time.perf_counter()
    outcomes: Iterable[SurveyOutcome] = survey(scope)
    surveyed = time.perf_counter()
    report = import_tables(Catalogs(rows).open_catalog(CATALOG), TableClaims(rows), outcomes)
    return surveyed - started, time.perf_counter() - surveyed, report


def _make_realm(store: Store) -> None:
    realms = RealmRegistry(store)
    realms.create_realm(REALM)
    bootstrap(realms, REALM, hash_credentials(new_credentials()))


def _scope(store: Store, name: str, lake: str | Path) -> SurveyScope:
    """Of an import into a new catalog."""
    base = Path(lake).as_uri()
    definition = Catalogs(RealmRegistry(store).open_realm(REALM)).create_catalog(name, base_location=base)
    return survey_scope(definition, ImportSpec(name=name, locations=(base,)), now=store.clock.now())


def _document(location: str, chance: random.Random) -> dict[str, Any]:
    fields = [
        {"id": number, "name": f"column_{number}", "required": False, "type": "string"} for number in range(1, COLUMNS + 1)
    ]
    snapshots = [_snapshot(location, number, chance) for number in range(1, SNAPSHOTS + 1)]
    del snapshots[0]["parent-snapshot-id"]
    files = [f"{location}/metadata/{number:05}-{_uuid(chance)}.metadata.json" for number in range(SNAPSHOTS)]
    return {
        "format-version": 2,
        "table-uuid": _uuid(chance),
        "location": location,
        "last-sequence-number": SNAPSHOTS,
        "last-updated-ms": FIRST_MS + SNAPSHOTS,
        "last-column-id": COLUMNS,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [
            {"spec-id": 0, "fields": [{"name": "bucket", "transform": "bucket[16]", "source-id": 1, "field-id": 1000}]}
        ],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "lake", "write.parquet.compression-codec": "zstd"},
        "current-snapshot-id": snapshots[-1]["snapshot-id"],
        "refs": {"main": {"snapshot-id": snapshots[-1]["snapshot-id"], "type": "branch"}},
        "snapshots": snapshots,
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [{"timestamp-ms": one["timestamp-ms"], "snapshot-id": one["snapshot-id"]} for one in snapshots],
        "metadata-log": [{"timestamp-ms": FIRST_MS + at, "metadata-file": file} for at, file in enumerate(files)],
    }


def _snapshot(location: str, number: int, chance: random.Random) -> dict[str, Any]:
    snapshot_id = 3_051_729_675_574_597_004 + number
    return {
        "sequence-number": number,
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": snapshot_id - 1,
        "timestamp-ms": FIRST_MS + number,
        "summary": {
            "operation": "append",
            "spark.app.id": f"application-{chance.randrange(10**12)}",
            "added-data-files": "4",
            "added-records": str(chance.randrange(10**6)),
            "added-files-size": str(chance.randrange(10**8)),
            "changed-partition-count": "2",
            "total-records": str(40_000 * number),
            "total-files-size": str(1_234_567 * number),
            "total-data-files": str(4 * number),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
        },
        "manifest-list": f"{location}/metadata/snap-{snapshot_id}-1-{_uuid(chance)}.avro",
        "schema-id": 0,
    }


def _uuid(chance: random.Random) -> str:
    return str(UUID(int=chance.getrandbits(128), version=4))


if __name__ == "__main__":
    main(*sys.argv[1:])
