"""Requirements of tables and views, with the texts that Iceberg's clients know."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from headwater.errors import ConflictError
from headwater.iceberg.changes import (
    TABLE_REQUIREMENTS,
    VIEW_REQUIREMENTS,
    ChangeFormError,
    RequirementFailedError,
    TableRequirement,
    check_requirements,
)
from metadata_fixtures import GONE, UUID, changed, table, view

Document = dict[str, Any]
OTHER_UUID = "00000000-0000-4000-8000-000000000001"


def test_requirements_are_those_of_the_specification() -> None:
    (schema,), _ = msgspec.json.schema_components([TableRequirement])

    assert set(TABLE_REQUIREMENTS) == set(schema["discriminator"]["mapping"]) == {
        "assert-create", "assert-table-uuid", "assert-ref-snapshot-id", "assert-last-assigned-field-id", "assert-current-schema-id",
        "assert-last-assigned-partition-id", "assert-default-spec-id", "assert-default-sort-order-id",
    }  # fmt: skip
    assert set(VIEW_REQUIREMENTS) == {"assert-view-uuid"}
    assert len(get_args(TableRequirement)) == 8


MET: list[Document] = [
    {"type": "assert-table-uuid", "uuid": UUID.upper()},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 22},
    {"type": "assert-ref-snapshot-id", "ref": "never", "snapshot-id": None},
    {"type": "assert-ref-snapshot-id", "ref": "never"},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_requirements_that_hold_pass(version: int) -> None:
    order = {"type": "assert-default-sort-order-id", "default-sort-order-id": 0 if version == 1 else 1}

    check_requirements(table(version), [*MET, order])


@pytest.mark.parametrize(("requirement", "text"), [
    ({"type": "assert-create"}, "table already exists"),
    ({"type": "assert-table-uuid", "uuid": OTHER_UUID}, f"UUID does not match: expected {UUID} != {OTHER_UUID}"),
    ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 11}, "branch main has changed: expected id 11 != 22"),
    ({"type": "assert-ref-snapshot-id", "ref": "old", "snapshot-id": 22}, "tag old has changed: expected id 22 != 11"),
    ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}, "branch main was created concurrently"),
    ({"type": "assert-ref-snapshot-id", "ref": "x", "snapshot-id": 7}, "branch or tag x is missing, expected 7"),
    ({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
     "last assigned field id changed: expected id 2 != 3"),
    ({"type": "assert-current-schema-id", "current-schema-id": 9}, "current schema changed: expected id 9 != 0"),
    ({"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
     "last assigned partition id changed: expected id 999 != 1000"),
    ({"type": "assert-default-spec-id", "default-spec-id": 4}, "default partition spec changed: expected id 4 != 0"),
    ({"type": "assert-default-sort-order-id", "default-sort-order-id": 0}, "default sort order changed: expected id 0 != 1"),
])  # fmt: skip
def test_requirement_that_fails_is_a_conflict(requirement: Document, text: str) -> None:
    with pytest.raises(RequirementFailedError) as conflict:
        check_requirements(table(2), [MET[0], requirement])

    assert str(conflict.value) == f"Requirement failed: {text}"
    assert conflict.value.path == "requirements[1]"
    assert isinstance(conflict.value, ConflictError)


@pytest.mark.parametrize(("requirement", "path"), [
    ("assert-create", "requirements[0]"), ({}, "requirements[0].type"), ({"type": "assert-luck"}, "requirements[0].type"),
    ({"type": "assert-table-uuid"}, "requirements[0].uuid"), ({"type": "assert-view-uuid", "uuid": UUID}, "requirements[0].type"),
    ({"type": "assert-ref-snapshot-id", "snapshot-id": 1}, "requirements[0].ref"),
    ({"type": "assert-current-schema-id", "current-schema-id": "0"}, "requirements[0].current-schema-id"),
])  # fmt: skip
def test_element_that_is_no_requirement_is_named(requirement: Any, path: str) -> None:
    with pytest.raises(ChangeFormError) as refusal:
        check_requirements(table(2), [requirement])

    assert refusal.value.path == path


def test_form_is_judged_before_the_document() -> None:
    with pytest.raises(ChangeFormError):
        check_requirements(table(2), [{"type": "assert-create"}, {"type": "assert-luck"}])


def test_first_format_has_the_ids_that_it_does_not_state() -> None:
    check_requirements(
        changed(table(1), {"partition-spec": [{"name": "day", "transform": "identity", "source-id": 2}]}),
        [
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 22},
        ],
    )


def test_table_without_a_uuid_is_not_the_one_that_is_meant() -> None:
    with pytest.raises(RequirementFailedError, match="UUID does not match: expected None"):
        check_requirements(changed(table(1), {"table-uuid": GONE}), [{"type": "assert-table-uuid", "uuid": UUID}])


def test_table_to_be_created_meets_what_concerns_no_table() -> None:
    check_requirements(None, [
        {"type": "assert-create"}, {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 3},
    ])  # fmt: skip


@pytest.mark.parametrize("requirement", [MET[0], MET[1], MET[5], MET[7]])
def test_table_that_is_missing_meets_nothing_else(requirement: Document) -> None:
    with pytest.raises(RequirementFailedError):
        check_requirements(None, [requirement])


def test_view_is_known_by_its_uuid() -> None:
    check_requirements(view(), [{"type": "assert-view-uuid", "uuid": view()["view-uuid"].upper()}])
    with pytest.raises(RequirementFailedError, match="Requirement failed: view UUID does not match"):
        check_requirements(view(), [{"type": "assert-view-uuid", "uuid": OTHER_UUID}])


def test_view_has_no_requirements_of_tables() -> None:
    with pytest.raises(ChangeFormError, match="'assert-create', which is not one of assert-view-uuid"):
        check_requirements(view(), [{"type": "assert-create"}])
