"""What every store of file references promises of assignments to jobs, and of checks of them."""

from __future__ import annotations

import pytest
from reference_stores import assignment, make_file, places

from fake_clock import FakeClock
from headwater.files import (
    AssignmentCheck,
    FileReferenceStore,
    PartitionId,
    ReferenceAssignedError,
    ReferenceNotFoundError,
)


def check(job: str, partition: str, *filenames: str) -> AssignmentCheck:
    return AssignmentCheck(job=job, partition=PartitionId(partition), filenames=filenames)


def test_assigned_references_have_their_job(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a", "r0", "r1"), make_file("b", "r0")])
    clock.advance(5)

    references.assign_jobs([assignment("job", "r0", "a", "b")])

    assert places(references) == [("a", "r0", "job"), ("a", "r1", None), ("b", "r0", "job")]
    assert [each.updated == clock.now() for each in references.references()] == [True, False, True]


def test_partitions_of_a_file_have_jobs_of_their_own(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0", "r1")])

    references.assign_jobs([assignment("one", "r0", "a"), assignment("two", "r1", "a")])

    assert places(references) == [("a", "r0", "one"), ("a", "r1", "two")]


@pytest.mark.parametrize("job", ["first", "second"])
def test_assigned_reference_is_not_assigned_again(references: FileReferenceStore, job: str) -> None:
    references.add_files([make_file("a", "r"), make_file("b", "r")])
    references.assign_jobs([assignment("first", "r", "a")])

    with pytest.raises(ReferenceAssignedError) as refusal:
        references.assign_jobs([assignment(job, "r", "b", "a")])
    assert (refusal.value.filename, refusal.value.partition, refusal.value.job) == ("a", "r", "first")
    assert places(references) == [("a", "r", "first"), ("b", "r", None)]


def test_second_request_for_a_reference_undoes_the_call(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])

    with pytest.raises(ReferenceAssignedError) as refusal:
        references.assign_jobs([assignment("first", "r", "a"), assignment("second", "r", "a")])
    assert refusal.value.job == "first"
    assert places(references) == [("a", "r", None)]


def test_assignment_of_an_unknown_file_finds_no_reference(references: FileReferenceStore) -> None:
    with pytest.raises(ReferenceNotFoundError) as refusal:
        references.assign_jobs([assignment("job", "r", "a")])
    assert (refusal.value.filename, refusal.value.partition) == ("a", "r")


def test_assignment_on_another_partition_is_refused(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0")])

    with pytest.raises(ReferenceNotFoundError):
        references.assign_jobs([assignment("job", "r1", "a")])


def test_assignment_without_files_opens_no_transaction(references: FileReferenceStore) -> None:
    references.assign_jobs([])
    references.assign_jobs([assignment("job", "r")])

    assert references.counts()["transactions"] == 0


def test_repeated_assignment_with_an_id_is_no_error(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    request = assignment("job", "r", "a", request="assign-1")
    references.assign_jobs([request])

    references.assign_jobs([request])
    assert places(references) == [("a", "r", "job")]


def test_unassigned_references_have_no_job(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0", "r1")])
    references.assign_jobs([assignment("job", "r0", "a")])

    assert [(each.filename, each.partition) for each in references.unassigned_references()] == [("a", "r1")]


def test_check_holds_when_all_are_assigned(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0", "r1"), make_file("b", "r0")])
    references.assign_jobs([assignment("one", "r0", "a", "b"), assignment("two", "r1", "a")])

    assert references.is_assigned([check("one", "r0", "a", "b"), check("two", "r1", "a")])


def test_check_fails_while_one_is_not_assigned(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r"), make_file("b", "r")])
    references.assign_jobs([assignment("job", "r", "a")])

    assert not references.is_assigned([check("job", "r", "a", "b")])


def test_check_of_a_missing_reference_is_refused(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0")])

    with pytest.raises(ReferenceNotFoundError) as refusal:
        references.is_assigned([check("job", "r1", "a")])
    assert (refusal.value.filename, refusal.value.partition) == ("a", "r1")


def test_check_of_another_job_is_refused(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("theirs", "r", "a")])

    with pytest.raises(ReferenceAssignedError) as refusal:
        references.is_assigned([check("ours", "r", "a")])
    assert refusal.value.job == "theirs"


def test_check_of_nothing_holds(references: FileReferenceStore) -> None:
    assert references.is_assigned([])
