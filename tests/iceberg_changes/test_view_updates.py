"""New views, and the updates of views."""

from __future__ import annotations

import copy
from typing import Any
from uuid import UUID

import pytest

from headwater.iceberg.changes import VIEW_SHAPES, ChangeFormError, change_view, new_view
from headwater.iceberg.spec import check_view
from metadata_fixtures import COLUMNS, changed, column, schema, version_of_view, view

Document = dict[str, Any]
NOW = 1_760_000_000_000
UUID_OF_VIEW = UUID("00000000-0000-4000-8000-000000000001")
WIDER = schema(*COLUMNS, column(4, "more", "variant"))
SET_CURRENT = {"action": "set-current-view-version", "view-version-id": -1}


def query(dialect: str, sql: str = "SELECT 2") -> Document:
    return {"type": "sql", "sql": sql, "dialect": dialect}


def change(document: Document, *updates: Document) -> Document:
    return change_view(document, updates, now_ms=NOW)


def add_version(number: int = 1, *, schema_id: int = 0, queries: list[Document] | None = None) -> Document:
    fields = {"schema-id": schema_id, "timestamp-ms": NOW - 5, "representations": queries or [query("trino")]}
    return {"action": "add-view-version", "view-version": version_of_view(number, **fields)}


def set_properties(**properties: str) -> Document:
    return {"action": "set-properties", "updates": properties}


def make(**asked: Any) -> Document:
    given = {"schema": schema(*COLUMNS, number=9), "view_version": version_of_view(7), "location": "s3://lake/v/"}
    return new_view(**(given | {"view_uuid": UUID_OF_VIEW, "now_ms": NOW} | asked))


def test_actions_are_those_of_views() -> None:
    assert set(VIEW_SHAPES) == {
        "assign-uuid", "upgrade-format-version", "add-schema", "set-location", "set-properties", "remove-properties",
        "add-view-version", "set-current-view-version",
    }  # fmt: skip


def test_new_view_has_one_version() -> None:
    result = make(properties={"comment": "new"})

    assert check_view(result) == (1, str(UUID_OF_VIEW), 1, 0, (1,))
    assert (result["location"], result["properties"]) == ("s3://lake/v", {"comment": "new"})
    assert result["version-log"] == [{"timestamp-ms": version_of_view(7)["timestamp-ms"], "version-id": 1}]


@pytest.mark.parametrize(("asked", "path"), [
    ({"location": ""}, "location"), ({"schema": {}}, "schema.type"), ({"view_version": 5}, "view-version"),
    ({"view_version": {"version-id": 1}}, "view-version.summary"), ({"properties": {"a": 1}}, "properties['a']"),
    ({"properties": []}, "properties"),
    ({"schema": schema(column(1, "a", "no"))}, "schema"),
    ({"properties": {"version.history.num-entries": "0"}}, "properties['version.history.num-entries']"),
    ({"view_version": version_of_view(1, representations=[query("a"), query("A")])}, "view-version.representations[1]"),
    ({"view_version": version_of_view(1, representations=[{"type": "sql", "sql": "x"}])},
     "view-version.representations[0].dialect"),
])  # fmt: skip
def test_request_that_is_no_view_is_refused(asked: Document, path: str) -> None:
    with pytest.raises(ChangeFormError) as refusal:
        make(**asked)

    assert refusal.value.path == path


def test_version_replaces_the_current_one() -> None:
    document = view()
    before = copy.deepcopy(document)

    result = change(document, {"action": "add-schema", "schema": WIDER}, add_version(schema_id=-1), SET_CURRENT)

    assert check_view(result)[2:] == (3, 1, (1, 2, 3))
    assert result["version-log"][-1] == {"timestamp-ms": NOW - 5, "version-id": 3}
    assert document == before


def test_earlier_version_is_current_again_from_now_on() -> None:
    result = change(view(), {"action": "set-current-view-version", "view-version-id": 1})

    assert (result["current-version-id"], result["version-log"][-1]) == (1, {"timestamp-ms": NOW, "version-id": 1})


def test_version_that_says_the_same_is_used_again() -> None:
    document = view()
    same = {"action": "add-view-version", "view-version": version_of_view(9, **{"timestamp-ms": NOW})}

    result = change(document, {"action": "add-schema", "schema": schema(*COLUMNS)}, same, SET_CURRENT)

    assert (result["current-version-id"], result["versions"]) == (1, document["versions"])


def test_version_keeps_unknown_fields_and_representations() -> None:
    odd = {"type": "substrait", "plan": {"a": 1}}

    result = change(view(), add_version(queries=[query("trino"), odd]))

    assert result["versions"][-1]["representations"][1] == odd


@pytest.mark.parametrize(("update", "text"), [
    (add_version(queries=[query("Spark"), query("trino"), query("spark")]),
     "Invalid view version: Cannot add multiple queries for dialect spark (updates[0].view-version.representations[2])"),
    (add_version(schema_id=5), "Cannot add version with unknown schema: 5"),
    (add_version(schema_id=-1), "Cannot set last added schema: no schema has been added"),
    (SET_CURRENT, "Cannot set last version id: no current version id has been set"),
    ({"action": "set-current-view-version", "view-version-id": 8}, "Cannot set current version to unknown version: 8"),
    ({"action": "upgrade-format-version", "format-version": 2}, "Unsupported format version: 2"),
    ({"action": "upgrade-format-version", "format-version": 0}, "Cannot downgrade v1 view to v0"),
    ({"action": "assign-uuid", "uuid": str(UUID_OF_VIEW)}, "Cannot reassign uuid"),
    ({"action": "set-properties", "updates": {"version.history.num-entries": "-1"}},
     "version.history.num-entries must be positive but was -1"),
    ({"action": "add-snapshot"}, "The request has updates[0].action 'add-snapshot', which is not one of add-schema"),
    ({"action": "add-view-version", "view-version": {"version-id": 1}}, "The request has no updates[0].view-version.schema-id"),
])  # fmt: skip
def test_update_that_cannot_be_is_refused(update: Document, text: str) -> None:
    with pytest.raises(ChangeFormError) as refusal:
        change(view(), update)

    assert str(refusal.value).startswith(text)


def test_dialect_is_not_lost_by_replacing() -> None:
    with pytest.raises(ChangeFormError) as refusal:
        change(view(), add_version(queries=[query("spark")]), SET_CURRENT)

    assert str(refusal.value) == (
        "Cannot replace view due to loss of view dialects (replace.drop-dialect.allowed=false):\n"
        "Previous dialects: ['trino']\nNew dialects: ['spark']"
    )


def test_dialect_is_lost_where_the_view_allows_it() -> None:
    allowed = set_properties(**{"replace.drop-dialect.allowed": "TRUE"})

    assert change(view(), allowed, add_version(queries=[query("spark")]), SET_CURRENT)["current-version-id"] == 3


def with_history(*, size: int, versions: int) -> Document:
    document = changed(view(), {"properties": {"version.history.num-entries": str(size)}})
    for at in range(versions):
        document = change(document, add_version(queries=[query("trino", f"SELECT {at + 20}")]), SET_CURRENT)
    return document


def test_old_versions_go() -> None:
    result = with_history(size=3, versions=4)

    assert [version["version-id"] for version in result["versions"]] == [4, 5, 6]
    assert [entry["version-id"] for entry in result["version-log"]] == [4, 5, 6]


def test_current_version_stays_however_old() -> None:
    back = change(with_history(size=3, versions=1), {"action": "set-current-view-version", "view-version-id": 1})

    result = change(back, add_version(queries=[query("trino", "SELECT 8")]))

    assert [version["version-id"] for version in result["versions"]] == [1, 3, 4]
    assert [entry["version-id"] for entry in result["version-log"]] == [3, 1]


def test_versions_of_one_change_stay_together() -> None:
    document = with_history(size=1, versions=1)

    result = change(document, *(add_version(queries=[query("trino", f"SELECT 1{at}")]) for at in range(2)), SET_CURRENT)

    assert [version["version-id"] for version in result["versions"]] == [4, 5]


def test_ten_versions_stay_where_nothing_is_said() -> None:
    document = change(with_history(size=50, versions=12), {
        "action": "remove-properties", "removals": ["version.history.num-entries"]})  # fmt: skip

    assert len(document["versions"]) == 10


@pytest.mark.parametrize("update", [
    set_properties(comment="orders by day"), {"action": "remove-properties", "removals": ["never"]},
    {"action": "set-location", "location": view()["location"] + "/"}, {"action": "assign-uuid", "uuid": view()["view-uuid"]},
    {"action": "add-schema", "schema": schema(*COLUMNS, number=4)}, {"action": "upgrade-format-version", "format-version": 1},
])  # fmt: skip
def test_view_that_nothing_changes_is_returned(update: Document) -> None:
    document = view()

    assert change(document, update) is document


def test_properties_and_location_change() -> None:
    result = change(
        view(),
        set_properties(a="1"),
        {"action": "remove-properties", "removals": ["comment"]},
        {"action": "set-location", "location": "s3://lake/moved"},
    )

    assert (result["properties"], result["location"]) == ({"a": "1"}, "s3://lake/moved")


def test_fault_that_a_view_had_stays_out_of_the_way() -> None:
    document = changed(view(), {"schemas": [schema(*COLUMNS), schema(*COLUMNS)]})

    assert change(document, set_properties(a="1"))["properties"]["a"] == "1"
