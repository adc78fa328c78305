"""pyiceberg's catalog over a branch: it translates identifiers and errors, and delegates the work."""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyiceberg.catalog import WAREHOUSE_LOCATION, MetastoreCatalog, PropertiesUpdateSummary
from pyiceberg.exceptions import NoSuchTableError, NoSuchViewError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, CreateTableTransaction, StagedTable, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewVersion

from headwater.clients.pyiceberg.client_branch import OWN_PROPERTIES, BranchAddress, shared_store, with_configured
from headwater.clients.pyiceberg.client_tables import LakeCreation
from headwater.clients.pyiceberg.metadata_files import ClientStorage, parse_table, parse_view
from headwater.clients.pyiceberg.table_operations import MakeMetadata, TableOperations, ViewOperations
from headwater.clients.pyiceberg.translation import find_key, identifier_key, namespace_key, pyiceberg_errors
from headwater.iceberg_catalog import IcebergCatalog, LakeOptions
from headwater.iceberg_catalog.lake_catalog import open_session
from headwater.store import Store

if TYPE_CHECKING:
    import pyarrow as pa


class HeadwaterCatalog(MetastoreCatalog):
    """A branch of a catalog of a realm, in the store behind a URL.

    Properties, beside those of pyiceberg that say how files are reached:

    store         URL of the store; without it the environment's ``HEADWATER_STORE``
    realm         id of the realm
    catalog       name of the catalog
    branch        what is read and written; any other reference (a tag, a hash, ``main@hash``) can be read; default: the default branch
    author        noted in commits
    warehouse     below which new tables lie; default: the catalog's base location

    Opens nothing before it is used. Thread-safe; it can be pickled, and is opened anew where it arrives.

    raises        ``translation`` says which error of Headwater becomes which one of pyiceberg
    """

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **with_configured(name, properties))
        with pyiceberg_errors():
            self._address = BranchAddress.from_properties(name, self.properties)
        self._given: Store | None = None
        self._opened: _Opened | None = None
        self._opening = threading.Lock()

    @classmethod
    def on(cls, store: Store, name: str = "headwater", **properties: str) -> HeadwaterCatalog:
        """Make a catalog on a store that the caller has opened, and will close."""
        made = cls(name, **properties)
        made._given = store
        return made

    def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        """Create a namespace on the branch; its parents have to be there.

        raises        NamespaceAlreadyExistsError; NoSuchNamespaceError for a parent
        """
        with pyiceberg_errors():
            self._rooms.lake.namespaces.create(namespace_key(namespace), properties)

    def create_namespace_if_not_exists(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        """Create a namespace; an existing one is left as it is, even where nothing can be created."""
        if not self.namespace_exists(namespace):
            super().create_namespace_if_not_exists(namespace, properties)

    def drop_namespace(self, namespace: str | Identifier) -> None:
        """Drop an empty namespace.

        raises        NoSuchNamespaceError; NamespaceNotEmptyError
        """
        with pyiceberg_errors():
            self._rooms.lake.namespaces.drop(namespace_key(namespace))

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        """Whether the namespace is there; a name that none can have is not."""
        with pyiceberg_errors():
            key = find_key(namespace)
            return key is not None and self._rooms.lake.namespaces.exists(key)

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """List the namespaces directly below one, or at the top; raises NoSuchNamespaceError."""
        with pyiceberg_errors():
            parent = namespace_key(namespace) if namespace else None
            return [key.elements for key in self._rooms.lake.namespaces.list_children(parent).keys]

    def load_namespace_properties(self, namespace: str | Identifier) -> Properties:
        """Read the properties of a namespace; raises NoSuchNamespaceError."""
        with pyiceberg_errors():
            return dict(self._rooms.lake.namespaces.read_properties(namespace_key(namespace)))

    def update_namespace_properties(
        self, namespace: str | Identifier, removals: set[str] | None = None, updates: Properties = EMPTY_DICT
    ) -> PropertiesUpdateSummary:
        """Remove and set properties of a namespace, in one commit; raises NoSuchNamespaceError, and ValueError for a name in both."""
        self._get_updated_props_and_update_summary({}, removals, updates)  # which says what it refuses
        with pyiceberg_errors():
            changes = self._rooms.lake.namespaces.update_properties(namespace_key(namespace), removals or set(), updates)
            return PropertiesUpdateSummary(
                removed=list(changes.removed), updated=list(changes.updated), missing=list(changes.missing)
            )

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        """Create a table on the branch.

        location      where its files go; None: below the catalog's base location
        raises        TableAlreadyExistsError; NoSuchNamespaceError; ValidationException for a location that is not allowed or another's
        """
        make = self._maker(schema, partition_spec, sort_order, properties)
        with pyiceberg_errors():
            return self._rooms.tables.create_table(identifier, location, make)

    def create_table_if_not_exists(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        """Create a table; an existing one is loaded, even where nothing can be created."""
        with suppress(NoSuchTableError):
            return self.load_table(identifier)
        return super().create_table_if_not_exists(identifier, schema, location, partition_spec, sort_order, properties)

    def load_table(self, identifier: str | Identifier) -> Table:
        """Load a table as the branch, tag or commit has it now; raises NoSuchTableError."""
        with pyiceberg_errors():
            return self._rooms.tables.load_table(identifier)

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Whether the table is there; a name that none can have is not."""
        with pyiceberg_errors():
            key = find_key(identifier)
            return key is not None and self._rooms.lake.tables.exists(key)

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """List the tables directly in a namespace; raises NoSuchNamespaceError."""
        with pyiceberg_errors():
            return [key.elements for key in self._rooms.lake.tables.list(namespace_key(namespace)).keys]

    def register_table(self, identifier: str | Identifier, metadata_location: str, overwrite: bool = False) -> Table:
        """Put a table that is there already on the branch, by its metadata file.

        overwrite     replace a table of that name
        raises        TableAlreadyExistsError; ValidationException where its files belong to another table
        """
        with pyiceberg_errors():
            return self._rooms.tables.register_table(identifier, metadata_location, overwrite=overwrite)

    def rename_table(self, from_identifier: str | Identifier, to_identifier: str | Identifier) -> Table:
        """Rename a table, also into another namespace. It keeps its content id, and so its history, policies and grants by id.

        raises        NoSuchTableError; TableAlreadyExistsError; NoSuchNamespaceError
        """
        with pyiceberg_errors():
            return self._rooms.tables.rename_table(from_identifier, to_identifier)

    def drop_table(self, identifier: str | Identifier) -> None:
        """Drop a table from the branch. Its files stay, and so do earlier commits and other branches that have it.

        raises        NoSuchTableError
        """
        with pyiceberg_errors():
            self._rooms.lake.tables.drop(identifier_key(identifier, NoSuchTableError))

    def purge_table(self, identifier: str | Identifier, *, reachable_only: bool = False) -> None:
        """Drop a table with its files. A task deletes them once no kept commit has the table, which may take weeks.

        reachable_only  purge only what can be reached: files that only missing or unreadable manifests name are then never deleted
        raises        NoSuchTableError; ValueError, and nothing is dropped, where its files cannot be determined or may not be deleted: all
                      manifests are read before
        """
        with pyiceberg_errors():
            key = identifier_key(identifier, NoSuchTableError)
            self._rooms.lake.purges.drop_with_files(key, reachable_only=reachable_only)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates to a table on the branch, if the requirements still hold.

        raises        CommitFailedException: another commit was faster; CommitStateUnknownException: look before you repeat it
        """
        with pyiceberg_errors(is_commit=True):
            return self._rooms.tables.commit_table(table, requirements, updates, self._update_and_stage_table)

    def create_table_transaction(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> CreateTableTransaction:
        """Begin a table that is created when the transaction is committed, with all that was written in it."""
        return LakeCreation(self._create_staged_table(identifier, schema, location, partition_spec, sort_order, properties))

    def create_view(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        view_version: ViewVersion,
        location: str | None = None,
        properties: Properties = EMPTY_DICT,
    ) -> View:
        """Create a view on the branch.

        raises        ViewAlreadyExistsError; NoSuchNamespaceError
        """
        with pyiceberg_errors():
            return self._rooms.views.create_view(
                identifier, self._convert_schema_if_needed(schema), view_version, location, dict(properties)
            )

    def load_view(self, identifier: str | Identifier) -> View:
        """Load a view as the branch, tag or commit has it now; raises NoSuchViewError."""
        with pyiceberg_errors():
            return self._rooms.views.load_view(identifier)

    def view_exists(self, identifier: str | Identifier) -> bool:
        """Whether the view is there; a name that none can have is not."""
        with pyiceberg_errors():
            key = find_key(identifier)
            return key is not None and self._rooms.lake.views.exists(key)

    def list_views(self, namespace: str | Identifier) -> list[Identifier]:
        """List the views directly in a namespace; raises NoSuchNamespaceError."""
        with pyiceberg_errors():
            return [key.elements for key in self._rooms.lake.views.list(namespace_key(namespace)).keys]

    def register_view(self, identifier: str | Identifier, metadata_location: str) -> View:
        """Put a view that is there already on the branch, by its metadata file; raises ViewAlreadyExistsError."""
        with pyiceberg_errors():
            return self._rooms.views.register_view(identifier, metadata_location)

    def drop_view(self, identifier: str | Identifier) -> None:
        """Drop a view from the branch; raises NoSuchViewError."""
        with pyiceberg_errors():
            self._rooms.lake.views.drop(identifier_key(identifier, NoSuchViewError))

    def close(self) -> None:
        """Release the store. A later use opens it again."""
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.let_go()

    def __getstate__(self) -> dict[str, Any]:
        if self._given is not None:
            raise TypeError(f"catalog {self.name!r} is on a store of its caller's: name the store by URL to send it elsewhere")
        return {"name": self.name, "properties": self.properties}

    def __setstate__(self, state: dict[str, Any]) -> None:
        HeadwaterCatalog.__init__(self, state["name"], **state["properties"])

    def check_places(self, table: Table, places: Collection[str]) -> None:
        """Check that a table may have these further places, as far as that can be decided before its commit.

        raises        ValidationException for a place that is not allowed, or another table's
        """
        with pyiceberg_errors(is_commit=True):
            self._rooms.tables.check_places(table, places)

    def _create_staged_table(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> StagedTable:
        make = self._maker(schema, partition_spec, sort_order, properties)
        with pyiceberg_errors():
            return self._rooms.tables.stage_table(identifier, location, make)

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        """Load the file access by the catalog's own properties alone: pyiceberg passes those of tables, which are untrusted."""
        return load_file_io(self._reaching, location)

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        return self._rooms.tables.next_version(current_table, table_identifier, requirements, updates)

    @staticmethod
    def _delete_old_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
        """Delete nothing: earlier commits, other branches and tags may hold a version that this table's log has dropped."""

    @property
    def _reaching(self) -> dict[str, str]:
        """The properties that say how files are reached."""
        return {name: value for name, value in self.properties.items() if name not in OWN_PROPERTIES}

    @property
    def _rooms(self) -> _Opened:
        opened = self._opened
        if opened is not None:
            return opened
        with self._opening:
            if self._opened is None:
                self._opened = _Opened(self, self._address, self._given)
            return self._opened

    def _maker(
        self, schema: Schema | pa.Schema, partition_spec: PartitionSpec, sort_order: SortOrder, properties: Properties
    ) -> MakeMetadata:
        version = int(properties.get(TableProperties.FORMAT_VERSION, TableProperties.DEFAULT_FORMAT_VERSION))
        converted = self._convert_schema_if_needed(schema, version)  # type: ignore[arg-type]  # an unknown version is told there

        def make(location: str, unique: UUID) -> TableMetadata:
            given = dict(properties)  # pyiceberg takes the format version out
            return new_table_metadata(converted, partition_spec, sort_order, location, given, unique)

        return make


class _Opened:
    """An open store of a catalog, with the operations on its branch."""

    def __init__(self, owner: HeadwaterCatalog, address: BranchAddress, given: Store | None) -> None:
        store, self.let_go = (given, _nothing) if given is not None else shared_store(address.store)
        try:
            session = open_session(store, address.realm, address.catalog, address.reference, author=address.author)
        except BaseException:
            self.let_go()
            raise

        def open_io(location: str) -> FileIO:
            return owner._load_file_io(location=location)

        options = LakeOptions(
            warehouse=owner.properties.get(WAREHOUSE_LOCATION),
            own=owner._reaching,
            check_table=parse_table,
            check_view=parse_view,
        )
        self.lake = IcebergCatalog(store, session, ClientStorage(open_io), options)
        self.tables = TableOperations(owner, self.lake.tables, open_io)
        self.views = ViewOperations(self.lake.views)


def _nothing() -> None:
    """Release nothing: the store belongs to the caller."""
