"""What every store of file references promises of collection: mark what has no references, and forget it later."""

from __future__ import annotations

import pytest
from reference_stores import assignment, commit_of, make_file

from fake_clock import FakeClock
from headwater.clock import Micros
from headwater.files import FileHasReferencesError, FileNotTrackedError, FileReferenceStore

LATE = Micros(1 << 60)


def test_file_without_references_is_marked(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a"), make_file("b", "r")])

    assert references.mark_unreferenced(clock.now()) == 1
    assert list(references.collectable_files(LATE)) == ["a"]


def test_input_of_a_committed_job_is_marked(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("job", "r", "a")])
    references.commit_jobs([commit_of("job", "r", "a")])

    references.mark_unreferenced(clock.now())

    assert list(references.collectable_files(LATE)) == ["a"]


def test_file_that_is_not_marked_is_not_collectable(references: FileReferenceStore) -> None:
    references.add_files([make_file("a")])

    assert list(references.collectable_files(LATE)) == []


def test_mark_is_set_once(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a")])
    first = clock.now()
    references.mark_unreferenced(first)
    clock.advance(60)

    assert references.mark_unreferenced(clock.now()) == 0
    assert list(references.collectable_files(Micros(first + 1))) == ["a"]


def test_collectable_file_was_marked_strictly_before(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a")])
    references.mark_unreferenced(clock.now())

    assert list(references.collectable_files(clock.now())) == []
    assert list(references.collectable_files(Micros(clock.now() + 1))) == ["a"]


@pytest.mark.parametrize("batch", [1, 2, 3, 10])
def test_all_batches_are_marked(references: FileReferenceStore, clock: FakeClock, batch: int) -> None:
    references.add_files([make_file(f"{number:02}", *["r"] * (number % 3 == 0)) for number in range(12)])

    assert references.mark_unreferenced(clock.now(), batch=batch) == 8
    assert len(list(references.collectable_files(LATE))) == 8


def test_collectable_files_stay_valid_while_they_are_forgotten(references: FileReferenceStore, clock: FakeClock) -> None:
    names = [f"{number:02}" for number in range(12)]
    references.add_files([make_file(each) for each in names])
    references.mark_unreferenced(clock.now())

    forgotten = []
    for filename in references.collectable_files(LATE):
        references.forget_files([filename])
        forgotten.append(filename)

    assert forgotten == names
    assert references.is_empty()


def test_collectable_files_are_of_one_moment(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a"), make_file("b")])
    references.mark_unreferenced(clock.now())
    files = references.collectable_files(LATE)
    first = next(files)

    references.add_files([make_file("c")])
    references.mark_unreferenced(clock.now())

    assert [first, *files] == ["a", "b"]


def test_forgotten_files_are_not_tracked(references: FileReferenceStore) -> None:
    references.add_files([make_file("a"), make_file("b"), make_file("c")])

    references.forget_files(["b", "a"])

    assert [each.filename for each in references.report(9).files] == ["c"]


def test_unknown_file_is_not_forgotten(references: FileReferenceStore) -> None:
    references.add_files([make_file("a")])

    with pytest.raises(FileNotTrackedError) as refusal:
        references.forget_files(["a", "b"])
    assert refusal.value.filename == "b"
    assert not references.is_empty()


def test_referenced_file_is_not_forgotten(references: FileReferenceStore) -> None:
    references.add_files([make_file("a"), make_file("b", "r0", "r1")])

    with pytest.raises(FileHasReferencesError) as refusal:
        references.forget_files(["a", "b"])
    assert (refusal.value.filename, refusal.value.references) == ("b", 2)
    assert [each.filename for each in references.report(9).files] == ["a", "b"]


def test_forgetting_nothing_opens_no_transaction(references: FileReferenceStore) -> None:
    references.forget_files([])

    assert references.counts()["transactions"] == 0
