"""Files that nobody refers to are marked, and deleted after the delay: the object first, the record second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from collected_tables import HOUR, CollectedTable, make_collected_table

from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.errors import FencedError
from headwater.files import AddFiles, AssignJob, PartitionId


def test_file_with_references_stays(table: CollectedTable, clock: FakeClock) -> None:
    filename = table.add_file()
    table.collect()
    clock.advance(100 * HOUR)
    collected = table.collect()

    assert (table.is_stored(filename), collected.deleted, collected.marked) == (True, 0, 0)


def test_first_collection_marks_and_deletes_nothing(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    collected = table.collect()

    assert (collected.marked, collected.deleted, collected.waiting) == (1, 0, 1)
    assert table.marked_at(filename) == clock.now()
    assert table.is_stored(filename)


def test_file_stays_for_the_whole_delay(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    table.collect()
    clock.advance(3 * HOUR)

    assert table.collect().deleted == 0
    clock.advance(1)
    assert table.collect().deleted == 1
    assert not table.is_stored(filename)


def test_delay_begins_with_the_mark(table: CollectedTable, clock: FakeClock) -> None:
    table.make_unreferenced()
    clock.advance(100 * HOUR)

    assert table.collect().deleted == 0


def test_deleted_file_is_no_longer_tracked(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    table.collect()
    clock.advance(4 * HOUR)
    table.collect()

    assert not table.is_tracked(filename)


def test_missing_file_counts_as_success(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    table.collect()
    (table.path / filename.rpartition("/")[2]).unlink()
    clock.advance(4 * HOUR)
    collected = table.collect()

    assert (collected.deleted, collected.missing, collected.failed) == (0, 1, 0)
    assert not table.is_tracked(filename)


class FenceAt:
    """Raises at one of its calls."""

    def __init__(self, call: int) -> None:
        self.call, self.calls = call, 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == self.call:
            raise FencedError("the task was taken over")


def test_collection_that_dies_anywhere_is_finished_by_the_next(table: CollectedTable, clock: FakeClock) -> None:
    stored_without_record = 0
    for call in range(1, 20):
        unreferenced = table.make_unreferenced(3)
        table.collect()
        clock.advance(4 * HOUR)
        fence = FenceAt(call)
        try:
            table.collect(fence=fence)
        except FencedError:
            stored_without_record += sum(table.is_stored(each) and not table.is_tracked(each) for each in unreferenced)
            table.collect()

        assert not any(table.is_stored(each) or table.is_tracked(each) for each in unreferenced)
        if fence.calls < call:
            break
    assert stored_without_record == 0
    assert call > 5


def test_collection_that_died_leaves_a_record_of_what_is_gone(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    table.collect()
    clock.advance(4 * HOUR)

    class Gone:
        def __call__(self) -> None:
            if not table.is_stored(filename):
                raise FencedError("the worker died")

    with pytest.raises(FencedError):
        table.collect(fence=Gone())
    assert table.is_tracked(filename)
    assert (table.collect().missing, table.is_tracked(filename)) == (1, False)


def test_two_collections_at_once_do_no_harm(table: CollectedTable, clock: FakeClock) -> None:
    unreferenced = table.make_unreferenced(5)
    kept = table.add_file()
    table.collect()
    clock.advance(4 * HOUR)
    others = []

    def other() -> None:
        if len(others) < 6:
            others.append(None)
            table.collect()

    collected = table.collect(fence=other)

    assert others and collected.failed == 0
    assert not any(table.is_stored(each) or table.is_tracked(each) for each in unreferenced)
    assert table.is_stored(kept) and table.is_tracked(kept)


def test_plan_tells_what_a_collection_then_does(table: CollectedTable, clock: FakeClock) -> None:
    table.make_unreferenced(3)
    table.collect()
    clock.advance(4 * HOUR)
    table.make_unreferenced(2)
    table.write_file(hours_ago=30)
    table.write_file(hours_ago=2)
    table.write_file(name="notes.txt")
    plan, deed = table.collector().plan(), table.collect()

    assert plan == replace(deed, dry_run=True)
    assert (plan.deleted, plan.marked, plan.strays, plan.young, plan.unknown, plan.waiting) == (3, 3, 1, 1, 1, 3)


def test_plan_changes_nothing(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    stray = table.write_file(hours_ago=30)
    table.collector().plan()

    assert (table.marked_at(filename), table.is_tracked(stray)) == (None, False)


@pytest.mark.parametrize("settings", [Settings(files_delete_limit=2)])
def test_run_deletes_no_more_than_its_limit(table: CollectedTable, clock: FakeClock) -> None:
    table.make_unreferenced(5)
    table.collect()
    clock.advance(4 * HOUR)

    assert table.collector().plan().postponed == 3
    assert [(each.deleted, each.postponed) for each in (table.collect(), table.collect(), table.collect())] == [
        (2, 3),
        (2, 1),
        (1, 0),
    ]


@pytest.mark.parametrize("settings", [Settings(delete_files_per_second=10)])
def test_deletions_keep_their_rate(table: CollectedTable, clock: FakeClock) -> None:
    table.make_unreferenced(50)
    table.collect()
    clock.advance(4 * HOUR)
    before = clock.monotonic()
    table.collect()

    assert clock.monotonic() - before == pytest.approx(5.0)


def test_file_outside_of_the_folder_is_left_alone(table: CollectedTable, clock: FakeClock, tmp_path: Path) -> None:
    elsewhere = replace(table, path=tmp_path / "other", folder=type(table.folder)((tmp_path / "other").as_uri()))
    (filename,) = elsewhere.make_unreferenced()
    table.collect()
    clock.advance(4 * HOUR)
    collected = table.collect()

    assert (collected.outside, collected.deleted, elsewhere.is_stored(filename)) == (1, 0, True)


@pytest.mark.parametrize("neighbor", ["", "part", "..", "../.."])
def test_folder_shared_with_another_table_yields_nothing(table: CollectedTable, clock: FakeClock, neighbor: str) -> None:
    (filename,) = table.make_unreferenced()
    stray = table.write_file(hours_ago=30)
    location = (table.path / neighbor).resolve().as_uri()
    table.collect(neighbors=[location])
    clock.advance(4 * HOUR)
    collected = table.collect(neighbors=[location])

    assert (collected.deleted, collected.strays) == (0, 0)
    assert table.is_stored(filename) and table.is_stored(stray)
    assert "another file table lies at" in collected.notes[0]


def test_table_beside_another_one_is_collected(table: CollectedTable, clock: FakeClock) -> None:
    table.make_unreferenced()
    table.collect()
    clock.advance(4 * HOUR)

    assert table.collect(neighbors=[table.path.with_name("data-2").as_uri()]).deleted == 1


def test_outcomes_are_forgotten_after_thirty_days(table: CollectedTable, clock: FakeClock) -> None:
    table.references.apply_requests([AddFiles(files=(), request="monday")])
    clock.advance(29 * 24 * HOUR)
    assert table.collect().outcomes == 0
    clock.advance(2 * 24 * HOUR)

    assert table.collect().outcomes == 1
    assert table.references.find_outcomes(["monday"]) == {}


def test_job_without_an_end_is_reported(table: CollectedTable, clock: FakeClock) -> None:
    filename = table.add_file()
    table.references.assign_jobs([AssignJob(job="lost", partition=PartitionId("r"), filenames=(filename,))])
    assert table.collect().jobs == []
    clock.advance(25 * HOUR)
    collected = table.collect()

    assert collected.jobs == ["lost"]
    assert "job lost had references assigned for longer than 1d" in collected.notes[0]


def test_collection_of_another_table_leaves_this_one_alone(table: CollectedTable, store: Store, tmp_path: Path) -> None:
    (filename,) = table.make_unreferenced()
    make_collected_table(store, tmp_path / "other" / "data").collect()

    assert table.marked_at(filename) is None
