"""File references in PostgreSQL, in tables beside the rows of the store.

Every precondition of a write is a row that the write locks or a key that it makes: a reference that is deleted, a file that is new, an
outcome that is the first. So READ COMMITTED is enough for writes; docs/decisions/0028 has the figures for the others.

A scope has several *doors*. A transaction that writes locks one of them, chosen by chance, as a foreign key would lock it; closing the
scope deletes them all, which waits for those that are inside, and whoever comes later finds no door. One door would do, but hundreds of
transactions that lock one row at a time make lists of each other in the server: docs/decisions/0027 has the figures.

    committer           locks a door ............... writes, commits
    closes the scope             deletes the doors: waits ........... commits
    a later committer                                    waits for a door ... finds none: FileTableClosedError
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from headwater.clock import Clock, Micros, SystemClock
from headwater.errors import HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.files.file_references import FileReference, PartitionId, RequestOutcome, RequestState
from headwater.files.reference_rules import KnownRows, NamedRows, ReferenceChanges, ReferencePlace
from headwater.files.reference_statements import (
    DOORS,
    SCHEMA_VERSION,
    SERVER_NOW,
    WHOLE_TABLES,
    ReferenceStatements,
    set_up_tables,
)
from headwater.files.reference_store import FileScope
from headwater.files.sql_references import (
    ReferenceConflictError,
    ReferenceFaults,
    ReferenceTransaction,
    RetryPolicy,
    SqlReferenceStore,
    StoredReferences,
    reference_flags,
    stored_reference,
)
from headwater.store.backends.postgresql.backend import PostgresqlBackend
from headwater.store.backends.postgresql.errors import is_lost, is_to_be_replaced, statement_error
from headwater.store.backends.postgresql.pool import BoundedConnection, NoAnswerError, PoolLimits
from headwater.store.backends.postgresql.statements import BigintArray, IntArray, TextArray
from headwater.store.ids import RealmKey

T = TypeVar("T")
_IDLE_SECONDS = 30.0
_PAGE_ROWS = 20_000
_CONFLICTS = ("40001", "40P01")


class PostgresqlFileTables:
    """The tables of all scopes in one schema, and the connections to them: made on demand, closed after 30 idle seconds."""

    def __init__(
        self, backend: PostgresqlBackend, clock: Clock, *, connections: int, isolation: str = "read committed"
    ) -> None:
        self.place = backend.place
        self.clock = None if isinstance(clock, SystemClock) else clock
        session = {"default_transaction_isolation": isolation}
        limits = PoolLimits(size=connections, idle_seconds=_IDLE_SECONDS, is_reaped=True, session=session)
        self._pool = backend.open_pool(limits)
        self.schema = backend.schema
        with ExitStack() as opened:
            opened.callback(self._pool.close)
            with self.borrowed("set file tables up", writes=False) as connection:
                _set_up(connection, self.place, self.schema)
            opened.pop_all()

    def create_scope(self, scope: FileScope) -> None:
        """Make a scope; nothing happens when it is there."""
        statement = (
            f'WITH s AS (INSERT INTO "{self.schema}".file_scopes (realm, table_id, tree_number, closed, created)'
            f" VALUES (%b, %b, 0, false, {SERVER_NOW}) ON CONFLICT DO NOTHING RETURNING scope)"
            f' INSERT INTO "{self.schema}".file_doors SELECT scope, slot FROM s CROSS JOIN generate_series(0, {DOORS - 1}) AS slot'
        )
        with self.borrowed("create a file scope", writes=True) as connection:
            connection.answer(statement, (scope.realm, scope.table))

    def list_scopes(self, realm: RealmKey | None) -> list[FileScope]:
        query = (
            f'SELECT realm, table_id FROM "{self.schema}".file_scopes WHERE %b::bigint IS NULL OR realm = %b::bigint'
            " ORDER BY realm, table_id"
        )
        with self.borrowed("list file scopes", writes=False) as connection:
            return [FileScope(RealmKey(key), table) for key, table in connection.answer(query, (realm, realm)).fetchall()]

    def open_scope(self, scope: FileScope, policy: RetryPolicy) -> PostgresqlReferences:
        """raises NotFoundError when there is no such scope"""
        query = f'SELECT scope FROM "{self.schema}".file_scopes WHERE realm = %b AND table_id = %b'
        with self.borrowed("find a file scope", writes=False) as connection:
            row = connection.answer(query, tuple(scope)).fetchone()
        if row is None:
            raise NotFoundError(f"there are no references of file table {scope.table} of realm key {scope.realm}")
        return PostgresqlReferences(self, scope, row[0], policy)

    @contextmanager
    def borrowed(self, what: str, *, writes: bool) -> Iterator[BoundedConnection]:
        """A connection, for one statement that commits by itself where ``writes`` says that it does.

        raises        ReferenceConflictError for a serialization failure or a deadlock, and what ``statement_error`` says
        """
        pool = self._pool  # the connection goes back to the pool that lent it
        connection = pool.borrow()
        try:
            yield connection
        except psycopg.Error as fault:
            if is_to_be_replaced(fault) or not _is_idle(connection):
                pool.throw_away(connection)
            else:
                pool.give_back(connection)
            raise self._error(fault, what, writes=writes) from fault
        except BaseException:
            # Ctrl-C may leave an unread answer on the connection: the next caller would take it for its own.
            if _is_idle(connection):
                pool.give_back(connection)
            else:
                pool.throw_away(connection)
            raise
        pool.give_back(connection)

    @contextmanager
    def transaction(self, what: str, begin: str = "BEGIN") -> Iterator[BoundedConnection]:
        """A transaction of several statements; what is raised inside rolls it back.

        raises        UnknownOutcomeError when the answer to COMMIT is missing; before that, a fault means that nothing happened
        """
        with self.borrowed(what, writes=False) as connection:
            connection.execute(begin.encode())
            try:
                yield connection
            except BaseException:
                with suppress(psycopg.Error):  # the first fault is the one to report; a connection that failed is thrown away
                    connection.execute(b"ROLLBACK")
                raise
            try:
                connection.execute(b"COMMIT")
            except psycopg.Error as fault:
                raise self._error(fault, what, writes=True) from fault

    def _error(self, fault: psycopg.Error, what: str, *, writes: bool) -> HeadwaterError:
        if fault.sqlstate in _CONFLICTS:
            text = f"{self.place}: {what}: {fault.diag.message_primary}"
            return ReferenceConflictError(text, state=fault.sqlstate)
        return statement_error(fault, place=self.place, what=what, writes=writes)

    def patiently(self, act: Callable[[], T]) -> T:
        """Call ``act``, and once more if its connection was broken before: after a server's restart all idle ones are.

        For reads, and for transactions, of which a broken connection leaves nothing but an open COMMIT, another error.
        """
        try:
            return act()
        except UnavailableError as fault:
            cause = fault.__cause__
            if not isinstance(cause, psycopg.Error) or not is_lost(cause) or isinstance(cause, NoAnswerError):
                raise
            self.close_idle()
        return act()

    def close_idle(self) -> None:
        self._pool.close_idle()

    def close(self) -> None:
        self._pool.close()

    def before_fork(self) -> None:
        """Do nothing: the parent's connections stay the parent's, and a child gets none of them."""

    def after_fork(self, *, is_child: bool) -> None:
        if is_child:
            self._pool = self._pool.anew()


def _is_idle(connection: BoundedConnection) -> bool:
    """Whether it is outside of a transaction, and all answers were read."""
    return not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE


def _set_up(connection: BoundedConnection, place: str, schema: str) -> None:
    """Make the tables, unless they are there: once for all that open a store at the same time."""
    version = _version(connection, schema)
    if version is None:
        with connection.transaction():
            # CREATE ... IF NOT EXISTS fails when two sessions run it at once, so they take turns by an advisory lock.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"headwater file tables {schema}",))
            version = _version(connection, schema)  # another session may have made them meanwhile
            if version is None:
                for statement in set_up_tables(schema):
                    connection.execute(statement.encode())
                return
    if version > SCHEMA_VERSION:
        raise RefusedError(
            f"{place}: the file tables in schema {schema} were set up by a newer Headwater (version {version}, this one knows"
            f" {SCHEMA_VERSION}): upgrade this one"
        )


def _version(connection: BoundedConnection, schema: str) -> int | None:
    """The version of the file tables; None where there are none. Asks pg_class: ``to_regclass`` may answer from before the lock."""
    query = (
        "SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = %s AND relname = %s"
    )
    if connection.only_row(query, (schema, "file_tables_version")) == (0,):
        return None
    return connection.only_row(f'SELECT max(number)::bigint FROM "{schema}".file_tables_version')[0] or 0


class FileMarks(NamedTuple):
    """What one batch of marking did: ``candidates`` were found, up to the name ``last``; some may have been marked by another call."""

    marked: int
    candidates: int
    last: str | None


class PostgresqlReferences(SqlReferenceStore):
    """The references of one file table in PostgreSQL."""

    def __init__(self, tables: PostgresqlFileTables, scope: FileScope, number: int, policy: RetryPolicy) -> None:
        super().__init__(scope, policy=policy)
        self._tables = tables
        self._number = number
        self._sql = ReferenceStatements(tables.schema)

    def _transact(self, what: str, work: Callable[[ReferenceTransaction], T]) -> T:
        return self._tables.patiently(lambda: self._transact_once(what, work))

    def _transact_once(self, what: str, work: Callable[[ReferenceTransaction], T]) -> T:
        with self._tables.transaction(what) as connection:
            row = connection.answer(self._sql.enter, (self._number, random.randrange(DOORS))).fetchone()
            if row is None:
                raise self._closed(what)
            now = row[0] if self._tables.clock is None else self._tables.clock.now()
            return work(_PostgresqlTransaction(connection, self._sql, self._number, now))

    def _look(self, what: str, named: NamedRows) -> KnownRows:
        def look() -> KnownRows:
            with self._tables.borrowed(what, writes=False) as connection:
                return _PostgresqlTransaction(connection, self._sql, self._number, Micros(0)).load_rows(named)

        return self._tables.patiently(look)

    def _select(
        self,
        what: str,
        *,
        partitions: Sequence[PartitionId] | None = None,
        filenames: Sequence[str] | None = None,
        is_unassigned: bool = False,
        unreferenced: int = 0,
    ) -> StoredReferences:
        conditions = "WHERE scope = %(scope)b"
        values: dict[str, Any] = {"scope": self._number}
        if partitions is not None:
            conditions += " AND part = ANY (%(parts)b::text[])"
            values["parts"] = TextArray(partitions)
        if filenames is not None:
            conditions += " AND filename = ANY (%(filenames)b::text[])"
            values["filenames"] = TextArray(filenames)
            unreferenced = len(filenames)
        if is_unassigned:
            conditions += " AND job IS NULL"

        def select() -> StoredReferences:
            with self._snapshot(what) as connection:
                row = connection.execute(self._sql.tree_number.encode(), {"scope": self._number}).fetchone()
                rows = _pages(connection, f"{self._sql.select} {conditions} ORDER BY filename, part", values)
                references = [stored_reference(row) for row in rows]
                query = self._sql.unreferenced + (
                    " AND filename = ANY (%(filenames)b::text[])" if filenames is not None else ""
                )
                limited = f"{query} ORDER BY filename LIMIT %(limit)b"
                names = list(_pages(connection, limited, values | {"limit": unreferenced})) if unreferenced else []
            return StoredReferences(0 if row is None else row[0], references, names)

        return self._tables.patiently(select)

    @contextmanager
    def _snapshot(self, what: str) -> Iterator[BoundedConnection]:
        """A transaction whose statements all see one point in time."""
        with self._tables.transaction(what, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as connection:
            connection.execute(WHOLE_TABLES.encode())
            yield connection

    def find_faults(self, limit: int) -> ReferenceFaults:
        values = {"scope": self._number, "limit": limit}
        with self._snapshot("look for contradictions") as connection:
            queries = (self._sql.untracked_files, self._sql.marked_files)
            return ReferenceFaults(*([row[0] for row in _pages(connection, query, values)] for query in queries))

    def clear_files(self) -> None:
        def clear(transaction: ReferenceTransaction) -> None:
            assert isinstance(transaction, _PostgresqlTransaction)
            transaction.clear()

        self._run("clear files", clear)

    def collectable_files(self, before: Micros) -> Iterator[str]:
        with self._snapshot("find collectable files") as connection:
            names = [
                row[0] for row in _pages(connection, self._sql.collectable_files, {"scope": self._number, "before": before})
            ]
        return iter(names)

    def mark_unreferenced(self, now: Micros, *, batch: int = 10_000) -> int:
        total, marks = 0, FileMarks(0, batch, "")
        while marks.candidates == batch:
            marks = self._run("mark unreferenced files", self._marking(now, marks.last or "", batch), may_repeat=True)
            total += marks.marked
        return total

    def _marking(self, now: Micros, after: str, batch: int) -> Callable[[ReferenceTransaction], FileMarks]:
        def mark(transaction: ReferenceTransaction) -> FileMarks:
            assert isinstance(transaction, _PostgresqlTransaction)
            return transaction.mark(now, after, batch)

        return mark

    def _has_no_file(self) -> bool:
        def look() -> bool:
            with self._tables.borrowed("look for files", writes=False) as connection:
                return connection.answer(self._sql.any_file, (self._number,)).fetchone() is None

        return self._tables.patiently(look)

    def forget_outcomes(self, before: Micros, limit: int) -> int:
        def forget() -> int:
            with self._tables.transaction("forget outcomes") as connection:
                connection.execute(WHOLE_TABLES.encode())
                values = {"scope": self._number, "before": before, "limit": limit}
                return connection.execute(self._sql.forget_outcomes.encode(), values).rowcount

        return self._persist("forget outcomes", lambda: self._tables.patiently(forget), may_repeat=True)

    def close_scope(self) -> None:
        def close() -> None:
            with self._tables.transaction("close a file scope") as connection:
                connection.answer(self._sql.close, (self._number,))
                connection.answer(self._sql.remove_doors, (self._number,))

        self._persist("close a file scope", lambda: self._tables.patiently(close), may_repeat=True)

    def delete_scope(self, limit: int) -> int:
        def delete() -> int:
            with self._tables.transaction("delete a file scope") as connection:
                row = connection.answer(self._sql.is_closed, (self._number,)).fetchone()
                if row is None:
                    return 0
                if not row[0]:
                    raise RefusedError(f"{self._name} is open: close its scope before its rows are deleted")
                deleted = 0
                for statement in self._sql.delete_some:
                    deleted += connection.answer(statement, (self._number, limit - deleted)).rowcount if deleted < limit else 0
                if deleted < limit:
                    deleted += connection.answer(self._sql.delete_scope, (self._number,)).rowcount
                return deleted

        return self._persist("delete a file scope", lambda: self._tables.patiently(delete), may_repeat=True)


def _pages(connection: BoundedConnection, query: str, values: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, in pages, in a transaction: one long answer would run into the time limit of a statement."""
    with psycopg.ServerCursor(connection, "pages") as cursor:
        cursor.execute(query.encode(), values, binary=True)
        while rows := cursor.fetchmany(_PAGE_ROWS):
            yield from rows


class _PostgresqlTransaction:
    """One transaction on one scope."""

    def __init__(self, connection: BoundedConnection, sql: ReferenceStatements, number: int, now: Micros) -> None:
        self.now = now
        self._connection = connection
        self._sql = sql
        self._number = number

    def load_rows(self, named: NamedRows) -> KnownRows:
        """The named rows, by one statement: all of one moment."""
        files, counted, outcomes = sorted(named.files), sorted(named.counted), sorted(named.outcomes)
        values = {
            "scope": self._number,
            "files": TextArray(files),
            "filenames": TextArray([place[0] for place in sorted(named.references)]),
            "parts": TextArray([place[1] for place in sorted(named.references)]),
            "counted": TextArray(counted),
            "requests": TextArray(outcomes),
        }
        known = KnownRows()
        cursor = psycopg.Cursor(self._connection)
        for what, name, part, text, count, outcome in cursor.execute(
            self._sql.load.encode(), values, prepare=True, binary=True
        ):
            if what == 1:
                known.files.add(name)
            elif what == 2:
                known.jobs[name, part] = text
            elif what == 3:
                known.counts[name] = count
            else:
                kind, state, digest, reason, error = outcome
                known.outcomes[name] = RequestOutcome(
                    request=name, kind=kind, state=RequestState(state), digest=digest, reason=reason, error=error, time=count
                )
        return known

    def write_changes(self, changes: ReferenceChanges) -> bool:
        """Write changes; each statement says how many rows it found as they were known."""
        sql, own = self._sql, {"scope": self._number, "now": self.now}
        steps: list[tuple[str, Sequence[Any], dict[str, Any]]] = [
            (sql.remove, changes.removed, _place_columns(changes.removed)),
            (sql.assign, changes.assigned, _place_columns(changes.assigned)),
            (sql.forget, changes.forgotten, {"filenames": TextArray(changes.forgotten)}),
            (sql.track, changes.added_files, {"filenames": TextArray(changes.added_files)}),
            (sql.refer, changes.added_references, reference_columns(changes.added_references)),
            (sql.tell, changes.outcomes, outcome_columns(changes.outcomes)),
        ]
        for statement, rows, columns in steps:
            if rows and self._connection.answer(statement, own | columns).rowcount != len(rows):
                return False
        if changes.tree_number:
            self._connection.answer(sql.raise_tree_number, own | {"number": changes.tree_number})
        return True

    def clear(self) -> None:
        """Delete all references and files. Alone: a commit that runs at this moment would keep its output."""
        self._connection.answer(self._sql.lock_doors, (self._number,))
        for statement in self._sql.clear:
            while self._connection.answer(statement, (self._number, 5 * _PAGE_ROWS)).rowcount:
                pass

    def mark(self, now: Micros, after: str, batch: int) -> FileMarks:
        self._connection.execute(WHOLE_TABLES.encode())
        values = {"scope": self._number, "after": after, "batch": batch, "now": now}
        row = self._connection.execute(self._sql.mark.encode(), values, binary=True).fetchone()
        assert row is not None
        return FileMarks(*row)


def _place_columns(rows: Sequence[tuple[ReferencePlace, str | None]]) -> dict[str, Any]:
    return {
        "filenames": TextArray([place[0] for place, _ in rows]),
        "parts": TextArray([place[1] for place, _ in rows]),
        "jobs": TextArray([job for _, job in rows]),
    }


def reference_columns(references: Sequence[FileReference]) -> dict[str, Any]:
    """References as arrays, for the statement that inserts them."""
    return {
        "filenames": TextArray([each.filename for each in references]),
        "parts": TextArray([each.partition for each in references]),
        "row_counts": BigintArray([each.rows for each in references]),
        "flags": IntArray([reference_flags(each) for each in references]),
        "jobs": TextArray([each.job for each in references]),
    }


def outcome_columns(outcomes: Sequence[RequestOutcome]) -> dict[str, Any]:
    """Outcomes as arrays, for the statement that inserts them."""
    return {
        "requests": TextArray([each.request for each in outcomes]),
        "kinds": TextArray([each.kind for each in outcomes]),
        "states": TextArray([each.state.value for each in outcomes]),
        "digests": TextArray([each.digest for each in outcomes]),
        "reasons": TextArray([each.reason for each in outcomes]),
        "errors": TextArray([each.error for each in outcomes]),
    }
