"""One SQLite file: connections per thread, transactions, forks, the meaning of SQLite's errors, and fair turns for writing processes.

SQLite's own busy handler sleeps longer each time, up to 100 ms. The longest waiter therefore looks least often, and a process that
commits in a loop rarely meets it in a moment without a writer: of eight such processes one worked and seven waited for seconds. Here a
waiter looks more often the longer it waits, and a process that had to wait lets others go first before it writes again.
docs/decisions/0007 has the figures.

Source: SQLite documentation, "Result and Error Codes", "Write-Ahead Logging", and "How To Corrupt An SQLite Database File" for forks.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from headwater.errors import (
    CorruptionError,
    HeadwaterError,
    RefusedError,
    StoreFullError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store.fork_gate import ForkGate

_SHORTEST_SECONDS = 0.00005
_FIRST_SECONDS, _LAST_SECONDS = 0.002, 0.0002
"""The longest sleep between two looks, at first and after a while. A look takes about 10 µs of a processor."""
_WHILE_SECONDS = 0.01
_COURTESY_SECONDS = 0.001
"""The longest sleep of one who lets others go first: some writes' time."""


class WriterTurns:
    """One process' turns at a file. For one thread at a time.

    timeout_seconds  how long it waits for one
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._since: float | None = None
        """When it found others writing, without having written since."""
        self.is_courteous = False
        """Whether it will let others go first when it begins the next time."""

    def begin_turn(self, connection: sqlite3.Connection) -> None:
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

    def end_turn(self, *, has_written: bool) -> None:
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


T = TypeVar("T")
_PASSING = {
    sqlite3.SQLITE_ABORT,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
}
"""What may be better at the next try."""
_LASTING = {
    sqlite3.SQLITE_AUTH: "it does not allow this",
    sqlite3.SQLITE_NOLFS: "its file system takes no files of that size",
    sqlite3.SQLITE_PERM: "this process may not use it: change the owner or the mode of the file and its folder",
    sqlite3.SQLITE_READONLY: "it cannot be written: change the owner or the mode of the file and its folder, or where they are mounted",
    sqlite3.SQLITE_TOOBIG: "a value is larger than this SQLite takes",
}
"""What a person has to change."""
_HARMLESS = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT}
"""After these a connection is as good as before."""


_PAUSE_SECONDS = 0.005


class SqliteFile:
    """A file that threads read and write, each through a connection of its own.

    timeout_seconds  how long a call waits for a lock that another thread or process holds
    """

    def __init__(self, path: Path, *, timeout_seconds: float) -> None:
        self.path = path
        self._log = path.with_name(path.name + "-wal")
        self._path_text, self._log_text = os.fspath(self.path), os.fspath(self._log)
        """As texts, for a commit looks at both: a path takes longer than the look itself."""
        self._timeout = timeout_seconds
        self._is_closed = False
        self._identity: tuple[int, int] | None = None
        self._begin()

    def _begin(self) -> None:
        self._local = threading.local()
        self._turnstile = ForkGate()
        self._lock = threading.Lock()
        self._writing = threading.RLock()
        self._turns = WriterTurns(self._timeout)
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []

    def read(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """What ``work`` returned, whose statements each see the file as it is when they begin."""
        with self._turnstile as is_nested:
            self._check_transaction(what, is_nested=is_nested)
            try:
                return self._patiently(lambda: work(self._connection()))
            except sqlite3.Error as fault:
                raise self._meaning(what, fault) from fault

    def look(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read through a connection that is closed again and changes no file, not even its journal mode to a write-ahead log."""
        with self._turnstile:
            try:
                with closing(sqlite3.connect(self.path, timeout=self._timeout, isolation_level=None)) as connection:
                    return self._patiently(lambda: work(connection))
            except sqlite3.Error as fault:
                raise self._meaning(what, fault) from fault

    def _patiently(self, work: Callable[[], T]) -> T:
        """Again while the file is busy, which it seldom is for readers: while a log is recovered, or the last process leaves."""
        until = time.monotonic() + self._timeout
        while True:
            try:
                return work()
            except sqlite3.OperationalError as fault:
                if not is_busy(fault) or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def write(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` in one transaction, which is rolled back when ``work`` raises, and return its result.

        raises        UnavailableError when the disk is full, also where the COMMIT finds that; UnknownOutcomeError when it fails for
                      another reason than that and a busy file: what it had written to the log may be found there after a crash
        """
        with self._turnstile as is_nested:
            self._check_transaction(what, is_nested=is_nested)
            try:
                # Threads queue here, and one of them stands for its process among the others.
                if not self._writing.acquire(timeout=self._timeout):
                    raise UnavailableError(f"{self.path}: {what}: other threads were writing for {self._timeout:g} seconds")
                return self._transact(what, work)
            except sqlite3.Error as fault:
                raise self._meaning(what, fault) from fault
            finally:
                # Ctrl-C may hit just after the lock was taken: only the lock itself knows for sure whose it is.
                with suppress(RuntimeError):
                    self._writing.release()

    def _check_transaction(self, what: str, *, is_nested: bool) -> None:
        """Keep the handler of a signal out of the transaction that it interrupts: it would see, and write, half of it.

        Only for those inside the turnstile: before it, a fork may be closing the connection at this moment.
        """
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None or not connection.in_transaction:
            return
        if is_nested:
            raise UnavailableError(f"{self.path}: {what}: this thread is writing already: try again when that has ended")
        self._discard()  # what Ctrl-C has left of a transaction

    def _transact(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection()
        self._check_place()
        self._check_log()
        try:
            self._turns.begin_turn(connection)
            changes = connection.total_changes
            answer = work(connection)
            self._check_place()
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as fault:
                # A busy file: nothing was written. A full disk: the frame that makes a commit of those before it is the last one,
                # and the disk had no room for it or for one before; what could not be brought to the disk is another error.
                if connection.in_transaction or _code(fault) == sqlite3.SQLITE_FULL:
                    raise
                raise UnknownOutcomeError(f"{self.path}: {what}: commit: {fault}") from fault
            self._turns.end_turn(has_written=connection.total_changes > changes)
            return answer
        except UnknownOutcomeError:
            self._discard()
            raise
        except BaseException:
            if connection.in_transaction:  # some faults roll back by themselves
                self._roll_back(connection)
            raise

    def _check_place(self) -> None:
        """That the path still names the file which was opened: SQLite would go on writing to one that was removed or replaced."""
        identity = _identity_of(self._path_text)
        if self._identity is None:
            self._identity = identity
        elif identity != self._identity:
            raise RefusedError(
                f"{self.path}: the file was {'removed' if identity is None else 'replaced'} while this store was open: nothing more is"
                " written; stop all processes that have it open, put the file in its place, and start them again"
            )

    def _check_log(self) -> None:
        """That the log of this thread's connection still has its name. SQLite would go on writing to one that was removed."""
        if _identity_of(self._log_text) != self._local.log:
            raise RefusedError(
                f"{self._log}: the log was removed or replaced while this store was open: nothing more is written. Do not open the store"
                " again before all processes that have it open have ended: end them normally, and the last one writes what the log holds"
                f" into {self.path.name}; the commits are lost if they are killed"
            )

    def check_log_is_there(self) -> None:
        """That nobody removed the log between the end of a process that was killed and now.

        Whoever ends normally removes the index of the log, and then the log; whoever begins makes the log first::

            this process              another one
            no log
                                      begins: a log, its index
            an index                  so the log is looked for again

        raises        RefusedError when only the index is left
        """
        index = self.path.with_name(self.path.name + "-shm")
        # of a name that is too long there is nothing, where Path.exists would raise
        if not os.path.exists(self._log) and os.path.exists(index) and not os.path.exists(self._log):  # noqa: PTH110
            raise RefusedError(
                f"{self._log}: the log is not there, though no process has closed the store: commits that it held are missing. Put it back"
                f" beside {self.path.name}; if it is lost for good, remove {index.name}, and open what is left"
            )

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:  # whoever lets go of a connection rolls back as well; the first fault tells more
            self._discard()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            if self._is_closed:
                raise RefusedError(f"{self.path}: this store is closed: open it again")
            connection = self._connect()
            self._local.connection = connection
            with self._lock:
                self._close_those_of(lambda thread: not thread.is_alive())
                self._open.append((threading.current_thread(), connection))
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._use_write_ahead_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
            self._patiently(lambda: connection.execute("PRAGMA schema_version").fetchone())  # from now on it has the log open
            self._local.log = _identity_of(self._log_text)
            self._check_place()
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """Switch a new file over. Processes that create one at once have to be patient."""
        mode = self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            raise RefusedError(
                f"{self.path}: its file system does not do what a write-ahead log needs: put the store elsewhere"
            )

    def _discard(self) -> None:
        """Let go of this thread's connection; the next call makes another one."""
        connection = getattr(self._local, "connection", None)
        with self._lock:
            self._open = [(thread, kept) for thread, kept in self._open if kept is not connection]
        self._local.connection = None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _close_those_of(self, is_meant: Callable[[threading.Thread], bool]) -> None:
        kept = []
        for thread, connection in self._open:
            if is_meant(thread):
                connection.close()
            else:
                kept.append((thread, connection))
        self._open = kept

    def _close_all(self) -> None:
        with self._lock:
            self._close_those_of(lambda _: True)
            self._local = threading.local()

    def _meaning(self, what: str, fault: sqlite3.Error) -> HeadwaterError:
        """The error to raise for a fault after which nothing was written."""
        code = _code(fault)
        if code not in _HARMLESS:
            self._discard()
        said = f"{self.path}: {what}: {fault}"
        if code == sqlite3.SQLITE_CANTOPEN:
            if reason := _reason_not_to_open(self.path):
                return RefusedError(f"{said}: {reason}")
            return UnavailableError(f"{said}: perhaps this process has too many files open")
        if code == sqlite3.SQLITE_FULL:
            return StoreFullError(f"{said}: nothing was written; make room on the disk of {self.path.parent}")
        if code in _PASSING:
            return UnavailableError(said)
        if code in _LASTING:
            return RefusedError(f"{said}: {_reason_not_to_open(self.path) or _LASTING[code]}")
        return CorruptionError(said)

    def before_fork(self) -> None:
        """Close every connection, when no call is under way.

        SQLite keeps for each file what locks its process holds, and a forked child inherits the note without the locks: it would
        write into a log that the parent, who sees no other process there, deletes when it closes its last connection.
        """
        self._turnstile.shut_gate()
        self._close_all()

    def after_fork(self, *, is_child: bool) -> None:
        if is_child:
            self._begin()
        else:
            self._turnstile.open_gate()

    def close(self) -> None:
        """Wait for calls under way, and refuse all that come later."""
        self._turnstile.shut_gate()
        self._is_closed = True
        self._close_all()
        self._turnstile.open_gate()


def _identity_of(path: str) -> tuple[int, int] | None:
    """Which file a path names now; None: none."""
    try:
        found = os.stat(path)  # noqa: PTH116  a third of the time of Path.stat
    except FileNotFoundError:
        return None
    return (found.st_dev, found.st_ino)


def _code(fault: sqlite3.Error) -> int | None:
    """The primary result code; None for faults of Python's module, for example text that is no UTF-8."""
    code: int | None = getattr(fault, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _reason_not_to_open(path: Path) -> str | None:
    """Why this process cannot open a file; None when it should. It is not tried: closing a file drops SQLite's locks on it."""
    if is_folder(path):
        return "it is a folder: name a file in it"
    if not is_folder(path.parent):
        return "its folder does not exist: create it, or name another file in the store's URL"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return "this process may not write to its folder, where the log stands beside the file: change its owner or mode"
    if len(os.fsencode(path.name)) > os.pathconf(path.parent, "PC_NAME_MAX"):
        return "its name is too long"
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return "this process may not read and write it: change its owner or mode"
    return None


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long
        return False
