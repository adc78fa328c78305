"""Which requests are worked on: a bounded pool of threads, a bounded queue before it, and 429 before any work for what is beyond."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from headwater.clock import Clock
from headwater.settings import Settings, duration_text
from headwater_server.error_answers import OverloadedError

T = TypeVar("T")


class HandlerTimeoutError(Exception):
    """A handler has taken too long. It runs on, and nobody will hear what comes of it."""


@dataclass(slots=True)
class _Work:
    """since         when it was admitted, in monotonic seconds"""

    since: float
    is_change: bool
    is_running: bool = False


class RequestAdmission:
    """The pool in which handlers run. Its methods are called by the event loop alone.

    The pool is our own, and its bound is the number of handlers that run: a pool that others share could be full of what they do.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self._threads = settings.server_threads
        self._queue = settings.server_queue
        self._queue_seconds = settings.server_queue_timeout_seconds
        self._pool = ThreadPoolExecutor(settings.server_threads, thread_name_prefix="request")
        self._works: dict[Future[Any], _Work] = {}

    @property
    def running(self) -> int:
        return sum(work.is_running for work in self._works.values())

    @property
    def waiting(self) -> int:
        return len(self._works) - self.running

    @property
    def changes_begun(self) -> int:
        """Requests for a change that run or wait, also those whose client was told that they take too long."""
        return sum(work.is_change for work in self._works.values())

    @property
    def longest_seconds(self) -> float:
        """How long the request has been here that has been here longest; 0 for none."""
        return self._clock.monotonic() - min((work.since for work in self._works.values()), default=self._clock.monotonic())

    def check_room(self) -> None:
        """raises OverloadedError when the queue is full"""
        if len(self._works) >= self._threads + self._queue:
            raise OverloadedError(
                f"the server works on {self._threads} requests, and {self._queue} wait; send this one again in a moment"
            )

    async def run(self, handle: Callable[[], T], *, seconds: float, is_change: bool = False) -> T:
        """Run a function in the pool.

        seconds       how long to wait for its outcome
        raises        OverloadedError when there was no thread for it in time: it has not begun, and will not; HandlerTimeoutError; what
                      the function raises
        """
        self.check_room()
        work, context = _Work(self._clock.monotonic(), is_change), copy_context()

        def begin() -> T:
            if self._clock.monotonic() - work.since > self._queue_seconds:
                raise OverloadedError(
                    f"no thread was free for {duration_text(self._queue_seconds)}; send the request again in a moment"
                )
            work.is_running = True
            return context.run(handle)

        future = self._pool.submit(begin)
        self._works[future] = work
        outcome = asyncio.wrap_future(future)
        outcome.add_done_callback(lambda _: self._works.pop(future, None))
        done, _ = await asyncio.wait({outcome}, timeout=seconds)
        if done:
            return outcome.result()
        if future.cancel():
            raise OverloadedError(f"no thread was free for {duration_text(seconds)}; send the request again in a moment")
        outcome.add_done_callback(_forget_outcome)
        raise HandlerTimeoutError

    def shut_down(self) -> None:
        """Begin nothing any more. Handlers that run are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _forget_outcome(outcome: asyncio.Future[T]) -> None:
    if not outcome.cancelled():
        outcome.exception()
