"""Which resources wait for a store that is away. One of us asks for it every few seconds, and all are looked at when it is back."""

from __future__ import annotations

import threading

import structlog

from headwater.errors import HeadwaterError
from headwater.realms import Realms
from headwater.store import Store
from headwater_operator.queueing import WorkQueue
from headwater_operator.resources import Key

__all__ = ["ASK_SECONDS", "STORE", "StoreOutage"]

log = structlog.get_logger(__name__)

STORE = Key("Store", "", "")
"""Stands in the queue for the question whether the store is back."""
ASK_SECONDS = 5.0
_NOBODY = "store-probe"


class StoreOutage:
    """Safe for threads.

    A resource whose look fails while the store answers others goes by its own pauses: it is woken only after the store was seen
    to be away, or it would be looked at all the time.
    """

    def __init__(self, store: Store, queue: WorkQueue[Key]) -> None:
        self._store = store
        self._queue = queue
        self._lock = threading.Lock()
        self._waiting: set[Key] = set()
        self._is_asking = False
        self._was_away = False
        self._back_at = float("-inf")

    def note(self, key: Key, *, is_away: bool, began: float) -> None:
        """What a look at this resource found, which began at this time of the monotonic clock."""
        with self._lock:
            if not is_away:
                self._waiting.discard(key)
                return
            if began < self._back_at:
                self._queue.add(key)  # the store came back while it waited for an answer, and the others were woken without it
                return
            self._waiting.add(key)
            if not self._is_asking:
                self._is_asking = True
                self._queue.add(STORE)

    def forget(self, key: Key) -> None:
        """The resource is gone."""
        with self._lock:
            self._waiting.discard(key)

    def ask(self) -> None:
        """Ask whether the store answers: again in a few seconds if not; if it does again, wake all who wait for it."""
        answers = self._answers()
        with self._lock:
            self._is_asking = not answers
            woken = self._waiting if answers and self._was_away else set()
            if woken:
                self._back_at = self._store.clock.monotonic()
                self._waiting = set()
            self._was_away = not answers
            if not answers:
                self._queue.add_after(STORE, ASK_SECONDS)
        if woken:
            log.info("the store answers again: everything that waited for it is looked at", resources=len(woken))
        for key in sorted(woken):
            self._queue.add(key)

    def _answers(self) -> bool:
        try:
            Realms(self._store).find(_NOBODY)
        except HeadwaterError:
            return False
        except Exception as fault:  # noqa: BLE001 - the door: a bug must not end the asking, and its text may hold anything
            log.error("asking for the store ended in a bug", error=type(fault).__name__)
            return False
        return True
