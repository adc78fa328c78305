"""What is to be reconciled, and when: each key stands in the queue once, waits for its time, and is worked on by one thread at a time."""

from __future__ import annotations

import heapq
import itertools
import random
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headwater.clock import Clock

__all__ = ["Backoff", "WorkQueue"]

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between attempts: exponential with full jitter, so that what failed together is not tried again together.

    random        gives the jitter, from 0 to 1
    """

    first_seconds: float = 1.0
    longest_seconds: float = 60.0
    random: random.Random = field(default_factory=random.Random)

    def seconds(self, failures: int) -> float:
        """The wait after so many failures in a row, at least a tenth of what the wait grows to."""
        bound = min(self.longest_seconds, self.first_seconds * 2.0 ** min(failures - 1, 32))
        return bound * self.random.uniform(0.1, 1.0)


class WorkQueue(Generic[K]):
    """Keys with the time from which they are ready, handed out in the order of those times.

    A key stands here once, with the earliest time that was asked for. One that is asked for while it is worked on is handed out again
    afterwards, never at the same time. Whoever gets a key says ``done`` in the end, whatever happened.
    """

    def __init__(self, clock: Clock, *, backoff: Backoff | None = None) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._changed = threading.Condition()
        self._order = itertools.count()
        self._heap: list[tuple[float, int, K]] = []
        self._ready_at: dict[K, tuple[float, int]] = {}  # what counts; entries of the heap that differ are leftovers
        self._working: set[K] = set()
        self._failures: dict[K, int] = {}
        self._is_closed = False

    def add(self, key: K) -> None:
        """Hand it out as soon as there is a thread for it."""
        self.add_after(key, 0.0)

    def add_after(self, key: K, seconds: float) -> None:
        """Hand it out after this time, or before, when it is asked for earlier."""
        with self._changed:
            self._schedule(key, self._clock.monotonic() + max(seconds, 0.0))

    def retry(self, key: K, *, least_seconds: float = 0.0) -> float:
        """Hand it out after a wait that grows with each call until ``forget``; returns the wait in seconds."""
        with self._changed:
            self._failures[key] = failures = self._failures.get(key, 0) + 1
            wait = max(self._backoff.seconds(failures), least_seconds)
            self._schedule(key, self._clock.monotonic() + wait)
            return wait

    def forget(self, key: K) -> None:
        """It went well: the next failure is the first one."""
        with self._changed:
            self._failures.pop(key, None)

    def drop(self, key: K) -> None:
        """It is gone: there is nothing to do about it until it is added again."""
        with self._changed:
            self._failures.pop(key, None)
            self._ready_at.pop(key, None)

    def get(self, timeout: float | None = None) -> K | None:
        """The key that has been ready for the longest time, as soon as there is one; None after the time-out or once closed."""
        with self._changed:
            deadline = None if timeout is None else self._clock.monotonic() + timeout
            while not self._is_closed:
                now = self._clock.monotonic()
                key, ready_at = self._first()
                if key is not None and ready_at <= now:
                    heapq.heappop(self._heap)
                    del self._ready_at[key]
                    self._working.add(key)
                    return key
                ends = [end for end in (ready_at if key is not None else None, deadline) if end is not None]
                if deadline is not None and now >= deadline:
                    return None
                self._changed.wait(min(ends) - now if ends else None)
            return None

    def done(self, key: K) -> None:
        """The work on it has ended. What was asked for meanwhile counts from now on."""
        with self._changed:
            self._working.discard(key)
            if key in self._ready_at:
                ready_at, order = self._ready_at[key]
                heapq.heappush(self._heap, (ready_at, order, key))
                self._changed.notify()

    def close(self) -> None:
        """Hand out nothing more, and wake everybody who waits."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def depth(self) -> int:
        """Keys that are ready and wait for a thread."""
        with self._changed:
            now = self._clock.monotonic()
            return sum(ready_at <= now for key, (ready_at, _) in self._ready_at.items() if key not in self._working)

    @property
    def delayed(self) -> int:
        """Keys whose time has not come."""
        with self._changed:
            now = self._clock.monotonic()
            return sum(ready_at > now for ready_at, _ in self._ready_at.values())

    @property
    def in_work(self) -> int:
        """Keys that are being worked on."""
        with self._changed:
            return len(self._working)

    @property
    def oldest_seconds(self) -> float:
        """How long the key that has waited longest has been ready; 0 when none waits."""
        with self._changed:
            key, ready_at = self._first()
            return 0.0 if key is None else max(self._clock.monotonic() - ready_at, 0.0)

    def _schedule(self, key: K, ready_at: float) -> None:
        if self._is_closed:
            return
        known = self._ready_at.get(key)
        if known is not None and known[0] <= ready_at:
            return
        order = next(self._order)
        self._ready_at[key] = (ready_at, order)
        if key not in self._working:  # otherwise `done` puts it into the order
            heapq.heappush(self._heap, (ready_at, order, key))
            self._changed.notify()

    def _first(self) -> tuple[K, float] | tuple[None, float]:
        """The first key in order, without the leftovers before it."""
        while self._heap:
            ready_at, order, key = self._heap[0]
            if key not in self._working and self._ready_at.get(key) == (ready_at, order):
                return key, ready_at
            heapq.heappop(self._heap)
        return None, 0.0
