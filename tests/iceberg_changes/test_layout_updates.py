"""Updates of schemas, partition specs and sort orders."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.iceberg.changes import ChangeFormError, change_table
from metadata_fixtures import COLUMNS, changed, column, schema, table

Document = dict[str, Any]
WIDER = schema(*COLUMNS, column(4, "more", "int"))
DAY = {"name": "day_part", "transform": "day", "source-id": 2}
BY_NOTE = {"transform": "identity", "source-id": 3, "direction": "desc", "null-order": "nulls-last"}


def change(document: Document, *updates: Document) -> Document:
    return change_table(document, updates, now_ms=1_760_000_000_000)


def add_schema(added: Document) -> Document:
    return {"action": "add-schema", "schema": added}


def add_spec(*fields: Document) -> Document:
    return {"action": "add-spec", "spec": {"fields": list(fields)}}


def add_order(*fields: Document) -> Document:
    return {"action": "add-sort-order", "sort-order": {"order-id": 9, "fields": list(fields)}}


SET_SCHEMA = {"action": "set-current-schema", "schema-id": -1}
SET_SPEC = {"action": "set-default-spec", "spec-id": -1}
SET_ORDER = {"action": "set-default-sort-order", "sort-order-id": -1}


def test_schema_gets_the_next_id() -> None:
    result = change(table(2), add_schema(changed(WIDER, {"schema-id": 77})), SET_SCHEMA)

    assert [entry["schema-id"] for entry in result["schemas"]] == [0, 1]
    assert (result["current-schema-id"], result["last-column-id"]) == (1, 4)


def test_schema_that_is_there_is_used_again() -> None:
    wider = change(table(2), add_schema(WIDER), SET_SCHEMA)

    back = change(wider, add_schema(schema(*COLUMNS, number=5)), SET_SCHEMA)

    assert (back["current-schema-id"], len(back["schemas"]), back["last-column-id"]) == (0, 2, 4)


@pytest.mark.parametrize("same", [
    schema(*COLUMNS, **{"identifier-field-ids": []}), schema(*({**one, "doc": None} for one in COLUMNS)),
])  # fmt: skip
def test_schema_of_another_spelling_is_the_same(same: Document) -> None:
    document = table(2)

    assert change(document, add_schema(same)) is document


@pytest.mark.parametrize("other", [
    schema(*COLUMNS, **{"identifier-field-ids": [1]}), schema(*COLUMNS[:2], changed(COLUMNS[2], {"doc": "a note"})),
    schema(*COLUMNS[:2], changed(COLUMNS[2], {"name": "text"})), schema(*reversed(COLUMNS)),
])  # fmt: skip
def test_schema_that_differs_is_another(other: Document) -> None:
    assert len(change(table(2), add_schema(other))["schemas"]) == 2


def test_schema_keeps_unknown_fields() -> None:
    result = change(table(2), add_schema(schema(column(1, "id", "long", required=True, **{"x-unit": "m"}), *COLUMNS[1:])))

    assert result["schemas"][1]["fields"][0]["x-unit"] == "m"


@pytest.mark.parametrize("version", [1, 2])
def test_type_of_a_later_format_is_refused(version: int) -> None:
    with pytest.raises(ChangeFormError, match=r"updates\[0\]\.schema\.fields\[3\]\.type variant.*format version 3"):
        change(table(version), add_schema(schema(*COLUMNS, column(4, "v", "variant"))))


def test_first_format_states_its_schema_alone() -> None:
    result = change(table(1), add_schema(WIDER), SET_SCHEMA)

    assert (result["schema"], result["current-schema-id"]) == (changed(WIDER, {"schema-id": 1}), 1)


@pytest.mark.parametrize(("update", "text"), [
    (SET_SCHEMA, "Cannot set last added schema: no schema has been added (updates[0].schema-id)"),
    ({"action": "set-current-schema", "schema-id": 7}, "Cannot set current schema to unknown schema: 7"),
    ({"action": "remove-schemas", "schema-ids": [5, 0]}, "Cannot remove the current schema"),
    (SET_SPEC, "Cannot set last added spec: no spec has been added"),
    ({"action": "set-default-spec", "spec-id": 7}, "Cannot set default partition spec to unknown spec: 7"),
    ({"action": "remove-partition-specs", "spec-ids": [0]}, "Cannot remove the default partition spec"),
    (SET_ORDER, "Cannot set last added sort order: no sort order has been added"),
    ({"action": "set-default-sort-order", "sort-order-id": 7}, "Cannot set default sort order to unknown sort order: 7"),
])  # fmt: skip
def test_update_of_what_is_not_there_is_refused(update: Document, text: str) -> None:
    with pytest.raises(ChangeFormError) as refusal:
        change(table(2), update)

    assert str(refusal.value).startswith(text)


def test_schema_without_a_partitioned_column_is_refused() -> None:
    with pytest.raises(ChangeFormError, match="column 2, which is not in the current schema"):
        change(table(2), add_schema(schema(COLUMNS[0], COLUMNS[2])), SET_SCHEMA)


def test_schemas_are_removed() -> None:
    wider = change(table(2), add_schema(WIDER), SET_SCHEMA)

    result = change(wider, {"action": "remove-schemas", "schema-ids": [0, 99]})

    assert [entry["schema-id"] for entry in result["schemas"]] == [1]


def test_spec_gets_the_next_ids() -> None:
    result = change(table(2), add_spec(DAY), SET_SPEC)

    assert result["partition-specs"][1] == {"spec-id": 1, "fields": [DAY | {"field-id": 1001}]}
    assert (result["default-spec-id"], result["last-partition-id"]) == (1, 1001)


def test_spec_keeps_the_ids_that_it_has() -> None:
    result = change(table(2), add_spec(DAY | {"field-id": 1005}))

    assert (result["partition-specs"][1]["fields"][0]["field-id"], result["last-partition-id"]) == (1005, 1005)


def test_partition_field_of_an_earlier_spec_keeps_its_id() -> None:
    month = {"name": "other", "transform": "month", "source-id": 2}

    result = change(table(2), add_spec(month, DAY))

    assert [field["field-id"] for field in result["partition-specs"][1]["fields"]] == [1000, 1001]


def test_spec_that_is_there_is_used_again() -> None:
    document = table(2)
    same = {"name": "day", "transform": "month", "source-id": 2, "field-id": 1009}

    assert change(document, add_spec(same), SET_SPEC) is document


def test_spec_without_fields_takes_no_ids() -> None:
    result = change(table(2), add_spec(), SET_SPEC)

    assert (result["partition-specs"][1], result["last-partition-id"]) == ({"spec-id": 1, "fields": []}, 1000)


@pytest.mark.parametrize(("field", "place"), [
    ({"transform": "day", "source-id": 99}, "column 99, which is not in the current schema"),
    ({"transform": "day", "source-id": 3}, "whose type string it does not take"),
    ({"transform": "bucket[0]", "source-id": 3}, r"updates\[0\].spec.fields\[0\].transform"),
    ({"transform": "day"}, r"updates\[0\].spec.fields\[0\].source-id"),
])  # fmt: skip
def test_partition_field_that_cannot_be_is_refused(field: Document, place: str) -> None:
    with pytest.raises(ChangeFormError, match=place):
        change(table(2), add_spec({"name": "p", **field}))


def test_first_format_counts_partition_fields_from_1000() -> None:
    result = change(table(1), add_spec(DAY, {"name": "b", "transform": "bucket[4]", "source-id": 1}), SET_SPEC)

    assert [field["field-id"] for field in result["partition-spec"]] == [1000, 1001]
    with pytest.raises(ChangeFormError, match="does not use sequential IDs that are required in v1"):
        change(table(1), add_spec(DAY | {"field-id": 1004}))


def test_partition_field_has_no_other_columns_name() -> None:
    mine, other = COLUMNS[2], COLUMNS[0]
    field = {"transform": "identity", "source-id": mine["id"]}

    assert change(table(2), add_spec(field | {"name": mine["name"]}))["partition-specs"][1]["fields"][0]["name"] == mine["name"]
    with pytest.raises(ChangeFormError, match="partition sourced from different field in schema") as refusal:
        change(table(2), add_spec(field | {"name": other["name"]}))
    assert refusal.value.path == "updates[0].spec.fields[0].name"


def test_specs_are_removed() -> None:
    two = change(table(2), add_spec(DAY), SET_SPEC)

    result = change(two, {"action": "remove-partition-specs", "spec-ids": [0]})

    assert ([spec["spec-id"] for spec in result["partition-specs"]], result["last-partition-id"]) == ([1], 1001)


def test_sort_order_gets_the_next_id() -> None:
    result = change(table(2), add_order(BY_NOTE), SET_ORDER)

    assert result["sort-orders"][2] == {"order-id": 2, "fields": [BY_NOTE]}
    assert result["default-sort-order-id"] == 2


def test_sort_order_that_is_there_is_used_again() -> None:
    two = change(table(2), add_order(BY_NOTE), SET_ORDER)

    back = change(two, add_order(*table(2)["sort-orders"][1]["fields"]), SET_ORDER)

    assert (back["default-sort-order-id"], len(back["sort-orders"])) == (1, 3)


def test_order_of_nothing_has_the_id_0() -> None:
    bare = changed(table(2), {"sort-orders": table(2)["sort-orders"][1:]})

    result = change(bare, add_order(), SET_ORDER)

    assert (result["default-sort-order-id"], result["sort-orders"][-1]) == (0, {"order-id": 0, "fields": []})


def test_sort_order_on_a_missing_column_is_refused() -> None:
    with pytest.raises(ChangeFormError, match="column 99, which is not in the current schema"):
        change(table(2), add_order(BY_NOTE | {"source-id": 99}))


def test_last_added_means_the_last_one() -> None:
    result = change(table(2), add_schema(WIDER), add_schema(schema(*COLUMNS, column(5, "most", "int"))), SET_SCHEMA)

    assert (result["current-schema-id"], result["last-column-id"]) == (2, 5)
