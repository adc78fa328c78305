"""The tables of file references in a schema of PostgreSQL, the connections to them, and the isolation of what is done there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from headwater.clock import Clock, SystemClock
from headwater.errors import HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.files.reference_statements import DOORS, SCHEMA_VERSION, SERVER_NOW, set_up_tables
from headwater.files.reference_store import FileScope
from headwater.files.sql_references import ReferenceConflictError
from headwater.store.backends.postgresql.backend import PostgresqlBackend
from headwater.store.backends.postgresql.errors import is_lost, is_to_be_replaced, statement_error
from headwater.store.backends.postgresql.pool import BoundedConnection, NoAnswerError, PoolLimits
from headwater.store.ids import RealmKey

T = TypeVar("T")
ISOLATION = {
    # Add, split, assign, commit, forget, mark: each precondition is a row that the write locks, or a key that it makes.
    "write": "READ COMMITTED",
    # Clear, close, delete: they wait for all writers, and the statement after the wait has to see what those wrote.
    "alone": "READ COMMITTED",
    # Queries of several statements or pages. A single statement is of one moment by itself.
    "pages": "REPEATABLE READ READ ONLY",
}
"""The isolation level of each kind of transaction; docs/develop/decisions/0028 has the figures."""
_CONFLICTS = ("40001", "40P01")


class PostgresqlFileTables:
    """The tables of all scopes in one schema, and the connections to them: made on demand, and closed when they are idle."""

    def __init__(
        self, backend: PostgresqlBackend, clock: Clock, *, connections: int, isolation: str = "read committed"
    ) -> None:
        self.place = backend.place
        self.clock = None if isinstance(clock, SystemClock) else clock
        session = {"default_transaction_isolation": isolation or ISOLATION["write"]}
        limits = PoolLimits(size=connections, session=session)
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

    def find_scope(self, scope: FileScope) -> int:
        """The number of a scope in the tables; raises NotFoundError when there is none."""
        query = f'SELECT scope FROM "{self.schema}".file_scopes WHERE realm = %b AND table_id = %b'
        with self.borrowed("find a file scope", writes=False) as connection:
            row = connection.answer(query, tuple(scope)).fetchone()
        if row is None:
            raise NotFoundError(f"there are no references of file table {scope.table} of realm key {scope.realm}")
        return int(row[0])

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
    def transaction(self, what: str, kind: str = "write") -> Iterator[BoundedConnection]:
        """A transaction of several statements; what is raised inside rolls it back.

        raises        UnknownOutcomeError when the answer to COMMIT is missing; before that, a fault means that nothing happened
        """
        with self.borrowed(what, writes=False) as connection:
            begin = "BEGIN" if kind == "write" else f"BEGIN ISOLATION LEVEL {ISOLATION[kind]}"
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
