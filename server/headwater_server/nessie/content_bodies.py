"""Contents and their keys in the JSON of Nessie's API.

What is null counts as left out. A field with a default is left out of what is written; the fields that Nessie always writes have none.
Version 1 writes some values of which version 2 says nothing: its Python client fails where they are missing or null.

The uuids of tables and views are this catalog's own, and no part of these bodies: whoever stores a content takes them from its document.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from headwater.catalogs import (
    Content,
    ContentKey,
    ContentType,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Udf,
)
from headwater.errors import RefusedError
from headwater_server.json_body import convert_body
from headwater_server.nessie.content_key_paths import key_from_elements

ApiVersion = Literal[1, 2]
_S = TypeVar("_S", bound=Struct)
_Long = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_Int = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
_Location = Annotated[str, Meta(min_length=1)]
_Id = Annotated[UUID | None, Meta(description="Given by the server when the content is created; null before")]
_Deprecated = Annotated[str | None, Meta(description="Kept for old clients")]


class ContentKeyBody(Struct, frozen=True):
    """The key of a content."""

    elements: list[str]

    @classmethod
    def of_key(cls, key: ContentKey) -> ContentKeyBody:
        return cls(list(key.elements))

    def to_key(self) -> ContentKey:
        """raises RefusedError for elements that make no key"""
        return key_from_elements(self.elements)


class IcebergTableBody(Struct, frozen=True, rename="camel", tag_field="type", tag="ICEBERG_TABLE", omit_defaults=True):
    """An Iceberg table. Its snapshot is -1 where it has none."""

    metadata_location: _Location
    snapshot_id: _Long
    schema_id: _Int
    spec_id: _Int
    sort_order_id: _Int
    id: _Id = None

    def to_content(self, key: ContentKey | None) -> IcebergTable:
        return IcebergTable(
            id=self.id,
            metadata_location=self.metadata_location,
            snapshot_id=self.snapshot_id,
            schema_id=self.schema_id,
            spec_id=self.spec_id,
            sort_order_id=self.sort_order_id,
        )


class IcebergViewBody(Struct, frozen=True, rename="camel", tag_field="type", tag="ICEBERG_VIEW", omit_defaults=True):
    """An Iceberg view."""

    metadata_location: _Location
    version_id: _Long
    schema_id: _Int
    id: _Id = None
    sql_text: _Deprecated = None
    dialect: _Deprecated = None

    def to_content(self, key: ContentKey | None) -> IcebergView:
        return IcebergView(
            id=self.id,
            metadata_location=self.metadata_location,
            version_id=self.version_id,
            schema_id=self.schema_id,
            sql_text=self.sql_text or None,
            dialect=self.dialect or None,
        )


class DeltaLakeTableBody(Struct, frozen=True, rename="camel", tag_field="type", tag="DELTA_LAKE_TABLE", omit_defaults=True):
    """A Delta Lake table."""

    id: _Id = None
    metadata_location_history: list[str] | None = None
    checkpoint_location_history: list[str] | None = None
    last_checkpoint: str | None = None

    def to_content(self, key: ContentKey | None) -> DeltaLakeTable:
        return DeltaLakeTable(
            id=self.id,
            metadata_location_history=tuple(self.metadata_location_history or ()),
            checkpoint_location_history=tuple(self.checkpoint_location_history or ()),
            last_checkpoint=self.last_checkpoint or None,
        )


class NamespaceBody(Struct, frozen=True, rename="camel", tag_field="type", tag="NAMESPACE", omit_defaults=True):
    """A namespace. Its elements are those of its key."""

    id: _Id = None
    elements: list[str] | None = None
    properties: dict[str, str] | None = None

    def to_content(self, key: ContentKey | None) -> Namespace:
        if key is not None and self.elements is not None and tuple(self.elements) != key.elements:
            raise RefusedError(
                f"the namespace at {list(key.elements)} says that its elements are {self.elements}: give those of its key, or none"
            )
        return Namespace(id=self.id, properties=dict(self.properties or {}))


class UdfBody(Struct, frozen=True, rename="camel", tag_field="type", tag="UDF", omit_defaults=True):
    """A user-defined function."""

    id: _Id = None
    metadata_location: str | None = None
    version_id: str | None = None
    signature_id: str | None = None
    sql_text: _Deprecated = None
    dialect: _Deprecated = None

    def to_content(self, key: ContentKey | None) -> Udf:
        return Udf(
            id=self.id,
            metadata_location=self.metadata_location or "",
            version_id=self.version_id or "",
            signature_id=self.signature_id or "",
            sql_text=self.sql_text or None,
            dialect=self.dialect or None,
        )


ContentBody = IcebergTableBody | IcebergViewBody | DeltaLakeTableBody | NamespaceBody | UdfBody


class DiffEntryBody(Struct, frozen=True):
    """A key whose contents differ; null: there is none on that side."""

    key: ContentKeyBody
    from_: ContentBody | None = msgspec.field(name="from", default=None)
    to: ContentBody | None = None


def parse_content(body: Any, key: ContentKey | None = None) -> Content:
    """Parse a content, as plain data.

    key           where it stands: the elements of a namespace have to be the same
    raises        RefusedError that names the field that does not fit, or the type that is not known
    """
    parsed: ContentBody = convert_body(body, ContentBody)
    return parsed.to_content(key)


def content_body(key: ContentKey, content: Content, *, version: ApiVersion = 2) -> ContentBody:
    """Write a content that stands under a key, as this version of the API does."""
    blank = "" if version == 1 else None
    match content:
        case IcebergTable():
            return _copy(IcebergTableBody, content)
        case IcebergView():
            return _copy(IcebergViewBody, content, sql_text=content.sql_text or blank, dialect=content.dialect or blank)
        case DeltaLakeTable():
            return _copy(
                DeltaLakeTableBody,
                content,
                metadata_location_history=list(content.metadata_location_history),
                checkpoint_location_history=list(content.checkpoint_location_history),
                last_checkpoint=content.last_checkpoint or blank,
            )
        case Namespace():
            return NamespaceBody(id=content.id, elements=list(key.elements), properties=content.properties or None)
        case Udf():
            texts = {name: getattr(content, name) or None for name in ("metadata_location", "version_id", "signature_id")}
            return _copy(UdfBody, content, **texts)


def content_type_name(kind: ContentType | int) -> str:
    """The name of a type in listings; UNKNOWN for one that only a newer release knows."""
    return kind.name if isinstance(kind, ContentType) else "UNKNOWN"


def _copy(kind: type[_S], content: Content, **others: Any) -> _S:
    """A body with the values of a content's fields of the same names, except those that are given otherwise."""
    values = {name: others.get(name, getattr(content, name)) for name in kind.__struct_fields__}
    return kind(**values)
