"""Calls of the MongoDB driver: time limits, the meaning of faults, and one client per process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pymongo
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.errors import PyMongoError
from pymongo.monitoring import ConnectionPoolListener

from headwater.errors import HeadwaterError, RefusedError
from headwater.store.backends.mongodb.errors import DRIVER_FAULTS, driver_error, is_surely_undone
from headwater.store.backends.mongodb.row_documents import Document
from headwater.store.fork_gate import ForkGate

T = TypeVar("T")
_CLOSE_SECONDS = 0.5
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds between attempts while the replica set elects a primary; the driver waits by itself once it knows that there is none."""
_inherited: list[Any] = []
"""Clients of a parent process. They are never used, and never freed: freeing one warns, and closes the parent's connections."""


class StoreCollections:
    """The three collections of a store's database, as one process sees them."""

    def __init__(self, client: MongoClient[Document], database: str) -> None:
        self.client = client
        self.refs: Collection[Document] = client[database]["refs"]
        self.objs: Collection[Document] = client[database]["objs"]
        self.meta: Collection[Document] = client[database]["meta"]


class DriverCalls:
    """Runs all calls of the driver. Thread-safe.

    make          makes the client of one process, which tells the listener what its pool does
    seconds       how long one call may take, all its round trips and waits together
    secret        the password, to be kept out of messages
    """

    def __init__(
        self,
        make: Callable[[ConnectionPoolListener], MongoClient[Document]],
        *,
        database: str,
        place: str,
        seconds: float,
        secret: str | None,
    ) -> None:
        self._make = make
        self._database = database
        self.place = place
        self._seconds = seconds
        self._secret = secret
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._gate = ForkGate()
        self._sending = _Sending()
        self._collections: StoreCollections | None = None

    def run_read(self, what: str, act: Callable[[StoreCollections], T]) -> T:
        """Run a read. The driver itself retries while there is time, when a connection breaks or the primary changes."""
        return self._call(what, act, writes=False, of_one=False)

    def change_one(self, what: str, act: Callable[[StoreCollections], T]) -> T:
        """Run ``act``, which changes one document. It is repeated when a node refused it because it is not the primary."""
        return self._call(what, act, writes=True, of_one=True)

    def change_many(self, what: str, act: Callable[[StoreCollections], T]) -> T:
        return self._call(what, act, writes=True, of_one=False)

    def _call(self, what: str, act: Callable[[StoreCollections], T], *, writes: bool, of_one: bool) -> T:
        with self._gate:
            collections = self._at_hand(what)
            try:
                with pymongo.timeout(self._seconds):
                    return self._act(collections, act, of_one=of_one)
            except DRIVER_FAULTS as fault:
                raise self._error(fault, what, writes=writes, of_one=of_one) from _without_secret(fault, self._secret)

    def _act(self, collections: StoreCollections, act: Callable[[StoreCollections], T], *, of_one: bool) -> T:
        until = time.monotonic() + self._seconds
        for pause in _PAUSES:
            self._sending.begin()  # per attempt: only the last one decides whether the outcome is unknown
            try:
                return act(collections)
            except PyMongoError as fault:
                # Only a call that surely had no effect may be sent again: a repeated swap would lose against itself.
                if not is_surely_undone(fault, of_one=of_one) or time.monotonic() + pause >= until:
                    raise
            time.sleep(pause)
        self._sending.begin()
        return act(collections)

    def _error(self, fault: BaseException, what: str, *, writes: bool, of_one: bool) -> HeadwaterError:
        was_sent = self._sending.has_begun
        return driver_error(
            fault, place=self.place, what=what, writes=writes, was_sent=was_sent, of_one=of_one, secret=self._secret
        )

    def _at_hand(self, what: str) -> StoreCollections:
        with self._lock:
            if self._is_closed:
                raise RefusedError(f"{self.place}: {what}: the store is closed")
            if self._collections is None:
                self._collections = StoreCollections(self._make(self._sending), self._database)
            return self._collections

    def shut(self) -> None:
        """Wait until no call is running, and block new ones."""
        self._gate.shut_gate()

    def open_client(self) -> None:
        self._gate.open_gate()

    def begin_in_child(self) -> None:
        """Forget the parent's client without touching it. The next call makes a new one.

        Not made here: the driver resets its own locks after a fork, and its hook may not have run yet.
        """
        if self._collections is not None:
            _inherited.append(self._collections.client)
        self._begin()

    def close(self) -> None:
        """Close connections and stop the monitoring threads, without waiting for a server that hangs."""
        with self._lock:
            self._is_closed = True
            collections, self._collections = self._collections, None
        if collections is not None:
            with pymongo.timeout(_CLOSE_SECONDS):
                collections.client.close()


class _Sending(threading.local, ConnectionPoolListener):
    """Records whether this thread's call got a connection: before that, nothing of it can have reached a server.

    The driver notifies its listeners in the thread of the call. Its errors do not tell: a refused connection, and one that breaks
    while waiting for the answer, are both an AutoReconnect.
    """

    has_begun = False

    def begin(self) -> None:
        self.has_begun = False

    def connection_checked_out(self, event: object) -> None:
        self.has_begun = True

    def pool_created(self, event: object) -> None: ...
    def pool_ready(self, event: object) -> None: ...
    def pool_cleared(self, event: object) -> None: ...
    def pool_closed(self, event: object) -> None: ...
    def connection_created(self, event: object) -> None: ...
    def connection_ready(self, event: object) -> None: ...
    def connection_closed(self, event: object) -> None: ...
    def connection_check_out_started(self, event: object) -> None: ...
    def connection_check_out_failed(self, event: object) -> None: ...
    def connection_checked_in(self, event: object) -> None: ...


def _without_secret(fault: BaseException, secret: str | None) -> BaseException | None:
    """The cause to show in a traceback; none when it repeats the password."""
    return None if secret and secret in repr(fault) else fault
