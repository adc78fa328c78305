"""The operations that pyiceberg has on tables and on views, on a branch. It has none that changes an existing view."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar
from uuid import UUID, uuid4

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSnapshotUpdate, AssertCreate, TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier, Properties
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewMetadata, ViewVersion

from headwater.catalogs import (
    ContentKey,
    ContentOperation,
    ContentType,
    Delete,
    IcebergTable,
    IcebergView,
    Put,
    TableClaim,
)
from headwater.clients.pyiceberg.lake_tables import LakeStagedTable, LakeTable
from headwater.clients.pyiceberg.metadata_files import (
    FileAccess,
    MetadataDocument,
    check_own,
    default_location,
    document_files,
    document_places,
    files_in,
    metadata_file,
    parse_table,
    parse_view,
    paths_of,
    table_content,
    table_text,
    view_content,
    view_text,
)
from headwater.clients.pyiceberg.namespace_operations import check_namespace
from headwater.clients.pyiceberg.translation import identifier_key, shown_identifier
from headwater.errors import ConflictError, RefusedError, UnavailableError
from headwater.iceberg import is_same_place
from headwater.iceberg.metadata_json import MetadataParts, split_metadata
from headwater.iceberg_catalog.branch_session import BranchChange, BranchSession, BranchState

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


C = TypeVar("C", bound=IcebergTable | IcebergView)


@dataclass(frozen=True, slots=True)
class _ContentKind(Generic[C]):
    """``missing`` and ``taken`` are pyiceberg's errors where there is no such content, and where another one is in its place."""

    noun: str
    content: type[C]
    content_type: ContentType
    missing: type[Exception]
    taken: type[Exception]


_TABLE = _ContentKind("Table", IcebergTable, ContentType.ICEBERG_TABLE, NoSuchTableError, TableAlreadyExistsError)
_VIEW = _ContentKind("View", IcebergView, ContentType.ICEBERG_VIEW, NoSuchViewError, ViewAlreadyExistsError)


class _LakeOperations(Generic[C]):
    """What operations on tables and on views have in common."""

    def __init__(self, kind: _ContentKind[C], branch: BranchSession, access: FileAccess, *, warehouse: str | None) -> None:
        self._kind = kind
        self._branch = branch
        self._access = access
        self._warehouse = warehouse or branch.catalog.definition.base_location

    def content_exists(self, identifier: str | Identifier) -> bool:
        try:
            key = identifier_key(identifier, self._kind.missing)
        except self._kind.missing:
            return False
        return self._branch.state().type_of(key) is self._kind.content_type

    def drop_content(self, identifier: str | Identifier) -> None:
        """Drop a table or view. Its files stay, so that commits that hold it stay readable."""
        key = identifier_key(identifier, self._kind.missing)

        def plan(state: BranchState) -> BranchChange:
            self._read(state, key)
            return BranchChange(operations=[Delete(key)], message=f"drop {self._kind.noun.lower()} {key}")

        self._branch.commit(plan, key=key)

    def _find(self, state: BranchState, key: ContentKey) -> C | None:
        content = state.find_content(key)
        return content if isinstance(content, self._kind.content) else None

    def _read(self, state: BranchState, key: ContentKey) -> C:
        content = self._find(state, key)
        if content is None:
            raise self._kind.missing(f"{self._kind.noun} does not exist: {shown_identifier(key)}")
        return content

    def _check_free(self, state: BranchState, key: ContentKey, fault: type[Exception] | None = None) -> None:
        check_namespace(state, key.parent)
        content = state.find_content(key)
        if isinstance(content, IcebergTable):
            raise (fault or TableAlreadyExistsError)(f"Table {shown_identifier(key)} already exists")
        if content is not None:
            raise (fault or self._kind.taken)(f"{type(content).__name__} {shown_identifier(key)} already exists")

    def _place(self, state: BranchState, key: ContentKey, location: str | None, unique: UUID) -> str:
        return location.rstrip("/") if location else default_location(state, key, unique=unique, warehouse=self._warehouse)

    def _creation(self, key: ContentKey, content: C, document: MetadataDocument, claim: TableClaim) -> BranchChange:
        return BranchChange(
            operations=[Put(key, content, metadata=split_metadata(document.text))],
            message=f"create {self._kind.noun.lower()} {key}",
            ids={key: claim.content_id},
            claim=claim,
            take_back=document.remove_file,
        )

    def _write(self, document: MetadataDocument, change: BranchChange) -> None:
        """Write a metadata file if its places are free: no file is ever written into another table's place, nor removed there."""
        if change.claim is not None:
            self._branch.check_free(change.claim, change.message)
        document.write_file()

    def _known_id(self, state: BranchState, uuid: UUID | None) -> UUID | None:
        """The content id under which this catalog has the content on another branch, or had it before a drop."""
        owner = None if uuid is None else self._branch.claims.find_by_uuid([uuid]).get(uuid)
        if owner is None or owner.catalog_id != self._branch.id or state.key_of(owner.content_id) is not None:
            return None
        return owner.content_id


class TableOperations(_LakeOperations[IcebergTable]):
    """``owner`` is the catalog that pyiceberg's tables refer to."""

    def __init__(self, owner: Catalog, branch: BranchSession, access: FileAccess, *, warehouse: str | None) -> None:
        super().__init__(_TABLE, branch, access, warehouse=warehouse)
        self._owner = owner
        self._claimed: dict[str, UUID] = {}

    def load_table(self, identifier: str | Identifier) -> Table:
        """Load a table from the metadata stored in the catalog, or else from the table's storage."""
        key = identifier_key(identifier, NoSuchTableError)
        state = self._branch.state()
        return self._loaded(state, key, self._read(state, key))

    def stage_table(self, identifier: str | Identifier, location: str | None, make: MakeMetadata) -> StagedTable:
        """Stage a new table that is in no catalog yet: files can be written for it, and ``commit`` creates it.

        raises        RefusedError for a place that is taken, or not allowed: files would be written there before the commit
        """
        key = identifier_key(identifier, ValueError)
        metadata = self._new_metadata(self._branch.state(), key, location, make, uuid4())
        self._access.check_location(key, document_places(metadata))
        self._branch.check_free(self._claim(uuid4(), metadata), f"create table {key}")
        metadata_location = self._file_for(metadata, 0)
        return LakeStagedTable(key.elements, metadata, metadata_location, self._access.io(metadata_location), self._owner)

    def create_table(self, identifier: str | Identifier, location: str | None, make: MakeMetadata) -> Table:
        key = identifier_key(identifier, ValueError)
        unique = uuid4()  # kept when it is decided anew
        place = location.rstrip("/") if location else None
        made: list[Table] = []

        def plan(state: BranchState) -> BranchChange:
            self._check_free(state, key)
            metadata = self._new_metadata(state, key, location, make, unique)
            self._access.check_location(key, document_places(metadata))
            document = self._document(metadata, self._file_for(metadata, 0))
            made.append(self._table(key, parse_table(document.text, document.location), document.location))
            creation = self._creation(
                key, table_content(metadata, document.location), document, self._claim(content_id, metadata)
            )
            self._write(document, creation)
            return creation

        with self._id_for(place) as content_id:
            self._branch.commit(plan, key=key)
        return made[-1]

    def register_table(self, identifier: str | Identifier, metadata_location: str, *, overwrite: bool) -> Table:
        """Register a table that exists in its storage. A table that was dropped gets its content id back.

        overwrite     what stands there: the same table moves to this version, another one gives way
        raises        RefusedError, before a byte is read, where the catalog does not allow the file, or another catalog has its place
        """
        key = identifier_key(identifier, ValueError)
        file = self._read_file(key, metadata_location)
        fresh_id = uuid4()

        def plan(state: BranchState) -> BranchChange:
            stored = state.find_content(key)
            if stored is not None and not (overwrite and isinstance(stored, IcebergTable)):
                raise TableAlreadyExistsError(f"Table {shown_identifier(key)} already exists")
            check_namespace(state, key.parent)
            is_same = isinstance(stored, IcebergTable) and self._is_same(state, key, stored, file)
            if stored is not None and stored.id is not None and is_same:
                return self._registration(key, file, stored.id, [Put(key, file.content(stored.id), stored, file.parts)])
            content_id = self._known_id(state, file.uuid) or fresh_id
            before = [] if stored is None else [Delete(key)]
            return self._registration(key, file, content_id, [*before, Put(key, file.content(), metadata=file.parts)])

        self._branch.commit(plan, key=key)
        return self._table(key, file.metadata, metadata_location)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...], stage: TableStage
    ) -> CommitTableResponse:
        """Apply updates to the present table, if it meets the requirements; retried if another commit was faster.

        raises        CommitFailedException when it does not meet them; NoSuchTableError; RefusedError for another uuid, a place that is
                      taken or not allowed, and a file that is not in one of the table's places
        """
        key = identifier_key(table.name(), NoSuchTableError)
        done: list[CommitTableResponse] = []

        def plan(state: BranchState) -> BranchChange | None:
            stored = self._find(state, key)
            current = None if stored is None else self._current(state, key, stored, table)
            if current is None:
                _check_is_creation(key, requirements)
                self._check_free(state, key, CommitFailedException)
            next_version = stage(current, key.elements, requirements, updates)
            staged = next_version.metadata
            if current is not None and staged == current.metadata:
                done.append(_response(current.metadata, current.metadata_location))
                return None
            if current is not None and stored is not None and stored.table_uuid is not None:
                _check_keeps_uuid(key, current.metadata, staged)
            self._check_added(key, None if current is None else current.metadata, staged)
            document = self._document(staged, next_version.metadata_location)
            done.append(_response(staged, document.location))
            if current is None or stored is None or stored.id is None:
                change = self._creation(key, table_content(staged, document.location), document, self._claim(new_id, staged))
            else:
                content = table_content(staged, document.location, content_id=stored.id)
                change = BranchChange(
                    operations=[Put(key, content, stored, split_metadata(document.text))],
                    message=f"{_what(updates)} table {key}",
                    claim=self._new_claim(stored, stored.id, current.metadata, staged),
                    take_back=document.remove_file,
                )
            self._write(document, change)
            return change

        with self._id_for(table.metadata.location if isinstance(table, StagedTable) else None) as new_id:
            self._branch.commit(plan, key=key)
        return done[-1]

    def check_places(self, table: Table, places: Collection[str]) -> None:
        """Check that a table, created or not, may have these further places; raises RefusedError."""
        key, metadata = identifier_key(table.name(), NoSuchTableError), table.metadata
        self._access.check_location(key, places)
        stored = self._find(self._branch.state(), key)
        known_id = self._claimed.get(metadata.location) if stored is None else stored.id
        uuid = metadata.table_uuid if stored is None or stored.table_uuid is not None else None
        claim = TableClaim(self._branch.id, known_id or uuid4(), metadata.location, uuid, (*paths_of(metadata), *places))
        self._branch.check_free(claim, f"change table {key}")

    def next_version(
        self,
        current: Table | None,
        identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        """Start a ``TableStage``: pyiceberg's own, without loading the code that the table names."""
        for requirement in requirements:
            requirement.validate(None if current is None else current.metadata)
        metadata = update_table_metadata(
            base_metadata=MetastoreCatalog._empty_table_metadata() if current is None else current.metadata,
            updates=updates,
            enforce_validation=current is None,
            metadata_location=None if current is None else current.metadata_location,
        )
        version = 0 if current is None else MetastoreCatalog._parse_metadata_version(current.metadata_location) + 1
        file = self._file_for(metadata, version)
        return LakeStagedTable(identifier, metadata, file, self._access.io(file), self._owner)

    def rename_table(self, source: str | Identifier, target: str | Identifier) -> Table:
        """Rename a table in one commit; its content id and its files stay."""
        old, new = identifier_key(source, NoSuchTableError), identifier_key(target, ValueError)
        renamed: list[Table] = []

        def plan(state: BranchState) -> BranchChange | None:
            check_namespace(state, new.parent)
            stored = self._read(state, old)
            if old != new:
                self._check_free(state, new)
            renamed.append(self._loaded(state, new, stored))
            if old == new:
                return None
            return BranchChange(operations=[Delete(old), Put(new, stored)], message=f"rename table {old} to {new}")

        self._branch.commit(plan, key=old)
        return renamed[-1]

    def _loaded(self, state: BranchState, key: ContentKey, content: IcebergTable) -> Table:
        text = self._access.document(state, key, content)
        return self._table(key, parse_table(text, content.metadata_location), content.metadata_location)

    def _read_file(self, key: ContentKey, location: str) -> _TableFile:
        """Read and check a table's metadata file, and the places that it names.

        raises        RefusedError; nothing is read where the file itself is not allowed, nor anything that the file names
        """
        self._access.check_location(key, [location])
        self._access.check_in_catalog(key, location)
        file = _TableFile.of(self._access.read_text(key, location), location)
        self._access.check_location(key, [*document_places(file.metadata), *file.files])
        check_own(key, [location], document_places(file.metadata))
        self._access.check_not_anothers(key, [location, *file.files], location=file.metadata.location, uuid=file.uuid)
        return file

    def _check_added(self, key: ContentKey, before: TableMetadata | None, after: TableMetadata) -> None:
        """Check that new places are allowed, and that new files lie in the table's own places; raises RefusedError.

        What was there before stays: an import may have taken it from elsewhere.
        """
        places, files = (set(), set()) if before is None else (document_places(before), files_in(before))
        self._access.check_location(key, document_places(after) - places)
        check_own(key, sorted(files_in(after) - files), document_places(after) | places)

    def _new_claim(
        self, stored: IcebergTable, content_id: UUID, before: TableMetadata, after: TableMetadata
    ) -> TableClaim | None:
        """The claim of a version, if it covers more than the table's present claim; earlier releases claimed no paths."""
        claim = self._claim(content_id, after)
        is_known = str(after.table_uuid) == stored.table_uuid  # not where whoever put it stated none
        if not is_known or document_places(after) != document_places(before):
            return claim
        is_wide = len(claim.places()) > 1 and not self._branch.claims.has_taken(claim)
        return claim if is_wide and not self._branch.claims.find_conflicts([claim]) else None

    def _claim(self, content_id: UUID, metadata: TableMetadata, *, has_uuid: bool = True) -> TableClaim:
        uuid = metadata.table_uuid if has_uuid else None
        return TableClaim(self._branch.id, content_id, metadata.location, uuid, paths_of(metadata))

    def _current(self, state: BranchState, key: ContentKey, content: IcebergTable, known: Table) -> Table:
        """The table as it is now, which mostly is as its writer knows it."""
        if content.metadata_location == known.metadata_location and not isinstance(known, StagedTable):
            return known
        return self._loaded(state, key, content)

    def _table(self, key: ContentKey, metadata: TableMetadata, location: str) -> Table:
        return LakeTable(key.elements, metadata, location, self._access.io(location), self._owner)

    def _new_metadata(
        self, state: BranchState, key: ContentKey, location: str | None, make: MakeMetadata, unique: UUID
    ) -> TableMetadata:
        check_namespace(state, key.parent)
        return make(self._place(state, key, location, unique), unique)

    def _registration(
        self, key: ContentKey, file: _TableFile, content_id: UUID, operations: Sequence[ContentOperation]
    ) -> BranchChange:
        return BranchChange(
            operations=operations,
            message=f"register table {key}",
            ids={key: content_id},
            claim=self._claim(content_id, file.metadata, has_uuid=file.uuid is not None),
        )

    def _is_same(self, state: BranchState, key: ContentKey, stored: IcebergTable, file: _TableFile) -> bool:
        """Whether what stands there is the table of a metadata file: by the uuid; where one of them has none, by the location."""
        if stored.table_uuid is not None and file.uuid is not None:
            return stored.table_uuid.lower() == str(file.uuid)
        metadata = parse_table(self._access.document(state, key, stored), stored.metadata_location)
        return is_same_place(metadata.location, file.metadata.location)

    def _file_for(self, metadata: TableMetadata, version: int) -> str:
        return metadata_file(self._branch.id, metadata.location, metadata.properties, version)

    def _document(self, metadata: TableMetadata, location: str) -> MetadataDocument:
        return MetadataDocument(self._access.io(location), location, table_text(metadata))

    @contextmanager
    def _id_for(self, place: str | None) -> Iterator[UUID]:
        """A content id for a table that is created at a place: the one for which an attempt that failed may have claimed it.

        Otherwise whoever tries again would find the place taken, until the next collection.

        place         None: a place of which no attempt knows
        """
        content_id = (None if place is None else self._claimed.pop(place, None)) or uuid4()
        try:
            yield content_id
        except (ConflictError, UnavailableError):
            if place is not None:
                self._claimed[place] = content_id
            raise


@dataclass(frozen=True, slots=True)
class _TableFile:
    """A table's metadata as it lies in its storage.

    uuid          None where it has none: pyiceberg makes one up for a table of version 1, and that is not the table's
    files         that the document names
    """

    location: str
    metadata: TableMetadata
    parts: MetadataParts
    uuid: UUID | None
    files: tuple[str, ...]

    @classmethod
    def of(cls, text: bytes, location: str) -> _TableFile:
        metadata, parts = parse_table(text, location), split_metadata(text)
        uuid = metadata.table_uuid if "table-uuid" in parts.fields else None
        return cls(location, metadata, parts, uuid, tuple(document_files(text)))

    def content(self, content_id: UUID | None = None) -> IcebergTable:
        return table_content(self.metadata, self.location, content_id=content_id, has_uuid=self.uuid is not None)


def _check_is_creation(key: ContentKey, requirements: tuple[TableRequirement, ...]) -> None:
    for requirement in requirements:
        requirement.validate(None)
    if not any(isinstance(requirement, AssertCreate) for requirement in requirements):
        raise NoSuchTableError(f"Table does not exist: {shown_identifier(key)}")


def _check_keeps_uuid(key: ContentKey, before: TableMetadata, after: TableMetadata) -> None:
    """Pass, or raise RefusedError. By Iceberg's specification of a catalog a uuid is assigned once; pyiceberg itself assigns any."""
    if after.table_uuid != before.table_uuid:
        raise RefusedError(
            f"table {shown_identifier(key)} has the uuid {before.table_uuid}, and no table's uuid changes: not to {after.table_uuid}"
        )


def _response(metadata: TableMetadata, location: str) -> CommitTableResponse:
    return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": location})


def _what(updates: tuple[TableUpdate, ...]) -> str:
    """The operations of the added snapshots, for the log; else ``change``."""
    summaries = [update.snapshot.summary for update in updates if isinstance(update, AddSnapshotUpdate)]
    operations = dict.fromkeys(summary.operation.value for summary in summaries if summary is not None)
    return ", ".join(operations) or "change"


class ViewOperations(_LakeOperations[IcebergView]):
    def __init__(self, branch: BranchSession, access: FileAccess, *, warehouse: str | None) -> None:
        super().__init__(_VIEW, branch, access, warehouse=warehouse)

    def load_view(self, identifier: str | Identifier) -> View:
        key = identifier_key(identifier, NoSuchViewError)
        state = self._branch.state()
        content = self._read(state, key)
        text = self._access.document(state, key, content)
        return View(key.elements, parse_view(text, content.metadata_location))

    def create_view(
        self, identifier: str | Identifier, schema: Schema, version: ViewVersion, location: str | None, properties: Properties
    ) -> View:
        key = identifier_key(identifier, ValueError)
        unique, content_id = uuid4(), uuid4()
        made: list[View] = []

        def plan(state: BranchState) -> BranchChange:
            self._check_free(state, key)
            place = self._place(state, key, location, unique)
            metadata = _new_view(schema, version, place, properties, unique)
            self._access.check_location(key, document_places(metadata))
            file = metadata_file(self._branch.id, place, properties)
            document = MetadataDocument(self._access.io(file), file, view_text(metadata))
            made.append(View(key.elements, metadata))
            creation = self._creation(key, view_content(metadata, file), document, self._claim(metadata, content_id))
            self._write(document, creation)
            return creation

        self._branch.commit(plan, key=key)
        return made[-1]

    def register_view(self, identifier: str | Identifier, metadata_location: str) -> View:
        key = identifier_key(identifier, ValueError)
        self._access.check_location(key, [metadata_location])
        self._access.check_in_catalog(key, metadata_location)
        document = MetadataDocument(
            self._access.io(metadata_location), metadata_location, self._access.read_text(key, metadata_location)
        )
        metadata = parse_view(document.text, metadata_location)
        self._access.check_location(key, document_places(metadata))
        check_own(key, [metadata_location], document_places(metadata))
        fresh_id, uuid = uuid4(), UUID(metadata.view_uuid)

        def plan(state: BranchState) -> BranchChange:
            self._check_free(state, key)
            claim = self._claim(metadata, self._known_id(state, uuid) or fresh_id)
            creation = self._creation(key, view_content(metadata, metadata_location), document, claim)
            return replace(creation, take_back=_keep)

        self._branch.commit(plan, key=key)
        return View(key.elements, metadata)

    def _claim(self, metadata: ViewMetadata, content_id: UUID) -> TableClaim:
        return TableClaim(self._branch.id, content_id, metadata.location, UUID(metadata.view_uuid), paths_of(metadata))


def _keep() -> None:
    """Undo nothing: the file existed before."""


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
