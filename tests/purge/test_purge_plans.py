"""Plans of purges: what goes, in which order, and what does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.iceberg import LakeFolder, ReachedFile
from headwater.purge.table_purge import TableDeletionPlan


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[TableDeletionPlan]:
    """Of a folder with five files."""
    for name in "abcde":
        (tmp_path / name).touch()
    made = TableDeletionPlan([LakeFolder(tmp_path.as_uri())])
    yield made
    made.close()


def planned(plan: TableDeletionPlan, folder: Path, **turns: int) -> list[tuple[int, list[str]]]:
    plan.add_files(ReachedFile((folder / name).as_uri(), turn) for name, turn in turns.items())
    plan.list_present()
    return [(turn, [Path(path).name for path in paths]) for turn, _, paths in plan.batches(2)]


def test_batches_are_bounded_and_never_of_two_turns(plan: TableDeletionPlan, tmp_path: Path) -> None:
    assert planned(plan, tmp_path, e=0, a=1, b=0, c=0, d=2) == [(0, ["b", "c"]), (0, ["e"]), (1, ["a"]), (2, ["d"])]


def test_file_that_is_reached_twice_goes_in_the_later_turn(plan: TableDeletionPlan, tmp_path: Path) -> None:
    planned(plan, tmp_path, a=2)
    planned(plan, tmp_path, a=0)
    planned(plan, tmp_path, a=1)

    assert planned(plan, tmp_path) == [(2, ["a"])]
    assert (plan.planned, plan.there, plan.others) == (1, 1, 4)


def test_files_elsewhere_are_counted_once_and_never_planned(plan: TableDeletionPlan, tmp_path: Path) -> None:
    beside = f"{tmp_path.as_uri()}2/a"
    plan.add_files(
        [
            ReachedFile(beside, 0),
            ReachedFile(beside, 1),
            ReachedFile("relative/path", 0),
            ReachedFile(f"{tmp_path.as_uri()}/../b", 0),
        ]
    )

    assert (plan.planned, plan.outside) == (0, 3)


def test_missing_file_is_planned_and_in_no_batch(plan: TableDeletionPlan, tmp_path: Path) -> None:
    assert planned(plan, tmp_path, a=0, missing=0) == [(0, ["a"])]
    assert list(plan.not_listed()) == [(tmp_path / "missing").as_uri()]
