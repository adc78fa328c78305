"""The shapes of Iceberg REST: what requests bring and what answers say, under the names that its specification gives them.

Unknown fields are ignored, so that newer clients are understood. Parts of Iceberg's own documents (schemas, updates, requirements) are
passed through as they came; ``headwater.iceberg`` checks them, and names the element that is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType


def shape_of(name: str) -> dict[str, Any]:
    """A reference to one of ``document_shapes``, as JSON Schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def _shaped(name: str) -> Meta:
    """Says the shape of a part that is passed through as it came."""
    return Meta(extra_json_schema=shape_of(name))


JsonObject = dict[str, Any]
SchemaPart = Annotated[JsonObject, _shaped("SingleSchema")]
SpecPart = Annotated[JsonObject, _shaped("UnboundSpec")]
OrderPart = Annotated[JsonObject, _shaped("UnboundOrder")]
VersionPart = Annotated[JsonObject, _shaped("ViewVersion")]
TableUpdatePart = Annotated[JsonObject, _shaped("TableUpdate")]
TableRequirementPart = Annotated[JsonObject, _shaped("TableRequirement")]
ViewUpdatePart = Annotated[JsonObject, _shaped("ViewUpdate")]
ViewRequirementPart = Annotated[JsonObject, _shaped("ViewRequirement")]
TableText = Annotated[msgspec.Raw, _shaped("TableMetadata")]
ViewText = Annotated[msgspec.Raw, _shaped("ViewMetadata")]
Properties = dict[str, str]
Level = Annotated[str, Meta(min_length=1)]
Levels = Annotated[list[Level], Meta(min_length=1, description="The levels of a namespace")]
PageToken = Annotated[str, Meta(description="From the page before; empty for the first page. Without it, all come at once")]


class ConfigQuery(Struct, frozen=True):
    """Which warehouse a client asks about: REALM/CATALOG or REALM/CATALOG@REFERENCE."""

    warehouse: str = ""


class PageQuery(Struct, frozen=True, rename="camel"):
    """Which page of a listing."""

    page_token: PageToken | None = None
    page_size: Annotated[int, Meta(ge=1)] | None = None


class NamespacesQuery(PageQuery, frozen=True, rename="camel"):
    """Which page of the namespaces below which one; below none, those at the top."""

    parent: str | None = None


class LoadTableQuery(Struct, frozen=True):
    """Which snapshots a loaded table brings along."""

    snapshots: Literal["all", "refs"] = "all"


class DropTableQuery(Struct, frozen=True, rename="camel"):
    """Whether the table's files shall be deleted, too, once no kept commit has it."""

    purge_requested: bool = False


class TableIdentifier(Struct, frozen=True):
    """The name of a table or view."""

    namespace: Levels
    name: Level


class CreateNamespaceRequest(Struct, frozen=True):
    """A namespace to create."""

    namespace: Levels
    properties: Properties | None = None


class UpdateNamespacePropertiesRequest(Struct, frozen=True):
    """Properties of a namespace to remove and to set."""

    removals: list[str] | None = None
    updates: Properties | None = None


class CreateTableRequest(Struct, frozen=True, rename="kebab"):
    """A table to create, or, with ``stage-create``, to prepare."""

    name: Level
    schema: SchemaPart
    location: str | None = None
    partition_spec: SpecPart | None = None
    write_order: OrderPart | None = None
    stage_create: bool | None = None
    properties: Properties | None = None


class RegisterTableRequest(Struct, frozen=True, rename="kebab"):
    """A table to register by its metadata file."""

    name: Level
    metadata_location: str
    overwrite: bool | None = None


class RegisterViewRequest(Struct, frozen=True, rename="kebab"):
    """A view to register by its metadata file."""

    name: Level
    metadata_location: str


class CommitTableRequest(Struct, frozen=True):
    """Updates of a table, and what must hold for them."""

    requirements: list[TableRequirementPart]
    updates: list[TableUpdatePart]
    identifier: TableIdentifier | None = None


class TableChange(Struct, frozen=True):
    """One table's part of a transaction."""

    identifier: TableIdentifier
    requirements: list[TableRequirementPart]
    updates: list[TableUpdatePart]


class CommitTransactionRequest(Struct, frozen=True, rename="kebab"):
    """Changes of several tables, to be made together or not at all."""

    table_changes: Annotated[list[TableChange], Meta(min_length=1)]


class RenameTableRequest(Struct, frozen=True):
    """A table or view, and the name that it shall have."""

    source: TableIdentifier
    destination: TableIdentifier


class CreateViewRequest(Struct, frozen=True, rename="kebab"):
    """A view to create."""

    name: Level
    schema: SchemaPart
    view_version: VersionPart
    location: str | None = None
    properties: Properties | None = None


class CommitViewRequest(Struct, frozen=True):
    """Updates of a view, and what must hold for them."""

    updates: list[ViewUpdatePart]
    requirements: list[ViewRequirementPart] | None = None
    identifier: TableIdentifier | None = None


class CatalogConfig(Struct, frozen=True, rename="kebab"):
    """What a client should know before anything else. ``defaults`` yield to the client's own settings, ``overrides`` do not."""

    defaults: Properties
    overrides: Properties
    endpoints: list[str]
    idempotency_key_lifetime: str | UnsetType = UNSET


class NamespaceResponse(Struct, frozen=True):
    """A namespace with its properties."""

    namespace: Sequence[str]
    properties: Properties


class ListNamespacesResponse(Struct, frozen=True, rename="kebab"):
    """A page of namespaces."""

    namespaces: list[tuple[str, ...]]
    next_page_token: str | None


class UpdateNamespacePropertiesResponse(Struct, frozen=True):
    """The properties that were set and removed, and those that were to be removed and were not there."""

    updated: Sequence[str]
    removed: Sequence[str]
    missing: Sequence[str]


class ListedIdentifier(Struct, frozen=True):
    """The name of a table or view in a listing."""

    namespace: tuple[str, ...]
    name: str


class ListTablesResponse(Struct, frozen=True, rename="kebab"):
    """A page of tables or views."""

    identifiers: list[ListedIdentifier]
    next_page_token: str | None


class StorageCredential(Struct, frozen=True):
    """What a client reaches files with whose addresses begin with ``prefix``."""

    prefix: str
    config: Properties

    def __repr__(self) -> str:
        return f"StorageCredential({self.prefix!r})"


class LoadTableResult(Struct, frozen=True, rename="kebab"):
    """A table. One that is only prepared has no metadata file yet."""

    metadata: TableText
    metadata_location: str | UnsetType = UNSET
    config: Properties | UnsetType = UNSET
    storage_credentials: Sequence[StorageCredential] | UnsetType = UNSET


class LoadCredentialsResponse(Struct, frozen=True, rename="kebab"):
    """What a client may reach a table's files with, beside what it has itself."""

    storage_credentials: Sequence[StorageCredential]


class CommitTableResponse(Struct, frozen=True, rename="kebab"):
    """A table after a commit."""

    metadata_location: str
    metadata: TableText


class LoadViewResult(Struct, frozen=True, rename="kebab"):
    """A view."""

    metadata_location: str
    metadata: ViewText


class OAuthToken(Struct, frozen=True):
    """A token, as RFC 6749 answers it in section 5.1 and RFC 8693 in 2.2.1. ``expires_in``: seconds."""

    access_token: str
    token_type: str
    expires_in: int
    issued_token_type: str
    scope: str


class OAuthError(Struct, frozen=True):
    """Why no token is given, as RFC 6749 words it in section 5.2."""

    error: str
    error_description: str
