"""What every store of file references promises of requests from a queue: any kinds in one call, an outcome of each."""

from __future__ import annotations

from reference_stores import assignment, commit_of, make_file, place_of, places

from fake_clock import FakeClock
from headwater.files import AddFiles, FileReferenceStore, ForgetFiles, PartitionId, RequestState, split_to_children

APPLIED, REFUSED = RequestState.APPLIED, RequestState.REFUSED


def test_requests_of_all_kinds_are_applied_in_order(references: FileReferenceStore) -> None:
    outcomes = references.apply_requests(
        [
            AddFiles(files=(make_file("a", "r"),), request="1"),
            split_to_children(place_of("a", "r"), PartitionId("r0"), PartitionId("r1")),
            assignment("zero", "r0", "a"),
            assignment("one", "r1", "a"),
            commit_of("zero", "r0", "a"),
            commit_of("one", "r1", "a"),
            ForgetFiles(filenames=("a",), request="2"),
        ]
    )

    assert [outcome.state for outcome in outcomes] == [APPLIED] * 7
    assert [outcome.kind for outcome in outcomes] == ["add", "split", "assign", "assign", "commit", "commit", "forget"]
    assert [each.filename for each in references.report(9).files] == ["out-one", "out-zero"]
    assert places(references) == [("out-one", "r1", None), ("out-zero", "r0", None)]


def test_refused_request_leaves_the_others(references: FileReferenceStore) -> None:
    outcomes = references.apply_requests(
        [AddFiles(files=(make_file("a", "r"),)), ForgetFiles(filenames=("a",)), assignment("job", "r", "a")]
    )

    assert [(outcome.state, outcome.error) for outcome in outcomes] == [
        (APPLIED, ""),
        (REFUSED, "FileHasReferencesError"),
        (APPLIED, ""),
    ]
    assert places(references) == [("a", "r", "job")]


def test_request_that_fails_half_way_changes_nothing(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])

    [outcome] = references.apply_requests([AddFiles(files=(make_file("b", "r"), make_file("a", "r")))])

    assert outcome.state is REFUSED
    assert places(references) == [("a", "r", None)]


def test_repeated_request_has_the_first_outcome(references: FileReferenceStore) -> None:
    request = AddFiles(files=(make_file("a", "r"),), request="1")
    first = references.apply_requests([request])

    assert references.apply_requests([request]) == first
    assert references.apply_requests([request, request]) == first * 2


def test_request_twice_in_a_call_is_applied_once(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("job", "r", "a")])

    first, second = references.apply_requests([commit_of("job", "r", "a"), commit_of("job", "r", "a")])

    assert first == second
    assert first.state is APPLIED
    assert places(references) == [("out-job", "r", None)]


def test_reused_id_is_refused_and_forgotten(references: FileReferenceStore) -> None:
    first, second = references.apply_requests(
        [AddFiles(files=(make_file("a", "r"),), request="1"), AddFiles(files=(make_file("b", "r"),), request="1")]
    )

    assert (second.state, second.error) == (REFUSED, "RequestIdReusedError")
    assert references.find_outcomes(["1"]) == {"1": first}


def test_batch_of_commits_has_an_outcome_for_each(references: FileReferenceStore) -> None:
    partitions = [f"r{number:03b}" for number in range(8)]
    references.add_files([make_file("a", *partitions)])
    references.assign_jobs([assignment(f"job-{each}", each, "a") for each in partitions[1:]])

    outcomes = references.apply_requests([commit_of(f"job-{each}", each, "a") for each in partitions])

    assert [outcome.state for outcome in outcomes] == [REFUSED, *[APPLIED] * 7]
    assert references.find_outcomes([each.request for each in outcomes]) == {each.request: each for each in outcomes}


def test_no_requests_open_no_transaction(references: FileReferenceStore) -> None:
    assert references.apply_requests([]) == []
    assert references.counts()["transactions"] == 0


def test_old_outcomes_are_forgotten(references: FileReferenceStore, clock: FakeClock) -> None:
    references.apply_requests([AddFiles(files=(make_file(each),), request=each) for each in "abc"])
    clock.advance(60)
    references.apply_requests([AddFiles(files=(make_file("d"),), request="d")])

    assert [references.forget_outcomes(clock.now(), 2) for _ in range(3)] == [2, 1, 0]
    assert list(references.find_outcomes(["a", "b", "c", "d"])) == ["d"]


def test_file_that_is_unknown_is_not_forgotten_and_added_again(references: FileReferenceStore) -> None:
    outcomes = references.apply_requests([ForgetFiles(filenames=("b",)), AddFiles(files=(make_file("b"),))])

    assert [outcome.state for outcome in outcomes] == [REFUSED, APPLIED]
    assert list(references.find_files(["b"])) == ["b"]
