"""Opens a PostgreSQL store from its URL: options, session settings, and the tables, created once by concurrent openers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from math import ceil
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8BinaryDumper

from headwater.errors import HeadwaterError, NotFoundError, RefusedError, UnavailableError, UnknownOutcomeError
from headwater.store.backends.postgresql.backend import PostgresqlBackend
from headwater.store.backends.postgresql.errors import connecting_error, statement_error
from headwater.store.backends.postgresql.pool import BoundedConnection, ConnectionPool
from headwater.store.backends.postgresql.statements import SCHEMA_VERSION, register_arrays, set_up
from headwater.store.stores import BackendKind, StoreUrl, UrlOption, as_count, as_seconds, one_of

_OLDEST = 120000
_SESSION = {
    "default_transaction_isolation": "read committed",
    # Every statement finds its rows by the primary key. A plan made while the tables were empty would read whole tables, and a
    # session keeps its plans.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
"""Settings of every session of ours. Source: PostgreSQL documentation, chapter "Server Configuration", section "Query Planning"."""
_LATER_MARGIN = 0.1
"""The share by which the server's time-out ends before ours: its answer is certain, whereas after ours the outcome is unknown."""


def _as_schema(text: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", text) or text.startswith("pg_"):
        raise ValueError(f"{text!r} is no name of a schema here: up to 63 of a-z, 0-9 and _, not a digit first, not pg_ first")
    return text


def _as_connections(text: str) -> int:
    count = as_count(text)
    if count > 1000:
        raise ValueError(f"{text!r} is more than 1000")
    return count


_OPTIONS = (
    UrlOption("schema", "the schema that holds the tables; made if it is missing", "headwater", _as_schema),
    UrlOption("timeout", "how long one call waits for a free connection, and for each answer", "10s", as_seconds),
    UrlOption(
        "connect_timeout", "how long a connection to one host may take to be made, in whole seconds from 2s", "5s", as_seconds
    ),
    UrlOption("pool", "how many connections one process has at most", "10", _as_connections),
    UrlOption("host", "the folder of a Unix socket, or a host where the URL names none"),
    UrlOption("port", "the port where the URL names none", parse=as_count),
    UrlOption("service", "a section of the file pg_service.conf"),
    UrlOption("passfile", "a file with passwords instead of ~/.pgpass"),
    UrlOption(
        "sslmode",
        "whether to use TLS, and how much of the server's certificate to check",
        parse=one_of("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    ),
    UrlOption("sslrootcert", "a file with the authorities' certificates, or system"),
    UrlOption("sslcert", "a file with this client's certificate"),
    UrlOption("sslkey", "a file with this client's key"),
    UrlOption("application_name", "what the server's lists of sessions show; without it, PGAPPNAME or headwater"),
)
_PARAMETERS = ("host", "port", "service", "passfile", "sslmode", "sslrootcert", "sslcert", "sslkey", "application_name")
"""Options that are libpq's own, under its names."""


def _open(url: StoreUrl, options: Mapping[str, Any], create: bool) -> PostgresqlBackend:
    place = url.shown_open  # its options are known ones by now, and the schema says which store it is
    connect = partial(_connect, place, _parameters(url, options), options["timeout"], options["connect_timeout"])
    pool = ConnectionPool(connect, place=place, size=options["pool"], wait_seconds=options["timeout"])
    try:
        connection = pool.borrow()
        try:
            _set_up(connection, place, options["schema"], create=create)
        except psycopg.Error as fault:
            pool.throw_away(connection)
            raise _opening_error(fault, place, options["schema"]) from fault
        except BaseException:
            pool.throw_away(connection)
            raise
        pool.give_back(connection)
    except BaseException:
        pool.close()
        raise
    return PostgresqlBackend(pool, place=place, schema=options["schema"])


def _parameters(url: StoreUrl, options: Mapping[str, Any]) -> dict[str, Any]:
    """libpq's parameters. libpq takes from its environment what neither the URL nor its options set."""
    try:
        parameters: dict[str, Any] = conninfo_to_dict(f"postgresql://{url.place}/{quote(url.path, safe='')}")
    except psycopg.Error as fault:
        raise RefusedError(f"store {url.shown!r}: {' '.join(str(fault).split())}") from None
    for name in _PARAMETERS:
        if options[name] is not None:
            if name in parameters:
                raise RefusedError(f"store {url.shown!r}: {name} stands before the database's name and among the options")
            parameters[name] = options[name]
    if url.user is not None:
        parameters["user"] = url.user
    if url.password is not None:
        parameters["password"] = url.password
    return parameters | {
        "client_encoding": "UTF8",
        "connect_timeout": max(2, ceil(options["connect_timeout"])),
        "fallback_application_name": "headwater",
        # of several hosts only the one that takes writes; a standby would also return outdated references
        "target_session_attrs": "primary",
    }


class _Adapters:
    """Adapters that send every integer as a bigint, so that a statement has only one plan."""

    def __init__(self) -> None:
        self.adapters = AdaptersMap(psycopg.adapters)
        self.adapters.register_dumper(int, Int8BinaryDumper)
        register_arrays(self.adapters)
        self.connection = None


_ADAPTERS = _Adapters()


def _connect(place: str, parameters: dict[str, Any], answer_seconds: float, connect_seconds: float) -> BoundedConnection:
    """A connection whose session is set up, in one more round trip."""
    try:
        connection = BoundedConnection.connect(**parameters, autocommit=True, context=_ADAPTERS)
    except psycopg.Error as fault:
        raise connecting_error(fault, place=place) from fault
    connection.answer_seconds = connect_seconds
    try:
        _begin_session(connection, place, answer_seconds)
    except psycopg.Error as fault:
        connection.close()
        raise statement_error(fault, place=place, what="begin a session", writes=False) from fault
    except BaseException:
        connection.close()
        raise
    connection.answer_seconds = answer_seconds
    return connection


def _begin_session(connection: BoundedConnection, place: str, answer_seconds: float) -> None:
    if connection.info.server_version < _OLDEST:
        raise RefusedError(
            f"{place}: the server is PostgreSQL {connection.info.server_version // 10000}; it has to be 12 or newer"
        )
    limit = str(max(1, int(answer_seconds * (1 - _LATER_MARGIN) * 1000)))
    settings = _SESSION | {"statement_timeout": limit, "idle_in_transaction_session_timeout": limit}
    calls = ", ".join("set_config(%s, %s, false)" for _ in settings)
    # synchronous_commit = off acknowledges commits that a crash of the server loses. Stricter values of the server stay.
    durable = (
        "set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'off' THEN 'on'"
        " ELSE current_setting('synchronous_commit') END, false)"
    )
    words = [word for setting in settings.items() for word in setting]
    encoding = connection.only_row(f"SELECT current_setting('server_encoding'), {durable}, {calls}", words)[0]
    if encoding != "UTF8":
        raise RefusedError(f"{place}: the database's encoding is {encoding}: create one with ENCODING 'UTF8'")


def _set_up(connection: BoundedConnection, place: str, schema: str, *, create: bool) -> None:
    """Make the tables, unless they are there.

    raises        NotFoundError when they are not there, and not to be created
    """
    found = _version(connection, schema)
    if found is None and not create:
        raise NotFoundError(f"there is no store at {place}: schema {schema} holds no Headwater tables")
    if found is None:
        with connection.transaction():
            # CREATE ... IF NOT EXISTS fails when two sessions run it at once, so they take turns by an advisory lock.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"headwater set-up {schema}",))
            # Checked again under the lock: another session may have created the tables meanwhile.
            found = _version(connection, schema)
            if found is None:
                if connection.only_row("SELECT count(*) FROM pg_namespace WHERE nspname = %s", (schema,)) == (0,):
                    connection.execute(f'CREATE SCHEMA "{schema}"'.encode())
                for statement in set_up(schema):
                    connection.execute(statement.encode())
                return
    if found > SCHEMA_VERSION:
        raise RefusedError(
            f"{place}: the schema {schema} was set up by a newer Headwater (version {found}, this one knows {SCHEMA_VERSION}):"
            " upgrade this one"
        )
    if found < SCHEMA_VERSION:
        raise RefusedError(f"{place}: the schema {schema} has version {found}, which no Headwater ever wrote")


def _version(connection: BoundedConnection, schema: str) -> int | None:
    """The schema's version; None if it is not set up. Queries pg_class, because ``to_regclass`` may answer from before the lock."""
    there = (
        "SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = %s AND relname = %s"
    )
    if connection.only_row(there, (schema, "version")) == (0,):
        return None
    return connection.only_row(f'SELECT max(number)::bigint FROM "{schema}".version')[0] or 0


def _opening_error(fault: psycopg.Error, place: str, schema: str) -> HeadwaterError:
    """The error for a failed set-up. Repeating it does no harm, so an unknown outcome becomes UnavailableError."""
    missing = f"let the owner of the schema {schema} open this store once, then grant its rights to this role"
    error = statement_error(fault, place=place, what="set up", writes=False, hints={"42501": missing})
    return UnavailableError(str(error)) if isinstance(error, UnknownOutcomeError) else error


KIND = BackendKind(example="postgresql://user:password@host:port/database", open=_open, options=_OPTIONS)
