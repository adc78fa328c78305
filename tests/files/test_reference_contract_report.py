"""What every store of file references promises of reports, snapshots and lists, and of clearing and closing a file table."""

from __future__ import annotations

import pytest
from reference_stores import ReferenceDatabase, assignment, commit_of, make_file, places

from fake_clock import FakeClock
from headwater.errors import HeadwaterError, RefusedError
from headwater.files import FileReferenceStore, FileTableClosedError, PartitionId


def test_report_has_files_with_and_without_references(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("b", "r0", "r1"), make_file("a"), make_file("c", "r0")])
    references.assign_jobs([assignment("job", "r0", "b", "c")])

    report = references.report(9)

    assert [each.filename for each in report.files] == ["a", "b", "c"]
    assert [each.filename for each in report.unreferenced] == ["a"]
    assert report.rows_by_file == {"a": 0, "b": 20, "c": 10}
    assert report.references_by_partition == {"r0": 2, "r1": 1}
    assert report.references_by_job == {"job": 2, None: 1}


@pytest.mark.parametrize(
    ("limit", "names", "is_cut"), [(0, [], True), (1, ["a"], True), (2, ["a", "c"], False), (3, ["a", "c"], False)]
)
def test_report_is_cut_at_its_limit(references: FileReferenceStore, limit: int, names: list[str], is_cut: bool) -> None:
    references.add_files([make_file("c"), make_file("b", "r"), make_file("a")])

    report = references.report(limit)

    assert [each.filename for each in report.unreferenced] == names
    assert report.is_cut is is_cut


def test_report_tells_when_a_file_was_marked(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a")])
    before = [each.updated for each in references.report(1).files]

    references.mark_unreferenced(clock.now())

    assert before == [None]
    assert [each.updated for each in references.report(1).files] == [clock.now()]


def test_snapshot_of_partitions_has_theirs_alone(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0", "r10", "r11")])

    snapshot = references.snapshot([PartitionId("r0"), PartitionId("r11"), PartitionId("unknown")])

    assert [each.partition for each in snapshot.references] == ["r0", "r11"]


def test_snapshot_without_changes_of_the_tree_has_number_zero(references: FileReferenceStore) -> None:
    assert references.snapshot().tree_number == 0


def test_files_are_listed_by_partition(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0", "r1"), make_file("b", "r1"), make_file("c")])

    assert references.files_by_partition() == {"r0": ["a"], "r1": ["a", "b"]}


def test_names_sort_by_their_bytes(references: FileReferenceStore) -> None:
    names = ["Z", "a", "ä", "z/1", "z-1", "€", "\U0001f600"]
    references.add_files([make_file(each, "r") for each in names])

    assert [each.filename for each in references.references()] == sorted(names)


def test_files_are_found_by_name(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0", "r1"), make_file("b"), make_file("c", "r0")])

    files = references.find_files(["b", "a", "unknown"])

    assert {name: [each.partition for each in file.references] for name, file in files.items()} == {"a": ["r0", "r1"], "b": []}


def test_table_with_files_is_not_empty(references: FileReferenceStore) -> None:
    was_empty = references.is_empty()

    references.add_files([make_file("a", "r")])

    assert was_empty
    assert not references.is_empty()


def test_tables_do_not_see_each_other(references: FileReferenceStore, reference_database: ReferenceDatabase) -> None:
    other = reference_database.make_table()
    references.add_files([make_file("a", "r")])

    other.add_files([make_file("a", "r"), make_file("b")])
    other.clear_files()

    assert places(references) == [("a", "r", None)]


def test_cleared_table_is_empty(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r"), make_file("b")])
    references.assign_jobs([assignment("job", "r", "a")])
    references.commit_jobs([commit_of("job", "r", "a")])

    references.clear_files()

    assert references.is_empty()
    assert references.references() == []
    assert references.find_outcomes(["job"])


def test_cleared_file_is_added_again(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    references.clear_files()

    references.add_files([make_file("a", "r")])

    assert places(references) == [("a", "r", None)]


def test_closed_table_takes_no_writes(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a", "r"), make_file("b")])
    references.close_scope()

    for write in (
        lambda: references.add_files([make_file("c")]),
        lambda: references.assign_jobs([assignment("job", "r", "a")]),
        lambda: references.commit_jobs([commit_of("job", "r", "a")]),
        lambda: references.apply_requests([commit_of("job", "r", "a")]),
        lambda: references.forget_files(["b"]),
        lambda: references.mark_unreferenced(clock.now()),
        references.clear_files,
    ):
        with pytest.raises(FileTableClosedError):
            write()
    assert places(references) == [("a", "r", None)]


def test_table_is_closed_twice(references: FileReferenceStore) -> None:
    references.close_scope()
    references.close_scope()


def test_closed_table_is_deleted_bit_by_bit(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0", "r1"), make_file("b", "r0")])
    references.assign_jobs([assignment("job", "r0", "a")])
    references.commit_jobs([commit_of("job", "r0", "a")])
    references.close_scope()

    deleted = []
    while count := references.delete_scope(2):
        deleted.append(count)

    assert max(deleted) == 2
    assert sum(deleted) >= 3 + 3 + 1 + 1
    assert references.delete_scope(2) == 0
    assert references.is_empty()


def test_open_table_is_not_deleted(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])

    with pytest.raises(RefusedError):
        references.delete_scope(10)
    assert places(references) == [("a", "r", None)]


def test_deleted_table_takes_no_writes(references: FileReferenceStore) -> None:
    references.close_scope()
    while references.delete_scope(10):
        pass

    with pytest.raises(HeadwaterError):
        references.add_files([make_file("a")])
    assert references.is_empty()
