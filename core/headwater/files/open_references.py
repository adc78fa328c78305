"""Opens the references of a file table: in the store's own database, or in the one that the setting ``files_store`` names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from headwater.errors import RefusedError
from headwater.files.reference_store import FileReferenceStore, FileScope
from headwater.files.sql_references import RetryPolicy, SqlReferenceStore
from headwater.files.sqlite_references import SqliteFileTables, SqliteReferences
from headwater.settings import variable_of
from headwater.store import Backend, RealmKey, Store, StoreCompanion, open_backend, parse_url
from headwater.store.backends.sqlite import SqliteBackend

if TYPE_CHECKING:
    from headwater.store.backends.postgresql import PostgresqlBackend

_SCHEMES = ("postgresql", "sqlite")


def open_file_references(
    store: Store,
    scope: FileScope,
    *,
    create: bool = False,
    policy: RetryPolicy | None = None,
    takes_old_files: bool = False,
    awaits_assignments: bool = False,
) -> FileReferenceStore:
    """The references of a file table. Closing the handle is not needed: its connections are the store's.

    create        make the scope if it is not there. Only for a new table: a purged one must not come back
    takes_old_files  whether to refer to files that are older than the writers' grace: only for tables that no collection looks at
    awaits_assignments  whether a commit that came before its assignment is WAITING instead of refused: only for committers, which try
                  it again. Whoever is told of a refusal deletes the output, so a refusal is for good
    raises        NotFoundError when there is no such scope; RefusedError when the store's database keeps no references and the setting
                  ``files_store`` names no other
    """
    opened = _tables_of(store)
    if create:
        opened.tables.create_scope(scope)
    policy = policy or RetryPolicy(sleep=store.clock.sleep, attempts=store.settings.files_attempts)
    references = opened.open_scope(scope, policy=policy)
    if not takes_old_files:
        references.writer_grace_seconds = store.settings.files_writer_grace_seconds
    references.awaits_assignments = awaits_assignments
    return references


def list_file_scopes(store: Store, realm: RealmKey | None = None) -> list[FileScope]:
    """The scopes of a realm, or all, closed ones too, sorted; raises RefusedError as ``open_file_references`` does."""
    return _tables_of(store).tables.list_scopes(realm)


def keeps_file_references(store: Store) -> bool:
    """Whether a store can have file tables: its own database keeps references, or the setting ``files_store`` names one that does."""
    return _is_own(store.backend) or bool(store.settings.files_store)


class ScopeTables(StoreCompanion, Protocol):
    """The tables of all scopes in one database."""

    def create_scope(self, scope: FileScope) -> None: ...
    def list_scopes(self, realm: RealmKey | None) -> list[FileScope]: ...


class ReferenceTables:
    """The tables of a store's file references, opened when they are first asked for; a companion of the store."""

    def __init__(self, store: Store) -> None:
        with ExitStack() as opened:
            backend = store.backend
            if not _is_own(backend):
                backend = _open_beside(store)
                opened.callback(backend.close)
            self.tables: ScopeTables
            self.open_scope: Callable[..., SqlReferenceStore]
            self.tables, self.open_scope = _tables_in(backend, store)
            opened.pop_all()
        self._parts: Sequence[StoreCompanion] = [self.tables] if backend is store.backend else [self.tables, backend]

    def before_fork(self) -> None:
        for part in self._parts:
            part.before_fork()

    def after_fork(self, *, is_child: bool) -> None:
        for part in self._parts:
            part.after_fork(is_child=is_child)

    def close(self) -> None:
        for part in self._parts:
            part.close()


def _is_own(backend: Backend) -> bool:
    """Whether this database keeps file references itself."""
    return isinstance(backend, SqliteBackend) or type(backend).__name__ == "PostgresqlBackend"


def _open_beside(store: Store) -> Backend:
    url = store.settings.files_store
    kind = store.url.partition("://")[0]
    if not url:
        raise RefusedError(
            f"a store on {kind}:// does not keep file references: set {variable_of('files_store')} to the URL of a PostgreSQL or SQLite"
            " database beside it, such as postgresql://user@host/database or sqlite:////folder/files.db"
        )
    if parse_url(url).scheme not in _SCHEMES:
        raise RefusedError(
            f"{variable_of('files_store')}={parse_url(url).shown}: file references need PostgreSQL or SQLite: write postgresql://"
            " or sqlite:///"
        )
    return open_backend(parse_url(url))


def _tables_in(backend: Backend, store: Store) -> tuple[ScopeTables, Callable[..., SqlReferenceStore]]:
    """The tables in a database, and what makes the references of one scope in them."""
    if isinstance(backend, SqliteBackend):
        file_tables = SqliteFileTables(backend.file, store.clock)
        return file_tables, partial(SqliteReferences, file_tables)
    from headwater.files import postgresql_file_tables, postgresql_references  # their driver may not be installed

    tables = postgresql_file_tables.PostgresqlFileTables(
        cast("PostgresqlBackend", backend), store.clock, connections=store.settings.files_connections
    )
    return tables, partial(postgresql_references.PostgresqlReferences, tables)


def _tables_of(store: Store) -> ReferenceTables:
    return store.companion(ReferenceTables, lambda: ReferenceTables(store))
