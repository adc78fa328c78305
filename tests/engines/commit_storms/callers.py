"""Threads that call at once, or that stand in line behind one that is held up, so that they are combined in a known order."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from headwater.commits import Transaction

__all__ = ["PATIENCE_SECONDS", "Caller", "Held", "at_once", "in_line", "place_of", "wait_until_waiting"]

PATIENCE_SECONDS = 30.0


class Caller(threading.Thread):
    """A thread that keeps what its work returned or raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._result: Any = None
        self._fault: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as fault:  # noqa: BLE001  raised by whoever asks for the result
            self._fault = fault

    def wait(self) -> None:
        """Until it has ended, however."""
        self.join(PATIENCE_SECONDS)
        assert not self.is_alive(), f"waits for ever: {place_of(self)}"

    def result(self) -> Any:
        self.wait()
        if self._fault is not None:
            raise self._fault
        return self._result


def at_once(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """What these returned, on a thread each, begun together. A fault of one is raised here, when all have ended."""
    start = threading.Barrier(len(works))

    def begun(work: Callable[[], Any]) -> Any:
        start.wait(PATIENCE_SECONDS)
        return work()

    callers = [Caller(lambda work=work: begun(work)) for work in works]  # type: ignore[misc]
    for caller in callers:
        caller.wait()
    return [caller.result() for caller in callers]


class Held:
    """A change that does not return before it is let go, and others that stand in line behind it meanwhile."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self._let_go = threading.Event()
        self.callers: list[Caller] = []

    def hold(self, tx: Transaction) -> None:
        """To be called by the change that is held up; only its first run is."""
        self._entered.set()
        assert self._let_go.wait(PATIENCE_SECONDS)

    def call(self, work: Callable[[], Any]) -> Caller:
        """Start a caller, and come back when it waits (or is done)."""
        caller = Caller(work)
        self.callers.append(caller)
        wait_until_waiting(caller)
        return caller

    def lead(self, work: Callable[[], Any]) -> Caller:
        """Start the caller whose change is held up, and come back when it is."""
        caller = Caller(work)
        self.callers.append(caller)
        assert self._entered.wait(PATIENCE_SECONDS)
        return caller

    def let_go(self) -> None:
        self._let_go.set()


@contextmanager
def in_line() -> Iterator[Held]:
    """Callers stand in line inside the block, behind the one that leads; at its end it goes on, and all are waited for."""
    held = Held()
    try:
        yield held
    finally:
        held.let_go()
        for caller in held.callers:
            caller.wait()


def wait_until_waiting(caller: threading.Thread, *, looks: int = 4) -> None:
    """Until a thread stands still at one place inside of a commit for some looks, or has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    seen: list[str] = []
    while caller.is_alive() and time.monotonic() < deadline:
        seen = [*seen, place_of(caller)][-looks:]
        if len(seen) == looks and len(set(seen)) == 1 and "/headwater/commits/" in seen[0]:
            return
        time.sleep(0.001)
    assert not caller.is_alive(), f"runs for ever: {seen}"


def place_of(caller: threading.Thread) -> str:
    """Where a thread is, from the innermost call outwards."""
    frame: FrameType | None = sys._current_frames().get(caller.ident or 0)
    places = []
    while frame is not None:
        places.append(f"{frame.f_code.co_filename}:{frame.f_lasti}")
        frame = frame.f_back
    return " < ".join(places)
