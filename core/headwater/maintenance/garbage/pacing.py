"""How fast a collection may go: at most so many rows a second, and with a look at its task now and then."""

from __future__ import annotations

import threading
from collections.abc import Callable

from headwater.clock import Clock
from headwater.settings import Settings

__all__ = ["Fence", "Pace", "Pacing", "Progress", "Watch"]

Fence = Callable[[], None]
"""Called before every durable step; raises FencedError when the task was taken over."""
Progress = Callable[[int, int, str], None]
"""Called with (done, total, unit)."""

_LOOK_SECONDS = 1.0
_LONGEST_SLEEP_SECONDS = 1.0


class Watch:
    """Looks at the fence between durable steps, where a look for every batch would take as long as the batch. For several threads."""

    def __init__(self, fence: Fence, clock: Clock) -> None:
        self._fence = fence
        self._clock = clock
        self._looked: float | None = None

    def look(self) -> None:
        """Call the fence if nobody has for a second."""
        now = self._clock.monotonic()
        if self._looked is None or now - self._looked >= _LOOK_SECONDS:
            self.check()

    def check(self) -> None:
        """Call the fence now: for durable steps."""
        self._looked = self._clock.monotonic()
        self._fence()


class Pace:
    """So many rows a second over all threads that share it; 0: no limit. What was not used before is not made up for."""

    def __init__(self, rows_per_second: float, clock: Clock) -> None:
        self._rows_per_second = rows_per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._next = clock.monotonic()

    def spend(self, rows: int, watch: Watch) -> None:
        """Wait as long as these rows take, looking at the fence meanwhile."""
        if not self._rows_per_second or not rows:
            return
        with self._lock:
            self._next = max(self._next, self._clock.monotonic()) + rows / self._rows_per_second
            until = self._next
        while (left := until - self._clock.monotonic()) > 0:
            watch.look()
            self._clock.sleep(min(left, _LONGEST_SLEEP_SECONDS))


class Pacing:
    """The fence and the two limits that a collection or a purge keeps, each over all of its threads."""

    def __init__(self, settings: Settings, clock: Clock, fence: Fence) -> None:
        self.watch = Watch(fence, clock)
        self.scanned = Pace(settings.scan_rows_per_second, clock)
        self.deleted = Pace(settings.delete_rows_per_second, clock)

    def before_scanning_on(self, rows: int) -> None:
        """After so many rows were scanned."""
        self.scanned.spend(rows, self.watch)
        self.watch.look()

    def before_deleting(self, rows: int) -> None:
        """So many, at once after this."""
        self.deleted.spend(rows, self.watch)
        self.watch.check()
