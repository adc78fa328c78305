"""A clock that tests move: nothing waits, and no time passes by itself."""

from __future__ import annotations

import threading

from headwater.clock import Micros


class FakeClock:
    """A clock that moves only when told to; ``sleep`` moves it."""

    def __init__(self, start: int = 1_780_000_000_000_000) -> None:
        self._lock = threading.Lock()
        self._now = start
        self._monotonic = 0.0

    def now(self) -> Micros:
        with self._lock:
            return Micros(self._now)

    def wall(self) -> Micros:
        return self.now()

    def monotonic(self) -> float:
        with self._lock:
            return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def set_ahead(self, seconds: float) -> None:
        """Move the wall time alone, as who sets a clock does."""
        with self._lock:
            self._now += round(seconds * 1_000_000)

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += round(seconds * 1_000_000)
            self._monotonic += seconds
