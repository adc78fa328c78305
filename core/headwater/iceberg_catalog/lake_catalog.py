"""Iceberg's operations on one reference of a catalog, as every door finds them.

All of them read the reference's present state and are thread-safe. An operation that writes is decided anew when another commit was
faster, for as long as a commit may take, and needs a branch: on a tag or a commit it raises ReadOnlyReferenceError.

Beside what stands at an operation, they raise

    RefusedError          the request can never succeed as it is; also while the realm is not ACTIVE
    ConflictError         others were always faster
    UnavailableError      certainly nothing happened
    UnknownOutcomeError   it may have happened; no file that it may have committed was removed
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from headwater.catalogs import ContentKey
from headwater.iceberg_catalog.lake_values import (
    KeyPage,
    LoadedTable,
    LoadedView,
    PropertyChanges,
    StagedTable,
    TableCommit,
    TableCreation,
    ViewCommit,
    ViewCreation,
)


class LakeNamespaces(Protocol):
    """The namespaces of a reference."""

    def list_children(self, parent: ContentKey | None, *, token: str | None = None, limit: int | None = None) -> KeyPage:
        """List the namespaces directly below one; None: at the top.

        token         ``next_token`` of the page before, which goes on in the same commit; None and empty: the first page
        limit         of the page; None: all
        raises        NoSuchNamespaceError · RefusedError for a malformed token, or one of another listing · ExpiredError
        """

    def create(self, key: ContentKey, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Create a namespace, and the missing ones above it, in one commit; returns its properties.

        raises        AlreadyExistsError · NoSuchNamespaceError where what stands above is no namespace
        """

    def drop(self, key: ContentKey) -> None:
        """Drop an empty namespace; raises NoSuchNamespaceError and NamespaceNotEmptyError."""

    def exists(self, key: ContentKey) -> bool: ...

    def read_properties(self, key: ContentKey) -> Mapping[str, str]:
        """Read a namespace's properties; raises NoSuchNamespaceError."""

    def update_properties(self, key: ContentKey, removals: Collection[str], updates: Mapping[str, str]) -> PropertyChanges:
        """Remove and set properties; raises NoSuchNamespaceError, and PropertyClashError for a property in both."""


class LakeTables(Protocol):
    """The Iceberg tables of a reference."""

    def list(self, namespace: ContentKey, *, token: str | None = None, limit: int | None = None) -> KeyPage:
        """List the tables directly below a namespace, as ``LakeNamespaces.list_children`` does."""

    def create(self, creation: TableCreation) -> LoadedTable:
        """Create a table; raises NoSuchNamespaceError, and AlreadyExistsError for a table or view of that key."""

    def stage(self, creation: TableCreation) -> StagedTable:
        """Make a new table's metadata, of which nothing is stored or written; raises as ``create`` does."""

    def load(self, key: ContentKey) -> LoadedTable:
        """Load a table; raises NoSuchTableError."""

    def peek(self, key: ContentKey) -> str:
        """The ``etag`` of a table, from the index alone: no document is read. Raises NoSuchTableError."""

    def exists(self, key: ContentKey) -> bool: ...

    def commit(self, commit: TableCommit) -> LoadedTable:
        """Apply updates to a table that meets the requirements, or create one by ``assert-create``.

        A commit that happened already returns the present version, whatever the requirements say.

        raises        NoSuchTableError · RequirementFailedError · UnknownOutcomeError also where it cannot be told whether the same commit
                      happened before
        """

    def commit_many(self, commits: Sequence[TableCommit]) -> Sequence[LoadedTable]:
        """Apply updates to several tables in one commit of the reference, all or none; raises as ``commit`` does."""

    def drop(self, key: ContentKey, *, purge: bool = False) -> None:
        """Drop a table; raises NoSuchTableError.

        purge         its files, too: a task deletes them once no kept commit has the table
        """

    def rename(self, source: ContentKey, target: ContentKey) -> None:
        """Rename a table, also into another namespace; raises NoSuchTableError, NoSuchNamespaceError and AlreadyExistsError."""

    def register(self, key: ContentKey, metadata_location: str, *, overwrite: bool = False) -> LoadedTable:
        """Register the table of a metadata file.

        overwrite     a table that stands there: the same one moves to this version, another one gives way
        raises        NoSuchNamespaceError · AlreadyExistsError · RefusedError, before a byte is read, for a file in a place that is not
                      allowed
        """


class LakeViews(Protocol):
    """The Iceberg views of a reference; the operations are those on tables."""

    def list(self, namespace: ContentKey, *, token: str | None = None, limit: int | None = None) -> KeyPage: ...

    def create(self, creation: ViewCreation) -> LoadedView: ...

    def load(self, key: ContentKey) -> LoadedView:
        """Load a view; raises NoSuchViewError."""

    def peek(self, key: ContentKey) -> str: ...

    def exists(self, key: ContentKey) -> bool: ...

    def commit(self, commit: ViewCommit) -> LoadedView:
        """Apply updates to a view that meets the requirements; raises NoSuchViewError and RequirementFailedError."""

    def drop(self, key: ContentKey) -> None: ...

    def rename(self, source: ContentKey, target: ContentKey) -> None: ...

    def register(self, key: ContentKey, metadata_location: str, *, overwrite: bool = False) -> LoadedView: ...


class LakeCatalog(Protocol):
    """One reference of a catalog: a branch to read and write, or a tag or commit to read."""

    @property
    def namespaces(self) -> LakeNamespaces: ...

    @property
    def tables(self) -> LakeTables: ...

    @property
    def views(self) -> LakeViews: ...
