"""Reads that threads share: what may be shared, what may not, and what becomes of the others when one fails or hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from headwater.errors import UnavailableError
from headwater.store.cache import SharedReads

PATIENT = 30.0


class SlowRow:
    """A row whose first read waits for permission to end. Every read answers its number."""

    def __init__(self, *, fails_at: int = 0) -> None:
        self.reads = 0
        self.began, self.may_end = threading.Event(), threading.Event()
        self._fails_at = fails_at

    def read(self) -> int:
        self.reads += 1
        number = self.reads
        if number == 1:
            self.began.set()
            assert self.may_end.wait(PATIENT)
        if number == self._fails_at:
            raise UnavailableError("the database is not there")
        return number


def ask(reads: SharedReads[int], row: SlowRow, *, others: int) -> tuple[Future[int], list[Future[int]]]:
    """The first to ask, whose read goes on, and others who wait for the next one."""
    pool = ThreadPoolExecutor(others + 1)
    first = pool.submit(reads.share_read, "row", row.read)
    assert row.began.wait(PATIENT)
    waiting = threading.Barrier(others + 1)

    def wait_and_read() -> int:
        waiting.wait(PATIENT)
        return reads.share_read("row", row.read)

    rest = [pool.submit(wait_and_read) for _ in range(others)]
    waiting.wait(PATIENT)
    pool.shutdown(wait=False)
    return first, rest


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come about")


def test_later_reads_call_again() -> None:
    reads, answers = SharedReads[int](), iter(range(3))

    assert [reads.share_read("row", lambda: next(answers)) for _ in range(3)] == [0, 1, 2]


def test_question_is_never_answered_by_older_read() -> None:
    reads, row = SharedReads[int](patience_seconds=PATIENT), SlowRow()
    first, rest = ask(reads, row, others=8)
    row.may_end.set()

    assert first.result(PATIENT) == 1
    assert all(answer.result(PATIENT) > 1 for answer in rest)


def test_waiting_questions_share_one_read() -> None:
    reads, row = SharedReads[int](patience_seconds=PATIENT), SlowRow()
    first, rest = ask(reads, row, others=1)
    wait_until(lambda: bool(reads._next))  # the second to ask stands in line: who asks now joins it
    with ThreadPoolExecutor(5) as pool:
        joined = [pool.submit(reads.share_read, "row", row.read) for _ in range(5)]
        wait_until(pool._work_queue.empty)
        threading.Event().wait(
            0.05
        )  # a thread that took its work has yet to ask: at worst it asks late, and reads a third time
        row.may_end.set()
        answers = {answer.result(PATIENT) for answer in [*rest, *joined]}

    assert first.result(PATIENT) == 1
    assert 2 in answers
    assert row.reads < 7, "five who asked while one stood in line made reads of their own"


def test_other_keys_wait_for_nobody() -> None:
    reads, row = SharedReads[int](patience_seconds=PATIENT), SlowRow()
    first, _ = ask(reads, row, others=0)

    assert reads.share_read("another", lambda: 7) == 7
    row.may_end.set()
    assert first.result(PATIENT) == 1


def test_hanging_read_holds_up_others_briefly() -> None:
    reads, row = SharedReads[int](patience_seconds=0.0), SlowRow()
    first, rest = ask(reads, row, others=3)

    assert all(answer.result(PATIENT) > 1 for answer in rest)
    assert not first.done()
    row.may_end.set()
    assert first.result(PATIENT) == 1


def test_failure_of_another_is_not_shared() -> None:
    reads, row = SharedReads[int](patience_seconds=PATIENT), SlowRow(fails_at=2)
    first, rest = ask(reads, row, others=4)
    row.may_end.set()
    faults = [answer.exception(PATIENT) for answer in rest]

    assert first.result(PATIENT) == 1
    assert sum(fault is not None for fault in faults) == 1, "one thread called, and failed; the others called themselves"
    assert reads._running == reads._next == {}


def test_interrupted_read_leaves_nobody_waiting() -> None:
    reads = SharedReads[int]()

    def interrupt() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reads.share_read("row", interrupt)
    assert reads.share_read("row", lambda: 1) == 1
