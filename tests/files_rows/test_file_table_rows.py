"""Rows of a file table in one process: what was ingested is what is read, whatever is split and compacted meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from row_tables import LONGS, Row, in_order, rows_of, table_of

from fake_clock import FakeClock
from headwater.errors import ExpiredError, RefusedError
from headwater.files import (
    ROOT,
    AddFiles,
    CommitJob,
    CompactionRules,
    CompactionStrategy,
    FileTable,
    JobCommitsFailedError,
    LeafFileWriter,
    LeafLimits,
    OutputNames,
    ReadCounts,
    RowKeyRange,
    RowKeyType,
    RowSchema,
    TrackedFile,
    compact_table,
    execute_job,
    ingest_rows,
    is_applied,
    prepare_jobs,
    query_rows,
    scan_rows,
    split_large_leaves,
    track_files,
)
from headwater.files import ingestion as ingests

ALL = CompactionRules(CompactionStrategy.ALL)
LEASE = 3600.0


def ingest(table: FileTable, rows: Iterable[Row], *, request: str = "") -> list[TrackedFile]:
    return ingest_rows(table, [table_of(LONGS, rows)], request=request)


def numbered(*keys: int) -> list[Row]:
    return [(key, None, float(key)) for key in keys]


def keys_of(table: FileTable, low: int | None = None, high: int | None = None) -> list[int]:
    encode = RowKeyType.LONG.encode_key
    keys = RowKeyRange(None if low is None else encode(low), None if high is None else encode(high))
    return query_rows(table, keys, columns=["key"])["key"].to_pylist()


def files_of(table: FileTable) -> set[str]:
    return {path.name for path in Path(table.definition.data_folder.removeprefix("file://")).iterdir()}


def test_rows_are_read_in_order(orders: FileTable) -> None:
    first, second = [(3, "b", 0.5), (1, None, 1.5)], [(3, "a", 2.5), (-7, "z", 3.5)]
    ingest(orders, first)
    ingest(orders, second)

    assert rows_of([query_rows(orders)]) == in_order(first + second)


def test_rows_stay_the_same_through_splits_and_compactions(orders: FileTable, clock: FakeClock) -> None:
    rows: list[Row] = []
    for number in range(6):
        new = [(key * 37 % 101, "abc"[key % 3], float(number)) for key in range(60)]
        ingest(orders, new)
        rows += new
        split_large_leaves(orders, leaf_rows=50)
        if number % 2:
            assert compact_table(orders, ALL, lease_seconds=LEASE).failed == ()

        assert sorted(rows_of([query_rows(orders)])) == sorted(rows)

    counts = {partition: len(files) for partition, files in orders.references.files_by_partition().items()}
    assert set(counts.values()) == {1} and len(counts) > 4


def test_reference_of_each_leaf_counts_its_rows(orders: FileTable) -> None:
    orders.split_leaves({ROOT: RowKeyType.LONG.encode_key(10)})

    (file,) = ingest(orders, numbered(1, 2, 3, 10, 11))

    assert {each.partition: (each.rows, each.is_estimate, each.is_whole_file) for each in file.references} == {
        "r0": (3, False, False),
        "r1": (2, False, False),
    }


def test_file_ends_where_a_leaf_does(orders: FileTable) -> None:
    orders.split_leaves({ROOT: RowKeyType.LONG.encode_key(10)})
    schema, limits = RowSchema.of(orders.definition), LeafLimits.of(orders.read_tree())
    names = OutputNames(orders.definition.location, orders.rows.new_id(), "0")

    with LeafFileWriter(schema, limits, names, file_rows=3) as writer:
        for part in table_of(LONGS, numbered(*range(20))).to_batches(max_chunksize=7):
            writer.write_rows(part)
        files = writer.finish()

    assert [(file.references[0].partition, file.rows) for file in files] == [("r0", 10), ("r1", 10)]


def test_ingest_larger_than_a_run_makes_several_files(orders: FileTable) -> None:
    parts = [table_of(LONGS, numbered(*range(part, 100, 10))) for part in range(10)]

    files = ingest_rows(orders, parts, run_bytes=3 * parts[0].nbytes)

    assert len(files) == 4 and keys_of(orders) == list(range(100))


def test_ingest_of_the_same_name_happens_once(orders: FileTable) -> None:
    ingest(orders, numbered(1), request="2026-01-01")

    assert ingest(orders, numbered(1), request="2026-01-01") == []
    assert keys_of(orders) == [1] and len(files_of(orders)) == 1


def test_ingest_that_lost_a_race_deletes_its_files(orders: FileTable, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(orders, numbered(1), request="day")
    looks = [False]
    monkeypatch.setattr(ingests, "is_applied", lambda table, request: looks.pop() if looks else is_applied(table, request))

    assert ingest(orders, numbered(2), request="day") == []
    assert keys_of(orders) == [1] and len(files_of(orders)) == 1


def test_refused_ingest_leaves_nothing(orders: FileTable) -> None:
    rows = [table_of(LONGS, numbered(5)), pa.table({"key": pa.array([1, None], pa.int64())})]

    with pytest.raises(RefusedError, match="row 2 has no 'key'"):
        ingest_rows(orders, rows, run_bytes=1)
    assert orders.references.is_empty() and files_of(orders) == set()


def test_ingest_into_a_tree_that_was_split_meanwhile_is_right(orders: FileTable) -> None:
    schema, limits = RowSchema.of(orders.definition), LeafLimits.of(orders.read_tree())
    with LeafFileWriter(schema, limits, OutputNames(orders.definition.location, orders.rows.new_id(), "0")) as writer:
        writer.write_rows(table_of(LONGS, numbered(*range(20))))
        files = writer.finish()
    orders.split_leaves({ROOT: RowKeyType.LONG.encode_key(10)})

    track_files(orders, files, request="late")

    assert keys_of(orders) == list(range(20)) and keys_of(orders, 8, 12) == [8, 9, 10, 11]


def test_query_opens_only_files_of_its_leaves(orders: FileTable) -> None:
    orders.split_leaves({ROOT: RowKeyType.LONG.encode_key(10)})
    for key in (1, 2, 11):
        ingest(orders, numbered(key))
    counts = ReadCounts()

    keys = RowKeyRange(RowKeyType.LONG.encode_key(10))
    rows = rows_of(scan_rows(orders, keys, counts=counts))

    assert [row[0] for row in rows] == [11] and counts.files == 1


def test_collected_file_ends_a_query(orders: FileTable) -> None:
    (file,) = ingest(orders, numbered(1))
    Path(file.filename.removeprefix("file://")).unlink()

    with pytest.raises(ExpiredError, match="is gone: it was collected since this read began"):
        query_rows(orders)


def test_leaf_of_one_key_is_reported(orders: FileTable) -> None:
    ingest(orders, numbered(*[7] * 50))

    plan, tree = split_large_leaves(orders, leaf_rows=10)

    assert plan.unsplit == {ROOT: "all its rows have one key, or keys too long for a split point"}
    assert list(tree.leaf_ids()) == [ROOT]


def test_split_makes_leaves_that_are_small_enough(orders: FileTable) -> None:
    ingest(orders, numbered(*range(1000)))

    _, tree = split_large_leaves(orders, leaf_rows=250)

    points = [-1, *[RowKeyType.LONG.decode_key(point) for point in tree.split_points()], 1000]
    assert max(high - low for low, high in pairwise(points)) < 200  # type: ignore[operator]
    assert split_large_leaves(orders, leaf_rows=250)[0].points == {}


def test_compaction_counts_rows_exactly(orders: FileTable) -> None:
    ingest(orders, numbered(*range(0, 20)))
    ingest(orders, numbered(*range(5, 30)))
    orders.split_leaves({ROOT: RowKeyType.LONG.encode_key(10)})

    report = compact_table(orders, ALL, lease_seconds=LEASE)

    rows = {each.partition: (each.rows, each.is_estimate) for each in orders.references.references()}
    assert rows == {"r0": (15, False), "r1": (30, False)} and report.rows == 45


def test_compaction_of_a_leaf_without_rows_makes_an_empty_file(orders: FileTable) -> None:
    ingest(orders, numbered(1, 2))
    ingest(orders, numbered(3))
    orders.split_leaves({ROOT: RowKeyType.LONG.encode_key(100)})

    compact_table(orders, ALL, lease_seconds=LEASE)

    assert keys_of(orders) == [1, 2, 3] and keys_of(orders, 50) == []


def test_assigned_job_is_taken_up_after_its_lease(orders: FileTable, clock: FakeClock) -> None:
    ingest(orders, numbered(1))
    ingest(orders, numbered(2))
    (lost,) = prepare_jobs(orders, ALL, lease_seconds=LEASE)

    assert prepare_jobs(orders, ALL, lease_seconds=LEASE) == []
    clock.advance(LEASE + 1)
    assert compact_table(orders, ALL, lease_seconds=LEASE).applied == (lost.id,)
    assert keys_of(orders) == [1, 2]


def test_second_execution_of_a_job_loses(orders: FileTable) -> None:
    ingest(orders, numbered(1))
    ingest(orders, numbered(2))
    (job,) = prepare_jobs(orders, ALL, lease_seconds=LEASE)
    commits = [execute(orders, job) for _ in range(2)]

    orders.references.commit_jobs(commits[:1])
    with pytest.raises(JobCommitsFailedError):
        orders.references.commit_jobs(commits[1:])

    assert commits[0].output.filename != commits[1].output.filename
    assert keys_of(orders) == [1, 2]


def test_split_between_assignment_and_commit_changes_nothing(orders: FileTable) -> None:
    ingest(orders, numbered(*range(0, 20)))
    ingest(orders, numbered(*range(0, 20)))
    (job,) = prepare_jobs(orders, ALL, lease_seconds=LEASE)
    orders.split_leaves({ROOT: RowKeyType.LONG.encode_key(10)})

    orders.references.commit_jobs([execute(orders, job)])

    assert keys_of(orders) == sorted([*range(20), *range(20)])
    assert compact_table(orders, ALL, lease_seconds=LEASE).failed == ()
    assert keys_of(orders, 9, 11) == [9, 9, 10, 10]


def test_file_tracked_as_a_stray_is_not_tracked_again(orders: FileTable) -> None:
    ingest(orders, numbered(1))
    ingest(orders, numbered(2))
    (job,) = prepare_jobs(orders, ALL, lease_seconds=LEASE)
    commit = execute(orders, job)
    orders.references.add_files(AddFiles(files=(TrackedFile(filename=commit.output.filename),)))

    with pytest.raises(JobCommitsFailedError):
        orders.references.commit_jobs([commit])
    assert keys_of(orders) == [1, 2]


def execute(table: FileTable, job: object) -> CommitJob:
    schema = RowSchema.of(table.definition)
    return execute_job(schema, job, location=table.definition.location, file_id=table.rows.new_id())  # type: ignore[arg-type]
