"""What a catalog holds of a metadata document: the content, the claim, the uuid. Documents are decoded JSON that was checked before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from headwater.catalogs import IcebergTable, IcebergView, TableClaim
from headwater.catalogs.content import NO_SNAPSHOT
from headwater.iceberg.table_places import stated_places

Document = Mapping[str, Any]
_DATA_FIELDS = (
    "current-snapshot-id",
    "refs",
    "snapshots",
    "statistics",
    "partition-statistics",
    "last-sequence-number",
    "next-row-id",
    "encryption-keys",
)


def document_uuid(document: Document) -> UUID | None:
    """The uuid of a table or view; None for a table of format version 1 that has none."""
    text = document.get("table-uuid") or document.get("view-uuid")
    return UUID(text) if isinstance(text, str) else None


def table_content(document: Document, location: str, content_id: UUID | None) -> IcebergTable:
    """The content for a version of a table, of any format version.

    location      of its metadata file
    """
    uuid, schema_id = document_uuid(document), document.get("current-schema-id")
    if schema_id is None:  # version 1 may have one schema, and no number for it
        schema = document.get("schema")
        schema_id = schema.get("schema-id") if isinstance(schema, Mapping) else None
    snapshot_id = document.get("current-snapshot-id")
    return IcebergTable(
        id=content_id,
        metadata_location=location,
        snapshot_id=NO_SNAPSHOT if snapshot_id is None else snapshot_id,
        schema_id=schema_id or 0,
        spec_id=document.get("default-spec-id") or 0,
        sort_order_id=document.get("default-sort-order-id") or 0,
        table_uuid=None if uuid is None else str(uuid),
    )


def view_content(document: Document, location: str, content_id: UUID | None) -> IcebergView:
    """The content for a version of a view; ``location`` is that of its metadata file."""
    current = document["current-version-id"]
    version = next(version for version in document["versions"] if version["version-id"] == current)
    return IcebergView(
        id=content_id,
        metadata_location=location,
        version_id=current,
        schema_id=version["schema-id"],
        view_uuid=str(document_uuid(document)),
    )


def has_same_data(before: Document, after: Document) -> bool:
    """Whether two versions of a table have the same files, by every branch and tag and at any time, and write to the same places."""
    if any(before.get(field) != after.get(field) for field in _DATA_FIELDS):
        return False
    return stated_places(before) == stated_places(after)


def document_claim(catalog_id: str, content_id: UUID, document: Document, *, is_home: bool = False) -> TableClaim:
    """The claim of a table or view to its uuid and to all places that its document names; ``is_home`` as in ``TableClaim``."""
    location, *paths = stated_places(document)
    return TableClaim(catalog_id, content_id, location, document_uuid(document), tuple(paths), is_home)


def is_first_version(document: Document) -> bool:
    """Whether a table or view cannot have been in another catalog before: it has no former version, and at most one commit's data."""
    commits = document.get("snapshots") or document.get("versions") or ()
    return not document.get("metadata-log") and len(commits) <= 1
