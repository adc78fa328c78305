"""What every store of file references promises of commits of jobs, and of their outcomes."""

from __future__ import annotations

import pytest
from reference_stores import assignment, commit_of, make_file, places

from fake_clock import FakeClock
from headwater.files import (
    CommitJob,
    FileExistsInTableError,
    FileNotTrackedError,
    FileReferenceStore,
    JobCommitsFailedError,
    OutputIsInputError,
    ReferenceNotAssignedError,
    ReferenceNotFoundError,
    RequestIdReusedError,
    RequestState,
)


def refusal_of(references: FileReferenceStore, *commits: CommitJob) -> JobCommitsFailedError:
    with pytest.raises(JobCommitsFailedError) as refusal:
        references.commit_jobs(commits)
    return refusal.value


def test_output_replaces_the_inputs(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a", "r0", "r1"), make_file("b", "r0")])
    references.assign_jobs([assignment("job", "r0", "a", "b")])
    clock.advance(5)

    references.commit_jobs([commit_of("job", "r0", "a", "b")])

    assert places(references) == [("a", "r1", None), ("out-job", "r0", None)]
    output = references.references()[1]
    assert (output.rows, output.is_estimate, output.is_whole_file, output.updated) == (20, False, True, clock.now())


def test_input_without_references_stays_tracked(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("job", "r", "a")])

    references.commit_jobs([commit_of("job", "r", "a")])

    assert [(each.filename, len(each.references)) for each in references.report(9).files] == [("a", 0), ("out-job", 1)]


def test_jobs_of_one_call_are_committed_one_by_one(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0", "r1", "r2")])
    references.assign_jobs([assignment("one", "r0", "a"), assignment("three", "r2", "a")])
    commits = [commit_of("one", "r0", "a"), commit_of("two", "r1", "a"), commit_of("three", "r2", "a")]

    fault = refusal_of(references, *commits)

    assert (fault.successful, fault.failed) == ((commits[0], commits[2]), (commits[1],))
    assert fault.__cause__ is fault.failures[0]
    assert places(references) == [("a", "r1", None), ("out-one", "r0", None), ("out-three", "r2", None)]


def test_refused_job_leaves_its_inputs(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r"), make_file("b", "r")])
    references.assign_jobs([assignment("job", "r", "a")])

    refusal_of(references, commit_of("job", "r", "a", "b"))

    assert places(references) == [("a", "r", "job"), ("b", "r", None)]


def test_output_named_like_an_input_is_refused(references: FileReferenceStore) -> None:
    fault = refusal_of(references, commit_of("job", "r", "a", output="a")).failures[0]

    assert isinstance(fault, OutputIsInputError)
    assert fault.filename == "a"


def test_commit_of_an_unknown_input_is_refused(references: FileReferenceStore) -> None:
    fault = refusal_of(references, commit_of("job", "r", "a")).failures[0]

    assert isinstance(fault, FileNotTrackedError)
    assert fault.filename == "a"


def test_commit_on_another_partition_is_refused(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0")])
    references.assign_jobs([assignment("job", "r0", "a")])

    fault = refusal_of(references, commit_of("job", "r1", "a")).failures[0]

    assert isinstance(fault, ReferenceNotFoundError)
    assert (fault.filename, fault.partition) == ("a", "r1")


@pytest.mark.parametrize("holder", [None, "theirs"])
def test_commit_without_an_assignment_is_refused(references: FileReferenceStore, holder: str | None) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment(holder, "r", "a")] if holder else [])

    fault = refusal_of(references, commit_of("job", "r", "a")).failures[0]

    assert isinstance(fault, ReferenceNotAssignedError)
    assert (fault.filename, fault.partition, fault.job) == ("a", "r", "job")


@pytest.mark.parametrize("partitions", [("r",), ()])
def test_tracked_output_is_refused(references: FileReferenceStore, partitions: tuple[str, ...]) -> None:
    references.add_files([make_file("a", "r"), make_file("b", *partitions)])
    references.assign_jobs([assignment("job", "r", "a")])

    fault = refusal_of(references, commit_of("job", "r", "a", output="b")).failures[0]

    assert isinstance(fault, FileExistsInTableError)
    assert fault.filename == "b"


def test_missing_reference_is_told_before_a_tracked_output(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0"), make_file("b", "r1")])

    fault = refusal_of(references, commit_of("job", "r1", "a", output="b")).failures[0]

    assert isinstance(fault, ReferenceNotFoundError)


def test_inputs_are_checked_in_their_order(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])

    fault = refusal_of(references, commit_of("job", "r", "a", "unknown")).failures[0]

    assert isinstance(fault, ReferenceNotAssignedError)


def test_two_jobs_with_one_output_name_are_not_both_committed(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0", "r1")])
    references.assign_jobs([assignment("one", "r0", "a"), assignment("two", "r1", "a")])

    fault = refusal_of(references, commit_of("one", "r0", "a", output="o"), commit_of("two", "r1", "a", output="o"))

    assert isinstance(fault.failures[0], FileExistsInTableError)
    assert places(references) == [("a", "r1", "two"), ("o", "r0", None)]


def test_output_of_a_job_is_the_input_of_the_next(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("one", "r", "a")])
    references.commit_jobs([commit_of("one", "r", "a")])
    references.assign_jobs([assignment("two", "r", "out-one")])

    references.commit_jobs([commit_of("two", "r", "out-one")])

    assert places(references) == [("out-two", "r", None)]


def test_repeated_commit_is_no_error(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("job", "r", "a")])
    references.commit_jobs([commit_of("job", "r", "a")])

    references.commit_jobs([commit_of("job", "r", "a")])
    assert places(references) == [("out-job", "r", None)]


def test_commit_repeated_after_the_collection_is_no_error(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("job", "r", "a")])
    references.commit_jobs([commit_of("job", "r", "a")])
    references.forget_files(["a"])

    references.commit_jobs([commit_of("job", "r", "a")])
    assert places(references) == [("out-job", "r", None)]


def test_repeated_refusal_stays_a_refusal(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    first = refusal_of(references, commit_of("job", "r", "a")).failures[0]
    references.assign_jobs([assignment("job", "r", "a")])

    second = refusal_of(references, commit_of("job", "r", "a")).failures[0]

    assert isinstance(second, ReferenceNotAssignedError)
    assert str(second) == str(first)
    assert places(references) == [("a", "r", "job")]


def test_job_id_of_another_commit_is_refused(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r"), make_file("b", "r")])
    references.assign_jobs([assignment("job", "r", "a", "b")])
    references.commit_jobs([commit_of("job", "r", "a")])

    fault = refusal_of(references, commit_of("job", "r", "b")).failures[0]

    assert isinstance(fault, RequestIdReusedError)
    assert references.find_outcomes(["job"])["job"].state is RequestState.APPLIED
    assert places(references) == [("b", "r", "job"), ("out-job", "r", None)]


def test_outcome_tells_of_the_commit(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("job", "r", "a")])
    references.commit_jobs([commit_of("job", "r", "a")])

    outcome = references.find_outcomes(["job", "unknown"])["job"]

    assert (outcome.kind, outcome.state, outcome.reason, outcome.time) == ("commit", RequestState.APPLIED, "", clock.now())
    assert references.find_outcomes(["unknown"]) == {}


def test_outcome_tells_the_reason_of_a_refusal(references: FileReferenceStore) -> None:
    fault = refusal_of(references, commit_of("job", "r", "a")).failures[0]

    outcome = references.find_outcomes(["job"])["job"]

    assert (outcome.state, outcome.error, outcome.reason) == (RequestState.REFUSED, "FileNotTrackedError", str(fault))


def test_commit_of_nothing_opens_no_transaction(references: FileReferenceStore) -> None:
    references.commit_jobs([])

    assert references.counts()["transactions"] == 0
