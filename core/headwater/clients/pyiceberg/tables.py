"""Tables of a branch, by pyiceberg's promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID, uuid4

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.update import AddSnapshotUpdate, AssertCreate, TableRequirement, TableUpdate
from pyiceberg.typedef import Identifier, Properties

from headwater.catalogs import Claim, Content, ContentKey, ContentType, Delete, IcebergTable, Operation, Put
from headwater.catalogs.iceberg.parts import Parts, take_apart
from headwater.clients.pyiceberg.committing import Branch, Change
from headwater.clients.pyiceberg.documents import Document, files_of, places_of, read_document, table_content, table_text
from headwater.clients.pyiceberg.names import key_of, shown
from headwater.clients.pyiceberg.namespaces import check_namespace
from headwater.clients.pyiceberg.places import check_allowed, default_location
from headwater.clients.pyiceberg.states import State
from headwater.errors import ConflictError, RefusedError, UnavailableError

__all__ = ["MakeMetadata", "Stage", "Tables"]

MakeMetadata = Callable[[str, UUID], TableMetadata]
"""A new table's metadata, given its location and uuid."""


class Stage(Protocol):
    """pyiceberg's own way from a table and updates to its next version; it checks the requirements first."""

    def __call__(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable: ...


class Tables:
    """``owner`` is the catalog that pyiceberg's tables refer to, ``open_io`` gives access to files as it is configured."""

    def __init__(
        self, owner: Catalog, branch: Branch, *, open_io: Callable[[Properties, str], FileIO], warehouse: str | None
    ) -> None:
        self._owner = owner
        self._branch = branch
        self._open_io = open_io
        self._warehouse = warehouse or branch.catalog.definition.base_location
        self._claimed: dict[str, UUID] = {}

    # reading

    def load(self, identifier: str | Identifier) -> Table:
        """From the metadata that is stored in the catalog, where it is; otherwise from the table's storage."""
        key = key_of(identifier, NoSuchTableError)
        state = self._branch.state()
        return self._loaded(state, key, _read(state, key))

    def exists(self, identifier: str | Identifier) -> bool:
        try:
            key = key_of(identifier, NoSuchTableError)
        except NoSuchTableError:
            return False
        return self._branch.state().type_of(key) is ContentType.ICEBERG_TABLE

    # writing

    def stage(
        self, identifier: str | Identifier, location: str | None, properties: Properties, make: MakeMetadata
    ) -> StagedTable:
        """A new table that is in no catalog yet: files can be written for it, and ``commit`` creates it."""
        key = key_of(identifier, ValueError)
        metadata = self._new_metadata(self._branch.state(), key, location, make, uuid4())
        metadata_location = _file_for(metadata, 0)
        io = self._open_io(properties, metadata_location)
        return StagedTable(key.elements, metadata, metadata_location, io, self._owner)

    def create(self, identifier: str | Identifier, location: str | None, make: MakeMetadata) -> Table:
        key = key_of(identifier, ValueError)
        unique = uuid4()  # kept when it is decided anew
        place = location.rstrip("/") if location else None
        made: list[Table] = []

        def plan(state: State) -> Change:
            _check_free(state, key)
            metadata = self._new_metadata(state, key, location, make, unique)
            check_allowed(self._branch.catalog.definition, key, places_of(metadata))
            document = self._document(metadata, _file_for(metadata, 0))
            made.append(self._table(key, TableMetadataUtil.parse_raw(document.text.decode()), document.location))
            return self._creation(key, metadata, document.write(), content_id)

        with self._id_for(place) as content_id:
            self._branch.commit(plan, key=key)
        return made[-1]

    def register(self, identifier: str | Identifier, metadata_location: str, *, overwrite: bool) -> Table:
        """Put a table that exists in its storage. One that was dropped gets its content id back.

        overwrite     what stands there: the same table moves to this version, another one gives way
        """
        key = key_of(identifier, ValueError)
        found = _Found.read(self._open_io({}, metadata_location), metadata_location)
        fresh_id = uuid4()

        def plan(state: State) -> Change:
            there = state.find(key)
            if there is not None and not (overwrite and isinstance(there, IcebergTable)):
                raise TableAlreadyExistsError(f"Table {shown(key)} already exists")
            check_namespace(state, key.parent)
            check_allowed(self._branch.catalog.definition, key, found.places)
            is_same = isinstance(there, IcebergTable) and there.table_uuid == found.content().table_uuid
            if there is not None and there.id is not None and is_same:
                return self._registration(key, found, there.id, [Put(key, found.content(there.id), there, found.parts)])
            content_id = self._known_id(state, found.uuid) or fresh_id
            before = [] if there is None else [Delete(key)]
            return self._registration(key, found, content_id, [*before, Put(key, found.content(), metadata=found.parts)])

        self._branch.commit(plan, key=key)
        return self._table(key, found.metadata, metadata_location)

    def commit(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...], stage: Stage
    ) -> CommitTableResponse:
        """Apply updates to the table as it is now, if it meets the requirements: again, if another was faster.

        raises        CommitFailedException when it does not meet them; NoSuchTableError; RefusedError for another uuid, or a place that is
                      taken or not allowed
        """
        key = key_of(table.name(), NoSuchTableError)
        done: list[CommitTableResponse] = []

        def plan(state: State) -> Change | None:
            there = _find(state, key)
            current = None if there is None else self._current(state, key, there, table)
            if current is None:
                _check_is_creation(key, requirements)
                _check_free(state, key, CommitFailedException)
            staged = stage(current, key.elements, requirements, updates)
            if current is not None and staged.metadata == current.metadata:
                done.append(_response(current.metadata, current.metadata_location))
                return None
            if current is not None and there is not None and there.table_uuid is not None:
                _check_keeps_uuid(key, current.metadata, staged.metadata)
            known = set() if current is None else places_of(current.metadata)
            check_allowed(self._branch.catalog.definition, key, places_of(staged.metadata) - known)
            document = self._document(staged.metadata, staged.metadata_location, staged.io).write()
            done.append(_response(staged.metadata, document.location))
            if current is None or there is None or there.id is None:
                return self._creation(key, staged.metadata, document, new_id)
            is_moved = staged.metadata.location != current.metadata.location
            is_known = str(staged.metadata.table_uuid) == there.table_uuid  # not where whoever put it told none
            claim = Claim(self._branch.id, there.id, staged.metadata.location, staged.metadata.table_uuid)
            content = table_content(staged.metadata, document.location, content_id=there.id)
            return Change(
                operations=[Put(key, content, there, take_apart(document.text))],
                message=f"{_what(updates)} table {key}",
                claim=claim if is_moved or not is_known else None,
                take_back=document.remove,
            )

        with self._id_for(table.metadata.location if isinstance(table, StagedTable) else None) as new_id:
            self._branch.commit(plan, key=key)
        return done[-1]

    def rename(self, source: str | Identifier, target: str | Identifier) -> Table:
        """In one commit; the content id stays, and so does everything in storage."""
        old, new = key_of(source, NoSuchTableError), key_of(target, ValueError)
        renamed: list[Table] = []

        def plan(state: State) -> Change | None:
            check_namespace(state, new.parent)
            there = _read(state, old)
            if old != new:
                _check_free(state, new)
            renamed.append(self._loaded(state, new, there))
            if old == new:
                return None
            return Change(operations=[Delete(old), Put(new, there)], message=f"rename table {old} to {new}")

        self._branch.commit(plan, key=old)
        return renamed[-1]

    def drop(self, identifier: str | Identifier) -> None:
        """Its files stay, for the commits that hold it stay readable."""
        key = key_of(identifier, NoSuchTableError)

        def plan(state: State) -> Change:
            _read(state, key)
            return Change(operations=[Delete(key)], message=f"drop table {key}")

        self._branch.commit(plan, key=key)

    # inside

    def _loaded(self, state: State, key: ContentKey, content: IcebergTable) -> Table:
        text = None if content.id is None else state.find_metadata(content.id)
        if text is None:
            text = read_document(self._open_io({}, content.metadata_location), content.metadata_location)
        return self._table(key, TableMetadataUtil.parse_raw(text.decode()), content.metadata_location)

    def _current(self, state: State, key: ContentKey, content: IcebergTable, known: Table) -> Table:
        """The table as it is now, which mostly is as its writer knows it."""
        if content.metadata_location == known.metadata_location and not isinstance(known, StagedTable):
            return known
        return self._loaded(state, key, content)

    def _table(self, key: ContentKey, metadata: TableMetadata, location: str) -> Table:
        return Table(key.elements, metadata, location, self._open_io(metadata.properties, location), self._owner)

    def _new_metadata(
        self, state: State, key: ContentKey, location: str | None, make: MakeMetadata, unique: UUID
    ) -> TableMetadata:
        check_namespace(state, key.parent)
        place = location.rstrip("/") if location else default_location(state, key, unique=unique, warehouse=self._warehouse)
        return make(place, unique)

    def _creation(self, key: ContentKey, metadata: TableMetadata, document: Document, content_id: UUID) -> Change:
        return Change(
            operations=[Put(key, table_content(metadata, document.location), metadata=take_apart(document.text))],
            message=f"create table {key}",
            ids={key: content_id},
            claim=Claim(self._branch.id, content_id, metadata.location, metadata.table_uuid),
            take_back=document.remove,
        )

    def _registration(self, key: ContentKey, found: _Found, content_id: UUID, operations: Sequence[Operation]) -> Change:
        return Change(
            operations=operations,
            message=f"register table {key}",
            ids={key: content_id},
            claim=Claim(self._branch.id, content_id, found.metadata.location, found.uuid),
        )

    def _document(self, metadata: TableMetadata, location: str, io: FileIO | None = None) -> Document:
        return Document(io or self._open_io(metadata.properties, location), location, table_text(metadata))

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

    def _known_id(self, state: State, uuid: UUID | None) -> UUID | None:
        """The content id under which this catalog knows a table already, from another branch, or from before it was dropped."""
        owner = None if uuid is None else self._branch.claims.find([uuid]).get(uuid)
        if owner is None or owner.catalog_id != self._branch.id or state.key_of(owner.content_id) is not None:
            return None
        return owner.content_id


@dataclass(frozen=True, slots=True)
class _Found:
    """A table's metadata as it lies in its storage.

    uuid          None where it has none: pyiceberg makes one up for a table of version 1, and that is not the table's
    places        where it has files, as far as the document says
    """

    location: str
    metadata: TableMetadata
    parts: Parts
    uuid: UUID | None
    places: tuple[str, ...]

    @classmethod
    def read(cls, io: FileIO, location: str) -> _Found:
        text = read_document(io, location)
        metadata, parts = TableMetadataUtil.parse_raw(text.decode()), take_apart(text)
        uuid = metadata.table_uuid if "table-uuid" in parts.fields else None
        return cls(location, metadata, parts, uuid, (*places_of(metadata), *files_of(text)))

    def content(self, content_id: UUID | None = None) -> IcebergTable:
        return table_content(self.metadata, self.location, content_id=content_id, has_uuid=self.uuid is not None)


def _find(state: State, key: ContentKey) -> IcebergTable | None:
    found = state.find(key)
    return found if isinstance(found, IcebergTable) else None


def _read(state: State, key: ContentKey) -> IcebergTable:
    found = _find(state, key)
    if found is None:
        raise NoSuchTableError(f"Table does not exist: {shown(key)}")
    return found


def _check_free(state: State, key: ContentKey, fault: type[Exception] = TableAlreadyExistsError) -> None:
    check_namespace(state, key.parent)
    there: Content | None = state.find(key)
    if there is not None:
        kind = "Table" if isinstance(there, IcebergTable) else type(there).__name__
        raise fault(f"{kind} {shown(key)} already exists")


def _check_is_creation(key: ContentKey, requirements: tuple[TableRequirement, ...]) -> None:
    for requirement in requirements:
        requirement.validate(None)
    if not any(isinstance(requirement, AssertCreate) for requirement in requirements):
        raise NoSuchTableError(f"Table does not exist: {shown(key)}")


def _check_keeps_uuid(key: ContentKey, before: TableMetadata, after: TableMetadata) -> None:
    """Pass, or raise RefusedError. By Iceberg's specification of a catalog a uuid is assigned once; pyiceberg itself assigns any."""
    if after.table_uuid != before.table_uuid:
        raise RefusedError(
            f"table {shown(key)} has the uuid {before.table_uuid}, and no table's uuid changes: not to {after.table_uuid}"
        )


def _response(metadata: TableMetadata, location: str) -> CommitTableResponse:
    return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": location})


def _file_for(metadata: TableMetadata, version: int) -> str:
    return load_location_provider(metadata.location, metadata.properties).new_table_metadata_file_location(version)


def _what(updates: tuple[TableUpdate, ...]) -> str:
    """The operations of the snapshots that are added, for the log; else ``change``."""
    summaries = [update.snapshot.summary for update in updates if isinstance(update, AddSnapshotUpdate)]
    operations = dict.fromkeys(summary.operation.value for summary in summaries if summary is not None)
    return ", ".join(operations) or "change"
