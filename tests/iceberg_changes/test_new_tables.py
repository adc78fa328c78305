"""New tables: made whole, and made by updates."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headwater.iceberg.changes import RESERVED_PROPERTIES, ChangeFormError, change_table, new_table
from headwater.iceberg.spec import check_table
from metadata_fixtures import COLUMNS, changed, column, schema, snapshot

Document = dict[str, Any]
UUID_OF_TABLE = UUID("00000000-0000-4000-8000-000000000001")
NOW = 1_760_000_000_000
ASKED: Document = {"schema": schema(*COLUMNS), "location": "s3://lake/new/"}


def make(**asked: Any) -> Document:
    return new_table(**(ASKED | {"table_uuid": UUID_OF_TABLE, "now_ms": NOW} | asked))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_new_table_is_valid(version: int) -> None:
    facts = check_table(make(properties={"format-version": str(version)}))

    assert facts == (version, str(UUID_OF_TABLE), 0, 0, 0, None)


def test_new_table_is_of_the_second_format() -> None:
    assert make() == {
        "format-version": 2,
        "table-uuid": str(UUID_OF_TABLE),
        "location": "s3://lake/new",
        "last-sequence-number": 0,
        "last-updated-ms": NOW,
        "last-column-id": 3,
        "current-schema-id": 0,
        "schemas": [schema(*COLUMNS)],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def test_third_format_starts_with_row_0() -> None:
    result = make(properties={"format-version": "3"})

    assert (result["next-row-id"], "current-snapshot-id" in result) == (0, False)


def test_first_format_states_schema_and_spec_alone() -> None:
    result = make(properties={"format-version": "1"})

    assert (result["schema"], result["partition-spec"], "last-sequence-number" in result) == (result["schemas"][0], [], False)


NESTED = schema(
    column(50, "point", {"type": "struct", "fields": [column(60, "x", "int"), column(61, "y", "int")]}),
    column(51, "names", {"type": "map", "key-id": 70, "key": "string", "value-id": 71, "value-required": True, "value": {
        "type": "struct", "fields": [column(80, "v", "long")]}}),
    column(52, "list", {"type": "list", "element-id": 90, "element-required": False, "element": {
        "type": "struct", "fields": [column(91, "w", "int", doc="deep")]}}),
    column(53, "key", "long", required=True, **{"x-unit": "m"}),
    number=8, **{"identifier-field-ids": [53]},
)  # fmt: skip


def test_columns_are_numbered_level_by_level() -> None:
    result = make(schema=NESTED)["schemas"][0]
    point, names, a_list, key = result["fields"]

    assert [field["id"] for field in result["fields"]] == [1, 2, 3, 4]
    assert [field["id"] for field in point["type"]["fields"]] == [5, 6]
    assert (names["type"]["key-id"], names["type"]["value-id"], names["type"]["value"]["fields"][0]["id"]) == (7, 8, 9)
    assert (a_list["type"]["element-id"], a_list["type"]["element"]["fields"][0]) == (10, column(11, "w", "int", doc="deep"))
    assert (key["x-unit"], result["identifier-field-ids"], result["schema-id"]) == ("m", [4], 0)


def test_spec_and_order_follow_their_columns() -> None:
    spec = {"spec-id": 5, "fields": [
        {"name": "x_day", "transform": "bucket[4]", "source-id": 60, "field-id": 3},
        {"name": "k", "transform": "identity", "source-id": 53, "field-id": 9},
    ]}  # fmt: skip
    order = {"order-id": 7, "fields": [
        {"transform": "identity", "source-id": 61, "direction": "asc", "null-order": "nulls-first"},
    ]}  # fmt: skip

    result = make(schema=NESTED, partition_spec=spec, sort_order=order)

    assert [(field["source-id"], field["field-id"]) for field in result["partition-specs"][0]["fields"]] == [
        (5, 1000),
        (4, 1001),
    ]
    assert (result["sort-orders"][0]["order-id"], result["sort-orders"][0]["fields"][0]["source-id"]) == (1, 6)
    assert (result["last-partition-id"], result["default-sort-order-id"]) == (1001, 1)


def test_reserved_properties_are_not_stored() -> None:
    asked = dict.fromkeys(RESERVED_PROPERTIES, "2") | {"owner": "ada"}

    assert make(properties=asked)["properties"] == {"owner": "ada"}


@pytest.mark.parametrize(("properties", "text"), [
    ({"format-version": "4"}, "Unsupported format version: v4 (supported: v3)"),
    ({"format-version": "0"}, "format-version must be positive but was 0"),
    ({"format-version": "two"}, "format-version must be an integer but was 'two'"),
    ({"format-version": "1_0"}, "format-version must be an integer but was '1_0'"),
    ({"commit.retry.num-retries": "-1"}, "commit.retry.num-retries must be 0 or more but was -1"),
    ({"encryption.key-id": "k"}, "Invalid properties for v2: encryption.key-id takes v3"),
    ({"owner": 7}, "The request has properties['owner'], which is not a string"),
])  # fmt: skip
def test_property_that_cannot_be_is_refused(properties: Document, text: str) -> None:
    with pytest.raises(ChangeFormError) as refusal:
        make(properties=properties)

    assert str(refusal.value).startswith(text)
    assert refusal.value.path == f"properties[{next(iter(properties))!r}]"


@pytest.mark.parametrize(("asked", "path"), [
    ({"location": "/"}, "location"),
    ({"schema": "?"}, "schema"),
    ({"properties": "?"}, "properties"),
    ({"partition_spec": []}, "partition-spec"),
    ({"sort_order": 0}, "write-order"),
    ({"schema": {"type": "struct"}}, "schema.fields"),
    ({"schema": schema(column(1, "a", "int"), column(1, "b", "int"))}, "schema"),
    ({"schema": schema(column(1, "a", "no"))}, "schema"),
    ({"partition_spec": {"fields": [{"name": "p", "transform": "day", "source-id": 9}]}}, "partition-spec"),
    ({"partition_spec": {"fields": [{"name": "p", "source-id": 2}]}}, "partition-spec.fields[0].transform"),
    ({"sort_order": {"fields": [{"transform": "identity", "source-id": 2}]}}, "write-order.fields[0].direction"),
])  # fmt: skip
def test_request_that_is_no_table_is_refused(asked: Document, path: str) -> None:
    with pytest.raises(ChangeFormError) as refusal:
        make(**asked)

    assert refusal.value.path == path


CREATION: list[Document] = [
    {"action": "assign-uuid", "uuid": str(UUID_OF_TABLE)},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": schema(*COLUMNS)},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "set-location", "location": "s3://lake/new"},
    {"action": "set-properties", "updates": {}},
]


def test_updates_create_the_same_table() -> None:
    assert change_table(None, CREATION, now_ms=NOW) == make()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_updates_create_a_table_of_their_format(version: int) -> None:
    updates = [changed(update, {"format-version": version}) if "format-version" in update else update for update in CREATION]

    assert change_table(None, updates, now_ms=NOW) == make(properties={"format-version": str(version)})


def test_table_is_created_with_its_first_snapshot() -> None:
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot(7, 1)},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
    ]

    result = change_table(None, [*CREATION, *updates], now_ms=NOW, previous_file="s3://lake/never")

    assert (result["current-snapshot-id"], result["metadata-log"]) == (7, [])
    assert result["last-updated-ms"] == snapshot(7, 1)["timestamp-ms"]


@pytest.mark.parametrize("action", ["assign-uuid", "add-schema", "add-spec", "add-sort-order", "set-location"])
def test_creation_that_lacks_something_says_what(action: str) -> None:
    followers = {"add-schema": "set-current-schema", "add-spec": "set-default-spec", "add-sort-order": "set-default-sort-order"}
    left_out = {action, followers.get(action)}

    with pytest.raises(ChangeFormError, match=f"has no {action} in updates"):
        change_table(None, [update for update in CREATION if update["action"] not in left_out], now_ms=NOW)


def test_creation_in_a_format_to_come_is_refused() -> None:
    with pytest.raises(ChangeFormError, match=r"Unsupported format version: v4 .*updates\[0\]\.format-version"):
        change_table(None, [{"action": "upgrade-format-version", "format-version": 4}], now_ms=NOW)


def test_metrics_are_asked_of_columns_that_are_there() -> None:
    points = {"type": "list", "element-id": 11, "element-required": True, "element": "int"}
    nested = schema(*COLUMNS, column(10, "points", points))
    prefix = "write.metadata.metrics.column."

    assert make(schema=nested, properties={f"{prefix}points.element": "none"})["properties"]
    with pytest.raises(ChangeFormError, match="could not find column pints from table prop") as refusal:
        make(schema=nested, properties={f"{prefix}pints": "none"})
    assert refusal.value.path == f"properties['{prefix}pints']"
