"""One SQLite file: connections per thread, transactions, forks, the meaning of SQLite's errors, and fair turns for writing processes.

SQLite's own busy handler sleeps longer each time, up to 100 ms. The longest waiter therefore looks least often, and a process that
commits in a loop rarely meets it in a moment without a writer: of eight such processes one worked and seven waited for seconds. Here a
waiter looks more often the longer it waits, and a process that had to wait lets others go first before it writes again.
docs/develop/decisions/0007 has the figures.

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
from headwater.store.stores import ForkGate

_SHORTEST_SECONDS = 0.00005
_FIRST_SECONDS, _LAST_SECONDS = 0.002, 0.0002
"""The longest sleep between two looks, at first and after a while. A look takes about 10 µs of a processor."""
_WHILE_SECONDS = 0.01
_COURTESY_SECONDS = 0.001
"""The longest sleep of a process that lets others go first: the time of a few writes."""


class WriterTurns:
    """The turns of one process at writing to a file. For one thread at a time.

    timeout_seconds  how long it waits for a turn
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._since: float | None = None
        """The time at which it first found others writing, if it has not written since."""
        self.is_courteous = False
        """Whether it lets others go first at its next turn."""

    def begin_turn(self, connection: sqlite3.Connection) -> None:
        """Begin a write transaction as soon as no other process has one.

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
        """End the turn. A transaction without changes, such as a lost swap, will be repeated and does not count as a turn."""
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
"""Result codes after which a repetition may succeed."""
_LASTING = {
    sqlite3.SQLITE_AUTH: "it does not allow this",
    sqlite3.SQLITE_NOLFS: "its file system takes no files of that size",
    sqlite3.SQLITE_PERM: "this process may not use it: change the owner or the mode of the file and its folder",
    sqlite3.SQLITE_READONLY: "it cannot be written: change the owner or the mode of the file and its folder, or where they are mounted",
    sqlite3.SQLITE_TOOBIG: "a value is larger than this SQLite takes",
}
"""Result codes that a person must resolve, and how."""
_HARMLESS = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT}
"""Result codes after which the connection can be used on."""


_PAUSE_SECONDS = 0.005


class SqliteFile:
    """A file that threads read and write, each through a connection of its own.

    timeout_seconds  how long a call waits for a lock that another thread or process holds
    """

    def __init__(self, path: Path, *, timeout_seconds: float) -> None:
        self.path = path
        self._log = path.with_name(path.name + "-wal")
        self._path_text, self._log_text = os.fspath(self.path), os.fspath(self._log)
        """Paths as text, because every commit checks both files: converting a Path takes longer than the check."""
        self._timeout = timeout_seconds
        self._is_closed = False
        self._identity: tuple[int, int] | None = None
        self._begin()

    def _begin(self) -> None:
        self._local = threading.local()
        self._gate = ForkGate()
        self._lock = threading.Lock()
        self._writing = threading.RLock()
        self._turns = WriterTurns(self._timeout)
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []

    def read(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` and return its result. Each of its statements sees the file as of its own start."""
        with self._gate as is_nested:
            self._check_transaction(what, is_nested=is_nested)
            try:
                return self._patiently(lambda: work(self._connection()))
            except sqlite3.Error as fault:
                raise self._meaning(what, fault) from fault

    def look(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read through a connection that is closed again and changes no file, not even its journal mode to a write-ahead log."""
        with self._gate:
            try:
                with closing(sqlite3.connect(self.path, timeout=self._timeout, isolation_level=None)) as connection:
                    return self._patiently(lambda: work(connection))
            except sqlite3.Error as fault:
                raise self._meaning(what, fault) from fault

    def _patiently(self, work: Callable[[], T]) -> T:
        """Repeat ``work`` while the file is busy, which is rare for readers: during recovery of a log, or while the last process leaves."""
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
        with self._gate as is_nested:
            self._check_transaction(what, is_nested=is_nested)
            try:
                # The threads of a process wait here, so that at most one of them competes with other processes for the file.
                if not self._writing.acquire(timeout=self._timeout):
                    raise UnavailableError(f"{self.path}: {what}: other threads were writing for {self._timeout:g} seconds")
                return self._transact(what, work)
            except sqlite3.Error as fault:
                raise self._meaning(what, fault) from fault
            finally:
                # Ctrl-C may come right after the lock was acquired, so no variable can tell whether it was. Releasing a lock of
                # another thread, or an RLock that is not held, raises RuntimeError.
                with suppress(RuntimeError):
                    self._writing.release()

    def _check_transaction(self, what: str, *, is_nested: bool) -> None:
        """Keep the handler of a signal out of the transaction that it interrupts: it would see, and write, half of it.

        Call this only inside the gate: outside it, a fork may be closing the connection at this moment.
        """
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None or not connection.in_transaction:
            return
        if is_nested:
            raise UnavailableError(f"{self.path}: {what}: this thread is writing already: try again when that has ended")
        # Ctrl-C left a transaction open in this thread: closing the connection rolls it back.
        self._discard()

    def _transact(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection()
        # Both checks come before BEGIN: SQLite would go on writing to a file or log that was removed, and the commits would be lost.
        self._check_place()
        self._check_log()
        try:
            self._turns.begin_turn(connection)
            changes = connection.total_changes
            answer = work(connection)
            # Checked again right before the COMMIT, because ``work`` may have waited and taken its time.
            self._check_place()
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as fault:
                # A busy file: the transaction is still open, and nothing was written. A full disk: the last frame of the log makes
                # the ones before it a commit, and there was no room for it or for an earlier one. Any other fault, such as a failed
                # fsync, may leave a complete commit in the log: the outcome is unknown.
                if connection.in_transaction or _code(fault) == sqlite3.SQLITE_FULL:
                    raise
                raise UnknownOutcomeError(f"{self.path}: {what}: commit: {fault}") from fault
            self._turns.end_turn(has_written=connection.total_changes > changes)
            return answer
        except UnknownOutcomeError:
            # No ROLLBACK here: the connection is closed, and the next one reads from the log what has become of the commit.
            self._discard()
            raise
        except BaseException:
            if connection.in_transaction:  # some faults roll back by themselves
                self._roll_back(connection)
            raise

    def _check_place(self) -> None:
        """Check that the path still names the opened file: SQLite would go on writing to one that was removed or replaced."""
        identity = _identity_of(self._path_text)
        if self._identity is None:
            self._identity = identity
        elif identity != self._identity:
            raise RefusedError(
                f"{self.path}: the file was {'removed' if identity is None else 'replaced'} while this store was open: nothing more is"
                " written; stop all processes that have it open, put the file in its place, and start them again"
            )

    def _check_log(self) -> None:
        """Check that the log of this thread's connection still has its name: SQLite would go on writing to one that was removed."""
        if _identity_of(self._log_text) != self._local.log:
            raise RefusedError(
                f"{self._log}: the log was removed or replaced while this store was open: nothing more is written. Do not open the store"
                " again before all processes that have it open have ended: end them normally, and the last one writes what the log holds"
                f" into {self.path.name}; the commits are lost if they are killed"
            )

    def check_log_is_there(self) -> None:
        """Check that the log was not removed after a process was killed.

        A process that ends normally removes the index of the log, and then the log; one that begins creates the log first::

            this process              another one
            no log
                                      begins: a log, its index
            an index                  so it looks for the log again

        raises        RefusedError when only the index is left
        """
        index = self.path.with_name(self.path.name + "-shm")
        # os.path.exists returns False for a name that is too long, where Path.exists would raise.
        if not os.path.exists(self._log) and os.path.exists(index) and not os.path.exists(self._log):  # noqa: PTH110
            raise RefusedError(
                f"{self._log}: the log is not there, though no process has closed the store: commits that it held are missing. Put it back"
                f" beside {self.path.name}; if it is lost for good, remove {index.name}, and open what is left"
            )

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:  # closing the connection rolls back as well; the first fault is the one to report
            self._discard()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            if self._is_closed:
                raise RefusedError(f"{self.path}: this store is closed: open it again")
            connection = self._connect()
            self._local.connection = connection
            with self._lock:
                # Threads do not say when they end, so their connections are closed when the next thread arrives.
                self._close_those_of(lambda thread: not thread.is_alive())
                self._open.append((threading.current_thread(), connection))
        return connection

    def _connect(self) -> sqlite3.Connection:
        _make_private(self.path)
        connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._use_write_ahead_log(connection)
            # FULL syncs the log at every commit: with NORMAL, a power cut loses the latest acknowledged commits.
            connection.execute("PRAGMA synchronous = FULL")
            # This read opens the log. Only then is its identity worth remembering.
            self._patiently(lambda: connection.execute("PRAGMA schema_version").fetchone())
            self._local.log = _identity_of(self._log_text)
            self._check_place()
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """Switch a new file to a write-ahead log. Concurrent creators find the file busy and must retry."""
        mode = self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            raise RefusedError(
                f"{self.path}: its file system does not do what a write-ahead log needs: put the store elsewhere"
            )

    def _discard(self) -> None:
        """Close this thread's connection; the next call opens another one."""
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
            # The connection may be in a bad state, for example after an I/O error: the next call opens a fresh one.
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
        """Close every connection, when no call is running.

        SQLite records for each file the locks that its process holds, and a forked child inherits this record without the locks: it
        would write into a log that the parent, which sees no other process, deletes when it closes its last connection.
        """
        # No call may be inside: closing a connection in use by another thread would break its transaction.
        self._gate.shut_gate()
        self._close_all()

    def after_fork(self, *, is_child: bool) -> None:
        if is_child:
            self._begin()
        else:
            self._gate.open_gate()

    def close(self) -> None:
        """Wait for running calls, and refuse all later ones."""
        self._gate.shut_gate()
        self._is_closed = True  # before the gate opens again: waiting calls must see it
        self._close_all()
        self._gate.open_gate()


def _identity_of(path: str) -> tuple[int, int] | None:
    """Device and inode of the file that a path names now; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116  a third of the time of Path.stat
    except FileNotFoundError:
        return None
    return (status.st_dev, status.st_ino)


def _code(fault: sqlite3.Error) -> int | None:
    """The primary result code; None for faults of Python's module, for example text that is no UTF-8."""
    code: int | None = getattr(fault, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _reason_not_to_open(path: Path) -> str | None:
    """The reason why this process cannot open a file, or None. The file is not opened: closing it would drop SQLite's locks on it."""
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


def _make_private(path: Path | str) -> None:
    """Make a file that is not there yet, for its owner alone; SQLite gives its log the same mode, and reports what fails here."""
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
