"""A token bucket: how fast writes may leave this process, over all its threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from headwater.errors import UnavailableError


class TokenBucket:
    """So many tokens a second, and a stock of ``burst`` for when it has been quiet.

    Whoever comes is served in the order of coming: a token is promised at once, and waited for without holding anybody else up.

    monotonic     seconds that never go back
    wait          waits so many seconds, less when the bucket is closed; by default on the machine's clock
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
        """End all waits, and let nobody through any more."""
        self._closed.set()

    def _promised(self) -> float:
        """Take a token, be it one of the future; the seconds until it is there."""
        with self._lock:
            now = self._monotonic()
            self._stock = min(self._burst, self._stock + (now - self._filled) * self._per_second)
            self._filled = now
            self._stock -= 1
            return max(-self._stock / self._per_second, 0.0)
