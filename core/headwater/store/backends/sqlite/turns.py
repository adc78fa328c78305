"""How processes that write to one file take turns.

SQLite's own way is to sleep and look again, longer each time, up to 100 ms: who has waited long looks least often, and a process that
commits in a loop is hardly ever met by the others in the moment in which it does not write. Eight such processes had one at work
and seven that waited for seconds. Here who waits looks more often the longer it waits, and who had to wait lets others go first
before it writes again. docs/decisions/0007 has the figures.
"""

from __future__ import annotations

import random
import sqlite3
import time

__all__ = ["Turns", "is_busy"]

_SHORTEST_SECONDS = 0.00005
_FIRST_SECONDS, _LAST_SECONDS = 0.002, 0.0002
"""The longest sleep between two looks, at first and after a while. A look takes about 10 µs of a processor."""
_WHILE_SECONDS = 0.01
_COURTESY_SECONDS = 0.001
"""The longest sleep of one who lets others go first: some writes' time."""


class Turns:
    """One process' turns at a file. For one thread at a time.

    timeout_seconds  how long it waits for one
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._since: float | None = None
        """When it found others writing, without having written since."""
        self.is_courteous = False
        """Whether it will let others go first when it begins the next time."""

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction when no other process has one that writes.

        raises        sqlite3.OperationalError, busy, when others write all the time
        """
        if self.is_courteous:
            self.is_courteous = False
            _sleep(_COURTESY_SECONDS)
        until = time.monotonic() + self._timeout
        while not _begin(connection, is_last=time.monotonic() >= until):
            now = time.monotonic()
            if self._since is None:
                self._since = now
            waited = min((now - self._since) / _WHILE_SECONDS, 1.0)
            _sleep(_FIRST_SECONDS + (_LAST_SECONDS - _FIRST_SECONDS) * waited)

    def end(self, *, has_written: bool) -> None:
        """After the transaction. One that changed nothing, as a swap that was beaten, will come again and has not had its turn."""
        if has_written:
            self.is_courteous = self._since is not None
            self._since = None


def is_busy(fault: sqlite3.Error) -> bool:
    code: int = getattr(fault, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_BUSY


def _begin(connection: sqlite3.Connection, *, is_last: bool) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as fault:
        if is_last or not is_busy(fault):
            raise
        return False
    return True


def _sleep(longest: float) -> None:
    time.sleep(random.uniform(_SHORTEST_SECONDS, longest))
