"""Calls of the MongoDB driver: what a store's URL may say of it, time limits, the meaning of faults, and one client per process."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pymongo
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.errors import PyMongoError
from pymongo.monitoring import ConnectionPoolListener

from headwater.errors import HeadwaterError, RefusedError
from headwater.store.backends.mongodb.errors import DRIVER_FAULTS, driver_error, is_surely_undone
from headwater.store.backends.mongodb.row_documents import Document
from headwater.store.urls import StoreUrl, UrlOption, as_connections, as_seconds, one_of

T = TypeVar("T")
_CLOSE_SECONDS = 0.5
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds between attempts while the replica set elects a primary; the driver waits by itself once it knows that there is none."""
_inherited: list[Any] = []
"""Clients of a parent process. They are never used, and never freed: freeing one warns, and closes the parent's connections."""
EXAMPLE = "mongodb://user:password@host:port/database"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/@]+)(:[0-9]{1,5})?")
_DATABASE = re.compile(r"[^\s/\\.\"$*<>:|?\0]{1,63}")
_RESERVED = ("admin", "config", "local")


def _as_truth(text: str) -> bool:
    return one_of("true", "false")(text) == "true"


OPTIONS = (
    UrlOption("timeout", "how long one call may take, with all its waits", "10s", as_seconds),
    UrlOption("pool", "how many connections one process has at most, to each server", "10", as_connections),
    UrlOption("idle", "how long a connection that nobody uses stays open", "60s", as_seconds),
    UrlOption("replicaSet", "the name of the replica set; servers of another one are not used"),
    UrlOption("directConnection", "true: talk to the one server of the URL, whatever it is a member of", "false", _as_truth),
    UrlOption("authSource", "the database that knows the user, if it is not the one of the path"),
    UrlOption(
        "authMechanism",
        "how the user proves who it is, if it is not negotiated",
        parse=one_of("SCRAM-SHA-256", "SCRAM-SHA-1", "MONGODB-X509", "PLAIN"),
    ),
    UrlOption("tls", "true: encrypt, and check the servers' certificates", "false", _as_truth),
    UrlOption("tlsCAFile", "a file with the authorities' certificates, if they are not the machine's"),
    UrlOption("tlsCertificateKeyFile", "a file with this client's certificate and key"),
    UrlOption("appName", "what the server's logs call us", "headwater"),
)
_DRIVERS_OWN = ("replicaSet", "directConnection", "authSource", "authMechanism", "tls", "tlsCAFile", "tlsCertificateKeyFile")


def calls_of(url: StoreUrl, options: Mapping[str, Any]) -> DriverCalls:
    """The calls for a URL and its options, without any connection yet."""
    return DriverCalls(
        _maker(url, options), database=_database(url), place=url.shown, seconds=options["timeout"], secret=url.password
    )


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


def _database(url: StoreUrl) -> str:
    if not url.path:
        raise RefusedError(f"store {url.shown!r}: the database is missing: write {EXAMPLE}")
    if not _DATABASE.fullmatch(url.path) or len(url.path.encode()) > 63:
        raise RefusedError(
            f'store {url.shown!r}: {url.path!r} is not a name of a database: up to 63 bytes, without spaces and / \\ . " $ * < > : | ?'
        )
    if url.path in _RESERVED:
        raise RefusedError(f"store {url.shown!r}: {url.path!r} is MongoDB's own database: name another one")
    return url.path


def _maker(url: StoreUrl, options: Mapping[str, Any]) -> Callable[[ConnectionPoolListener], MongoClient[Document]]:
    hosts = url.place.split(",")
    if wrong := [host for host in hosts if not _HOST.fullmatch(host)]:
        raise RefusedError(
            f"store {url.shown!r}: {wrong[0]!r} is no host: write {EXAMPLE}, or several servers like host:port,host:port"
        )
    if url.password is not None and not url.user:
        raise RefusedError(f"store {url.shown!r}: the user is missing before the password: write {EXAMPLE}")
    parameters = {name: options[name] for name in _DRIVERS_OWN if options[name] is not None}
    if options["authSource"] is None and url.user is not None and options["authMechanism"] not in ("MONGODB-X509", "PLAIN"):
        parameters["authSource"] = url.path  # as the driver does when it is given the whole URL
    if not options["tls"]:
        if given := [name for name in ("tlsCAFile", "tlsCertificateKeyFile") if name in parameters]:
            raise RefusedError(f"store {url.shown!r}: the option {given[0]!r} is of use with tls=true only")
        del parameters["tls"]
    if url.user:
        parameters |= {"username": url.user, "password": url.password}
    seconds = options["timeout"]
    milliseconds = max(1, round(seconds * 1000))
    parameters |= {
        "host": hosts,
        "appname": options["appName"],
        "maxPoolSize": options["pool"],
        "maxIdleTimeMS": max(1, round(options["idle"] * 1000)),
        "serverSelectionTimeoutMS": milliseconds,
        "connectTimeoutMS": milliseconds,
        "waitQueueTimeoutMS": milliseconds,
        # A node that reported not to be primary is asked again after this interval, so that must leave time within the call.
        "heartbeatFrequencyMS": min(max(500, milliseconds // 4), 10_000),
        # Explicit, whatever the server's defaults are. A commit that a majority has journaled survives the loss of the primary, and
        # majority reads from the primary never return a reference that a failover takes back.
        "w": "majority",
        "journal": True,
        "readConcernLevel": "majority",
        "readPreference": "primary",
        "retryReads": True,
        # A server without retryable writes runs a repeated write twice: an insertion then collides with itself and reports that
        # another process was faster. The layers above resolve lost answers, in the same way for every database.
        "retryWrites": False,
    }

    def make(listener: ConnectionPoolListener) -> MongoClient[Document]:
        try:
            return MongoClient(**parameters, event_listeners=[listener], connect=False)
        except (*DRIVER_FAULTS, OSError, ValueError, TypeError) as fault:
            error = driver_error(
                fault, place=url.shown, what="connect", writes=False, was_sent=False, of_one=False, secret=url.password
            )
            raise RefusedError(str(error)) from None

    return make
