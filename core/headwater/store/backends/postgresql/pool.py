"""A pool of connections to one server: opened on demand, bounded in number and in waiting time, and never touched by forked children.

psycopg's own pool was considered and rejected: it connects in threads of its own, which a forked child does not have; a caller
sees a wrong password or a stopped server only as a time-out; and after a restart it reconnects in growing intervals.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from time import monotonic
from typing import Any

import psycopg
from psycopg import waiting
from psycopg.errors import _WaitTimeout

from headwater.errors import RefusedError, UnavailableError

_IDLE_SECONDS = 300.0
"""A connection that was idle for this long is closed."""
_CHECK_SECONDS = 0.1
"""How often a wait checks whether its socket still exists."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose every wait ends after ``answer_seconds``, even if the server hangs. After that it must not be used again."""

    answer_seconds = 10.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._process = os.getpid()
        self._poll = select.poll()
        self._poll.register(self.pgconn.socket, select.POLLIN)

    def wait(self, gen: Any, interval: float = _CHECK_SECONDS, timeout: float | None = None) -> Any:
        """Wait for an answer, with a time limit. psycopg itself waits here for ever."""
        limit = self.answer_seconds if timeout is None else min(timeout, self.answer_seconds)
        try:
            return waiting.wait(gen, self.pgconn.socket, _CHECK_SECONDS, limit)
        except _WaitTimeout:
            # The answer may still arrive: the caller throws this connection away, or it would answer the next statement.
            raise NoAnswerError(f"no answer within {limit:g} s") from None

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


class ConnectionPool:
    """Up to ``size`` connections for any number of threads; the one that was used last is used next.

    connect       makes a connection, or raises one of the error tree
    place         how the server is called in messages
    size          how many there are at most
    wait_seconds  how long a caller waits for one while all are in use
    """

    def __init__(self, connect: Callable[[], BoundedConnection], *, place: str, size: int, wait_seconds: float) -> None:
        self._connect = connect
        self._place = place
        self._size = size
        self._wait_seconds = wait_seconds
        self._condition = threading.Condition(threading.Lock())
        self._idle: list[tuple[float, BoundedConnection]] = []  # the one used longest ago comes first
        self._busy = 0  # invariant: 0 <= _busy <= _size; counts borrowers, even before they have a connection
        self._is_shut = False
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

    def shut(self) -> None:
        """Lend no more connections, and wait until all have been returned."""
        with self._condition:
            self._is_shut = True
            self._condition.wait_for(lambda: not self._busy)

    def open_pool(self) -> None:
        with self._condition:
            self._is_shut = False
            self._condition.notify_all()

    def anew(self) -> ConnectionPool:
        """Make the pool of a forked child: like this one, but without its connections, which belong to the parent."""
        _inherited.append(self)
        pool = ConnectionPool(self._connect, place=self._place, size=self._size, wait_seconds=self._wait_seconds)
        pool._is_closed = self._is_closed
        return pool

    def close(self) -> None:
        """Close all connections; those in use are closed when they are returned."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        self.close_idle()

    def _is_open(self) -> bool:
        return self._is_closed or (not self._is_shut and self._busy < self._size)

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
                    if self._idle[0][0] < now - _IDLE_SECONDS:
                        surplus = self._idle.pop(0)[1]
            # ``shut`` waits for the last connection while borrowers wait too: one notification could wake the wrong waiter.
            self._condition.notify_all() if self._is_shut else self._condition.notify()
        if surplus is not None:
            surplus.close()


_inherited: list[ConnectionPool] = []
"""Pools of the parent process. Kept alive, so that garbage collection does not touch their connections."""
