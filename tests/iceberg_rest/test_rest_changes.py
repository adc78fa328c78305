"""Every update and every requirement of Iceberg REST, sent as clients send it, and seen in what the table or view is loaded as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_caller import RestCaller

from headwater.iceberg.changes import TABLE_REQUIREMENTS, TABLE_SHAPES, VIEW_REQUIREMENTS, VIEW_SHAPES

TABLE, VIEW = "namespaces/sales/tables/orders", "namespaces/sales/views/recent"
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
WIDER = SCHEMA | {
    "schema-id": 1,
    "fields": [*SCHEMA["fields"], {"id": 2, "name": "day", "type": "date", "required": False}],  # type: ignore[misc]
}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1_780_000_000_000,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    "default-namespace": ["sales"],
}
FORMAT = "format-version"
Document = dict[str, Any]
Step = tuple[list[Document], Callable[[Document], bool]]
"""Updates of one request, and what is to be seen afterwards."""


def ids(metadata: Document, name: str, field: str) -> list[Any]:
    return [entry[field] for entry in metadata.get(name) or ()]


def snapshot(number: int, location: str, **fields: Any) -> Document:
    entry = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": 1_900_000_000_000 + number,
        "manifest-list": f"{location}/metadata/snap-{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 1,
    }
    return {"action": "add-snapshot", "snapshot": entry | fields}


def table_steps(location: str) -> list[Step]:
    """All updates, on a table that begins with version 1 and is upgraded twice."""
    file = f"{location}/metadata/one.stats"
    statistics = {
        "snapshot-id": 2,
        "statistics-path": file,
        "file-size-in-bytes": 9,
        "file-footer-size-in-bytes": 4,
        "blob-metadata": [],
    }
    day = {"source-id": 2, "field-id": 1000, "transform": "identity", "name": "day"}
    order = {"source-id": 2, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    key = {"key-id": "k1", "encrypted-key-metadata": "a2V5"}
    rows = {"first-row-id": 0, "added-rows": 3, "parent-snapshot-id": 2, "key-id": "k1"}
    branch = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
    return [
        ([{"action": "set-properties", "updates": {"a": "1", "b": "2"}}], lambda m: m["properties"] == {"a": "1", "b": "2"}),
        ([{"action": "remove-properties", "removals": ["a"]}], lambda m: m["properties"] == {"b": "2"}),
        ([{"action": "upgrade-format-version", FORMAT: 2}], lambda m: m[FORMAT] == 2 and m["last-sequence-number"] == 0),
        ([{"action": "add-schema", "schema": WIDER}], lambda m: ids(m, "schemas", "schema-id") == [0, 1]),
        ([{"action": "set-current-schema", "schema-id": 1}], lambda m: m["current-schema-id"] == 1),
        ([{"action": "add-spec", "spec": {"spec-id": 1, "fields": [day]}}], lambda m: m["last-partition-id"] == 1000),
        ([{"action": "set-default-spec", "spec-id": 1}], lambda m: m["default-spec-id"] == 1),
        (
            [{"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [order]}}],
            lambda m: ids(m, "sort-orders", "order-id") == [0, 1],
        ),
        ([{"action": "set-default-sort-order", "sort-order-id": 1}], lambda m: m["default-sort-order-id"] == 1),
        (
            [snapshot(1, location)],
            lambda m: ids(m, "snapshots", "snapshot-id") == [1] and m.get("current-snapshot-id") in (None, -1),
        ),
        ([branch | {"snapshot-id": 1}], lambda m: m["current-snapshot-id"] == 1),
        (
            [snapshot(2, location, **{"parent-snapshot-id": 1}), branch | {"snapshot-id": 2}],
            lambda m: m["refs"]["main"]["snapshot-id"] == 2 and m["last-sequence-number"] == 2,
        ),
        (
            [{"action": "set-snapshot-ref", "ref-name": "v1", "type": "tag", "snapshot-id": 1, "max-ref-age-ms": 5}],
            lambda m: m["refs"]["v1"] == {"type": "tag", "snapshot-id": 1, "max-ref-age-ms": 5},
        ),
        ([{"action": "remove-snapshot-ref", "ref-name": "v1"}], lambda m: list(m["refs"]) == ["main"]),
        ([{"action": "set-statistics", "statistics": statistics}], lambda m: ids(m, "statistics", "statistics-path") == [file]),
        ([{"action": "remove-statistics", "snapshot-id": 2}], lambda m: not m.get("statistics")),
        (
            [
                {
                    "action": "set-partition-statistics",
                    "partition-statistics": {"snapshot-id": 2, "statistics-path": file, "file-size-in-bytes": 9},
                }
            ],
            lambda m: ids(m, "partition-statistics", "snapshot-id") == [2],
        ),
        ([{"action": "remove-partition-statistics", "snapshot-id": 2}], lambda m: not m.get("partition-statistics")),
        ([{"action": "remove-snapshots", "snapshot-ids": [1]}], lambda m: ids(m, "snapshots", "snapshot-id") == [2]),
        ([{"action": "remove-partition-specs", "spec-ids": [0]}], lambda m: ids(m, "partition-specs", "spec-id") == [1]),
        ([{"action": "remove-schemas", "schema-ids": [0]}], lambda m: ids(m, "schemas", "schema-id") == [1]),
        ([{"action": "upgrade-format-version", FORMAT: 3}], lambda m: m[FORMAT] == 3 and m["next-row-id"] == 0),
        ([{"action": "add-encryption-key", "encryption-key": key}], lambda m: m["encryption-keys"] == [key]),
        ([snapshot(3, location, **rows), branch | {"snapshot-id": 3}], lambda m: m["next-row-id"] == 3),
        (
            [
                {"action": "add-encryption-key", "encryption-key": key | {"key-id": "k2"}},
                {"action": "remove-encryption-key", "key-id": "k2"},
            ],
            lambda m: ids(m, "encryption-keys", "key-id") == ["k1"],
        ),
        ([{"action": "assign-uuid", "uuid": ""}], lambda m: m["table-uuid"] != ""),
        ([{"action": "set-location", "location": f"{location}/moved"}], lambda m: m["location"] == f"{location}/moved"),
    ]


def test_table_takes_every_update(sales: RestCaller) -> None:
    created = sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA, "properties": {FORMAT: "1"}}).json[
        "metadata"
    ]
    steps = table_steps(created["location"])

    assert created[FORMAT] == 1
    assert {update["action"] for updates, _ in steps for update in updates} == set(TABLE_SHAPES)
    for updates, is_applied in steps:
        for update in updates:
            if update["action"] == "assign-uuid":  # assigned once: the same one is no change
                update["uuid"] = created["table-uuid"]
        answer = sales.post(TABLE, {"requirements": [], "updates": updates})
        assert answer.status == 200, (updates, answer.content)
        loaded = sales.get(TABLE).json["metadata"]
        assert loaded == answer.json["metadata"] and is_applied(loaded), (updates, loaded)


def test_view_takes_every_update(sales: RestCaller) -> None:
    body = {"name": "recent", "schema": SCHEMA, "view-version": VERSION, "properties": {"a": "1"}}
    created = sales.post("namespaces/sales/views", body).json["metadata"]
    second = VERSION | {"version-id": 2, "schema-id": 1}
    steps: list[Step] = [
        ([{"action": "assign-uuid", "uuid": created["view-uuid"]}], lambda m: m["view-uuid"] == created["view-uuid"]),
        ([{"action": "upgrade-format-version", FORMAT: 1}], lambda m: m[FORMAT] == 1),
        ([{"action": "set-properties", "updates": {"b": "2"}}], lambda m: m["properties"] == {"a": "1", "b": "2"}),
        ([{"action": "remove-properties", "removals": ["a"]}], lambda m: m["properties"] == {"b": "2"}),
        (
            [
                {"action": "add-schema", "schema": WIDER},
                {"action": "add-view-version", "view-version": second},
                {"action": "set-current-view-version", "view-version-id": 2},
            ],
            lambda m: m["current-version-id"] == 2 and ids(m, "schemas", "schema-id") == [0, 1],
        ),
        (
            [{"action": "set-location", "location": f"{created['location']}/moved"}],
            lambda m: m["location"] == f"{created['location']}/moved",
        ),
    ]

    assert {update["action"] for updates, _ in steps for update in updates} == set(VIEW_SHAPES)
    for updates, is_applied in steps:
        answer = sales.post(VIEW, {"requirements": [], "updates": updates})
        assert answer.status == 200, (updates, answer.content)
        loaded = sales.get(VIEW).json["metadata"]
        assert loaded == answer.json["metadata"] and is_applied(loaded), (updates, loaded)


OTHER_UUID = "00000000-0000-4000-8000-000000000000"
REQUIREMENTS: dict[str, tuple[Document, Document]] = {
    "assert-table-uuid": ({}, {"uuid": OTHER_UUID}),
    "assert-ref-snapshot-id": ({"ref": "main", "snapshot-id": None}, {"ref": "main", "snapshot-id": 7}),
    "assert-last-assigned-field-id": ({"last-assigned-field-id": 1}, {"last-assigned-field-id": 2}),
    "assert-current-schema-id": ({"current-schema-id": 0}, {"current-schema-id": 1}),
    "assert-last-assigned-partition-id": ({"last-assigned-partition-id": 999}, {"last-assigned-partition-id": 1000}),
    "assert-default-spec-id": ({"default-spec-id": 0}, {"default-spec-id": 1}),
    "assert-default-sort-order-id": ({"default-sort-order-id": 0}, {"default-sort-order-id": 1}),
}
"""What a new table meets, and what it does not. The uuid that it has is filled in."""


@pytest.mark.parametrize("kind", sorted(TABLE_REQUIREMENTS.keys() - {"assert-create"}))
def test_requirement_of_a_table_is_judged(sales: RestCaller, kind: str) -> None:
    created = sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA}).json["metadata"]
    met, failed = REQUIREMENTS[kind]
    met = met or {"uuid": created["table-uuid"]}

    def change(requirement: Document) -> Any:
        updates = [{"action": "set-properties", "updates": {"owner": kind}}]
        return sales.post(TABLE, {"requirements": [{"type": kind, **requirement}], "updates": updates})

    refused = change(failed)
    assert refused.error == (409, "CommitFailedException") and refused.message.startswith("Requirement failed: ")
    assert sales.get(TABLE).json["metadata"] == created
    assert change(met).json["metadata"]["properties"] == {"owner": kind}


def test_table_that_is_there_is_not_created_by_commit(sales: RestCaller) -> None:
    sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA})

    refused = sales.post(TABLE, {"requirements": [{"type": "assert-create"}], "updates": []})

    assert refused.error == (409, "CommitFailedException")
    assert refused.message.startswith("Requirement failed: table already exists")


def test_requirement_of_a_view_is_judged(sales: RestCaller) -> None:
    body = {"name": "recent", "schema": SCHEMA, "view-version": VERSION, "properties": {}}
    created = sales.post("namespaces/sales/views", body).json["metadata"]

    def change(uuid: str) -> Any:
        updates = [{"action": "set-properties", "updates": {"owner": "ann"}}]
        return sales.post(VIEW, {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": updates})

    assert set(VIEW_REQUIREMENTS) == {"assert-view-uuid"}
    assert change(OTHER_UUID).error == (409, "CommitFailedException")
    assert change(created["view-uuid"]).json["metadata"]["properties"] == {"owner": "ann"}


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        (
            TABLE,
            {"requirements": [], "updates": [{"action": "set-properties", "updates": {}}, {"action": "fly"}]},
            "updates[1]",
        ),
        (TABLE, {"requirements": [{"type": "assert-fly"}], "updates": []}, "requirements[0]"),
        (VIEW, {"requirements": [], "updates": [{"action": "add-snapshot"}]}, "updates[0]"),
        (VIEW, {"requirements": [{"type": "assert-create"}], "updates": []}, "requirements[0]"),
    ],
)
def test_unknown_element_is_refused_by_its_place(sales: RestCaller, path: str, body: Document, place: str) -> None:
    sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA})
    sales.post("namespaces/sales/views", {"name": "recent", "schema": SCHEMA, "view-version": VERSION, "properties": {}})

    refused = sales.post(path, body)

    assert refused.error[0] == 400
    assert place in refused.message
