"""The work queue: keys with the times of their next pass, the pace of repetition, and the threads that take keys and reconcile them.

Each key is in the queue once, waits for its time, and is worked on by one thread at a time.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

from headwater.clock import Clock, Micros
from headwater.errors import FencedError
from headwater.reconcile import ReconcileOutcome, TaskDescription
from headwater.tasks import TaskState
from headwater_operator.runtime.informer_cache import ResourceKey

BUSY_SECONDS = 5.0
"""The shortest interval at which progress is read."""
LOOKS_PER_SECOND = 100
"""The reads of progress that all resources together may cause."""
SLACK_SECONDS = 1.0
"""The delay after a due time: a worker has taken the task by then."""


@dataclass(frozen=True, slots=True)
class RequeuePace:
    """The pace at which resources are visited again.

    resync_seconds  how often a resource is visited when nothing happens; jittered, so that those of one moment spread out
    crowd           how many resources there are
    chance          from 0 to 1
    """

    resync_seconds: float
    crowd: int = 0
    chance: float = 0.5


def seconds_until_next_look(
    outcome: ReconcileOutcome, tasks: Iterable[TaskDescription], *, now: Micros, pace: RequeuePace
) -> float:
    """The earliest time at which something will have changed by itself, and never later than the resync.

    tasks         the active ones
    """
    looks = [pace.resync_seconds * (0.9 + 0.2 * pace.chance)]
    if outcome.waits_until is not None:
        looks.append(max(_seconds(outcome.waits_until - now), 0.0) + SLACK_SECONDS)
    looks += [_look_at(task, now, pace) for task in tasks]
    return min(looks)


def _look_at(task: TaskDescription, now: Micros, pace: RequeuePace) -> float:
    """The time of the next read of a task. A long task is read less and less often, in proportion to its age."""
    if task.state is TaskState.WAITING and task.due > now:
        return _seconds(task.due - now) + SLACK_SECONDS
    began = task.started if task.state is TaskState.RUNNING and task.started is not None else task.due
    return max(BUSY_SECONDS, pace.crowd / LOOKS_PER_SECOND, _seconds(now - began) / 10)


def _seconds(micros: int) -> float:
    return micros / 1_000_000


K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RetryBackoff:
    """Waits between attempts: exponential with full jitter, so that simultaneous failures are not retried together.

    random        gives the jitter, from 0 to 1
    """

    first_seconds: float = 1.0
    longest_seconds: float = 60.0
    random: random.Random = field(default_factory=random.Random)

    def seconds(self, failures: int) -> float:
        """The wait after a number of failures in a row, at least a tenth of its upper bound."""
        bound = min(self.longest_seconds, self.first_seconds * 2.0 ** min(failures - 1, 32))
        return bound * self.random.uniform(0.1, 1.0)


class WorkQueue(Generic[K]):
    """Keys with the time from which they are ready, handed out in the order of those times.

    A key is here once, with the earliest requested time. A key that is requested during its work is handed out again
    afterwards, never at the same time. Every taker of a key calls ``mark_done`` in the end, whatever happened.
    """

    def __init__(self, clock: Clock, *, backoff: RetryBackoff | None = None) -> None:
        self._clock = clock
        self._backoff = backoff or RetryBackoff()
        self._changed = threading.Condition()
        self._order = itertools.count()
        self._heap: list[tuple[float, int, K]] = []
        self._ready_at: dict[K, tuple[float, int]] = {}  # the authoritative times; differing entries of the heap are stale
        self._working: set[K] = set()
        self._failures: dict[K, int] = {}
        self._is_closed = False

    def enqueue(self, key: K) -> None:
        """Hand the key out as soon as there is a thread for it."""
        self.enqueue_after(key, 0.0)

    def enqueue_after(self, key: K, seconds: float) -> None:
        """Hand the key out after this time, or earlier if that is requested."""
        with self._changed:
            self._schedule(key, self._clock.monotonic() + max(seconds, 0.0))

    def retry(self, key: K, *, least_seconds: float = 0.0) -> float:
        """Hand it out after a wait that grows with each call until ``forget_failures``; returns the wait in seconds."""
        with self._changed:
            self._failures[key] = failures = self._failures.get(key, 0) + 1
            wait = max(self._backoff.seconds(failures), least_seconds)
            self._schedule(key, self._clock.monotonic() + wait)
            return wait

    def forget_failures(self, key: K) -> None:
        """Reset the failures of a key: the next failure counts as the first."""
        with self._changed:
            self._failures.pop(key, None)

    def drop(self, key: K) -> None:
        """Drop a deleted resource's key until it is added again."""
        with self._changed:
            self._failures.pop(key, None)
            self._ready_at.pop(key, None)

    def take_key(self, timeout: float | None = None) -> K | None:
        """The key that has been ready for longest, as soon as there is one; None after the time-out or once closed."""
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

    def mark_done(self, key: K) -> None:
        """Record the end of the work on a key. Requests that came meanwhile count from now on."""
        with self._changed:
            self._working.discard(key)
            if key in self._ready_at:
                ready_at, order = self._ready_at[key]
                heapq.heappush(self._heap, (ready_at, order, key))
                self._changed.notify()

    def close(self) -> None:
        """Hand out nothing more, and wake all waiting threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def depth(self) -> int:
        """The number of keys that are ready and wait for a thread."""
        with self._changed:
            now = self._clock.monotonic()
            return sum(ready_at <= now for key, (ready_at, _) in self._ready_at.items() if key not in self._working)

    @property
    def delayed(self) -> int:
        """The number of keys whose time has not come."""
        with self._changed:
            now = self._clock.monotonic()
            return sum(ready_at > now for ready_at, _ in self._ready_at.values())

    @property
    def in_work(self) -> int:
        """The number of keys that are being worked on."""
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
        if key not in self._working:  # otherwise `mark_done` puts it into the order
            heapq.heappush(self._heap, (ready_at, order, key))
            self._changed.notify()

    def _first(self) -> tuple[K, float] | tuple[None, float]:
        """The first key in order, after removing stale entries before it."""
        while self._heap:
            ready_at, order, key = self._heap[0]
            if key not in self._working and self._ready_at.get(key) == (ready_at, order):
                return key, ready_at
            heapq.heappop(self._heap)
        return None, 0.0


log = structlog.get_logger(__name__)


class WorkerThreads:
    """A number of threads, from ``start`` until the queue is closed.

    reconcile     never raises, but for FencedError
    on_fenced     called when leadership is lost: nothing more may be done; ends the process
    """

    def __init__(
        self,
        queue: WorkQueue[ResourceKey],
        reconcile: Callable[[ResourceKey], None],
        *,
        count: int,
        on_fenced: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._on_fenced = on_fenced
        self._threads = [threading.Thread(target=self._work, name=f"reconcile-{n}", daemon=True) for n in range(count)]

    def start(self) -> None:
        """Start the threads. Call it after everything was listed once: a Catalog whose Realm is unseen looks as if it had none."""
        for thread in self._threads:
            thread.start()

    def stop(self, *, seconds: float) -> bool:
        """Close the queue and wait for running work; returns whether all of it ended in time."""
        self._queue.close()
        end = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(end - time.monotonic(), 0.0))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while (key := self._queue.take_key()) is not None:
            try:
                self._reconcile(key)
            except FencedError as fault:
                self._queue.close()
                self._on_fenced(str(fault))
                return
            except Exception:
                # the reconciler handles every failure, so this is a fault in that: the thread continues with others
                log.exception("a reconcile ended in a bug", kind=key.kind, namespace=key.namespace, name=key.name)
                self._queue.retry(key)
            finally:
                self._queue.mark_done(key)
