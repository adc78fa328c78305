"""A pool of connections to one server: opened on demand, bounded in number and in waiting time, and never touched by forked children.

Also says what a store's URL may hold of such connections, and sets their sessions up.

psycopg's own pool was considered and rejected: it connects in threads of its own, which a forked child does not have; a caller
sees a wrong password or a stopped server only as a time-out; and after a restart it reconnects in growing intervals.
"""

from __future__ import annotations

import os
import re
import select
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import ceil
from time import monotonic
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import waiting
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import _WaitTimeout

from headwater.errors import HeadwaterError, RefusedError, UnavailableError
from headwater.store.backends.postgresql.errors import connecting_error, statement_error
from headwater.store.backends.postgresql.statements import ADAPTERS
from headwater.store.urls import StoreUrl, UrlOption, as_connections, as_count, as_seconds, one_of

_CHECK_SECONDS = 0.1
"""How often a wait checks whether its socket still exists."""
_OLDEST = 120000
_LOOKS = 3
_SESSION = {
    "default_transaction_isolation": "read committed",
    # A commit that no synchronous standby has is reported by a warning alone; see UnreplicatedError.
    "client_min_messages": "warning",
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
_inherited: list[ConnectionPool] = []
"""Pools of the parent process. Kept alive, so that garbage collection does not touch their idle connections; those that the parent's
threads were using are in no pool, and only ``BoundedConnection.__del__`` keeps a child from ending their sessions."""


def _as_schema(text: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", text) or text.startswith("pg_"):
        raise ValueError(
            f"{text!r} is not a name of a schema here: up to 63 of a-z, 0-9 and _, not a digit first, not pg_ first"
        )
    return text


OPTIONS = (
    UrlOption("schema", "the schema that holds the tables; made if it is missing", "headwater", _as_schema),
    UrlOption("timeout", "how long one call waits for a free connection, and for each answer", "10s", as_seconds),
    UrlOption(
        "connect_timeout", "how long a connection to one host may take to be made, in whole seconds from 2s", "5s", as_seconds
    ),
    UrlOption("pool", "how many connections one process has at most", "10", as_connections),
    UrlOption("idle", "how long a connection that nobody uses stays open", "60s", as_seconds),
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
    UrlOption(
        "target_session_attrs",
        "which of several hosts to use: the primary, one that accepts writes, or the first that responds (a standby is refused)",
        "primary",
        one_of("primary", "read-write", "any"),
    ),
    UrlOption("keepalives", "whether TCP asks idle connections if their other end lives", parse=one_of("0", "1")),
    UrlOption("keepalives_idle", "after how many idle seconds TCP asks", parse=as_count),
    UrlOption("keepalives_interval", "after how many seconds TCP asks again", parse=as_count),
    UrlOption("keepalives_count", "how many questions without an answer end a connection", parse=as_count),
    UrlOption(
        "tcp_user_timeout", "after how many milliseconds without an acknowledgement TCP ends a connection", parse=as_count
    ),
    UrlOption("options", "settings that each session begins with, as -c name=value; the store's own take precedence"),
    UrlOption("application_name", "what the server's lists of sessions show; without it, PGAPPNAME or headwater"),
)
_PARAMETERS = (
    *("host", "port", "service", "passfile", "sslmode", "sslrootcert", "sslcert", "sslkey", "application_name", "options"),
    *("target_session_attrs", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
)
"""Options that are libpq's own, under its names."""


@dataclass(frozen=True, kw_only=True)
class PoolLimits:
    """How many connections a pool has, and what their sessions begin with.

    size          how many there are at most; None: what the URL says
    idle_seconds  a connection that was idle for this long is closed; None: what the URL says
    session       settings of every session beyond those of the rows' own, or instead
    """

    size: int | None = None
    idle_seconds: float | None = None
    session: Mapping[str, str] = field(default_factory=dict)


def open_pool(url: StoreUrl, options: Mapping[str, Any], limits: PoolLimits | None = None) -> ConnectionPool:
    """The pool for a URL and its options, without any connection yet."""
    place = url.shown_open  # its options are known ones by now, and the schema says which store it is
    limits = limits or PoolLimits()
    session = _SESSION | dict(limits.session)
    connect = partial(_connect, place, _parameters(url, options), options["timeout"], options["connect_timeout"], session)
    return ConnectionPool(
        connect,
        place=place,
        size=limits.size or options["pool"],
        wait_seconds=options["timeout"],
        idle_seconds=limits.idle_seconds or options["idle"],
    )


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose every wait ends after ``answer_seconds``, even if the server hangs. After that it must not be used again."""

    answer_seconds = 10.0
    is_pooled = False
    """Whether a pooler is between: its client has another number than the server's process."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._process = os.getpid()
        self._unreplicated: list[str] = []
        self.add_notice_handler(partial(_note_unreplicated, self._unreplicated))  # without ``self``: no cycle
        self._poll = select.poll()
        self._poll.register(self.pgconn.socket, select.POLLIN)

    def wait(self, gen: Any, interval: float = _CHECK_SECONDS, timeout: float | None = None) -> Any:
        """Wait for an answer, with a time limit. psycopg itself waits here for ever."""
        limit = self.answer_seconds if timeout is None else min(timeout, self.answer_seconds)
        try:
            answer = waiting.wait(gen, self.pgconn.socket, _CHECK_SECONDS, limit)
        except _WaitTimeout:
            # The answer may still arrive: the caller throws this connection away, or it would answer the next statement.
            raise NoAnswerError(f"no answer within {limit:g} s") from None
        if self._unreplicated:
            raise UnreplicatedError(self._unreplicated.pop())
        return answer

    def is_stale(self) -> bool:
        """Whether the server sent something unasked, or closed the connection. Costs no round trip."""
        return self.closed or bool(self._poll.poll(0))

    def answer(self, statement: str, values: Sequence[Any] | dict[str, Any]) -> psycopg.Cursor[Any]:
        """Execute a statement with a short answer, which must be read before the connection is used again.

        Always uses the same cursor: creating one takes half as long as everything else the client does for such a statement.
        """
        return self._cursor.execute(statement.encode(), values, prepare=True, binary=True)

    @cached_property
    def _cursor(self) -> psycopg.Cursor[Any]:
        return psycopg.Cursor(self)

    def only_row(self, statement: str, values: Any = None) -> tuple[Any, ...]:
        """The row of a statement that always returns exactly one."""
        row: tuple[Any, ...] | None = self.execute(statement.encode(), values).fetchone()
        assert row is not None
        return row

    def __del__(self, *arguments: Any) -> None:
        # A forked child must not close an inherited connection: that would send a Terminate message on the parent's socket.
        if getattr(self, "_process", None) == os.getpid():
            super().__del__(*arguments)


class NoAnswerError(psycopg.OperationalError):
    """The server did not answer in time."""


class UnreplicatedError(psycopg.OperationalError):
    """The server reported success, and warned that no synchronous standby may have it: a failover can take it back.

    Somebody cancelled the wait for a standby, which PostgreSQL reports by a warning alone. Source: its documentation, section
    "Synchronous Replication"; ``SyncRepWaitForLSN`` in ``src/backend/replication/syncrep.c``.
    """


def _note_unreplicated(noted: list[str], notice: psycopg.errors.Diagnostic) -> None:
    # By the function that sent it, because texts are in the server's language, and the SQLSTATE is that of every warning.
    if notice.source_function == "SyncRepWaitForLSN":
        noted.append(": ".join(text for text in (notice.message_primary, notice.message_detail) if text))


class ConnectionPool:
    """Up to ``size`` connections for any number of threads; the one that was used last is used next.

    connect       makes a connection, or raises one of the error tree
    place         how the server is called in messages
    size          how many there are at most
    wait_seconds  how long a caller waits for one while all are in use
    idle_seconds  a connection that was idle for this long is closed, by a thread that lives while there are idle ones
    """

    def __init__(
        self,
        connect: Callable[[], BoundedConnection],
        *,
        place: str,
        size: int,
        wait_seconds: float,
        idle_seconds: float,
    ) -> None:
        self._connect = connect
        self._place = place
        self._size = size
        self._wait_seconds = wait_seconds
        self._idle_seconds = idle_seconds
        self._reaper: threading.Thread | None = None
        self._closing = threading.Event()
        self._condition = threading.Condition(threading.Lock())
        self._idle: list[tuple[float, BoundedConnection]] = []  # the one used longest ago comes first
        self._busy = 0  # invariant: 0 <= _busy <= _size; counts borrowers, even before they have a connection
        self._is_closed = False

    def borrow(self) -> BoundedConnection:
        """Borrow a connection for one call; return it with ``give_back`` or ``throw_away``.

        raises        UnavailableError when none becomes free in time, RefusedError when the pool is closed; or what ``connect`` raises
        """
        with self._condition:
            if not self._is_open() and not self._condition.wait_for(self._is_open, self._wait_seconds):
                raise UnavailableError(
                    f"{self._place}: none of {self._size} connections became free within {self._wait_seconds:g} s"
                )
            if self._is_closed:
                raise RefusedError(f"{self._place}: this store is closed: open another one")
            # Counted before the connection is made, so that concurrent callers never exceed ``size``. Connecting itself happens
            # outside the lock: a slow server must not block those who give connections back.
            self._busy += 1
        try:
            return self._pop() or self._connect()
        except BaseException:
            self._leave(None)
            raise

    def refuse_shared_sessions(self, connection: BoundedConnection) -> None:
        """Refuse a pooler that gives another session of the server to each transaction; given one connection that was borrowed.

        Settings, prepared statements and the time limits of a session would be lost, or be another client's. Two clients that are
        connected at the same time never have the same session where the pooler keeps one for each of them, and none of them ever gets
        another one.

        raises        RefusedError
        """
        if not connection.is_pooled:
            return
        try:
            another = self._connect()
        except HeadwaterError:  # no session is free beside ours, which a pooler that shares them would have found
            return
        try:
            if not any(_share_sessions(connection, another) for _ in range(_LOOKS)):
                return
        except psycopg.Error as fault:
            if "pooling" not in str(fault):  # a pooler of single statements refuses to begin a transaction
                raise
        finally:
            another.close()
        raise RefusedError(
            f"{self._place}: the pooler before this server gives another session to each transaction or statement (PgBouncer's"
            " pool_mode=transaction or statement): set pool_mode=session for this database, or name the server itself"
        )

    def give_back(self, connection: BoundedConnection) -> None:
        self._leave(connection)

    def throw_away(self, connection: BoundedConnection) -> None:
        """Close a connection that failed, instead of giving it back."""
        connection.close()
        self._leave(None)

    def close_idle(self) -> None:
        """Close all idle connections: their server is gone."""
        with self._condition:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def anew(self) -> ConnectionPool:
        """Make the pool of a forked child: like this one, but without its connections, which belong to the parent."""
        _inherited.append(self)
        pool = ConnectionPool(
            self._connect,
            place=self._place,
            size=self._size,
            wait_seconds=self._wait_seconds,
            idle_seconds=self._idle_seconds,
        )
        pool._is_closed = self._is_closed
        return pool

    def close(self) -> None:
        """Close all connections; those in use are closed when they are returned."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        self._closing.set()
        self.close_idle()

    def close_expired(self, now: float) -> float | None:
        """Close connections that were idle for too long at a time of the monotonic clock. Returns when the next one will have been."""
        expired = []
        with self._condition:
            while self._idle and self._idle[0][0] + self._idle_seconds <= now:
                expired.append(self._idle.pop(0)[1])  # closed outside the lock, like all: a server that hangs holds nobody up
            soonest = self._idle[0][0] + self._idle_seconds if self._idle else None
            if soonest is None:
                self._reaper = None  # under the lock: who adds the next idle connection starts another one
        for connection in expired:
            connection.close()
        return soonest

    def _reap(self) -> None:
        # Waits for an event of its own: woken by the condition, it would take the turn of a caller who waits for a connection.
        while (soonest := self.close_expired(monotonic())) is not None:
            self._closing.wait(max(0.0, soonest - monotonic()) + _CHECK_SECONDS)

    def _is_open(self) -> bool:
        return self._is_closed or self._busy < self._size

    def _pop(self) -> BoundedConnection | None:
        while True:
            with self._condition:
                if not self._idle:
                    return None
                connection = self._idle.pop()[1]
            if not connection.is_stale():
                return connection
            connection.close()

    def _leave(self, connection: BoundedConnection | None) -> None:
        now = monotonic()
        surplus = None
        with self._condition:
            self._busy -= 1
            assert self._busy >= 0, "a connection was returned twice"
            if connection is not None:
                if self._is_closed:
                    surplus = connection
                else:
                    self._idle.append((now, connection))
                    # Started late, and again in a child: a thread does not survive a fork. It ends when there is nothing to close,
                    # so a process that is done with its connections keeps no thread either.
                    if self._reaper is None:
                        reaper = threading.Thread(target=self._reap, name="idle connections", daemon=True)
                        with suppress(RuntimeError):  # Python is shutting down, and ends all connections
                            reaper.start()
                            self._reaper = reaper
            self._condition.notify()
        if surplus is not None:
            surplus.close()


def _share_sessions(first: BoundedConnection, second: BoundedConnection) -> bool:
    """Whether a pooler gives sessions of the server to transactions, as far as two of its clients can tell."""
    own = _process_of(first)
    second.execute(b"BEGIN")  # while it lasts, the second client keeps its session
    try:
        other = _process_of(second)
        return own == other or own != _process_of(first)
    finally:
        second.execute(b"ROLLBACK")


def _process_of(connection: BoundedConnection) -> int:
    return int(connection.only_row("SELECT pg_backend_pid()")[0])


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
    }


def _connect(
    place: str, parameters: dict[str, Any], answer_seconds: float, connect_seconds: float, session: Mapping[str, str]
) -> BoundedConnection:
    """A connection whose session is set up, in one more round trip."""
    try:
        connection = BoundedConnection.connect(**parameters, autocommit=True, context=ADAPTERS)
    except psycopg.Error as fault:
        raise connecting_error(fault, place=place) from fault
    connection.answer_seconds = connect_seconds
    try:
        _begin_session(connection, place, answer_seconds, session)
    except psycopg.Error as fault:
        connection.close()
        raise statement_error(fault, place=place, what="begin a session", writes=False) from fault
    except BaseException:
        connection.close()
        raise
    connection.answer_seconds = answer_seconds
    return connection


def _begin_session(connection: BoundedConnection, place: str, answer_seconds: float, session: Mapping[str, str]) -> None:
    if connection.info.server_version < _OLDEST:
        raise RefusedError(
            f"{place}: the server is PostgreSQL {connection.info.server_version // 10000}; it has to be 12 or newer"
        )
    limit = str(max(1, int(answer_seconds * (1 - _LATER_MARGIN) * 1000)))
    settings = dict(session) | {"statement_timeout": limit, "idle_in_transaction_session_timeout": limit}
    calls = ", ".join("set_config(%s, %s, false)" for _ in settings)
    # synchronous_commit = off acknowledges commits that a crash of the server loses. Stricter values of the server stay.
    durable = (
        "set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'off' THEN 'on'"
        " ELSE current_setting('synchronous_commit') END, false)"
    )
    words = [word for setting in settings.items() for word in setting]
    facts = "current_setting('server_encoding'), pg_is_in_recovery(), pg_backend_pid()"
    encoding, is_standby, process, *_ = connection.only_row(f"SELECT {facts}, {durable}, {calls}", words)
    if is_standby:
        raise UnavailableError(f"{place}: the server is a standby, whose references may be outdated: name the primary")
    connection.is_pooled = process != connection.info.backend_pid
    if encoding != "UTF8":
        raise RefusedError(f"{place}: the database's encoding is {encoding}: create one with ENCODING 'UTF8'")
