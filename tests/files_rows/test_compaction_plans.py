"""Plans of compactions: which files of a leaf one job merges."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headwater.clock import Micros
from headwater.files import ROOT, CompactionRules, CompactionStrategy, FileReference, PartitionId, PartitionTree, RowKeyRange
from headwater.files.compaction import choose_inputs, find_jobs, plan_jobs
from headwater.store import ObjectId

ALL = CompactionRules(CompactionStrategy.ALL)
FULL = CompactionRules(CompactionStrategy.FULL_BATCHES, batch=3)


def files(*rows: int, partition: str = "r", job: str | None = None, updated: int = 0) -> list[FileReference]:
    return [
        FileReference(filename=f"{number:02}", partition=PartitionId(partition), rows=count, job=job, updated=Micros(updated))
        for number, count in enumerate(rows)
    ]


def ids(count: int) -> Sequence[ObjectId]:
    return [ObjectId(number) for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("rows", "inputs"),
    [
        ([10, 10, 10], []),
        ([10, 10, 10, 10], [[10, 10, 10, 10]]),
        ([1000, 10, 10, 10, 10], [[10, 10, 10, 10]]),
        ([1000, 300, 10], []),
        ([33, 30, 30, 30, 10], [[33, 30, 30, 30, 10]]),
        ([0, 0], [[0, 0]]),
        ([5], []),
        ([], []),
    ],
)
def test_size_ratio_takes_files_that_none_dwarfs(rows: list[int], inputs: list[list[int]]) -> None:
    chosen = choose_inputs(files(*rows), CompactionRules())

    assert [sorted((each.rows for each in batch), reverse=True) for batch in chosen] == inputs


def test_jobs_have_no_more_inputs_than_a_batch() -> None:
    chosen = choose_inputs(files(*[10] * 25), CompactionRules(batch=12))

    assert [len(batch) for batch in chosen] == [12, 12]


def test_full_batches_wait_until_they_are_full() -> None:
    assert choose_inputs(files(1, 1), FULL) == []
    assert [[each.rows for each in batch] for batch in choose_inputs(files(9, 1, 1, 1, 9), FULL)] == [[1, 1, 1]]


def test_assigned_reference_is_left_to_its_job() -> None:
    assert choose_inputs(files(1, 1, job="a job") + files(7), ALL) == []


def test_jobs_are_planned_leaf_by_leaf() -> None:
    tree = PartitionTree().split_leaf(ROOT, b"m")
    references = files(1, 2, partition="r0") + files(3, 4, partition="r1") + files(5, 6, partition="r")

    jobs = plan_jobs(references, tree, ALL, new_ids=ids)

    assert [(job.id, job.partition, job.rows) for job in jobs] == [("0000000000000001", "r0", 3), ("0000000000000002", "r1", 7)]
    assert [job.keys for job in jobs] == [RowKeyRange(None, b"m"), RowKeyRange(b"m", None)]


def test_job_is_found_by_its_references_alone() -> None:
    tree = PartitionTree().split_leaf(ROOT, b"m")
    references = files(1, 2, job="late", updated=5) + files(3, partition="r1", job="young", updated=9)

    jobs = find_jobs(references, tree, before=Micros(6))

    assert [(job.id, job.partition, job.inputs, job.keys) for job in jobs] == [("late", "r", ("00", "01"), RowKeyRange())]
