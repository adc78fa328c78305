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
"""A connection that nobody needed for so long is closed."""
_CHECK_SECONDS = 0.1
"""How often a wait looks whether its socket is still there."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose every wait ends after ``answer_seconds``, whatever becomes of the server. Then it is of no use any more."""

    answer_seconds = 10.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._process = os.getpid()
        self._poll = select.poll()
        self._poll.register(self.pgconn.socket, select.POLLIN)

    def wait(self, gen: Any, interval: float = _CHECK_SECONDS, timeout: float | None = None) -> Any:
        """psycopg waits here for each answer, by itself for ever."""
        limit = self.answer_seconds if timeout is None else min(timeout, self.answer_seconds)
        try:
            return waiting.wait(gen, self.pgconn.socket, _CHECK_SECONDS, limit)
        except _WaitTimeout:
            raise NoAnswerError(f"no answer within {limit:g} s") from None

    def is_stale(self) -> bool:
        """Whether the server has said something, or gone, while nobody asked. Costs no round trip."""
        return self.closed or bool(self._poll.poll(0))

    def answer(self, statement: str, values: Sequence[Any] | dict[str, Any]) -> psycopg.Cursor[Any]:
        """The answer to a statement, a short one, to be read before anybody asks this connection again.

        It is always the same cursor: making one takes as long as half of what the client has to do for such a statement.
        """
        return self._cursor.execute(statement.encode(), values, prepare=True, binary=True)

    @cached_property
    def _cursor(self) -> psycopg.Cursor[Any]:
        return psycopg.Cursor(self)

    def only_row(self, statement: str, values: Any = None) -> tuple[Any, ...]:
        """What a statement says that always has one row."""
        row: tuple[Any, ...] | None = self.execute(statement.encode(), values).fetchone()
        assert row is not None
        return row

    def __del__(self, *arguments: Any) -> None:
        if getattr(self, "_process", None) == os.getpid():  # a child only forgets what it inherited
            super().__del__(*arguments)


class NoAnswerError(psycopg.OperationalError):
    """Nothing came in time."""


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
        self._idle: list[tuple[float, BoundedConnection]] = []
        self._busy = 0
        self._is_shut = False
        self._is_closed = False

    def borrow(self) -> BoundedConnection:
        """A connection for one call, to be given back.

        raises        UnavailableError when none becomes free in time, RefusedError when the pool is closed; or what ``connect`` raises
        """
        with self._condition:
            if not self._is_open() and not self._condition.wait_for(self._is_open, self._wait_seconds):
                raise UnavailableError(
                    f"{self._place}: none of {self._size} connections became free within {self._wait_seconds:g} s"
                )
            if self._is_closed:
                raise RefusedError(f"{self._place}: this store is closed: open another one")
            self._busy += 1
        try:
            return self._pop() or self._connect()
        except BaseException:
            self._leave(None)
            raise

    def give_back(self, connection: BoundedConnection) -> None:
        self._leave(connection)

    def throw_away(self, connection: BoundedConnection) -> None:
        """Instead of giving it back: it failed."""
        connection.close()
        self._leave(None)

    def close_idle(self) -> None:
        """Close those that nobody uses: they go to a server that is not there any more."""
        with self._condition:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def shut(self) -> None:
        """Give none out any more, and wait until all are back."""
        with self._condition:
            self._is_shut = True
            self._condition.wait_for(lambda: not self._busy)

    def open_pool(self) -> None:
        with self._condition:
            self._is_shut = False
            self._condition.notify_all()

    def anew(self) -> ConnectionPool:
        """In a forked child: a pool like this one, without its connections, which are the parent's."""
        _inherited.append(self)
        pool = ConnectionPool(self._connect, place=self._place, size=self._size, wait_seconds=self._wait_seconds)
        pool._is_closed = self._is_closed
        return pool

    def close(self) -> None:
        """Close all connections; those in use when they come back."""
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
            if connection is not None:
                if self._is_closed:
                    surplus = connection
                else:
                    self._idle.append((now, connection))
                    if self._idle[0][0] < now - _IDLE_SECONDS:
                        surplus = self._idle.pop(0)[1]
            self._condition.notify_all() if self._is_shut else self._condition.notify()
        if surplus is not None:
            surplus.close()


_inherited: list[ConnectionPool] = []
"""Of the parent, from before a fork. Kept, so that nobody collects and thereby touches their connections."""
