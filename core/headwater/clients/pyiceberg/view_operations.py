"""The view operations that pyiceberg has, on a branch: it has none that changes an existing view."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

from pyiceberg.exceptions import NoSuchViewError, TableAlreadyExistsError, ViewAlreadyExistsError
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.typedef import Identifier, Properties
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewMetadata, ViewVersion

from headwater.catalogs import ContentKey, ContentType, Delete, IcebergTable, IcebergView, Put, TableClaim
from headwater.clients.pyiceberg.client_branch import BranchChange, BranchState, ClientBranch
from headwater.clients.pyiceberg.metadata_files import (
    FileAccess,
    MetadataDocument,
    check_own,
    default_location,
    document_places,
    metadata_file,
    parse_view,
    paths_of,
    view_content,
    view_text,
)
from headwater.clients.pyiceberg.namespace_operations import check_namespace
from headwater.clients.pyiceberg.translation import identifier_key, shown_identifier
from headwater.iceberg.metadata_json import split_metadata


class ViewOperations:
    def __init__(self, branch: ClientBranch, access: FileAccess, *, warehouse: str | None) -> None:
        self._branch = branch
        self._access = access
        self._warehouse = warehouse or branch.catalog.definition.base_location

    def load_view(self, identifier: str | Identifier) -> View:
        key = identifier_key(identifier, NoSuchViewError)
        state = self._branch.state()
        content = _read(state, key)
        text = self._access.document(state, key, content)
        return View(key.elements, parse_view(text, content.metadata_location))

    def view_exists(self, identifier: str | Identifier) -> bool:
        try:
            key = identifier_key(identifier, NoSuchViewError)
        except NoSuchViewError:
            return False
        return self._branch.state().type_of(key) is ContentType.ICEBERG_VIEW

    def create_view(
        self, identifier: str | Identifier, schema: Schema, version: ViewVersion, location: str | None, properties: Properties
    ) -> View:
        key = identifier_key(identifier, ValueError)
        unique, content_id = uuid4(), uuid4()
        made: list[View] = []

        def plan(state: BranchState) -> BranchChange:
            _check_free(state, key)
            place = location.rstrip("/") if location else default_location(state, key, unique=unique, warehouse=self._warehouse)
            metadata = _new_metadata(schema, version, place, properties, unique)
            self._access.check_location(key, document_places(metadata))
            file = metadata_file(self._branch.id, place, properties)
            document = MetadataDocument(self._access.io(file), file, view_text(metadata))
            made.append(View(key.elements, metadata))
            # a file would be put where another table lies, and removed with the refusal
            self._branch.check_free(self._claim(metadata, content_id), f"create view {key}")
            return self._creation(key, metadata, document.write_file(), content_id, document.remove_file)

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
            _check_free(state, key)
            owner = self._branch.claims.find_by_uuid([uuid]).get(uuid)
            is_known = owner is not None and owner.catalog_id == self._branch.id and state.key_of(owner.content_id) is None
            content_id = owner.content_id if owner is not None and is_known else fresh_id
            return self._creation(key, metadata, document, content_id, _keep)

        self._branch.commit(plan, key=key)
        return View(key.elements, metadata)

    def drop_view(self, identifier: str | Identifier) -> None:
        key = identifier_key(identifier, NoSuchViewError)

        def plan(state: BranchState) -> BranchChange:
            _read(state, key)
            return BranchChange(operations=[Delete(key)], message=f"drop view {key}")

        self._branch.commit(plan, key=key)

    def _creation(
        self,
        key: ContentKey,
        metadata: ViewMetadata,
        document: MetadataDocument,
        content_id: UUID,
        take_back: Callable[[], None],
    ) -> BranchChange:
        return BranchChange(
            operations=[Put(key, view_content(metadata, document.location), metadata=split_metadata(document.text))],
            message=f"create view {key}",
            ids={key: content_id},
            claim=self._claim(metadata, content_id),
            take_back=take_back,
        )

    def _claim(self, metadata: ViewMetadata, content_id: UUID) -> TableClaim:
        return TableClaim(self._branch.id, content_id, metadata.location, UUID(metadata.view_uuid), paths_of(metadata))


def _keep() -> None:
    """Undo nothing: the file existed before."""


def _read(state: BranchState, key: ContentKey) -> IcebergView:
    found = state.find_content(key)
    if not isinstance(found, IcebergView):
        raise NoSuchViewError(f"View does not exist: {shown_identifier(key)}")
    return found


def _check_free(state: BranchState, key: ContentKey) -> None:
    check_namespace(state, key.parent)
    there = state.find_content(key)
    if isinstance(there, IcebergTable):
        raise TableAlreadyExistsError(f"Table {shown_identifier(key)} already exists")
    if there is not None:
        raise ViewAlreadyExistsError(f"{type(there).__name__} {shown_identifier(key)} already exists")


def _new_metadata(schema: Schema, version: ViewVersion, location: str, properties: Properties, unique: UUID) -> ViewMetadata:
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
