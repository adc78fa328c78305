"""File references in a SQLite file: that of the store, or one beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from headwater.clock import Clock, Micros
from headwater.errors import NotFoundError, RefusedError
from headwater.files.file_references import PartitionId, RequestOutcome, RequestState
from headwater.files.reference_rules import KnownRows, NamedRows, ReferenceChanges
from headwater.files.reference_store import FileScope
from headwater.files.sql_references import (
    NOT_MARKED,
    FileMarks,
    ReferenceFaults,
    ReferenceTransaction,
    RetryPolicy,
    SqlReferenceStore,
    StoredReferences,
    reference_flags,
    stored_reference,
)
from headwater.store.backends.sqlite.database_file import SqliteFile
from headwater.store.ids import RealmKey

T = TypeVar("T")
SCHEMA_VERSION = 1
_TABLES = (
    "CREATE TABLE file_scopes (scope INTEGER PRIMARY KEY AUTOINCREMENT, realm INTEGER NOT NULL, table_id TEXT NOT NULL,"
    " tree_number INTEGER NOT NULL, closed INTEGER NOT NULL, created INTEGER NOT NULL, UNIQUE (realm, table_id))",
    "CREATE TABLE tracked_files (scope INTEGER NOT NULL, filename TEXT NOT NULL, marked INTEGER NOT NULL,"
    " PRIMARY KEY (scope, filename)) WITHOUT ROWID",
    "CREATE TABLE file_references (scope INTEGER NOT NULL, filename TEXT NOT NULL, part TEXT NOT NULL, row_count INTEGER NOT NULL,"
    " flags INTEGER NOT NULL, job TEXT, updated INTEGER NOT NULL, PRIMARY KEY (scope, filename, part)) WITHOUT ROWID",
    "CREATE TABLE file_outcomes (scope INTEGER NOT NULL, request TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,"
    " digest TEXT NOT NULL, reason TEXT NOT NULL, error TEXT NOT NULL, time INTEGER NOT NULL,"
    " PRIMARY KEY (scope, request)) WITHOUT ROWID",
    "CREATE TABLE file_tables_version (number INTEGER NOT NULL)",
    f"INSERT INTO file_tables_version VALUES ({SCHEMA_VERSION})",
)
_HOLDER = "SELECT 1 FROM file_references AS r WHERE r.scope = tracked_files.scope AND r.filename = tracked_files.filename"
_UNREFERENCED = f"NOT EXISTS ({_HOLDER})"
_REFERENCE = "SELECT filename, part, row_count, flags, job, updated FROM file_references WHERE scope = ?"


class SqliteFileTables:
    """The tables of all scopes in one file."""

    def __init__(self, file: SqliteFile, clock: Clock) -> None:
        self.file = file
        self.clock = clock
        if not file.read("look for file tables", _version):
            file.write("set file tables up", _set_up)

    def create_scope(self, scope: FileScope) -> None:
        """Make a scope; nothing happens when it is there."""

        def create(connection: sqlite3.Connection) -> None:
            values = (scope.realm, scope.table, self.clock.now())
            connection.execute(
                "INSERT INTO file_scopes (realm, table_id, tree_number, closed, created) VALUES (?, ?, 0, 0, ?)"
                " ON CONFLICT DO NOTHING",
                values,
            )

        self.file.write("create a file scope", create)

    def list_scopes(self, realm: RealmKey | None) -> list[FileScope]:
        query = "SELECT realm, table_id FROM file_scopes WHERE ? IS NULL OR realm = ? ORDER BY realm, table_id"
        rows = self.file.read("list file scopes", lambda c: c.execute(query, (realm, realm)).fetchall())
        return [FileScope(RealmKey(key), table) for key, table in rows]

    def find_scope(self, scope: FileScope) -> int:
        """The number of a scope in the tables; raises NotFoundError when there is none."""
        query = "SELECT scope FROM file_scopes WHERE realm = ? AND table_id = ?"
        row = self.file.read("find a file scope", lambda c: c.execute(query, tuple(scope)).fetchone())
        if row is None:
            raise NotFoundError(f"there are no references of file table {scope.table} of realm key {scope.realm}")
        return int(row[0])

    def close(self) -> None:
        """The file is its owner's to close."""

    def before_fork(self) -> None:
        """The file's owner prepares it."""

    def after_fork(self, *, is_child: bool) -> None:
        """The file's owner renews it."""


def _version(connection: sqlite3.Connection) -> int:
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'file_tables_version'"
    if not connection.execute(query).fetchone()[0]:
        return 0
    version: int = connection.execute("SELECT max(number) FROM file_tables_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise RefusedError(
            f"the file tables were written by a newer Headwater (version {version}, this one knows {SCHEMA_VERSION}): upgrade this one"
        )
    return version


def _set_up(connection: sqlite3.Connection) -> None:
    if not _version(connection):  # another process may have been quicker
        for statement in _TABLES:
            connection.execute(statement)


class SqliteReferences(SqlReferenceStore):
    """The references of one file table in a SQLite file, where one transaction at a time writes."""

    def __init__(self, tables: SqliteFileTables, scope: FileScope, *, policy: RetryPolicy) -> None:
        """raises NotFoundError when there is no such scope"""
        super().__init__(scope, policy=policy)
        self._file = tables.file
        self._clock = tables.clock
        self._number = tables.find_scope(scope)

    def _transact(self, what: str, work: Callable[[ReferenceTransaction], T]) -> T:
        def transact(connection: sqlite3.Connection) -> T:
            self._check_open(connection, what)
            return work(_SqliteTransaction(connection, self._number, self._clock.now()))

        return self._file.write(what, transact)

    def _check_open(self, connection: sqlite3.Connection, what: str) -> None:
        row = connection.execute("SELECT closed FROM file_scopes WHERE scope = ?", (self._number,)).fetchone()
        if row is None or row[0]:
            raise self._closed(what)

    def _look(self, what: str, named: NamedRows) -> KnownRows:
        return self._at_once(what, lambda c: _SqliteTransaction(c, self._number, Micros(0)).load_rows(named))

    def _at_once(self, what: str, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run statements that see one point in time."""

        def at_once(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN")
            try:
                return read(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

        return self._file.read(what, at_once)

    def _select(
        self,
        what: str,
        *,
        partitions: Sequence[PartitionId] | None = None,
        filenames: Sequence[str] | None = None,
        is_unassigned: bool = False,
        unreferenced: int = 0,
    ) -> StoredReferences:
        wanted = None if partitions is None else set(partitions)
        query = f"{_REFERENCE}{' AND job IS NULL' if is_unassigned else ''}"
        free = f"SELECT filename, marked FROM tracked_files WHERE scope = ? AND {_UNREFERENCED}"

        def select(connection: sqlite3.Connection) -> StoredReferences:
            row = connection.execute("SELECT tree_number FROM file_scopes WHERE scope = ?", (self._number,)).fetchone()
            if filenames is None:
                rows = connection.execute(f"{query} ORDER BY filename, part", (self._number,)).fetchall()
                names = connection.execute(f"{free} ORDER BY filename LIMIT ?", (self._number, unreferenced)).fetchall()
            else:
                keys = [(self._number, filename) for filename in sorted(set(filenames))]
                rows = [row for key in keys for row in connection.execute(f"{query} AND filename = ? ORDER BY part", key)]
                names = [row for key in keys for row in connection.execute(f"{free} AND filename = ?", key)]
            references = [stored_reference(row) for row in rows if wanted is None or row[1] in wanted]
            return StoredReferences(0 if row is None else row[0], references, names)

        return self._at_once(what, select)

    def find_faults(self, limit: int) -> ReferenceFaults:
        referenced = (
            "SELECT DISTINCT filename FROM file_references AS r WHERE scope = ? AND NOT EXISTS (SELECT 1 FROM tracked_files AS f"
            " WHERE f.scope = r.scope AND f.filename = r.filename) ORDER BY filename LIMIT ?"
        )
        marked = (
            f"SELECT filename FROM tracked_files WHERE scope = ? AND marked < {NOT_MARKED} AND NOT {_UNREFERENCED}"
            " ORDER BY filename LIMIT ?"
        )

        def find(connection: sqlite3.Connection) -> ReferenceFaults:
            names = [[name for (name,) in connection.execute(query, (self._number, limit))] for query in (referenced, marked)]
            return ReferenceFaults(*names)

        return self._at_once("look for contradictions", find)

    def clear_files(self) -> None:
        def clear(connection: sqlite3.Connection) -> None:
            self._check_open(connection, "clear files")
            for table in ("file_references", "tracked_files"):
                connection.execute(f"DELETE FROM {table} WHERE scope = ?", (self._number,))

        self._file.write("clear files", clear)

    def _collectable(self, before: Micros) -> list[str]:
        query = f"SELECT filename FROM tracked_files WHERE scope = ? AND marked < ? AND {_UNREFERENCED} ORDER BY filename"
        rows = self._file.read("find collectable files", lambda c: c.execute(query, (self._number, before)).fetchall())
        return [filename for (filename,) in rows]

    def _has_no_file(self) -> bool:
        query = "SELECT 1 FROM tracked_files WHERE scope = ? LIMIT 1"
        return self._file.read("look for files", lambda c: c.execute(query, (self._number,)).fetchone()) is None

    def forget_outcomes(self, before: Micros, limit: int) -> int:
        some = "SELECT request FROM file_outcomes WHERE scope = ? AND time < ? LIMIT ?"
        statement = f"DELETE FROM file_outcomes WHERE scope = ? AND request IN ({some})"
        values = (self._number, self._number, before, limit)
        return self._file.write("forget outcomes", lambda c: c.execute(statement, values).rowcount)

    def close_scope(self) -> None:
        statement = "UPDATE file_scopes SET closed = 1 WHERE scope = ?"
        self._file.write("close a file scope", lambda c: c.execute(statement, (self._number,)).rowcount)

    def delete_scope(self, limit: int) -> int:
        def delete(connection: sqlite3.Connection) -> int:
            row = connection.execute("SELECT closed FROM file_scopes WHERE scope = ?", (self._number,)).fetchone()
            if row is None:
                return 0
            if not row[0]:
                raise RefusedError(f"{self._name} is open: close its scope before its rows are deleted")
            deleted = 0
            for table, key in (
                ("file_references", "filename, part"),
                ("file_outcomes", "request"),
                ("tracked_files", "filename"),
            ):
                some = f"SELECT {key} FROM {table} WHERE scope = ? LIMIT ?"
                statement = f"DELETE FROM {table} WHERE scope = ? AND ({key}) IN ({some})"
                deleted += connection.execute(statement, (self._number, self._number, limit - deleted)).rowcount
            if deleted < limit:
                deleted += connection.execute("DELETE FROM file_scopes WHERE scope = ?", (self._number,)).rowcount
            return deleted

        return self._file.write("delete a file scope", delete)


class _SqliteTransaction:
    """One transaction on one scope."""

    def __init__(self, connection: sqlite3.Connection, number: int, now: Micros) -> None:
        self.connection = connection
        self.now = now
        self._number = number

    def load_rows(self, named: NamedRows) -> KnownRows:
        known = KnownRows()
        for filename in named.files:
            if self._find("SELECT 1 FROM tracked_files WHERE scope = ? AND filename = ?", filename):
                known.files.add(filename)
        for place in named.references:
            if row := self._find("SELECT job FROM file_references WHERE scope = ? AND filename = ? AND part = ?", *place):
                known.jobs[place] = row[0]
        for filename in named.counted:
            row = self._find("SELECT count(*) FROM file_references WHERE scope = ? AND filename = ?", filename)
            known.counts[filename] = row[0] if row else 0
        columns = "request, kind, state, digest, reason, error, time"
        for request in named.outcomes:
            if row := self._find(f"SELECT {columns} FROM file_outcomes WHERE scope = ? AND request = ?", request):
                known.outcomes[request] = RequestOutcome(
                    request=row[0],
                    kind=row[1],
                    state=RequestState(row[2]),
                    digest=row[3],
                    reason=row[4],
                    error=row[5],
                    time=row[6],
                )
        return known

    def confirm_reads(self) -> None:
        """Write a row as it is: a transaction without a write has nothing that its COMMIT would bring to the disk."""
        self.connection.execute("UPDATE file_scopes SET created = created WHERE scope = ?", (self._number,))

    def write_changes(self, changes: ReferenceChanges) -> bool:
        """Write changes. No row can have changed: this transaction is the only one that writes."""
        number = self._number
        self._do(
            "DELETE FROM file_references WHERE scope = ? AND filename = ? AND part = ?",
            ((number, *place) for place, _ in changes.removed),
        )
        self._do(
            "UPDATE file_references SET job = ?, updated = ? WHERE scope = ? AND filename = ? AND part = ?",
            ((job, self.now, number, *place) for place, job in changes.assigned),
        )
        self._do("DELETE FROM tracked_files WHERE scope = ? AND filename = ?", ((number, name) for name in changes.forgotten))
        self._do("INSERT INTO tracked_files VALUES (?, ?, ?)", ((number, name, NOT_MARKED) for name in changes.added_files))
        self._do(
            "INSERT INTO file_references VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (number, each.filename, each.partition, each.rows, reference_flags(each), each.job, self.now)
                for each in changes.added_references
            ),
        )
        self._do(
            "INSERT INTO file_outcomes VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (number, each.request, each.kind, each.state.value, each.digest, each.reason, each.error, each.time)
                for each in changes.outcomes
            ),
        )
        if changes.tree_number:
            self._do(
                "UPDATE file_scopes SET tree_number = max(tree_number, ?) WHERE scope = ?", [(changes.tree_number, number)]
            )
        return True

    def mark_rows(self, now: Micros, after: str, limit: int) -> FileMarks:
        names = [
            filename
            for (filename,) in self.connection.execute(
                "SELECT filename FROM tracked_files WHERE scope = ? AND filename > ? AND marked = ? ORDER BY filename LIMIT ?",
                (self._number, after, NOT_MARKED, limit),
            )
        ]
        last = names[-1] if names else after
        statement = (
            "UPDATE tracked_files SET marked = ? WHERE scope = ? AND filename > ? AND filename <= ? AND marked = ?"
            f" AND {_UNREFERENCED}"
        )
        marked = self.connection.execute(statement, (now, self._number, after, last, NOT_MARKED)).rowcount
        return FileMarks(marked, len(names), last)

    def _find(self, query: str, *key: str) -> Any:
        return self.connection.execute(query, (self._number, *key)).fetchone()

    def _do(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self.connection.executemany(statement, rows)
