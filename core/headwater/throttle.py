"""How fast bulk work may go: limits of rows per second, and the fence that it asks before every durable step.

A fence raises when its task was taken over. Between durable steps there are millions of small steps, and asking the database at each
would take as long as the step: ``FenceWatch`` asks once a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from headwater.clock import Clock
from headwater.settings import Settings

Fence = Callable[[], None]
"""Called before every durable step; raises FencedError when the task was taken over."""
ProgressCallback = Callable[[int, int, str], None]
"""Called with (done, total, unit), from any thread: how far one phase of the work is.

total         0: not known
unit          what is counted, in words that name the phase, such as ``rows deleted``: with another unit another phase begins
"""


def no_progress(done: int, total: int, unit: str) -> None:
    """For those who do not want to know how far it is."""


_LOOK_SECONDS = 1.0
_LONGEST_SLEEP_SECONDS = 1.0


class FenceWatch:
    """Asks the fence at most once a second between durable steps, and always before one. Safe for several threads."""

    def __init__(self, fence: Fence, clock: Clock) -> None:
        self._fence = fence
        self._clock = clock
        self._looked: float | None = None

    def check_now_and_then(self) -> None:
        """Call the fence unless it was called within the last second."""
        now = self._clock.monotonic()
        if self._looked is None or now - self._looked >= _LOOK_SECONDS:
            self.check_fence()

    def check_fence(self) -> None:
        """Call the fence now, before a durable step."""
        # Before the call: its answer is as old as the question.
        self._looked = self._clock.monotonic()
        self._fence()


class RowRate:
    """A limit of rows per second over all threads that share it; 0 is no limit. Unused time is not saved up."""

    def __init__(self, rows_per_second: float, clock: Clock) -> None:
        self._rows_per_second = rows_per_second
        self._clock = clock
        self._lock = threading.Lock()
        # Invariant: the monotonic second from which on further rows may go; under the lock it only grows.
        self._next = clock.monotonic()

    def wait_for(self, rows: int, watch: FenceWatch) -> None:
        """Wait as long as these rows take at the limit, and ask the fence meanwhile."""
        if not self._rows_per_second or not rows:
            return
        with self._lock:
            self._next = max(self._next, self._clock.monotonic()) + rows / self._rows_per_second
            until = self._next
        while (left := until - self._clock.monotonic()) > 0:
            watch.check_now_and_then()
            self._clock.sleep(min(left, _LONGEST_SLEEP_SECONDS))


class Throttle:
    """The fence and the two limits that a collection or a purge keeps, each over all of its threads."""

    def __init__(self, settings: Settings, clock: Clock, fence: Fence) -> None:
        self.watch = FenceWatch(fence, clock)
        self.scanned = RowRate(settings.scan_rows_per_second, clock)
        self.deleted = RowRate(settings.delete_rows_per_second, clock)

    def before_scanning_on(self, rows: int) -> None:
        """Wait and ask the fence after ``rows`` rows were scanned."""
        self.scanned.wait_for(rows, self.watch)
        self.watch.check_now_and_then()

    def before_deleting(self, rows: int) -> None:
        """Wait and ask the fence before ``rows`` rows are deleted, which follows at once."""
        # The fence comes after the wait, which may be long: nothing may lie between its answer and the deletion.
        self.deleted.wait_for(rows, self.watch)
        self.watch.check_fence()
