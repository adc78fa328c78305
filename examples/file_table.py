"""A file table from its first row to its last collection: ``python examples/file_table.py [--rows N] [--folder FOLDER]``.

Everything runs on this machine, in one folder: the store in a SQLite file, the rows in Parquet files, Spark in local mode. Several jobs
ingest the rows; leaves that grew too large are split; two workers compact, one of which is killed in the middle of it; Spark queries by
key; two collections delete what nobody refers to. Then all of it is checked against the rows that were made. Exit code 0: all is right.

A worker of the compaction is this program, too: ``python examples/file_table.py --worker STORE``.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import headwater

REALM, TABLE = "acme", "visits"
JOBS = 3
LEASE_SECONDS = 3.0
SHORT_SECONDS = 1.0
"""How long files wait before the last collections delete them, once no writer is at work: hours in earnest."""
COLUMNS = {"visitor": "long", "number": "long", "page": "string"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Fill, split, compact, query and collect a file table.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="an empty folder to work in; default: a temporary one, removed at the end")
    parser.add_argument("--worker", metavar="STORE", help="compact the table of this store until nothing is left to do")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    if asked.worker:
        return work(asked.worker)
    with working_folder(asked.folder) as folder:
        return show_all(folder, asked.rows)


def show_all(folder: Path, rows: int) -> int:
    started = time.monotonic()
    url = f"sqlite:///{folder}/store.db"
    with headwater.connect(url, create=True) as store:
        realm = store.create_realm(REALM, credentials=folder / "root.json")
        table = realm.create_file_table(TABLE, location=str(folder / "lake"), columns=COLUMNS, key="visitor", sort=["number"])
        with spark_session() as spark:
            visits = table.on_spark(spark)
            for job in range(JOBS):
                visits.ingest(job_rows(spark, rows, job), request=f"job {job}")
            visits.ingest(job_rows(spark, rows, 0), request="job 0")  # a repetition changes nothing
            say(started, f"{JOBS} jobs ingested {table.info().rows:,} rows")
            table.split(leaf_rows=max(10, rows // 6))
            say(started, f"split by the keys that there are: {table.info().leaves} leaves")
            compact_with_two_workers(table, url, started)
            is_right = check_rows(spark, visits, rows)
            say(started, f"queried by key through Spark: {'as it should be' if is_right else 'WRONG'}")
        is_right &= check_query(table, rows)
    is_right &= collect(url, folder, started)
    say(started, "all is right" if is_right else "SOMETHING IS WRONG")
    return 0 if is_right else 1


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


def compact_with_two_workers(table: headwater.FileTableClient, url: str, started: float) -> None:
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
    committed = sum(int(line.split()[1]) for line in output.splitlines() if line.startswith("committed"))
    say(started, f"one worker was killed ({victim.returncode}); the other one committed {committed} jobs")
    info = table.info()
    if survivor.returncode or info.jobs or any(files > 1 for files in info.partitions.values()):
        raise SystemExit(f"the survivor left work: {output}")


def start_worker(url: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, "--worker", url], stdout=subprocess.PIPE, text=True)


def work(url: str) -> int:
    """Compact until every leaf has one file. Jobs of a worker that died are taken up when their lease has run out."""
    settings = headwater.Settings.from_environment(files_compaction_lease_seconds=LEASE_SECONDS)
    with headwater.connect(url, settings=settings) as store:
        table = store.realm(REALM).file_table(TABLE)
        while any(files > 1 for files in table.info().partitions.values()):
            done = table.compact(strategy="all", progress=tell_job)
            print(f"committed {done['applied']} jobs, {done['refused']} refused, {done['failed']} failed", flush=True)
            time.sleep(0.2)  # somebody else was assigned what is left
        return 0


def tell_job(progress: headwater.TaskProgressInfo) -> None:
    if progress.done != progress.total:
        print(f"executing job {progress.done + 1} of {progress.total}", flush=True)


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


def check_query(table: headwater.FileTableClient, rows: int) -> bool:
    """One visitor, read in this process, without Spark."""
    visits = table.query(key=7).to_pylist()
    return [tuple(row.values()) for row in visits] == sorted(
        row for number in range(rows) if (row := row_of(number, rows))[0] == 7
    )


def collect(url: str, folder: Path, started: float) -> bool:
    """Two collections: one marks what nobody refers to, one deletes it. What is left are the files of the table."""
    short = headwater.Settings.from_environment(
        files_delete_delay_seconds=SHORT_SECONDS, files_writer_grace_seconds=SHORT_SECONDS
    )
    with headwater.connect(url, settings=short) as store:
        table = store.realm(REALM).file_table(TABLE)
        for _ in range(2):
            time.sleep(SHORT_SECONDS + 0.2)
            done = table.collect()
            say(
                started,
                f"collection: {done['strays']} strays tracked, {done['marked']} files marked, {done['deleted']} deleted",
            )
        table.export(folder / "references.jsonl")
    _, *references = (json.loads(line) for line in (folder / "references.jsonl").read_text(encoding="utf-8").splitlines())
    referenced = {reference["file"].rpartition("/")[2] for reference in references}
    return {path.name for path in folder.rglob("*.parquet")} == referenced


@contextmanager
def spark_session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the python3 of the PATH may be one without Headwater
    options = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "4"}
    options |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    # The work is done by Python functions: compiling what hands rows around to them takes longer than it saves
    options |= {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.sql.codegen.wholeStage": "false"}
    spark = SparkSession.builder.master("local[2]").appName("visits").config(map=options).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


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
