"""A file table from its first row to its last collection: ``python examples/file_table.py [--rows N] [--folder FOLDER]``.

Everything runs on this machine, in one folder: the store in a SQLite file, the rows in Parquet files, Spark in local mode. Several jobs
ingest the rows; leaves that grew too large are split; two workers compact, one of which is killed in the middle of it; Spark queries by
key; two collections delete what nobody refers to. Then all of it is checked against the rows that were made. Exit code 0: all is right.

A worker of the compaction is this program, too: ``python examples/file_table.py --worker STORE``.
"""

from __future__ import annotations

import argparse
import logging
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwater import Settings, open_store
from headwater.files import (
    CompactionRules,
    CompactionStrategy,
    FileTable,
    FileTableColumn,
    FileTables,
    RowKeyRange,
    RowKeyType,
    RowSchema,
    commit_or_discard,
    execute_job,
    open_file_references,
    open_file_table,
    prepare_jobs,
    query_rows,
    split_large_leaves,
)
from headwater.files.data_folder import DataFolder
from headwater.files.file_collection import FileCollector
from headwater.logs import log_to_stderr
from headwater.realms import RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.store import Store

REALM, TABLE = "acme", "visits"
JOBS = 3
LEASE_SECONDS = 3.0
SHORT_SECONDS = 1.0
"""How long files wait before the last collections delete them, once no writer is at work: hours in earnest."""
ALL = CompactionRules(CompactionStrategy.ALL)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fill, split, compact, query and collect a file table.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="an empty folder to work in; default: a temporary one, removed at the end")
    parser.add_argument("--worker", metavar="STORE", help="compact the table of this store until nothing is left to do")
    asked = parser.parse_args()
    log_to_stderr(Settings.from_environment(), package="headwater", level=logging.WARNING)
    if asked.worker:
        return work(asked.worker)
    with working_folder(asked.folder) as folder:
        return show_all(folder, asked.rows)


def show_all(folder: Path, rows: int) -> int:
    started = time.monotonic()
    url = f"sqlite:///{folder}/store.db"
    with open_store(url, settings=Settings.from_environment()) as store:
        create_table(store, folder)
        with spark_session() as spark:
            from headwater_workers.pipeline.files import SparkFileTable

            visits = SparkFileTable(spark, url=url, realm=REALM, name=TABLE)
            for job in range(JOBS):
                visits.ingest(job_rows(spark, rows, job), request=f"job {job}")
            visits.ingest(job_rows(spark, rows, 0), request="job 0")  # a repetition changes nothing
            with opened_table(store) as table:
                ingested = sum(reference.rows for reference in table.references.references())
                say(started, f"{JOBS} jobs ingested {ingested:,} rows")
                _, tree = split_large_leaves(table, leaf_rows=max(10, rows // 6))
                say(started, f"split by the keys that there are: {len(tree.leaf_ids())} leaves")
            compact_with_two_workers(store, url, started)
            is_right = check_rows(spark, visits, rows)
            say(started, f"queried by key through Spark: {'as it should be' if is_right else 'WRONG'}")
        is_right &= check_query(store, rows)
    is_right &= collect(url, folder, started)
    say(started, "all is right" if is_right else "SOMETHING IS WRONG")
    return 0 if is_right else 1


def create_table(store: Store, folder: Path) -> None:
    realms = RealmRegistry(store)
    realms.create_realm(REALM)
    bootstrap(realms, REALM, hash_credentials(new_credentials()))
    tables = FileTables(realms.open_realm(REALM), lambda scope: open_file_references(store, scope, create=True))
    tables.create_table(
        TABLE,
        location=(folder / "lake").as_uri(),
        key_column="visitor",
        key_type=RowKeyType.LONG,
        sort_columns=("number",),
        columns=tuple(FileTableColumn(name=name, type=kind) for name, kind in COLUMNS),
    )


COLUMNS = (("visitor", "long"), ("number", "long"), ("page", "string"))


def job_rows(spark: Any, rows: int, job: int) -> Any:
    """Every third row. Visitors are many and uneven: half of the visits are those of a tenth of them."""
    numbers = spark.range(job, rows, JOBS)
    return numbers.selectExpr(
        f"(id * 7919) % IF(id % 2 = 0, {max(1, rows // 50)}, {max(1, rows // 5)}) AS visitor",
        "id AS number",
        "concat('/page/', id % 97) AS page",
    )


def row_of(number: int, rows: int) -> tuple[int, int, str]:
    """The same in Python."""
    return number * 7919 % max(1, rows // (50 if number % 2 == 0 else 5)), number, f"/page/{number % 97}"


def compact_with_two_workers(store: Store, url: str, started: float) -> None:
    """Start two workers, and kill the first one while it executes a job that it was assigned."""
    victim = start_worker(url)
    assert victim.stdout is not None
    for line in victim.stdout:
        if line.startswith("executing"):
            break
    survivor = start_worker(url)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    output, _ = survivor.communicate(timeout=120)
    with opened_table(store) as table:
        files = table.references.files_by_partition()
        left = [reference.job for reference in table.references.references() if reference.job is not None]
    say(started, f"one worker was killed ({victim.returncode}); the other one committed {output.count('committed')} jobs")
    if survivor.returncode or left or any(len(each) > 1 for each in files.values()):
        raise SystemExit(f"the survivor left work: {output}")


def start_worker(url: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, "--worker", url], stdout=subprocess.PIPE, text=True)


def work(url: str) -> int:
    """Compact until every leaf has one file. Jobs of a worker that died are taken up when their lease has run out."""
    with open_store(url, settings=Settings.from_environment(), create=False) as store, opened_table(store) as table:
        while True:
            for job in prepare_jobs(table, ALL, lease_seconds=LEASE_SECONDS, limit=2):
                print(f"executing {job.id}: {len(job.inputs)} files of leaf {job.partition}", flush=True)
                schema = RowSchema.of(table.definition)
                commit = execute_job(schema, job, location=table.definition.location, file_id=store.new_id())
                reason = commit_or_discard(commit, lambda commit: table.references.commit_jobs([commit]))
                print(f"refused {job.id}: {reason}" if reason else f"committed {job.id}", flush=True)
            if not any(len(files) > 1 for files in table.references.files_by_partition().values()):
                return 0
            time.sleep(0.2)  # somebody else was assigned what is left


def check_rows(spark: Any, visits: Any, rows: int) -> bool:
    """Every row, by sums over all of them; and a range of keys, row by row."""
    expected = job_rows(spark, rows, 0)
    for job in range(1, JOBS):
        expected = expected.union(job_rows(spark, rows, job))
    sums = ("count(*) AS n", "sum(visitor) AS v", "bit_xor(xxhash64(visitor, number, page)) AS x")
    low, high = rows // 400, rows // 400 + 20
    own = sorted(tuple(row) for row in visits.select_rows(first=low, below=high).collect())
    by_condition = visits.select_rows(pushdown="true").where(f"visitor >= {low} AND visitor < {high}").count()
    oracle = sorted(row for number in range(rows) if low <= (row := row_of(number, rows))[0] < high)
    is_same = visits.select_rows().selectExpr(*sums).collect() == expected.selectExpr(*sums).collect()
    return is_same and own == oracle and by_condition == len(oracle)


def check_query(store: Store, rows: int) -> bool:
    """One visitor, read in this process, without Spark."""
    with opened_table(store) as table:
        key = RowKeyType.LONG.encode_key(7)
        visits = query_rows(table, RowKeyRange(key, key + b"\0")).to_pylist()
    return [tuple(row.values()) for row in visits] == sorted(
        row for number in range(rows) if (row := row_of(number, rows))[0] == 7
    )


def collect(url: str, folder: Path, started: float) -> bool:
    """Two collections: one marks what nobody refers to, one deletes it. What is left are the files of the table."""
    short = Settings.from_environment(files_delete_delay_seconds=SHORT_SECONDS, files_writer_grace_seconds=SHORT_SECONDS)
    with open_store(url, settings=short) as store, opened_table(store) as table:
        for _ in range(2):
            time.sleep(SHORT_SECONDS + 0.2)
            done = FileCollector(store, table.references, DataFolder(table.definition.data_folder)).collect()
            say(started, f"collection: {done.strays} strays tracked, {done.marked} files marked, {done.deleted} deleted")
        referenced = {reference.filename.rpartition("/")[2] for reference in table.references.references()}
    return {path.name for path in folder.rglob("*.parquet")} == referenced


@contextmanager
def opened_table(store: Store) -> Iterator[FileTable]:
    rows = RealmRegistry(store).open_realm(REALM)
    with open_file_table(rows, TABLE, lambda scope: open_file_references(store, scope)) as table:
        yield table


@contextmanager
def spark_session() -> Iterator[Any]:
    from headwater_workers.pipeline.spark_session import SparkOptions, session

    with session("visits", SparkOptions("local[2]", {"spark.sql.shuffle.partitions": "4"})) as spark:
        yield spark


@contextmanager
def working_folder(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="headwater-visits-") as made:
        yield Path(made)


def say(started: float, what: str) -> None:
    print(f"{time.monotonic() - started:5.1f} s  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
