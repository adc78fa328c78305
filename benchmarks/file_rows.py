"""Ingest into a file table by Spark, beside the same Spark job that writes plain sorted Parquet; and how an ingest spreads its rows.

The plain job is what one would write by hand: ``repartitionByRange``, ``sortWithinPartitions``, ``write.parquet``, with the same number of
partitions, of the same rows, which are read from Parquet. Its files are tracked by nobody. All contenders take turns.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.disk import working_folder
from benchmarks.report import Row, at_least_of_floor, say, show
from benchmarks.timing import race, timed

from headwater import Settings, open_store
from headwater.files import (
    CompactionRules,
    CompactionStrategy,
    FileTableColumn,
    FileTables,
    RowKeyType,
    balanced_splits,
    compact_table,
    open_file_references,
    query_rows,
)
from headwater.realms import CredentialsHash, RealmRegistry, bootstrap
from headwater_workers.pipeline.files import SparkFileTable, SpreadKind
from headwater_workers.pipeline.files.file_options import file_table_at

__all__ = ["ingest_rates"]

BACKEND = "sqlite"
LEAVES = 64
PARTITIONS = 8
KEYS = 1 << 40
SHARE_OF_PLAIN = 0.7
_COLUMNS = (("key", "long"), ("place", "string"), ("amount", "double"), ("note", "string"))
_NAMES = count(1)


def ingest_rates(*, rows: int = 4_000_000, rounds: int = 5) -> Iterator[Row]:
    """Rows a second of each way to spread, with the plain job as the floor."""
    with working_folder() as folder, spark_session(folder) as spark:
        frame = source_rows(spark, folder / "source", rows)
        seconds = race(contenders(spark, frame, folder), rounds)
        plain = rows / seconds.pop("plain")
        yield Row(f"rows: plain sorted Parquet, {rows:,} rows", BACKEND, plain, "rows/s")
        for name, taken in seconds.items():
            yield Row(f"rows: ingest, {name}", BACKEND, rows / taken, "rows/s", plain, at_least_of_floor(SHARE_OF_PLAIN))
        yield from upkeep_rates(spark, frame, folder, rows)


def contenders(spark: Any, frame: Any, folder: Path) -> dict[str, Callable[[], float]]:
    def plain() -> float:
        target = folder / f"plain-{next(_NAMES)}"
        spread = frame.repartitionByRange(PARTITIONS, "key").sortWithinPartitions("key", "place")
        seconds = timed(lambda: spread.write.parquet(target.as_uri()))
        shutil.rmtree(target)
        return seconds

    def ingest(leaves: int, spread: SpreadKind) -> Callable[[], float]:
        def run() -> float:
            table = new_table(spark, folder, leaves)
            seconds = timed(lambda: table.ingest(frame, partitions=PARTITIONS, spread=spread))
            shutil.rmtree(folder / table.realm)
            return seconds

        return run

    return {
        "plain": plain,
        "one leaf, by range": ingest(1, SpreadKind.RANGE),
        f"{LEAVES} leaves, by range": ingest(LEAVES, SpreadKind.RANGE),
        f"{LEAVES} leaves, by leaves": ingest(LEAVES, SpreadKind.LEAVES),
    }


def upkeep_rates(spark: Any, frame: Any, folder: Path, rows: int) -> Iterator[Row]:
    """Compaction in one process, and reads, of what two ingests left."""
    table = new_table(spark, folder, 8)
    for _ in range(2):
        table.ingest(frame, partitions=PARTITIONS, spread=SpreadKind.LEAVES)
    spark_seconds = timed(lambda: table.select_rows().agg({"amount": "sum"}).collect())
    yield Row("rows: read by Spark, two files a leaf", BACKEND, 2 * rows / spark_seconds, "rows/s")
    with file_table_at(f"sqlite:///{folder}/{table.realm}/store.db", table.realm, table.name) as handle:
        rules = CompactionRules(CompactionStrategy.ALL)
        yield Row(
            "rows: compaction in one process",
            BACKEND,
            2 * rows / timed(lambda: compact_table(handle, rules, lease_seconds=3600)),
            "rows/s",
        )
        kind = RowKeyType.LONG
        one = handle.plan_read().leaves[3].keys._replace(high=kind.encode_key(3 * KEYS // 8 + KEYS // 10_000))
        yield Row("rows: query of a ten-thousandth of the keys", BACKEND, 1000 * timed(lambda: query_rows(handle, one)), "ms")


def new_table(spark: Any, folder: Path, leaves: int) -> SparkFileTable:
    """A new table in a store of its own; its realm is named as the folder of both."""
    realm = f"bench{next(_NAMES)}"
    home = folder / realm
    home.mkdir()
    url = f"sqlite:///{home}/store.db"
    points = [RowKeyType.LONG.encode_key(KEYS // leaves * number) for number in range(1, leaves)]
    with open_store(url, settings=Settings()) as store:
        registry = RealmRegistry(store)
        registry.create_realm(realm)
        bootstrap(registry, realm, CredentialsHash(client_id="bench", salt=b"salt", digest=b"digest"))
        FileTables(registry.open_realm(realm), lambda scope: open_file_references(store, scope, create=True)).create_table(
            "orders",
            location=(home / "lake").as_uri(),
            splits=balanced_splits(points),
            key_column="key",
            key_type=RowKeyType.LONG,
            sort_columns=("place",),
            columns=tuple(FileTableColumn(name=name, type=kind) for name, kind in _COLUMNS),
        )
    return SparkFileTable(spark, realm=realm, name="orders", url=url)


def source_rows(spark: Any, place: Path, rows: int) -> Any:
    """Rows in no order, with keys of an even distribution, from Parquet on disk."""
    frame = spark.range(0, rows, 1, 4).selectExpr(
        f"pmod(xxhash64(id), {KEYS}) AS key",
        "concat('place-', id % 1000) AS place",
        "id * 0.25 AS amount",
        "concat('what a customer says of order ', id) AS note",
    )
    frame.write.parquet(place.as_uri())
    return spark.read.parquet(place.as_uri())


@contextmanager
def spark_session(folder: Path) -> Iterator[Any]:
    """Spark as it is shipped, on two cores: none of the settings by which short jobs of ours start sooner."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("headwater rows").master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "2g").config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    say("ingest by Spark")
    is_quick = "--quick" in sys.argv
    print(show(list(ingest_rates(rows=100_000, rounds=1) if is_quick else ingest_rates())))
