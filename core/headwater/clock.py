"""Time as an argument: wall time that never steps back, a monotonic reading for durations, and a sleep that can be faked."""

from __future__ import annotations

import os
import threading
import time
import weakref
from datetime import UTC, datetime
from typing import NamedTuple, NewType, Protocol

__all__ = ["Clock", "ClockWatch", "Micros", "Steady", "SystemClock", "as_datetime", "as_text"]

Micros = NewType("Micros", int)
"""Microseconds since 1970-01-01T00:00Z."""


class Clock(Protocol):
    def now(self) -> Micros:
        """The wall time, never earlier than what this clock said before."""
        ...

    def wall(self) -> Micros:
        """The wall time, which may step back. Cheaper than ``now``, and without a lock."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; unaffected by changes of the wall time."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock. A step back of the wall time holds ``now`` still until it has caught up."""

    def __init__(self) -> None:
        self._renew_lock()
        self._last = Micros(0)
        _clocks.add(self)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def now(self) -> Micros:
        with self._lock:  # not by luck: between a comparison and what it decides another thread may move ``_last`` on
            now = time.time_ns() // 1000
            if now < self._last:
                return self._last
            self._last = now  # type: ignore[assignment]  # calling Micros takes as long as reading the time
            return now  # type: ignore[return-value]

    def wall(self) -> Micros:
        return time.time_ns() // 1000  # type: ignore[return-value]

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Steady(NamedTuple):
    """The time since which a clock's wall time has advanced with its monotonic time.

    before        the time that it would have shown then if it had not been set ahead; 0 if it was not
    """

    since: Micros
    before: Micros


class ClockWatch:
    """Notices when a clock is set ahead while a process runs on. A suspended machine looks the same.

    No lock: two threads that look at once get the same result, and each stores a correct reading.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = self._reading()
        self._steady = Steady(self._last[0], Micros(0))

    def look(self, *, tolerated_seconds: float) -> Steady:
        """Return since when the clock has been steady: since creation, or since the call that first found it further ahead.

        tolerated_seconds  how far the wall time may get ahead of the monotonic time between two looks
        """
        (last_wall, last_monotonic), (wall, monotonic) = self._last, self._reading()
        expected = Micros(last_wall + round((monotonic - last_monotonic) * 1_000_000))
        if wall - expected > tolerated_seconds * 1_000_000:
            self._steady = Steady(since=wall, before=expected)
        self._last = wall, monotonic
        return self._steady

    def _reading(self) -> tuple[Micros, float]:
        return self._clock.now(), self._clock.monotonic()


def as_datetime(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1_000_000, UTC)


def as_text(micros: int) -> str:
    """RFC 3339 in UTC with seconds, as Kubernetes writes times."""
    return as_datetime(micros).strftime("%Y-%m-%dT%H:%M:%SZ")


_clocks: weakref.WeakSet[SystemClock] = weakref.WeakSet()


def _after_fork() -> None:
    for clock in list(_clocks):
        clock._renew_lock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)
