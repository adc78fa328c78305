"""What becomes of a group when others are faster, when the database does not answer, and when a thread is stopped."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from lineup import Line, lined_up

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from forked_children import run_forked
from headwater.commits import CommitResult, Transaction, commit_change, read_head, read_log
from headwater.errors import CommitTimeoutError, RefusedError, UnavailableError, UnknownCommitError, UnknownOutcomeError
from headwater.index import IndexValue
from headwater.store import RealmStore

Increment = Callable[[RealmStore], CommitResult[int]]
Count = Callable[[RealmStore], int]
LOST_ON_ITS_WAY: dict[str, Any] = {"before": True, "fault": UnknownOutcomeError("lost on its way")}
ANSWER_LOST: dict[str, Any] = {"before": False}
both_ways = pytest.mark.parametrize("fault", [LOST_ON_ITS_WAY, ANSWER_LOST], ids=["not applied", "applied"])


def results(line: Line) -> list[Any]:
    return [done.result().result for done in line.commits]


def look(tx: Transaction) -> int:
    return 0 if tx.head is None else tx.head.seq


def test_beaten_group_starts_over_in_its_order(
    faulty: RealmStore, faults: FaultyBackend, elsewhere: RealmStore, increment: Increment
) -> None:
    faults.intervene("swap_reference", lambda: increment(elsewhere))
    with lined_up(faulty, faults, [partial(increment, faulty)] * 4) as line:
        pass

    assert results(line) == [2, 3, 4, 5]
    assert [done.result().attempts for done in line.commits] == [2, 2, 2, 2]
    assert sum(len(batch) for batch in faulty.scan_objects()) == 5  # the lost attempt left nothing


def test_answers_that_saw_a_beaten_group_are_found_anew(
    faulty: RealmStore, faults: FaultyBackend, elsewhere: RealmStore, increment: Increment
) -> None:
    def refuse(tx: Transaction) -> None:
        raise ZeroDivisionError(look(tx))

    faults.intervene("swap_reference", lambda: increment(elsewhere))
    works = [
        partial(increment, faulty),
        lambda: commit_change(faulty, "main", look),
        lambda: commit_change(faulty, "main", refuse),
    ]
    with lined_up(faulty, faults, works) as line:
        pass

    assert (line.commits[1].result().result, str(line.commits[2].exception())) == (2, "2")


@pytest.mark.parametrize("method", ["write_objects", "swap_reference"])
def test_group_that_meets_a_short_outage_starts_over(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, method: str
) -> None:
    faults.fail(method)
    with lined_up(faulty, faults, [partial(increment, faulty)] * 3) as line:
        pass

    assert results(line) == [1, 2, 3]


@both_ways
def test_group_with_an_unclear_outcome_happens_exactly_once(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, fault: dict[str, Any]
) -> None:
    faults.fail("swap_reference", **fault)
    with lined_up(faulty, faults, [partial(increment, faulty)] * 3) as line:
        pass

    assert results(line) == [1, 2, 3]
    assert [one.id for one in read_log(faulty, "main", oldest_first=True)] == [done.result().commit_id for done in line.commits]


@both_ways
def test_group_is_found_out_under_two_hundred_commits_of_others(
    faulty: RealmStore, faults: FaultyBackend, elsewhere: RealmStore, increment: Increment, fault: dict[str, Any]
) -> None:
    faults.fail("swap_reference", **fault)
    faults.intervene("swap_reference", lambda: [increment(elsewhere) for _ in range(200)], at=2)
    with lined_up(faulty, faults, [partial(increment, faulty)] * 3) as line:
        pass

    assert results(line) == ([1, 2, 3] if fault is ANSWER_LOST else [201, 202, 203])


@both_ways
def test_unknown_outcome_is_told_to_members_with_their_commits(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count, fault: dict[str, Any]
) -> None:
    faults.fail("swap_reference", **fault)
    faults.fail("swap_reference", at=2, times=100_000, fault=UnavailableError("away"))
    with lined_up(faulty, faults, [partial(increment, faulty)] * 3) as line:
        pass
    errors = [done.exception() for done in line.commits]
    faults.heal()

    assert all(isinstance(error, UnknownCommitError) for error in errors)
    assert count(faulty) == (3 if fault is ANSWER_LOST else 0)
    there = {one.id for one in read_log(faulty, "main")}
    assert [error.commit_id in there for error in errors] == [fault is ANSWER_LOST] * 3
    assert len({error.commit_id for error in errors}) == 3
    assert "delete_objects" not in faults.calls


def test_member_that_changed_nothing_has_no_unknown_outcome(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    faults.fail("swap_reference", times=100_000, fault=UnknownOutcomeError("away"))
    with lined_up(faulty, faults, [partial(increment, faulty), lambda: commit_change(faulty, "main", look)]) as line:
        pass

    assert isinstance(line.commits[0].exception(), UnknownCommitError)
    assert isinstance(line.commits[1].exception(), CommitTimeoutError)


def test_unknown_outcome_names_its_commit_in_other_processes_too(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    faults.fail("swap_reference", times=100_000, fault=UnknownOutcomeError("away"))
    with pytest.raises(
        UnknownCommitError, match=r"'main' of realm 'acme' may have happened: away.*Look for it in the log"
    ) as seen:
        increment(faulty)
    error = pickle.loads(pickle.dumps(seen.value))

    assert (error.reference, error.realm, error.attempts) == ("main", "acme", 1)
    assert f"{error.commit_id:016x}" in str(error)


@pytest.mark.parametrize(
    ("method", "before"),
    [("write_objects", True), ("write_objects", False), ("swap_reference", True), ("swap_reference", False)],
)
def test_another_member_goes_on_when_the_publisher_is_stopped(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count, method: str, before: bool
) -> None:
    faults.fail(method, before=before, fault=KeyboardInterrupt())
    with lined_up(faulty, faults, [partial(increment, faulty)] * 3) as line:
        pass

    assert isinstance(line.commits[2].exception(), KeyboardInterrupt)
    assert [done.result().result for done in line.commits[:2]] == [1, 2]
    assert count(faulty) == 3  # its commit was in the group


def test_group_whose_publisher_was_stopped_may_still_be_beaten(
    faulty: RealmStore, faults: FaultyBackend, elsewhere: RealmStore, increment: Increment
) -> None:
    faults.fail("write_objects", fault=KeyboardInterrupt())
    faults.intervene("swap_reference", lambda: increment(elsewhere))
    with lined_up(faulty, faults, [partial(increment, faulty)] * 3) as line:
        pass

    assert [done.result().result for done in line.commits[:2]] == [2, 3]


def test_queue_goes_on_when_a_lone_publisher_is_stopped(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    faults.fail("swap_reference", fault=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        increment(faulty)

    assert increment(faulty).result == 1


def test_change_that_is_stopped_leaves_the_others_alone(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    def stop(tx: Transaction) -> None:
        raise SystemExit

    works = [partial(increment, faulty), lambda: commit_change(faulty, "main", stop), partial(increment, faulty)]
    with lined_up(faulty, faults, works) as line:
        pass

    assert isinstance(line.commits[1].exception(), SystemExit)
    assert [line.commits[at].result().result for at in (0, 2)] == [1, 2]


def test_member_that_cannot_be_stored_is_left_out_alone(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    def odd(tx: Transaction) -> None:
        tx.index("things").put(b"k", IndexValue(None))
        tx.set_property("odd", object())

    works = [partial(increment, faulty), lambda: commit_change(faulty, "main", odd), partial(increment, faulty)]
    with lined_up(faulty, faults, works) as line:
        pass

    assert "cannot be stored" in str(line.commits[1].exception())
    assert [line.commits[at].result().result for at in (0, 2)] == [1, 2]


def test_last_member_that_cannot_be_stored_is_left_out_alone(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    works = [
        partial(increment, faulty),
        lambda: commit_change(faulty, "main", partial(add_one, to="things"), properties={"odd": object()}),
    ]
    with lined_up(faulty, faults, works) as line:
        pass

    assert (line.commits[0].result().result, read_head(faulty, "main").commit.seq) == (1, 1)
    assert "cannot be stored" in str(line.commits[1].exception())


class ClosingGate:
    """Lets so many writes through, as a realm that becomes inactive in between."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def check_write(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise RefusedError("the realm is INACTIVE")


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_publisher_that_may_not_write_is_left_out_alone(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count, writes: int
) -> None:
    gated = faulty.store.rows(faulty.realm, faulty.key, ClosingGate(writes))
    with lined_up(faulty, faults, [partial(increment, faulty), partial(increment, faulty), partial(increment, gated)]) as line:
        pass

    assert "INACTIVE" in str(line.commits[2].exception())
    assert ([done.result().result for done in line.commits[:2]], count(faulty)) == ([1, 2], 2)


def test_value_that_is_no_bytes_is_refused_alone(faulty: RealmStore) -> None:
    with pytest.raises(RefusedError, match="is bytes, not str"):
        commit_change(faulty, "main", lambda tx: tx.index("things").put(b"k", IndexValue(None, "text")))  # type: ignore[arg-type]


def add_one(tx: Transaction, to: str) -> None:
    tx.index(to).put(b"k", IndexValue(None))


def test_child_forked_beside_a_group_begins_with_empty_queues(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    with lined_up(faulty, faults, [partial(increment, faulty)] * 2) as line:
        answers = run_forked(1, lambda _: increment(faulty).result)

    assert (answers, results(line)) == ([1], [1, 2])


def test_change_that_forks_may_commit_in_the_child(faulty: RealmStore, increment: Increment) -> None:
    answers: list[int] = []

    def change(tx: Transaction) -> None:
        answers.extend(run_forked(1, lambda _: increment(faulty).result))
        add_one(tx, to="things")

    assert commit_change(faulty, "main", change).attempts == 1
    assert answers == [1]


def test_child_that_returns_from_the_change_commits_on_its_own(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    read, write = os.pipe()
    parent, pids = os.getpid(), list[int]()

    def change(tx: Transaction) -> None:
        if not pids:
            pids.append(os.fork())
        add_one(tx, to="things")

    def both() -> None:
        try:
            done = commit_change(faulty, "main", change)
        finally:
            if os.getpid() != parent:
                os.write(write, str(done.attempts).encode())
                os._exit(0)

    with lined_up(faulty, faults, [both, partial(increment, faulty)]):
        pass
    os.waitpid(pids[0], 0)

    assert os.read(read, 9) == b"2"
    os.close(read)
    os.close(write)


def test_group_with_an_open_outcome_ends_with_its_last_member(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, clock: FakeClock
) -> None:
    swap = faults.hang("swap_reference")
    faults.fail("swap_reference", at=2, times=100_000, fault=UnavailableError("away"))
    with lined_up(faulty, faults, [partial(increment, faulty)]) as line:
        line.go()
        swap.reached()
        clock.advance(14)
        swap.release(UnknownOutcomeError("lost"))

    assert isinstance(line.commits[0].exception(), UnknownCommitError)
    assert 15 <= clock.monotonic() < 16
