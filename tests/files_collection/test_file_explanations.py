"""For every file it can be told who refers to it, or since when nobody does, and when it may go."""

from __future__ import annotations

import pytest
from collected_tables import HOUR, CollectedTable

from fake_clock import FakeClock
from headwater.clock import as_text
from headwater.errors import NotFoundError
from headwater.files import AssignJob, FileReference, PartitionId, TrackedFile
from headwater.files.file_collection import FileExplanation, explain_file


def explain(table: CollectedTable, name: str) -> FileExplanation:
    return explain_file(table.store, table.references, table.folder, name)


def test_partitions_and_jobs_that_refer_to_it_are_named(table: CollectedTable) -> None:
    filename = table.add_file()
    table.references.assign_jobs([AssignJob(job="j7", partition=PartitionId("r"), filenames=(filename,))])
    explanation = explain(table, filename)

    assert explanation.state == "referenced"
    assert explanation.sentence == "partition r refers to it: it stays; job j7 will replace some of them"
    assert explanation.goes is None


def test_name_alone_is_enough(table: CollectedTable) -> None:
    filename = table.add_file()

    assert explain(table, filename.rpartition("/")[2]).filename == filename


def test_file_without_references_waits_for_its_mark(table: CollectedTable) -> None:
    (filename,) = table.make_unreferenced()
    explanation = explain(table, filename)

    assert (explanation.state, explanation.goes) == ("unreferenced", None)
    assert "the next collection marks it, and one that begins 3h later deletes it" in explanation.sentence


def test_marked_file_goes_when_its_delay_is_over(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    table.collect()
    explanation = explain(table, filename)

    assert (explanation.state, explanation.since) == ("marked", clock.now())
    assert explanation.goes == clock.now() + round(3 * HOUR * 1_000_000)
    assert f"the first collection after {as_text(explanation.goes)} deletes it" in explanation.sentence
    clock.advance(4 * HOUR)
    assert "the next collection deletes it" in explain(table, filename).sentence


def test_told_time_is_when_it_really_goes(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    table.collect()
    goes = explain(table, filename).goes
    assert goes is not None
    clock.advance((goes - clock.now()) / 1_000_000)
    assert table.collect().deleted == 0
    clock.advance(0.001)

    assert table.collect().deleted == 1


def test_clock_that_was_set_delays_what_is_told(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    table.collect()
    clock.set_ahead(5 * HOUR)
    table.collect()

    assert explain(table, filename).goes == clock.now() + round(3 * HOUR * 1_000_000)


def test_young_file_that_nobody_tracks_may_still_be_added(table: CollectedTable) -> None:
    explanation = explain(table, table.write_file(hours_ago=1))

    assert explanation.state == "young"
    assert "its writer may still add it to the table" in explanation.sentence


def test_stray_is_called_so(table: CollectedTable) -> None:
    explanation = explain(table, table.write_file(hours_ago=30))

    assert explanation.state == "stray"
    assert "The next collection marks it, and one 3h later deletes it" in explanation.sentence


def test_foreign_name_is_left_alone(table: CollectedTable) -> None:
    assert explain(table, table.write_file(name="notes.txt")).state == "unknown name"


def test_file_that_is_nowhere_is_not_found(table: CollectedTable) -> None:
    with pytest.raises(NotFoundError, match="was collected, or never was there"):
        explain(table, "0123456789abcdef-0.parquet")


def test_many_partitions_are_counted(table: CollectedTable) -> None:
    filename = table.write_file()
    partitions = [PartitionId(f"r{number:03b}") for number in range(8)]
    references = tuple(FileReference(filename=filename, partition=partition, rows=1) for partition in partitions)
    table.references.add_files([TrackedFile(filename=filename, references=references)])

    assert explain(table, filename).sentence == "8 partitions (r000, r001, r010, r011, r100, ...) refer to it: it stays"
