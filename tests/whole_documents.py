"""Requests that state every field of every object of Iceberg's format, and what becomes of them when one field is another value."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from headwater.iceberg.changes import change_table, change_view, new_table, new_view

NOW = 1_760_000_000_000
LOCATION = "file:///lake/whole"
UUID_ = UUID("11111111-2222-4333-8444-555555555555")
Path = tuple[str | int, ...]

_DEFAULTS = {"doc": "a number", "initial-default": 3, "write-default": 4}
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "a", "required": True, "type": "long", **_DEFAULTS},
        {
            "id": 2,
            "name": "l",
            "required": False,
            "type": {"type": "list", "element-id": 3, "element": "string", "element-required": False},
        },
        {
            "id": 4,
            "name": "m",
            "required": False,
            "type": {
                "type": "map",
                "key-id": 5,
                "key": "string",
                "value-id": 6,
                "value-required": False,
                "value": {"type": "struct", "fields": [{"id": 7, "name": "x", "required": False, "type": "int", "doc": "x"}]},
            },
        },
    ],
}
CREATION: dict[str, Any] = {
    "schema": SCHEMA,
    "partition_spec": {
        "spec-id": 0,
        "fields": [{"name": "a_b", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}],
    },
    "sort_order": {
        "order-id": 1,
        "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}],
    },
    "properties": {"format-version": "3"},
}
_FILE = {"snapshot-id": 1, "statistics-path": f"{LOCATION}/statistics", "file-size-in-bytes": 1}
UPDATES: list[dict[str, Any]] = [
    {
        "action": "add-snapshot",
        "snapshot": {
            "snapshot-id": 1,
            "parent-snapshot-id": 9,
            "sequence-number": 1,
            "timestamp-ms": NOW,
            "manifest-list": f"{LOCATION}/metadata/list.avro",
            "summary": {"operation": "append", "added-records": "1"},
            "schema-id": 0,
            "first-row-id": 0,
            "added-rows": 3,
            "key-id": "k",
        },
    },
    {
        "action": "set-snapshot-ref",
        "ref-name": "main",
        "type": "branch",
        "snapshot-id": 1,
        "min-snapshots-to-keep": 1,
        "max-snapshot-age-ms": 1,
        "max-ref-age-ms": 1,
    },
    {
        "action": "set-statistics",
        "snapshot-id": 1,
        "statistics": {
            **_FILE,
            "file-footer-size-in-bytes": 1,
            "key-metadata": "YQ==",
            "blob-metadata": [
                {"type": "t", "snapshot-id": 1, "sequence-number": 1, "fields": [1], "properties": {"a": "b"}},
            ],
        },
    },
    {"action": "set-partition-statistics", "partition-statistics": _FILE},
    {
        "action": "add-encryption-key",
        "encryption-key": {
            "key-id": "k",
            "encrypted-key-metadata": "YWJj",
            "encrypted-by-id": "other",
            "properties": {"a": "b"},
        },
    },
    {"action": "set-properties", "updates": {"a": "b"}},
    {
        "action": "add-schema",
        "schema": {
            **SCHEMA,
            "fields": [*SCHEMA["fields"], {"id": 8, "name": "n", "required": False, "type": "int", **_DEFAULTS}],
        },
        "last-column-id": 8,
    },
    {"action": "set-current-schema", "schema-id": -1},
    {
        "action": "add-spec",
        "spec": {"spec-id": 7, "fields": [{"name": "a_t", "transform": "truncate[4]", "source-id": 1, "field-id": 1001}]},
    },
    {
        "action": "add-sort-order",
        "sort-order": {
            "order-id": 7,
            "fields": [{"transform": "identity", "source-id": 8, "direction": "desc", "null-order": "nulls-first"}],
        },
    },
]
VIEW_VERSION: dict[str, Any] = {
    "version-id": 1,
    "schema-id": 0,
    "timestamp-ms": NOW,
    "summary": {"engine-name": "spark"},
    "default-namespace": ["sales"],
    "default-catalog": "lake",
    "representations": [
        {"type": "sql", "sql": "SELECT 1", "dialect": "spark"},
        {"type": "other", "sql": "SELECT 1", "dialect": "plain"},
    ],
}
VIEW_CREATION: dict[str, Any] = {"schema": SCHEMA, "view_version": VIEW_VERSION, "properties": {"a": "b"}}
VIEW_UPDATES: list[dict[str, Any]] = [
    {"action": "add-schema", "schema": UPDATES[6]["schema"]},
    {"action": "add-view-version", "view-version": {**VIEW_VERSION, "schema-id": -1, "version-id": 2, "summary": {"c": "d"}}},
    {"action": "set-current-view-version", "view-version-id": -1},
]


def created_table(creation: dict[str, Any]) -> dict[str, Any]:
    return new_table(**creation, location=LOCATION, table_uuid=UUID_, now_ms=NOW)


def created_view(creation: dict[str, Any]) -> dict[str, Any]:
    return new_view(**creation, location=LOCATION, view_uuid=UUID_, now_ms=NOW)


def changed_table(updates: list[dict[str, Any]]) -> dict[str, Any]:
    return change_table(created_table(CREATION), updates, now_ms=NOW + 9)


def changed_view(updates: list[dict[str, Any]]) -> dict[str, Any]:
    return change_view(created_view(VIEW_CREATION), updates, now_ms=NOW + 9)


REQUESTS = {
    "createTable": (created_table, CREATION),
    "updateTable": (changed_table, UPDATES),
    "createView": (created_view, VIEW_CREATION),
    "replaceView": (changed_view, VIEW_UPDATES),
}
"""By the REST protocol's names: what makes a document of a request, and the request."""


def places_in(value: Any, above: Path = ()) -> Iterator[Path]:
    """The places of all values in a request."""
    for name, member in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*above, name)
        yield from places_in(member, (*above, name))


def with_value(request: Any, place: Path, value: Any) -> Any:
    """A request with another value at a place."""
    changed = copy.deepcopy(request)
    _holder(changed, place)[place[-1]] = value
    return changed


def without(request: Any, place: Path) -> Any:
    """A request without a field."""
    changed = copy.deepcopy(request)
    del _holder(changed, place)[place[-1]]
    return changed


def _holder(value: Any, place: Path) -> Any:
    for name in place[:-1]:
        value = value[name]
    return value
