"""Commits as engines send them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.catalogs import ContentKey
from headwater.iceberg_catalog import LoadedTable, TableCommit

SALES = ContentKey.of("sales")
ORDERS = ContentKey.of("sales", "orders")
LINES = ContentKey.of("sales", "lines")
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


def added(table: LoadedTable, snapshot_id: int, *, parent: int | None = None, number: int = 1) -> dict[str, Any]:
    """The update that adds a snapshot whose files lie in the table."""
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": number,
        "timestamp-ms": table.document["last-updated-ms"] + number,
        "manifest-list": f"{table.document['location']}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {"action": "add-snapshot", "snapshot": snapshot | ({} if parent is None else {"parent-snapshot-id": parent})}


def put_on(ref: str, snapshot_id: int) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": ref, "type": "branch", "snapshot-id": snapshot_id}


def on(ref: str, snapshot_id: int | None) -> dict[str, Any]:
    """The requirement that a branch of the table is at a snapshot."""
    return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": snapshot_id}


def append(table: LoadedTable, snapshot_id: int, *, after: int | None = None, number: int = 1) -> TableCommit:
    """The append of one snapshot to ``main``."""
    updates = [added(table, snapshot_id, parent=after, number=number), put_on("main", snapshot_id)]
    return TableCommit(table.key, [on("main", after)], updates)


def set_properties(key: ContentKey, *requirements: Mapping[str, Any], **properties: str) -> TableCommit:
    return TableCommit(key, requirements, [{"action": "set-properties", "updates": properties}])


def creation_of(document: Mapping[str, Any]) -> TableCommit:
    """The commit by which an engine creates a table that was staged."""
    updates = [
        {"action": "assign-uuid", "uuid": document["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": document["format-version"]},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": document["location"]},
    ]
    return TableCommit(ORDERS, [{"type": "assert-create"}], updates)
