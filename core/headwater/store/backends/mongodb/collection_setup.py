"""Opens a MongoDB store from its URL: options, the driver's client, and the marker document, created once by concurrent openers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pymongo import MongoClient
from pymongo.errors import DuplicateKeyError
from pymongo.monitoring import ConnectionPoolListener

from headwater.errors import CorruptionError, NotFoundError, RefusedError
from headwater.store.backends.mongodb.backend import MongodbBackend
from headwater.store.backends.mongodb.driver_calls import DriverCalls, StoreCollections
from headwater.store.backends.mongodb.errors import DRIVER_FAULTS, driver_error
from headwater.store.backends.mongodb.row_documents import Document
from headwater.store.stores import BackendKind, StoreUrl, UrlOption, as_count, as_seconds, one_of

SCHEMA_VERSION = 1
_EXAMPLE = "mongodb://user:password@host:port/database"
_MARKER = "headwater"
_OLDEST_WIRE_VERSION = 9
"""MongoDB 4.4, which can compute fields in what a query shows."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/@]+)(:[0-9]{1,5})?")
_DATABASE = re.compile(r"[^\s/\\.\"$*<>:|?\0]{1,63}")
_RESERVED = ("admin", "config", "local")


def _as_connections(text: str) -> int:
    count = as_count(text)
    if count > 1000:
        raise ValueError(f"{text!r} is more than 1000")
    return count


def _as_truth(text: str) -> bool:
    return one_of("true", "false")(text) == "true"


_OPTIONS = (
    UrlOption("timeout", "how long one call may take, with all its waits", "10s", as_seconds),
    UrlOption("pool", "how many connections one process has at most, to each server", "10", _as_connections),
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


def _open(url: StoreUrl, options: Mapping[str, Any], create: bool) -> MongodbBackend:
    calls = DriverCalls(
        _maker(url, options), database=_database(url), place=url.shown, seconds=options["timeout"], secret=url.password
    )
    try:
        calls.run_read("set up", partial(_set_up, url.shown, create))
    except BaseException:
        calls.close()
        raise
    return MongodbBackend(calls)


def _database(url: StoreUrl) -> str:
    if not url.path:
        raise RefusedError(f"store {url.shown!r}: the database is missing: write {_EXAMPLE}")
    if not _DATABASE.fullmatch(url.path) or len(url.path.encode()) > 63:
        raise RefusedError(
            f'store {url.shown!r}: {url.path!r} is no name of a database: up to 63 bytes, without spaces and / \\ . " $ * < > : | ?'
        )
    if url.path in _RESERVED:
        raise RefusedError(f"store {url.shown!r}: {url.path!r} is MongoDB's own database: name another one")
    return url.path


def _maker(url: StoreUrl, options: Mapping[str, Any]) -> Callable[[ConnectionPoolListener], MongoClient[Document]]:
    hosts = url.place.split(",")
    if wrong := [host for host in hosts if not _HOST.fullmatch(host)]:
        raise RefusedError(
            f"store {url.shown!r}: {wrong[0]!r} is no host: write {_EXAMPLE}, or several servers like host:port,host:port"
        )
    if url.password is not None and not url.user:
        raise RefusedError(f"store {url.shown!r}: the user is missing before the password: write {_EXAMPLE}")
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


def _set_up(place: str, create: bool, collections: StoreCollections) -> None:
    """Check the server's version, and insert the marker if it is missing. MongoDB creates collections with their first documents."""
    hello = collections.client.admin.command("hello")
    if hello.get("maxWireVersion", 0) < _OLDEST_WIRE_VERSION:
        raise RefusedError(f"{place}: the server is too old: it has to be MongoDB 4.4 or newer")
    found = collections.meta.find_one({"_id": _MARKER})
    if found is None and not create:
        raise NotFoundError(f"there is no store at {place}: its database holds no Headwater collections")
    if found is None:
        # The unique _id decides between concurrent openers: one inserts the marker, the others read it.
        try:
            collections.meta.insert_one({"_id": _MARKER, "version": SCHEMA_VERSION})
        except DuplicateKeyError:  # another process was faster
            found = collections.meta.find_one({"_id": _MARKER})
    version = SCHEMA_VERSION if found is None else found.get("version")
    if type(version) is not int or version < 1:
        raise CorruptionError(
            f"{place}: the marker in collection meta has the version {version!r}, which no Headwater ever wrote"
        )
    if version > SCHEMA_VERSION:
        raise RefusedError(
            f"{place}: the database was set up by a newer Headwater (version {version}, this one knows {SCHEMA_VERSION}):"
            " upgrade this one"
        )


KIND = BackendKind(example=_EXAMPLE, open=_open, options=_OPTIONS)
