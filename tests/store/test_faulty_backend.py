"""The wrapper that fails on demand fails as asked, at every call, and otherwise does what the wrapped backend does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from faulty_backend import FaultyBackend
from headwater.errors import HeadwaterError, SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.store import ObjectId, ScanSplit
from headwater.store.backends.memory import MemoryBackend
from specimens import REALM, key, reference, row, scan, scan_names

WRITES: dict[str, Callable[[FaultyBackend], Any]] = {
    "create_reference": lambda faults: faults.create_reference(reference("new")),
    "create_references": lambda faults: faults.create_references([reference("new")]),
    "swap_reference": lambda faults: faults.swap_reference(reference(), reference(version=6)),
    "write_and_swap": lambda faults: faults.write_and_swap([row(2)], reference(), reference(version=6)),
    "remove_reference": lambda faults: faults.remove_reference(reference()),
    "write_objects": lambda faults: faults.write_objects([row(2)]),
    "insert_object": lambda faults: faults.insert_object(row(2, token="a")),
    "update_object": lambda faults: faults.update_object(row(1, token="b", value=b"longer than before"), "a"),
    "delete_objects": lambda faults: faults.delete_objects([key(row(1, token="a"))]),
    "delete_realm": lambda faults: faults.delete_realm(REALM, 100),
}
READS: dict[str, Callable[[FaultyBackend], Any]] = {
    "read_references": lambda faults: faults.read_references(REALM, ["main"]),
    "read_objects": lambda faults: faults.read_objects(REALM, [(ObjectId(1), 0)]),
    "scan_references": lambda faults: faults.scan_references(ScanSplit(), None, 9),
    "scan_objects": lambda faults: faults.scan_objects(ScanSplit(), None, 9),
    "split_references": lambda faults: faults.split_references(None, 2),
    "split_objects": lambda faults: faults.split_objects(None, 2),
}
CALLS = WRITES | READS
every_write = pytest.mark.parametrize("method", WRITES)
every_call = pytest.mark.parametrize("method", CALLS)


@pytest.fixture
def faults() -> Iterator[FaultyBackend]:
    made = FaultyBackend(MemoryBackend(), is_atomic=True)
    made.create_reference(reference())
    made.insert_object(row(1, token="a"))
    yield made
    made.heal()


def rows_of(faults: FaultyBackend) -> tuple[object, object]:
    return scan_names(faults.backend), scan(faults.backend)


def lost(method: str) -> type[HeadwaterError]:
    return UnknownOutcomeError if method in WRITES else UnavailableError


@contextmanager
def running(work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Runs it in a thread, and holds what it returned or raised after the block."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(work())
        except HeadwaterError as fault:
            answers.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    yield answers
    thread.join()


@every_call
def test_server_that_is_away_does_nothing(faults: FaultyBackend, method: str) -> None:
    before = rows_of(faults)
    faults.fail(method)
    with pytest.raises(UnavailableError):
        CALLS[method](faults)

    assert rows_of(faults) == before


@every_call
def test_fault_leaves_the_wrapped_backend_as_it_was(faults: FaultyBackend, method: str) -> None:
    faults.fail(method)
    with pytest.raises(UnavailableError):
        CALLS[method](faults)
    other = FaultyBackend(MemoryBackend(), is_atomic=True)
    other.create_reference(reference())
    other.insert_object(row(1, token="a"))

    assert CALLS[method](faults) == CALLS[method](other)
    assert rows_of(faults) == rows_of(other)


@every_write
def test_lost_request_has_no_effect_and_an_unknown_outcome(faults: FaultyBackend, method: str) -> None:
    before = rows_of(faults)
    faults.fail(method, fault=UnknownOutcomeError("lost"))
    with pytest.raises(UnknownOutcomeError):
        CALLS[method](faults)

    assert rows_of(faults) == before


@every_call
def test_answer_that_is_lost_comes_after_the_effect(faults: FaultyBackend, method: str) -> None:
    before = rows_of(faults)
    faults.fail(method, before=False)
    with pytest.raises(lost(method)):
        CALLS[method](faults)

    assert (rows_of(faults) != before) == (method in WRITES)


@every_call
def test_call_that_hangs_before_its_effect_does_it_when_released(faults: FaultyBackend, method: str) -> None:
    before = rows_of(faults)
    hang = faults.hang(method)
    with running(lambda: CALLS[method](faults)) as answers:
        hang.reached()
        assert (answers, rows_of(faults)) == ([], before)
        hang.release()

    assert not isinstance(answers[0], HeadwaterError)
    assert (rows_of(faults) != before) == (method in WRITES)


@every_call
def test_call_that_hangs_after_its_effect_answers_when_released(faults: FaultyBackend, method: str) -> None:
    before = rows_of(faults)
    hang = faults.hang(method, before=False)
    with running(lambda: CALLS[method](faults)) as answers:
        hang.reached()
        assert answers == []
        assert (rows_of(faults) != before) == (method in WRITES)
        hang.release()

    assert not isinstance(answers[0], HeadwaterError)


@every_call
@pytest.mark.parametrize("before", [True, False])
def test_call_that_hangs_too_long_ends_by_time_out(faults: FaultyBackend, method: str, before: bool) -> None:
    there = rows_of(faults)
    faults.hang(method, before=before, seconds=0.01)
    with pytest.raises(lost(method)):
        CALLS[method](faults)

    assert (rows_of(faults) == there) == (before or method in READS)


@every_call
def test_call_that_hangs_can_be_let_fail(faults: FaultyBackend, method: str) -> None:
    before = rows_of(faults)
    hang = faults.hang(method)
    with running(lambda: CALLS[method](faults)) as answers:
        hang.reached()
        hang.release(SwapConflictError("others were faster"))

    assert isinstance(answers[0], SwapConflictError)
    assert rows_of(faults) == before


@every_call
def test_server_that_restarts_loses_an_answer_and_some_calls(faults: FaultyBackend, method: str) -> None:
    faults.fail(method, before=False)
    faults.fail(at=2, times=3)
    with pytest.raises(lost(method)):
        CALLS[method](faults)
    for _ in range(3):
        with pytest.raises(UnavailableError):
            faults.read_references(REALM, [])

    assert faults.read_references(REALM, []) == []


def test_other_calls_go_on_while_one_hangs(faults: FaultyBackend) -> None:
    hang = faults.hang("swap_reference")
    with running(lambda: faults.swap_reference(reference(), reference(version=6))) as answers:
        hang.reached()
        faults.swap_reference(reference(), reference(version=9))  # the next swap, not the one that hangs
        hang.release()

    assert isinstance(answers[0], SwapConflictError)


def test_hang_is_of_the_named_call_alone(faults: FaultyBackend) -> None:
    hang = faults.hang("read_objects", at=2)
    faults.read_objects(REALM, [])
    faults.read_references(REALM, [])
    with running(lambda: faults.read_objects(REALM, [])) as answers:
        hang.reached()
        hang.release()

    assert answers == [[]]


def test_healing_releases_every_call_that_hangs_and_all_that_would(faults: FaultyBackend) -> None:
    hangs = [faults.hang("read_objects"), faults.hang("read_references")]
    faults.hang("scan_objects")
    with (
        running(lambda: faults.read_objects(REALM, [])) as objects,
        running(lambda: faults.read_references(REALM, [])) as names,
    ):
        for hang in hangs:
            hang.reached()
        faults.heal()

    assert (objects, names) == ([[]], [[]])
    assert len(faults.scan_objects(ScanSplit(), None, 9)) == 1


def test_hang_that_was_released_before_holds_nobody_up(faults: FaultyBackend) -> None:
    faults.hang("read_objects").release()

    assert faults.read_objects(REALM, []) == []


def test_waiter_for_a_call_that_never_comes_is_told(faults: FaultyBackend) -> None:
    with pytest.raises(TimeoutError):
        faults.hang("read_objects").reached(0.01)


def test_calls_are_counted_from_the_plan_by_method(faults: FaultyBackend) -> None:
    faults.fail("read_objects", at=2, times=2)
    outcomes = []
    for _ in range(5):
        faults.read_references(REALM, [])
        try:
            outcomes.append(faults.read_objects(REALM, []))
        except UnavailableError:
            outcomes.append(None)

    assert outcomes == [[], None, None, [], []]


def test_fault_at_any_call_hits_the_next_one(faults: FaultyBackend) -> None:
    faults.fail()
    with pytest.raises(UnavailableError):
        faults.scan_objects(ScanSplit(), None, 1)

    assert faults.read_objects(REALM, []) == []


def test_one_of_many_threads_is_hit(faults: FaultyBackend) -> None:
    faults.fail("read_objects", at=50)
    outcomes: list[bool] = []

    def read() -> None:
        for _ in range(20):
            try:
                faults.read_objects(REALM, [])
                outcomes.append(True)
            except UnavailableError:
                outcomes.append(False)

    threads = [threading.Thread(target=read) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (outcomes.count(False), len(outcomes)) == (1, 100)


def test_another_process_may_act_just_before_a_call(faults: FaultyBackend) -> None:
    faults.intervene("swap_reference", lambda: faults.backend.remove_reference(reference()))

    with pytest.raises(SwapConflictError):
        faults.swap_reference(reference(), reference(version=6))


def test_calls_are_passed_on_with_names_for_their_arguments(faults: FaultyBackend) -> None:
    assert len(faults.scan_objects(split=ScanSplit(), after=None, limit=1)) == 1
    assert faults.calls[-1] == "scan_objects"


def test_capabilities_and_the_end_are_the_wrapped_backends(faults: FaultyBackend) -> None:
    faults.fail()

    assert faults.capabilities == faults.backend.capabilities
    faults.close()


def test_commit_in_two_calls_writes_objects_and_then_swaps(faults: FaultyBackend) -> None:
    in_two_calls = FaultyBackend(faults.backend)
    in_two_calls.write_and_swap([row(2)], reference(), reference(version=6))

    assert in_two_calls.calls == ["write_objects", "swap_reference"]
    assert in_two_calls.capabilities == faults.backend.capabilities._replace(atomic_commits=False)


def test_commit_in_two_calls_that_fails_has_written_its_objects(faults: FaultyBackend) -> None:
    in_two_calls = FaultyBackend(faults.backend)
    in_two_calls.fail("swap_reference")
    with pytest.raises(UnavailableError):
        in_two_calls.write_and_swap([row(2)], reference(), reference(version=6))

    assert len(scan(faults.backend)) == 2
