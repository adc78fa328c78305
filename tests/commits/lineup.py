"""Threads that commit in a known order: the first hangs where the test wants it, and the others stand in line behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from faulty_backend import FaultyBackend, Hang
from headwater.commits import commit_queue
from headwater.store import RealmStore

__all__ = ["Line", "behind", "has_queue", "lined_up", "wait_for", "waiting"]

Work = Callable[[], Any]


def waiting(rows: RealmStore, reference: str = "main") -> int:
    """How many commits of this process wait for their turn."""
    queue = commit_queue._queues.get((rows.store, rows.key, reference))
    return 0 if queue is None else len(queue._waiting)


def has_queue(rows: RealmStore, reference: str = "main") -> bool:
    """Whether any commit of this process waits or has its turn."""
    return (rows.store, rows.key, reference) in commit_queue._queues


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline, "it never became so"
        time.sleep(0.0005)


class Line:
    """Commits that wait behind the first, which has asked for the head and got no answer yet."""

    def __init__(self, hang: Hang) -> None:
        self._hang = hang
        self.commits: list[Future[Any]] = []

    def go(self) -> None:
        """Let the first go on. They are one group then."""
        self._hang.release()


@contextmanager
def lined_up(rows: RealmStore, faults: FaultyBackend, works: Sequence[Work]) -> Iterator[Line]:
    """Commits to ``main`` that become one group, in this order. They go on at the end of the block at the latest, and have ended then."""
    hang = faults.hang("read_references")
    line = Line(hang)
    with ThreadPoolExecutor(len(works)) as pool:
        try:
            line.commits.append(pool.submit(works[0]))
            hang.reached()
            for number, work in enumerate(works[1:], 1):
                line.commits.append(pool.submit(work))
                wait_for(lambda number=number: waiting(rows) == number)  # type: ignore[misc]
            yield line
        finally:
            line.go()


@contextmanager
def behind(rows: RealmStore, work: Work) -> Iterator[Future[Any]]:
    """A commit that waits behind this thread's, or another's that hangs. It has ended after the block."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        wait_for(lambda: waiting(rows) > 0 or future.done())
        yield future
