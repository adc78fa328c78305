"""Updates of a table as a whole, and what every change of a table keeps to."""

from __future__ import annotations

import copy
from typing import Any, get_args

import msgspec
import pytest

from headwater.errors import CorruptionError, RefusedError
from headwater.iceberg.changes import TABLE_SHAPES, ChangeFormError, TableUpdate, change_table
from headwater.iceberg.spec import check_table
from metadata_fixtures import COLUMNS, GONE, UUID, changed, schema, snapshot, table

Document = dict[str, Any]
LATER = 1_760_000_000_000
FILE = "s3://lake/sales/orders/metadata/v2.metadata.json"
OTHER_UUID = "00000000-0000-4000-8000-000000000001"
ACTIONS = {
    "assign-uuid", "upgrade-format-version", "add-schema", "set-current-schema", "add-spec", "set-default-spec", "add-sort-order",
    "set-default-sort-order", "add-snapshot", "set-snapshot-ref", "remove-snapshots", "remove-snapshot-ref", "set-location",
    "set-properties", "remove-properties", "set-statistics", "remove-statistics", "set-partition-statistics",
    "remove-partition-statistics", "remove-partition-specs", "remove-schemas", "add-encryption-key", "remove-encryption-key",
}  # fmt: skip


def change(document: Document, *updates: Document) -> Document:
    return change_table(document, updates, now_ms=LATER, previous_file=FILE)


def set_properties(**properties: str) -> Document:
    return {"action": "set-properties", "updates": properties}


def test_actions_are_those_of_the_specification() -> None:
    assert set(TABLE_SHAPES) == ACTIONS


def test_actions_are_one_type_for_openapi() -> None:
    (schema,), _ = msgspec.json.schema_components([TableUpdate])

    assert len(get_args(TableUpdate)) == len(ACTIONS)
    assert set(schema["discriminator"]["mapping"]) == ACTIONS


@pytest.mark.parametrize(("update", "path"), [
    ("set-properties", "updates[1]"),
    ({}, "updates[1].action"),
    ({"action": "set-colour"}, "updates[1].action"),
    ({"action": ["add-schema"]}, "updates[1].action"),
    ({"action": "add-view-version"}, "updates[1].action"),
    ({"action": "set-properties"}, "updates[1].updates"),
    ({"action": "set-properties", "updates": {"a": 1}}, "updates[1].updates['a']"),
    ({"action": "add-snapshot", "snapshot": {"snapshot-id": "7"}}, "updates[1].snapshot.snapshot-id"),
    ({"action": "add-snapshot", "snapshot": {"snapshot-id": 7}}, "updates[1].snapshot.timestamp-ms"),
    ({"action": "remove-snapshots", "snapshot-ids": [1, None]}, "updates[1].snapshot-ids[1]"),
    ({"action": "set-location", "location": ""}, "updates[1].location"),
    ({"action": "assign-uuid", "uuid": "none"}, "updates[1].uuid"),
    ({"action": "set-snapshot-ref", "ref-name": "x", "type": "fork", "snapshot-id": 11}, "updates[1].type"),
    ({"action": "set-statistics", "statistics": {"snapshot-id": 1}}, "updates[1].statistics.statistics-path"),
    ({"action": "add-sort-order", "sort-order": {"fields": [{}]}}, "updates[1].sort-order.fields[0].transform"),
    ({"action": "remove-schemas", "schema-ids": [2**40]}, "updates[1].schema-ids[0]"),
])  # fmt: skip
def test_element_at_fault_is_named(update: Any, path: str) -> None:
    with pytest.raises(ChangeFormError) as refusal:
        change_table(table(2), [set_properties(a="b"), update], now_ms=LATER)

    assert refusal.value.path == path
    assert path in str(refusal.value)


def test_place_of_the_updates_is_in_the_path() -> None:
    with pytest.raises(ChangeFormError) as refusal:
        change_table(table(2), [{}], now_ms=LATER, where="table-changes[3].updates")

    assert refusal.value.path == "table-changes[3].updates[0].action"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_document_that_nothing_changes_is_returned(version: int) -> None:
    document = table(version)

    assert change(document, set_properties(owner="ada"), {"action": "remove-properties", "removals": ["gone"]}) is document


@pytest.mark.parametrize("version", [1, 2, 3])
def test_given_document_stays_as_it_is(version: int) -> None:
    document = table(version)
    before = copy.deepcopy(document)

    change(document, set_properties(a="b"), {"action": "remove-snapshots", "snapshot-ids": [11]})

    assert document == before


@pytest.mark.parametrize("version", [1, 2, 3])
def test_changed_document_is_valid(version: int) -> None:
    result = change(table(version), set_properties(a="b"))

    assert check_table(result) == check_table(table(version))


def test_unknown_fields_stay() -> None:
    result = change(changed(table(2), {"x-engine": {"a": 1}}), set_properties(a="b"))

    assert result["x-engine"] == {"a": 1}


def test_previous_file_is_logged_with_its_time() -> None:
    result = change(table(2), set_properties(a="b"))

    assert result["metadata-log"][-1] == {"timestamp-ms": table(2)["last-updated-ms"], "metadata-file": FILE}


def test_metadata_log_is_trimmed() -> None:
    log = [{"metadata-file": f"v{at}", "timestamp-ms": 1_750_000_000_000 + at} for at in range(5)]

    result = change(
        changed(table(2), {"metadata-log": log}),
        {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "3"}},
    )

    assert [entry["metadata-file"] for entry in result["metadata-log"]] == ["v3", "v4", FILE]


@pytest.mark.parametrize(("stored", "length"), [("0", 1), ("-5", 1), ("many", 6)])
def test_metadata_log_survives_odd_lengths(stored: str, length: int) -> None:
    log = [{"metadata-file": f"v{at}", "timestamp-ms": 1_750_000_000_000 + at} for at in range(5)]
    document = changed(table(2), {"metadata-log": log, "properties": {"write.metadata.previous-versions-max": stored}})

    assert len(change(document, set_properties(a="b"))["metadata-log"]) == length


def test_length_of_the_log_is_a_number() -> None:
    with pytest.raises(ChangeFormError, match="must be an integer but was 'many'"):
        change(table(2), {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "many"}})


def test_time_of_a_change_is_now() -> None:
    assert change(table(2), set_properties(a="b"))["last-updated-ms"] == LATER


def test_time_of_a_table_never_goes_back() -> None:
    result = change_table(table(2), [set_properties(a="b")], now_ms=5)

    assert result["last-updated-ms"] == table(2)["last-updated-ms"]


def test_properties_are_set_and_removed() -> None:
    result = change(
        changed(table(2), {"properties": {"a": "1", "b": "2"}}),
        {"action": "set-properties", "updates": {"b": "3", "c": "4"}},
        {"action": "remove-properties", "removals": ["a", "never"]},
    )

    assert result["properties"] == {"b": "3", "c": "4"}


def test_location_loses_its_last_slash() -> None:
    assert change(table(2), {"action": "set-location", "location": "s3://lake/other//"})["location"] == "s3://lake/other"


def test_uuid_is_kept() -> None:
    document = table(2)

    assert change(document, {"action": "assign-uuid", "uuid": UUID.upper()}) is document
    with pytest.raises(ChangeFormError, match=r"Cannot reassign uuid.*\(updates\[0\]\.uuid\)"):
        change(document, {"action": "assign-uuid", "uuid": OTHER_UUID})


def test_table_without_a_uuid_gets_one() -> None:
    result = change(changed(table(1), {"table-uuid": GONE}), {"action": "assign-uuid", "uuid": OTHER_UUID})

    assert result["table-uuid"] == OTHER_UUID


@pytest.mark.parametrize("version", [2, 3])
def test_first_format_is_upgraded(version: int) -> None:
    result = change(table(1), {"action": "upgrade-format-version", "format-version": version})

    assert check_table(result)[:5] == (version, UUID, 0, 0, 0)
    assert (result["last-sequence-number"], result["last-partition-id"], result.get("next-row-id")) == (
        0, 1000, 0 if version == 3 else None,
    )  # fmt: skip
    assert not {"schema", "partition-spec"} & result.keys()


def test_second_format_is_upgraded() -> None:
    result = change(table(2), {"action": "upgrade-format-version", "format-version": 3})

    assert (result["format-version"], result["next-row-id"], result["snapshots"]) == (3, 0, table(2)["snapshots"])


def test_partition_fields_without_ids_get_them_with_the_first_format() -> None:
    document = changed(table(1), {"partition-spec": [{"name": "day", "transform": "identity", "source-id": 2}]})

    result = change(document, {"action": "upgrade-format-version", "format-version": 2})

    assert [field["field-id"] for field in result["partition-specs"][0]["fields"]] == [1000]


@pytest.mark.parametrize(("version", "text"), [(4, "unsupported format version: v4"), (1, "Cannot downgrade v2 table to v1")])
def test_format_version_that_cannot_be_is_refused(version: int, text: str) -> None:
    with pytest.raises(ChangeFormError, match=text):
        change(table(2), {"action": "upgrade-format-version", "format-version": version})


def test_upgrade_without_a_uuid_is_refused() -> None:
    with pytest.raises(ChangeFormError, match="table-uuid is missing"):
        change(changed(table(1), {"table-uuid": GONE}), {"action": "upgrade-format-version", "format-version": 2})


def test_draft_of_the_fourth_format_is_refused() -> None:
    with pytest.raises(RefusedError, match="draft"):
        change(changed(table(2), {"format-version": 4}), set_properties(a="b"))


def test_fault_that_was_there_stays_out_of_the_way() -> None:
    document = changed(table(2), {"snapshots": [snapshot(11, 1), snapshot(22, 9)]})

    result = change(document, set_properties(a="b"))

    assert result["properties"]["a"] == "b"


def test_fault_that_the_change_brings_is_refused() -> None:
    key = {"action": "add-snapshot", "snapshot": snapshot(33, 3, **{"first-row-id": 30, "added-rows": 1, "key-id": "k"})}

    with pytest.raises(ChangeFormError, match="'k', which is not among encryption-keys"):
        change(table(3), key)


def test_fault_does_not_hide_another_one() -> None:
    document = changed(table(3), {"last-column-id": 1})
    empty = {"type": "struct", "fields": []}

    with pytest.raises(ChangeFormError, match="not in the current schema"):
        change(document, {"action": "add-schema", "schema": empty}, {"action": "set-current-schema", "schema-id": -1},
               {"action": "remove-schemas", "schema-ids": [0]})  # fmt: skip


@pytest.mark.parametrize("name", ["snapshots", "refs", "properties"])
def test_list_that_is_none_is_not_guessed_at(name: str) -> None:
    document = changed(table(2), {name: "?"})

    with pytest.raises(CorruptionError, match=name):
        change(
            document,
            {"action": "remove-properties", "removals": ["owner"]},
            {"action": "remove-snapshot-ref", "ref-name": "old"},
            {"action": "remove-snapshots", "snapshot-ids": [11]},
        )


def test_document_that_a_change_stumbles_over_is_named() -> None:
    document = changed(table(2), {"schemas": [{"type": "struct", "fields": []}]})

    with pytest.raises(CorruptionError, match=r"the metadata has no schemas\[0\]\.schema-id: restore"):
        change(document, {"action": "add-schema", "schema": schema(*COLUMNS)})


def test_document_without_a_version_is_named() -> None:
    with pytest.raises(CorruptionError, match="the metadata has no format-version: restore"):
        change(changed(table(2), {"format-version": GONE}), set_properties(a="b"))


KEY = {"key-id": "k1", "encrypted-key-metadata": "c2VjcmV0", "encrypted-by-id": "k0"}


def test_encryption_key_is_added_once_and_removed() -> None:
    added = change(table(3), {"action": "add-encryption-key", "encryption-key": KEY})
    again = change(added, {"action": "add-encryption-key", "encryption-key": KEY | {"encrypted-key-metadata": "eA=="}})

    assert added["encryption-keys"] == [KEY]
    assert again is added
    assert change(added, {"action": "remove-encryption-key", "key-id": "k1"})["encryption-keys"] == []
    assert change(added, {"action": "remove-encryption-key", "key-id": "k2"}) is added


def test_encryption_key_is_refused_before_the_third_format() -> None:
    with pytest.raises(ChangeFormError, match="v2 table"):
        change(table(2), {"action": "add-encryption-key", "encryption-key": KEY})
