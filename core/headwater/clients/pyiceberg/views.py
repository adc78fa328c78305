"""Views of a branch, as far as pyiceberg goes: it has no changes of a view that exists."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

from pyiceberg.exceptions import NoSuchViewError, TableAlreadyExistsError, ViewAlreadyExistsError
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.typedef import Identifier, Properties
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewMetadata, ViewVersion

from headwater.catalogs import Claim, ContentKey, ContentType, Delete, IcebergTable, IcebergView, Put
from headwater.catalogs.iceberg.parts import take_apart
from headwater.clients.pyiceberg.access import FileAccess
from headwater.clients.pyiceberg.committing import Branch, Change
from headwater.clients.pyiceberg.documents import Document, parse_view, paths_of, places_of, view_content, view_text
from headwater.clients.pyiceberg.names import key_of, shown
from headwater.clients.pyiceberg.namespaces import check_namespace
from headwater.clients.pyiceberg.places import default_location, metadata_file
from headwater.clients.pyiceberg.states import State

__all__ = ["Views"]


class Views:
    def __init__(self, branch: Branch, access: FileAccess, *, warehouse: str | None) -> None:
        self._branch = branch
        self._access = access
        self._warehouse = warehouse or branch.catalog.definition.base_location

    def load(self, identifier: str | Identifier) -> View:
        key = key_of(identifier, NoSuchViewError)
        state = self._branch.state()
        content = _read(state, key)
        text = self._access.document(state, key, content)
        return View(key.elements, parse_view(text, content.metadata_location))

    def exists(self, identifier: str | Identifier) -> bool:
        try:
            key = key_of(identifier, NoSuchViewError)
        except NoSuchViewError:
            return False
        return self._branch.state().type_of(key) is ContentType.ICEBERG_VIEW

    def create(
        self, identifier: str | Identifier, schema: Schema, version: ViewVersion, location: str | None, properties: Properties
    ) -> View:
        key = key_of(identifier, ValueError)
        unique, content_id = uuid4(), uuid4()
        made: list[View] = []

        def plan(state: State) -> Change:
            _check_free(state, key)
            place = location.rstrip("/") if location else default_location(state, key, unique=unique, warehouse=self._warehouse)
            metadata = _new_metadata(schema, version, place, properties, unique)
            self._access.check(key, places_of(metadata))
            file = metadata_file(self._branch.id, place, properties)
            document = Document(self._access.io(file), file, view_text(metadata))
            made.append(View(key.elements, metadata))
            # a file would be put where another table lies, and removed with the refusal
            self._branch.check_free(self._claim(metadata, content_id), f"create view {key}")
            return self._creation(key, metadata, document.write(), content_id, document.remove)

        self._branch.commit(plan, key=key)
        return made[-1]

    def register(self, identifier: str | Identifier, metadata_location: str) -> View:
        key = key_of(identifier, ValueError)
        self._access.check(key, [metadata_location])
        self._access.check_in_catalog(key, metadata_location)
        document = Document(self._access.io(metadata_location), metadata_location, self._access.read(key, metadata_location))
        metadata = parse_view(document.text, metadata_location)
        self._access.check(key, places_of(metadata))
        self._access.check_own(key, [metadata_location], places_of(metadata))
        fresh_id, uuid = uuid4(), UUID(metadata.view_uuid)

        def plan(state: State) -> Change:
            _check_free(state, key)
            owner = self._branch.claims.find([uuid]).get(uuid)
            is_known = owner is not None and owner.catalog_id == self._branch.id and state.key_of(owner.content_id) is None
            content_id = owner.content_id if owner is not None and is_known else fresh_id
            return self._creation(key, metadata, document, content_id, _keep)

        self._branch.commit(plan, key=key)
        return View(key.elements, metadata)

    def drop(self, identifier: str | Identifier) -> None:
        key = key_of(identifier, NoSuchViewError)

        def plan(state: State) -> Change:
            _read(state, key)
            return Change(operations=[Delete(key)], message=f"drop view {key}")

        self._branch.commit(plan, key=key)

    def _creation(
        self, key: ContentKey, metadata: ViewMetadata, document: Document, content_id: UUID, take_back: Callable[[], None]
    ) -> Change:
        return Change(
            operations=[Put(key, view_content(metadata, document.location), metadata=take_apart(document.text))],
            message=f"create view {key}",
            ids={key: content_id},
            claim=self._claim(metadata, content_id),
            take_back=take_back,
        )

    def _claim(self, metadata: ViewMetadata, content_id: UUID) -> Claim:
        return Claim(self._branch.id, content_id, metadata.location, UUID(metadata.view_uuid), paths_of(metadata))


def _keep() -> None:
    """The file was there before."""


def _read(state: State, key: ContentKey) -> IcebergView:
    found = state.find(key)
    if not isinstance(found, IcebergView):
        raise NoSuchViewError(f"View does not exist: {shown(key)}")
    return found


def _check_free(state: State, key: ContentKey) -> None:
    check_namespace(state, key.parent)
    there = state.find(key)
    if isinstance(there, IcebergTable):
        raise TableAlreadyExistsError(f"Table {shown(key)} already exists")
    if there is not None:
        raise ViewAlreadyExistsError(f"{type(there).__name__} {shown(key)} already exists")


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
