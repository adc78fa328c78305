"""What every store of file references promises of ingest: new files with their references."""

from __future__ import annotations

import pytest
from reference_stores import make_file

from fake_clock import FakeClock
from headwater.files import AddFiles, FileExistsInTableError, FileReferenceStore, RequestState


def test_added_files_have_their_references(references: FileReferenceStore) -> None:
    references.add_files([make_file("b", "r0"), make_file("a", "r0", "r1")])

    assert [(each.filename, each.partition, each.rows, each.is_whole_file, each.job) for each in references.references()] == [
        ("a", "r0", 10, False, None),
        ("a", "r1", 10, False, None),
        ("b", "r0", 10, True, None),
    ]


def test_references_bear_the_time_of_their_addition(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a", "r")])

    assert [each.updated for each in references.references()] == [clock.now()]


def test_file_without_references_is_tracked(references: FileReferenceStore) -> None:
    references.add_files([make_file("a")])

    assert not references.is_empty()
    assert [(each.filename, each.references) for each in references.report(5).files] == [("a", ())]


@pytest.mark.parametrize("partitions", [("r",), ("r0", "r1"), ()])
def test_known_file_is_refused(references: FileReferenceStore, partitions: tuple[str, ...]) -> None:
    references.add_files([make_file("a", "r")])

    with pytest.raises(FileExistsInTableError) as refusal:
        references.add_files([make_file("a", *partitions)])
    assert refusal.value.filename == "a"


def test_known_file_without_references_is_refused(references: FileReferenceStore) -> None:
    references.add_files([make_file("a")])

    with pytest.raises(FileExistsInTableError):
        references.add_files([make_file("a", "r")])


def test_refused_addition_adds_no_file(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])

    with pytest.raises(FileExistsInTableError):
        references.add_files([make_file("b", "r"), make_file("a", "r")])
    assert [each.filename for each in references.references()] == ["a"]


def test_file_that_is_added_twice_is_refused(references: FileReferenceStore) -> None:
    with pytest.raises(FileExistsInTableError):
        references.add_files([make_file("a", "r0"), make_file("a", "r1")])
    assert references.is_empty()


def test_addition_of_nothing_opens_no_transaction(references: FileReferenceStore) -> None:
    references.add_files([])

    assert references.counts()["transactions"] == 0


def test_repeated_addition_with_an_id_is_no_error(references: FileReferenceStore) -> None:
    request = AddFiles(files=(make_file("a", "r"),), request="add-1")
    references.add_files(request)

    references.add_files(request)
    assert references.find_outcomes(["add-1"])["add-1"].state is RequestState.APPLIED


def test_file_of_a_thousand_references_is_added(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", *(f"r{number:010b}" for number in range(1024)))])

    assert len(references.references()) == 1024
