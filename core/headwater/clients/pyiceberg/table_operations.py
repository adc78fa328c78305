"""Tables and views as pyiceberg's objects: their metadata is made and changed by pyiceberg, and all else by ``iceberg_catalog``.

``TableStage`` is the one way by which pyiceberg's own rules of changes and requirements come in: it words them as its users know them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol
from uuid import UUID

import msgspec
from pydantic import BaseModel
from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.exceptions import NoSuchTableError, NoSuchViewError
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertCreate, TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier, Properties
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewMetadata, ViewVersion

from headwater.catalogs import ContentKey
from headwater.clients.pyiceberg.client_tables import LakeStagedTable, LakeTable, table_places
from headwater.clients.pyiceberg.metadata_files import OpenIO, parse_table, parse_view, table_text, view_text
from headwater.clients.pyiceberg.translation import identifier_key, shown_identifier
from headwater.iceberg_catalog import LoadedTable, LoadedView, TableCommit
from headwater.iceberg_catalog.lake_contents import encoded_document
from headwater.iceberg_catalog.lake_tables import LakeTables, PresentTable
from headwater.iceberg_catalog.lake_views import LakeViews

MakeMetadata = Callable[[str, UUID], TableMetadata]
"""A new table's metadata, given its location and uuid."""


class TableStage(Protocol):
    """The way from a table and updates to its next version; it checks the requirements first."""

    def __call__(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable: ...


class TableOperations:
    """The operations on tables whose results are pyiceberg's.

    owner         the catalog that pyiceberg's tables refer to
    """

    def __init__(self, owner: Catalog, tables: LakeTables, open_io: OpenIO) -> None:
        self._owner = owner
        self._tables = tables
        self._io = open_io

    def load_table(self, identifier: str | Identifier) -> Table:
        """Load a table from the metadata stored in the catalog, or else from the table's storage."""
        return self._as_table(self._tables.load(identifier_key(identifier, NoSuchTableError)))

    def stage_table(self, identifier: str | Identifier, location: str | None, make: MakeMetadata) -> StagedTable:
        """Stage a new table that is in no catalog yet: files can be written for it, and ``commit`` creates it.

        raises        RefusedError for a place that is taken, or not allowed: files would be written there before the commit
        """
        key = identifier_key(identifier, ValueError)
        staged = self._tables.stage_from(key, location, lambda place, uuid: _plain(table_text(make(place, uuid))))
        metadata, file = parse_table(staged.text, staged.metadata_location), staged.metadata_location
        return LakeStagedTable(key.elements, metadata, file, self._io(file), self._owner)

    def create_table(self, identifier: str | Identifier, location: str | None, make: MakeMetadata) -> Table:
        key = identifier_key(identifier, ValueError)
        return self._as_table(
            self._tables.create_from(key, location, lambda place, uuid: _plain(table_text(make(place, uuid))))
        )

    def register_table(self, identifier: str | Identifier, metadata_location: str, *, overwrite: bool) -> Table:
        """Register a table that exists in its storage; see ``LakeContents.register``."""
        key = identifier_key(identifier, ValueError)
        return self._as_table(self._tables.register(key, metadata_location, overwrite=overwrite))

    def rename_table(self, source: str | Identifier, target: str | Identifier) -> Table:
        """Rename a table in one commit; its content id and its files stay."""
        old, new = identifier_key(source, NoSuchTableError), identifier_key(target, ValueError)
        return self._as_table(self._tables.rename(old, new))

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...], stage: TableStage
    ) -> CommitTableResponse:
        """Apply updates to the present table, if it meets the requirements; retried if another commit was faster.

        raises        CommitFailedException when it does not meet them; NoSuchTableError; what ``LakeTables.commit_with`` raises
        """
        key = identifier_key(table.name(), NoSuchTableError)
        versions: dict[bytes, TableMetadata] = {}  # by their texts, so that none of them is parsed again

        def step(present: PresentTable | None) -> dict[str, Any] | None:
            current = None if present is None else self._current(present.loaded, table)
            if current is None:
                _check_is_creation(key, requirements)
            metadata = stage(current, key.elements, requirements, updates).metadata
            if current is not None and present is not None and metadata == current.metadata:
                versions[present.loaded.text] = metadata
                return None
            document = _plain(table_text(metadata))
            versions[encoded_document(document)] = metadata
            return document

        commit = TableCommit(key, _plain_models(requirements), _plain_models(updates))
        loaded = self._tables.commit_with([commit], [step])[0]
        metadata = versions.get(loaded.text) or parse_table(loaded.text, loaded.metadata_location)
        return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": loaded.metadata_location})

    def check_places(self, table: Table, places: Collection[str]) -> None:
        """Check that a table, created or not, may have these further places; raises RefusedError."""
        key, metadata = identifier_key(table.name(), NoSuchTableError), table.metadata
        self._tables.check_places(key, table_places(metadata), metadata.table_uuid, places)

    def next_version(
        self,
        current: Table | None,
        identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        """Start a ``TableStage``: pyiceberg's own, without loading the code that the table names. The file is named by the commit."""
        for requirement in requirements:
            requirement.validate(None if current is None else current.metadata)
        metadata = update_table_metadata(
            base_metadata=MetastoreCatalog._empty_table_metadata() if current is None else current.metadata,
            updates=updates,
            enforce_validation=current is None,
            metadata_location=None if current is None else current.metadata_location,
        )
        return LakeStagedTable(identifier, metadata, "", self._io(metadata.location), self._owner)

    def _current(self, loaded: LoadedTable, known: Table) -> Table:
        """The table as it is now, which mostly is as its writer knows it."""
        if loaded.metadata_location == known.metadata_location and not isinstance(known, StagedTable):
            return known
        return self._as_table(loaded)

    def _as_table(self, loaded: LoadedTable) -> Table:
        file = loaded.metadata_location
        return LakeTable(loaded.key.elements, parse_table(loaded.text, file), file, self._io(file), self._owner)


class ViewOperations:
    """The operations on views whose results are pyiceberg's. It has none that changes an existing view."""

    def __init__(self, views: LakeViews) -> None:
        self._views = views

    def load_view(self, identifier: str | Identifier) -> View:
        return _as_view(self._views.load(identifier_key(identifier, NoSuchViewError)))

    def create_view(
        self, identifier: str | Identifier, schema: Schema, version: ViewVersion, location: str | None, properties: Properties
    ) -> View:
        def make(place: str, uuid: UUID) -> dict[str, Any]:
            return _plain(view_text(_new_view(schema, version, place, properties, uuid)))

        return _as_view(self._views.create_from(identifier_key(identifier, ValueError), location, make))

    def register_view(self, identifier: str | Identifier, metadata_location: str) -> View:
        return _as_view(self._views.register(identifier_key(identifier, ValueError), metadata_location))


def _as_view(loaded: LoadedView) -> View:
    return View(loaded.key.elements, parse_view(loaded.text, loaded.metadata_location))


def _check_is_creation(key: ContentKey, requirements: tuple[TableRequirement, ...]) -> None:
    for requirement in requirements:
        requirement.validate(None)
    if not any(isinstance(requirement, AssertCreate) for requirement in requirements):
        raise NoSuchTableError(f"Table does not exist: {shown_identifier(key)}")


def _plain(text: bytes) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(text)
    return document


def _plain_models(models: Sequence[BaseModel]) -> list[dict[str, Any]]:
    """Updates or requirements as the REST protocol writes them."""
    return [msgspec.json.decode(model.model_dump_json()) for model in models]


def _new_view(schema: Schema, version: ViewVersion, location: str, properties: Properties, unique: UUID) -> ViewMetadata:
    fresh = assign_fresh_schema_ids(schema)
    first = version.model_copy(update={"schema_id": fresh.schema_id})
    return ViewMetadata.model_validate(
        {
            "view-uuid": str(unique),
            "format-version": 1,
            "location": location,
            "schemas": [fresh],
            "current-version-id": first.version_id,
            "versions": [first],
            "version-log": [{"timestamp-ms": first.timestamp_ms, "version-id": first.version_id}],
            "properties": properties,
        }
    )
