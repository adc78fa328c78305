"""File tables in Spark itself. Needs Java, as Spark does."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from spark_tables import PlacedTable

from headwater import Settings
from headwater.files import (
    CompactionRules,
    CompactionStrategy,
    RowKeyType,
    ingest_rows,
    open_file_references,
    query_rows,
    split_large_leaves,
)
from headwater.store import open_store
from headwater_workers.celery_app import broker_of
from headwater_workers.file_queue import CommitterThreads, FileCommitter, RequestQueue, open_request_queue
from headwater_workers.pipeline import find_engine
from headwater_workers.pipeline.files import SparkFileTable, SpreadKind

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_engine(Settings()).is_spark, reason=str(find_engine(Settings()))),
]
ALL = CompactionRules(CompactionStrategy.ALL)
CONDITIONS = (
    "key = -300",
    "key IN (-3, -9, 5) AND value > 1",
    "key > -30 AND key <= -3",
    "key < -3000 OR place = '1'",
    "key <=> 0",
)
NewTable = Callable[..., PlacedTable]


def numbered(spark: Any, count: int, *, step: int = 1, seed: int = 0) -> Any:
    return spark.range(count).selectExpr(
        f"(id * 7919 + {seed}) % 1009 * {step} AS key",
        "IF(id % 5 = 0, NULL, CAST(id % 7 AS STRING)) AS place",
        f"id + {seed} / 10 AS value",
    )


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


def test_rows_are_those_of_plain_spark_whatever_is_done(spark: Any, new_table: NewTable) -> None:
    place = new_table()
    table = SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)
    parts = [numbered(spark, 3000, seed=seed) for seed in range(3)]
    everything = parts[0]
    table.ingest(parts[0])
    with place.opened() as handle:
        split_large_leaves(handle, leaf_rows=600)
    for part, spread in zip(parts[1:], (SpreadKind.LEAVES, SpreadKind.RANGE), strict=True):
        table.ingest(part, spread=spread)
        everything = everything.union(part)
    expected = rows_of(everything)

    assert rows_of(table.select_rows()) == expected
    report = table.compact(ALL)
    assert report.failed == report.refused == () and len(report.applied) >= 4
    assert rows_of(table.select_rows()) == expected
    assert rows_of(table.select_rows(first=100, below=200, columns=["key"])) == rows_of(
        everything.where("key >= 100 AND key < 200").select("key")
    )
    with place.opened() as handle:
        assert sorted(map(str, (tuple(row.values()) for row in query_rows(handle).to_pylist()))) == [
            str(row) for row in expected
        ]


def test_compaction_commits_by_way_of_the_queue(spark: Any, new_table: NewTable, monkeypatch: pytest.MonkeyPatch) -> None:
    place = new_table()
    monkeypatch.setenv("HEADWATER_FILES_ASYNCHRONOUS", "commit")
    table = SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)
    table.ingest(numbered(spark, 500), partitions=3)
    expected = rows_of(numbered(spark, 500))
    late = table.compact(ALL, outcome_seconds=0.1)
    settings = Settings(store=place.url)
    queue = open_request_queue(broker_of(settings))

    with open_store(place.url, settings=settings) as store:
        committer = FileCommitter(queue, lambda scope: open_file_references(store, scope), clock=store.clock)
        threads = CommitterThreads(committer, queue, threads=2, beat=lambda name: None)
        starter = Thread(target=lambda: (wait_for_requests(queue, 2 * len(late.failed)), threads.start()))
        starter.start()  # not before the second compaction has sent its own: the first one's would leave it nothing to do
        again = table.compact(ALL, lease_seconds=0)
        starter.join()
        threads.stop()
        threads.join(30)

    assert late.applied == () and [reason for _, reason in late.failed] == [
        "its commit was sent, and has no outcome after 0.1 s"
    ] * len(late.failed)
    assert len(again.applied) + len(again.refused) == len(late.failed) > 0 and again.failed == ()
    assert rows_of(table.select_rows()) == expected


def wait_for_requests(queue: RequestQueue, count: int) -> None:
    for _ in range(1200):
        if sum(queue.figures().waiting.values()) >= count:
            return
        time.sleep(0.05)


def test_condition_finds_what_it_would_find_without_being_pushed_down(spark: Any, new_table: NewTable) -> None:
    place = new_table()
    table = SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)
    table.ingest(numbered(spark, 2000, step=-3))
    everything = spark.createDataFrame(table.select_rows().collect(), table.select_rows().schema)

    for condition in CONDITIONS:
        narrowed = table.select_rows(pushdown="true").where(condition)
        assert rows_of(narrowed) == rows_of(everything.where(condition)), condition


def test_every_type_comes_back_as_it_went_in(spark: Any, new_table: NewTable) -> None:
    kinds = [
        "binary",
        "boolean",
        "byte",
        "short",
        "int",
        "float",
        "date",
        "timestamp",
        "timestamp_ntz",
        "decimal(12,3)",
        "array<string>",
    ]
    columns = [("key", "string"), *((f"c{number}", kind) for number, kind in enumerate(kinds))]
    place = new_table(columns=columns, key_type=RowKeyType.STRING, sort_columns=("c6", "c7", "c9"))
    noon = datetime(2026, 7, 1, 12, 0, 0, 5)
    values = [
        b"\x00\xff",
        True,
        -128,
        7,
        -(2**31),
        0.5,
        date(1582, 10, 4),
        noon.replace(tzinfo=UTC),
        noon,
        Decimal("-1.500"),
        ["a", None],
    ]
    rows = [("größe\U0001f600", *values), ("", *[None] * len(kinds)), ("a'b`\"", *values)]
    schema = ", ".join(f"{name} {kind}" for name, kind in columns)
    frame = spark.createDataFrame(rows, schema)
    table = SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)

    table.ingest(frame)
    table.ingest(frame, spread=SpreadKind.LEAVES)
    table.compact(ALL)

    assert rows_of(table.select_rows()) == rows_of(frame.union(frame))
    assert table.select_rows().schema.simpleString() == frame.schema.simpleString()
    assert rows_of(table.select_rows(first="größe", columns=["key"])) == [(rows[0][0],)] * 2


def test_keys_of_binary_type_are_spread_and_read(spark: Any, new_table: NewTable) -> None:
    place = new_table(columns=[("key", "binary"), ("n", "int")], key_type=RowKeyType.BINARY, sort_columns=())
    frame = spark.range(512).selectExpr("unhex(lpad(hex(id), 4, '0')) AS key", "CAST(id AS INT) AS n")
    table = SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)
    table.ingest(frame)
    with place.opened() as handle:
        split_large_leaves(handle, leaf_rows=100)

    table.ingest(frame, spread=SpreadKind.LEAVES)

    assert rows_of(table.select_rows(pushdown="true").where("key >= X'01f0'").select("n")) == sorted(
        [(n,) for n in range(496, 512)] * 2
    )


def test_rows_in_no_order_are_refused(spark: Any, new_table: NewTable) -> None:
    place = new_table()
    SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)

    with pytest.raises(PySparkException, match=r"sorts before the row above it.*use ingest\(\)"):
        numbered(spark, 100).write.format("headwater-files").mode("append").options(**place.options).save()
    assert place.files() == []


def test_row_without_a_key_ends_an_ingest(spark: Any, new_table: NewTable) -> None:
    place = new_table()
    table = SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)
    frame = numbered(spark, 100).selectExpr("IF(key = 0, NULL, key) AS key", "place", "value")

    with pytest.raises(PySparkException, match="has no 'key', and a row key is never null"):
        table.ingest(frame, partitions=1)  # another task, killed as it stores its file, would leave a stray to the collection
    with place.opened() as handle:
        assert handle.references.is_empty()
    assert place.files() == []


@pytest.mark.parametrize(
    ("mode", "change", "message"),
    [
        ("overwrite", {}, "is appended to, and never overwritten"),
        ("append", {"table": "nothing"}, "has no file table 'nothing'; there are orders"),
        ("append", {"colour": "red"}, "has no option colour: its options are table, realm"),
    ],
)
def test_write_that_makes_no_sense_is_refused(
    spark: Any, new_table: NewTable, mode: str, change: dict[str, str], message: str
) -> None:
    place = new_table()
    SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)

    with pytest.raises(PySparkException, match=message):
        numbered(spark, 1).write.format("headwater-files").mode(mode).options(**place.options | change).save()


def test_ingest_of_the_same_name_is_done_once_by_spark(spark: Any, new_table: NewTable) -> None:
    place = new_table()
    table = SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)
    frame = numbered(spark, 10)
    table.ingest(frame, request="day")
    files = place.files()

    table.ingest(frame, request="day")
    frame.sort("key", "place").coalesce(1).write.format("headwater-files").mode("append").options(
        **place.options, request="day"
    ).save()

    assert table.select_rows().count() == 10 and place.files() == files


def test_data_frame_reads_the_state_of_its_making(spark: Any, new_table: NewTable) -> None:
    place = new_table()
    with place.opened() as handle:
        ingest_rows(handle, [pa.table({"key": [1, 2]})])
    table = SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url)
    frame = table.select_rows()

    table.ingest(numbered(spark, 100))

    assert frame.count() == 2 and table.select_rows().count() == 102


def test_data_frame_whose_files_were_collected_fails(spark: Any, new_table: NewTable) -> None:
    place = new_table()
    with place.opened() as handle:
        ingest_rows(handle, [pa.table({"key": [1, 2]})])
    frame = SparkFileTable(spark, realm=place.realm, name=place.name, url=place.url).select_rows()
    place.files()[0].unlink()

    with pytest.raises(PySparkException, match="is gone: it was collected since this read began"):
        frame.count()
