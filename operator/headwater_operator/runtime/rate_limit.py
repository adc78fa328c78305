"""A token bucket: the rate of writes of this process, over all its threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from headwater.errors import UnavailableError


class TokenBucket:
    """``rate`` tokens a second, and up to ``burst`` saved ones.

    Callers are served in order: a token is reserved at once, and waited for without blocking others.

    monotonic     a monotonic clock in seconds
    wait          waits a number of seconds, less when the bucket is closed; by default on the machine's clock
    """

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._monotonic = monotonic
        self._closed = threading.Event()
        self._wait = self._closed.wait if wait is None else wait
        self._lock = threading.Lock()
        self._stock = float(burst)
        self._filled = monotonic()

    def reserve_token(self) -> None:
        """Wait for a token, and use it up.

        raises        UnavailableError when the bucket is closed, before or during the wait
        """
        seconds = self._promised()
        if seconds > 0:
            self._wait(seconds)
        if self._closed.is_set():
            raise UnavailableError("nothing more is written: this process is stopping")

    def close(self) -> None:
        """End all waits, and refuse every later caller."""
        self._closed.set()

    def _promised(self) -> float:
        """Reserve a token, possibly a future one; returns the seconds until it is valid."""
        with self._lock:
            now = self._monotonic()
            self._stock = min(self._burst, self._stock + (now - self._filled) * self._per_second)
            self._filled = now
            self._stock -= 1
            return max(-self._stock / self._per_second, 0.0)
