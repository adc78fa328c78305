"""File references in PostgreSQL, in tables beside the rows of the store.

Every precondition of a write is a row that the write locks or a key that it makes: a reference that is deleted, a file that is new, an
outcome that is the first. So READ COMMITTED is enough for writes; docs/develop/decisions/0028 has the figures for the others.

A scope has several *doors*. A transaction that writes locks one of them, chosen by chance, as a foreign key would lock it; closing the
scope deletes them all, which waits for those that are inside, and whoever comes later finds no door. One door would do, but hundreds of
transactions that lock one row at a time make lists of each other in the server: docs/develop/decisions/0027 has the figures.

    committer           locks a door ............... writes, commits
    closes the scope             deletes the doors: waits ........... commits
    a later committer                                    waits for a door ... finds none: FileTableClosedError
"""

from __future__ import annotations

import itertools
import random
import time as machine_time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from msgspec import structs

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.files.file_references import FileRequest, PartitionId, RequestOutcome, RequestState, data_file_time
from headwater.files.postgresql_file_tables import PostgresqlFileTables
from headwater.files.reference_rules import (
    KnownRows,
    NamedRows,
    ReferenceChanges,
    RequestVerdict,
    assumed_rows,
    decide,
    first_faults,
    new_files,
)
from headwater.files.reference_statements import DOORS, WHOLE_TABLES, ReferenceStatements
from headwater.files.reference_store import FileScope
from headwater.files.sql_references import (
    FileMarks,
    ReferenceFaults,
    ReferenceTransaction,
    RetryPolicy,
    SqlReferenceStore,
    StoredReferences,
    reference_flags,
    stored_reference,
)
from headwater.store.backends.postgresql.pool import BoundedConnection
from headwater.store.backends.postgresql.statements import BigintArray, IntArray, TextArray

T = TypeVar("T")
_PAGE_ROWS = 20_000
_cursors = itertools.count(1)


class PostgresqlReferences(SqlReferenceStore):
    """The references of one file table in PostgreSQL."""

    def __init__(self, tables: PostgresqlFileTables, scope: FileScope, *, policy: RetryPolicy) -> None:
        """raises NotFoundError when there is no such scope"""
        super().__init__(scope, policy=policy)
        self.tables = tables
        self._number = tables.find_scope(scope)
        self._sql = ReferenceStatements(tables.schema)

    def _apply(self, what: str, requests: Sequence[FileRequest], *, is_whole: bool = False) -> list[RequestVerdict]:
        """Apply requests as if nothing stood against them, by one statement that checks just that; otherwise as every database does."""
        # Requests of several kinds may undo each other's changes (forget a file, add it): then no step would check what they assume.
        if len({type(request) for request in requests}) > 1:
            return super()._apply(what, requests, is_whole=is_whole)
        verdicts, changes = decide(requests, assumed_rows(requests), Micros(0))
        if self._may_be_late(requests) or any(first_faults(verdicts)) or changes.row_count() > _PAGE_ROWS:
            return super()._apply(what, requests, is_whole=is_whole)
        # Alone, the statement commits by itself. Then a broken connection leaves open whether it did, which only outcomes can tell.
        is_alone = all(request.request for request in requests)
        write = self._write_alone if is_alone else self._write_in_transaction

        def attempt() -> list[RequestVerdict]:
            time = write(what, changes)
            if time is None:  # in the same attempt: one before it may have been unclear, which no error of this one may hide
                return self._transact(what, self._decision(what, requests, is_whole=is_whole))
            return [RequestVerdict(structs.replace(verdict.outcome, time=time)) for verdict in verdicts]

        return self._persist(what, attempt, may_repeat=is_alone)

    def _may_be_late(self, requests: Sequence[FileRequest]) -> bool:
        """Whether a new file may be too old: the server's clock then decides. Half of the grace is for what clocks differ by."""
        if self.writer_grace_seconds is None:
            return False
        now = Micros(machine_time.time_ns() // 1000) if self.tables.clock is None else self.tables.clock.now()
        limit = now - round(self.writer_grace_seconds * 500_000)
        made = [data_file_time(filename) for request in requests for filename in new_files(request)]
        return any(each is not None and each < limit for each in made)

    def _write_alone(self, what: str, changes: ReferenceChanges) -> Micros | None:
        """Write changes and commit in one round trip. Returns when; None when a row is not as they assume."""
        with self.tables.borrowed(what, writes=True) as connection:
            return self._write(connection, changes, what)

    def _write_in_transaction(self, what: str, changes: ReferenceChanges) -> Micros | None:
        def write() -> Micros | None:
            with self.tables.transaction(what) as connection:
                return self._write(connection, changes, what)

        return self.tables.patiently(write)

    def _write(
        self, connection: BoundedConnection, changes: ReferenceChanges, what: str, now: Micros | None = None
    ) -> Micros | None:
        if now is None and self.tables.clock is not None:
            now = self.tables.clock.now()
        values = {"scope": self._number, "slot": random.randrange(DOORS), "now": now} | _columns(changes)
        try:
            row = connection.answer(self._sql.write(_steps(changes)), values).fetchone()
        except psycopg.errors.DivisionByZero:
            return None
        if row is None or row[0] is None:
            raise self._closed(what)
        return Micros(row[0])

    def _transact(self, what: str, work: Callable[[ReferenceTransaction], T]) -> T:
        return self.tables.patiently(lambda: self._transact_once(what, work))

    def _transact_once(self, what: str, work: Callable[[ReferenceTransaction], T]) -> T:
        with self.tables.transaction(what) as connection:
            row = connection.answer(self._sql.enter, (self._number, random.randrange(DOORS))).fetchone()
            if row is None:
                raise self._closed(what)
            now = row[0] if self.tables.clock is None else self.tables.clock.now()

            def write(changes: ReferenceChanges) -> bool:
                return all(self._write(connection, page, what, now) is not None for page in changes.pages(_PAGE_ROWS))

            return work(_PostgresqlTransaction(connection, self._sql, self._number, now, write))

    def _look(self, what: str, named: NamedRows) -> KnownRows:
        def look() -> KnownRows:
            with self.tables.borrowed(what, writes=False) as connection:
                return read_named_rows(connection, self._sql, self._number, named)

        return self.tables.patiently(look)

    def _select(
        self,
        what: str,
        *,
        partitions: Sequence[PartitionId] | None = None,
        filenames: Sequence[str] | None = None,
        is_unassigned: bool = False,
        unreferenced: int = 0,
    ) -> StoredReferences:
        conditions, narrowed = "WHERE scope = %(scope)b", ""
        values: dict[str, Any] = {"scope": self._number}
        if partitions is not None:
            conditions += " AND part = ANY (%(parts)b::text[])"
            values["parts"] = TextArray(partitions)
        if filenames is not None:
            narrowed = " AND filename = ANY (%(filenames)b::text[])"
            values["filenames"] = TextArray(filenames)
            unreferenced = len(filenames)
        if is_unassigned:
            conditions += " AND job IS NULL"

        def select() -> StoredReferences:
            with self._snapshot(what) as connection:
                row = connection.execute(self._sql.tree_number.encode(), {"scope": self._number}).fetchone()
                rows = _pages(connection, f"{self._sql.select} {conditions}{narrowed} ORDER BY filename, part", values)
                references = [stored_reference(row) for row in rows]
                names = _unreferenced(
                    _pages(connection, f"{self._sql.files}{narrowed} ORDER BY filename", values), unreferenced
                )
            return StoredReferences(0 if row is None else row[0], references, names)

        return self.tables.patiently(select)

    @contextmanager
    def _snapshot(self, what: str) -> Iterator[BoundedConnection]:
        """A transaction whose statements all see one point in time."""
        with self.tables.transaction(what, "pages") as connection:
            yield connection

    def find_faults(self, limit: int) -> ReferenceFaults:
        values = {"scope": self._number, "limit": limit}
        with self._snapshot("look for contradictions") as connection:
            connection.execute(WHOLE_TABLES.encode())
            queries = (self._sql.untracked_files, self._sql.marked_files)
            return ReferenceFaults(*([row[0] for row in _pages(connection, query, values)] for query in queries))

    def _collectable(self, before: Micros) -> Iterator[str]:
        with self._snapshot("find collectable files") as connection:
            values = {"scope": self._number, "before": before}
            yield from (row[0] for row in _pages(connection, self._sql.collectable_files, values))

    def clear_files(self) -> None:
        def clear() -> None:
            with self.tables.transaction("clear files", "alone") as connection:
                doors = connection.answer(self._sql.lock_doors, (self._number,)).rowcount
                if not doors:
                    raise self._closed("clear files")
                # No commit is under way: its output would stay, as this transaction does not see it yet.
                for statement in self._sql.clear:
                    while connection.answer(statement, (self._number, 5 * _PAGE_ROWS)).rowcount:
                        pass

        self._persist("clear files", lambda: self.tables.patiently(clear))

    def _has_no_file(self) -> bool:
        def look() -> bool:
            with self.tables.borrowed("look for files", writes=False) as connection:
                return connection.answer(self._sql.any_file, (self._number,)).fetchone() is None

        return self.tables.patiently(look)

    def forget_outcomes(self, before: Micros, limit: int) -> int:
        def forget() -> int:
            with self.tables.transaction("forget outcomes") as connection:
                values = {"scope": self._number, "before": before, "limit": limit}
                return connection.answer(self._sql.forget_outcomes, values).rowcount

        return self._persist("forget outcomes", lambda: self.tables.patiently(forget), may_repeat=True)

    def close_scope(self) -> None:
        def close() -> None:
            with self.tables.transaction("close a file scope", "alone") as connection:
                connection.answer(self._sql.close, (self._number,))
                connection.answer(self._sql.remove_doors, (self._number,))

        self._persist("close a file scope", lambda: self.tables.patiently(close), may_repeat=True)

    def delete_scope(self, limit: int) -> int:
        def delete() -> int:
            with self.tables.transaction("delete a file scope", "alone") as connection:
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

        return self._persist("delete a file scope", lambda: self.tables.patiently(delete), may_repeat=True)


def _pages(connection: BoundedConnection, query: str, values: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, in pages, in a transaction: one long answer would run into the time limit of a statement.

    The cursor has a name of its own, and ends with the transaction, also where the caller does not read to the end.
    """
    name = f"pages_{next(_cursors)}"
    connection.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {query}".encode(), values)
    while rows := connection.execute(f"FETCH {_PAGE_ROWS} FROM {name}".encode(), binary=True).fetchall():
        yield from rows


def _unreferenced(rows: Iterator[tuple[Any, ...]], limit: int) -> list[tuple[str, int]]:
    """The first files of (filename, mark, whether without references) that have no references, with their marks."""
    return list(itertools.islice(((filename, marked) for filename, marked, is_free in rows if is_free), limit)) if limit else []


class _PostgresqlTransaction:
    """One transaction on one scope."""

    def __init__(
        self,
        connection: BoundedConnection,
        sql: ReferenceStatements,
        number: int,
        now: Micros,
        write: Callable[[ReferenceChanges], bool],
    ) -> None:
        self.now = now
        self.write_changes = write
        self._connection = connection
        self._sql = sql
        self._number = number

    def confirm_reads(self) -> None:
        """Do nothing: the lock of the door is a write, and the COMMIT waits for standbys as for any other."""

    def load_rows(self, named: NamedRows) -> KnownRows:
        return read_named_rows(self._connection, self._sql, self._number, named)

    def mark_rows(self, now: Micros, after: str, limit: int) -> FileMarks:
        values = {"scope": self._number, "now": now, "after": after, "limit": limit}
        row = self._connection.answer(self._sql.mark, values).fetchone()
        assert row is not None
        return FileMarks(row[0], row[1], row[2] or after)


def read_named_rows(connection: BoundedConnection, sql: ReferenceStatements, number: int, named: NamedRows) -> KnownRows:
    """The named rows, by one statement: all of one moment."""
    files, counted, outcomes = sorted(named.files), sorted(named.counted), sorted(named.outcomes)
    values = {
        "scope": number,
        "files": TextArray(files),
        "filenames": TextArray([place[0] for place in sorted(named.references)]),
        "parts": TextArray([place[1] for place in sorted(named.references)]),
        "counted": TextArray(counted),
        "requests": TextArray(outcomes),
    }
    known = KnownRows()
    cursor = psycopg.Cursor(connection)
    for what, name, part, text, count, outcome in cursor.execute(sql.load.encode(), values, prepare=True, binary=True):
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


def _steps(changes: ReferenceChanges) -> tuple[str, ...]:
    """The steps of the statement that writes these changes, in the order in which all transactions lock rows."""
    rows = {
        "removed": changes.removed,
        "assigned": changes.assigned,
        "forgotten": changes.forgotten,
        "tracked": changes.added_files,
        "placed": changes.added_references,
        "told": changes.outcomes,
        "raised": changes.tree_number,
    }
    return tuple(step for step, content in rows.items() if content)


def _columns(changes: ReferenceChanges) -> dict[str, Any]:
    """Changes as arrays, one for each column, and how many rows each step has to change."""
    references, outcomes = changes.added_references, changes.outcomes
    columns: dict[str, Any] = {
        "tree_number": changes.tree_number,
        "raised_rows": 1,
        "placed_rows": len(references),
        "placed_files": TextArray([each.filename for each in references]),
        "placed_parts": TextArray([each.partition for each in references]),
    }
    for step, rows in (("removed", changes.removed), ("assigned", changes.assigned)):
        columns[f"{step}_rows"] = len(rows)
        if rows:
            columns[f"{step}_files"] = TextArray([place[0] for place, _ in rows])
            columns[f"{step}_parts"] = TextArray([place[1] for place, _ in rows])
            columns[f"{step}_jobs"] = TextArray([job for _, job in rows])
    for step, names in (("forgotten", changes.forgotten), ("tracked", changes.added_files)):
        columns[f"{step}_rows"] = len(names)
        columns[f"{step}_files"] = TextArray(names)
    if references:
        columns["placed_counts"] = BigintArray([each.rows for each in references])
        columns["placed_flags"] = IntArray([reference_flags(each) for each in references])
        columns["placed_jobs"] = TextArray([each.job for each in references])
    if outcomes:
        columns["told_rows"] = len(outcomes)
        columns["told_requests"] = TextArray([each.request for each in outcomes])
        columns["told_kinds"] = TextArray([each.kind for each in outcomes])
        columns["told_states"] = TextArray([each.state.value for each in outcomes])
        columns["told_digests"] = TextArray([each.digest for each in outcomes])
        columns["told_reasons"] = TextArray([each.reason for each in outcomes])
        columns["told_errors"] = TextArray([each.error for each in outcomes])
    return columns
