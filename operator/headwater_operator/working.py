"""Threads that take keys from the queue and have them reconciled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

from headwater.errors import FencedError
from headwater_operator.queueing import WorkQueue
from headwater_operator.resources import Key

__all__ = ["Workers"]

log = structlog.get_logger(__name__)


class Workers:
    """A number of threads, from ``start`` until the queue is closed.

    reconcile     never raises, but for FencedError
    on_fenced     called when the lead is lost: nothing more may be done; ends the process
    """

    def __init__(
        self,
        queue: WorkQueue[Key],
        reconcile: Callable[[Key], None],
        *,
        count: int,
        on_fenced: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._on_fenced = on_fenced
        self._threads = [threading.Thread(target=self._work, name=f"reconcile-{n}", daemon=True) for n in range(count)]

    def start(self) -> None:
        """Not before everything was listed once: a Catalog whose Realm is not seen yet looks as if it had none."""
        for thread in self._threads:
            thread.start()

    def stop(self, *, seconds: float) -> bool:
        """Close the queue and wait for what is being worked on; whether all of it has ended in time."""
        self._queue.close()
        end = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(end - time.monotonic(), 0.0))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while (key := self._queue.get()) is not None:
            try:
                self._reconcile(key)
            except FencedError as fault:
                self._queue.close()
                self._on_fenced(str(fault))
                return
            except Exception:
                # the reconciler has a door of its own, so this is a fault in that: the thread goes on with others
                log.exception("a reconcile ended in a bug", kind=key.kind, namespace=key.namespace, name=key.name)
                self._queue.retry(key)
            finally:
                self._queue.done(key)
