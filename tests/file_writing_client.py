"""A client that writes metadata files itself and then commits content operations, as Iceberg's NessieCatalog does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from headwater.catalogs import Content, ContentKey, ContentOperation, IcebergTable, IcebergView, Put
from headwater.iceberg.changes import new_table, new_view
from headwater.iceberg_catalog import IcebergCatalog
from headwater.store import ObjectId

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
Document = dict[str, Any]


class FileWritingClient:
    """Writes below one folder, and sends contents without uuids, as they are on Nessie's wire."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new_document(self, name: str, *, location: str | None = None, uuid: UUID | None = None, **properties: str) -> Document:
        unique = uuid or uuid4()
        return dict(
            new_table(
                schema=SCHEMA,
                partition_spec=None,
                sort_order=None,
                properties={"gc.enabled": "false", "nessie.commit.id": "1122334455667788"} | properties,
                location=location or (self.folder / f"{name}_{unique.hex}").as_uri(),
                table_uuid=unique,
                now_ms=1_800_000_000_000,
            )
        )

    def new_view_document(self, name: str) -> Document:
        version = {
            "version-id": 1,
            "schema-id": 0,
            "timestamp-ms": 1_700_000_000_000,
            "summary": {},
            "default-namespace": ["sales"],
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        }
        unique = uuid4()
        location = (self.folder / f"{name}_{unique.hex}").as_uri()
        made = new_view(
            schema=SCHEMA, view_version=version, properties={}, location=location, view_uuid=unique, now_ms=1_800_000_000_000
        )
        return dict(made)

    def write(self, document: Mapping[str, Any], location: str | None = None) -> str:
        """Write a metadata file, and return its location."""
        place = location or f"{document['location']}/metadata/{uuid4()}.metadata.json"
        path = Path(place.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
        return place

    def content(self, document: Mapping[str, Any], *, content_id: UUID | None = None, location: str | None = None) -> Content:
        """Write a document, and make the content for it."""
        place = self.write(document, location)
        if "view-uuid" in document:
            return IcebergView(id=content_id, metadata_location=place, version_id=document["current-version-id"])
        snapshot = document.get("current-snapshot-id")
        return IcebergTable(id=content_id, metadata_location=place, snapshot_id=-1 if snapshot is None else snapshot)

    def create(self, lake: IcebergCatalog, key: ContentKey, document: Mapping[str, Any] | None = None) -> UUID:
        """Create a table, and return its content id."""
        done = lake.commits.apply_operations([Put(key, self.content(document or self.new_document(key.name)))])
        return done.result[key]


def with_snapshot(document: Mapping[str, Any], snapshot_id: int) -> Document:
    """The next version of a table, after an append."""
    number = document["last-sequence-number"] + 1
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": number,
        "timestamp-ms": document["last-updated-ms"] + number,
        "manifest-list": f"{document['location']}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return dict(document) | {
        "snapshots": [*document.get("snapshots", []), snapshot],
        "current-snapshot-id": snapshot_id,
        "refs": {"main": {"type": "branch", "snapshot-id": snapshot_id}},
        "last-sequence-number": number,
    }


def head_of(lake: IcebergCatalog) -> ObjectId:
    head = lake.session.state().head
    assert head is not None
    return head.id


def commit_on(
    lake: IcebergCatalog, operations: Sequence[ContentOperation], expected: ObjectId | None = None
) -> ObjectId | None:
    """Commit operations that were made from a commit; None: from the head."""
    return lake.commits.apply_operations(operations, expected=expected or head_of(lake)).commit_id
