"""A file that nobody tracks is tracked without references once its writer is too late, and then goes as all others do."""

from __future__ import annotations

import pytest
from collected_tables import HOUR, CollectedTable, reference_to

from fake_clock import FakeClock
from headwater.files import AssignJob, CommitJob, FileExistsInTableError, JobCommitsFailedError, PartitionId, TrackedFile


def test_young_file_is_left_to_its_writer(table: CollectedTable) -> None:
    filename = table.write_file(hours_ago=23)
    collected = table.collect()

    assert (collected.young, collected.strays, table.is_tracked(filename)) == (1, 0, False)


def test_old_file_is_tracked_and_marked_at_once(table: CollectedTable, clock: FakeClock) -> None:
    filename = table.write_file(hours_ago=25)
    collected = table.collect()

    assert (collected.strays, collected.marked, table.marked_at(filename)) == (1, 1, clock.now())
    assert table.is_stored(filename)


def test_stray_goes_after_the_delay(table: CollectedTable, clock: FakeClock) -> None:
    filename = table.write_file(hours_ago=25)
    table.collect()
    clock.advance(4 * HOUR)
    table.collect()

    assert not table.is_stored(filename) and not table.is_tracked(filename)


def test_late_writer_of_a_stray_loses_cleanly(table: CollectedTable) -> None:
    filename = table.write_file(hours_ago=25)
    table.collect()

    with pytest.raises(FileExistsInTableError):
        table.references.add_files([TrackedFile(filename=filename, references=(reference_to(filename),))])
    assert table.references.references() == []


def test_late_job_whose_output_is_a_stray_loses_cleanly(table: CollectedTable) -> None:
    given, output = table.add_file(), table.write_file(hours_ago=25)
    table.references.assign_jobs([AssignJob(job="late", partition=PartitionId("r"), filenames=(given,))])
    table.collect()

    with pytest.raises(JobCommitsFailedError) as lost:
        table.references.commit_jobs([CommitJob(job="late", inputs=(given,), output=reference_to(output))])
    assert isinstance(lost.value.__cause__, FileExistsInTableError)
    assert [reference.filename for reference in table.references.references()] == [given]


def test_writer_that_comes_after_the_deletion_loses_cleanly(table: CollectedTable, clock: FakeClock) -> None:
    filename = table.write_file(hours_ago=25)
    table.collect()
    clock.advance(4 * HOUR)
    table.collect()
    assert not table.is_stored(filename) and not table.is_tracked(filename)

    with pytest.raises(FileExistsInTableError, match="longer ago than the writers' grace"):
        table.references.add_files([TrackedFile(filename=filename, references=(reference_to(filename),))])
    assert table.references.references() == []


def test_job_whose_output_came_too_late_may_be_executed_again(table: CollectedTable) -> None:
    given, late, fresh = table.add_file(), table.write_file(hours_ago=25), table.write_file()
    table.references.assign_jobs([AssignJob(job="again", partition=PartitionId("r"), filenames=(given,))])

    with pytest.raises(JobCommitsFailedError):
        table.references.commit_jobs([CommitJob(job="again", inputs=(given,), output=reference_to(late))])
    table.references.commit_jobs([CommitJob(job="again", inputs=(given,), output=reference_to(fresh))])
    assert [reference.filename for reference in table.references.references()] == [fresh]


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "part-0.parquet", "0000000000000001-0.parquet", "ffffffffffffffff-0.parquet", "05d0000000000000.parquet"],
)
def test_foreign_names_are_left_alone(table: CollectedTable, clock: FakeClock, name: str) -> None:
    filename = table.write_file(name=name)
    clock.advance(1000 * HOUR)
    collected = table.collect()

    assert (collected.unknown, collected.strays, table.is_tracked(filename)) == (1, 0, False)


def test_folder_in_the_folder_is_left_alone(table: CollectedTable) -> None:
    table.write_file()
    (table.path / "inner").mkdir()

    assert table.collect().unknown == 1


def test_file_tracked_under_another_spelling_is_no_stray(table: CollectedTable, clock: FakeClock) -> None:
    filename = table.write_file()
    other = filename.replace("file:///", "/")
    table.references.add_files([TrackedFile(filename=other, references=(reference_to(other),))])
    clock.advance(25 * HOUR)
    collected = table.collect()

    assert collected.strays == 0
    assert "under another spelling" in collected.notes[0]


def test_table_without_a_folder_has_no_strays(table: CollectedTable) -> None:
    assert (table.collect().listed, table.collect().notes) == (0, [])


def test_folder_that_cannot_be_listed_has_no_strays(table: CollectedTable, clock: FakeClock) -> None:
    (unreferenced,) = table.make_unreferenced()
    table.collect()
    clock.advance(4 * HOUR)
    away = table.path.rename(table.path.with_name("away"))
    table.path.write_text("no folder")  # a listing of it fails, also for root
    collected = table.collect()
    away.joinpath(unreferenced.rpartition("/")[2]).stat()

    assert collected.strays == 0
    assert "were not looked for" in collected.notes[0]
