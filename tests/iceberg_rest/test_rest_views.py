"""Views as clients of Iceberg REST create, replace, rename and drop them."""

from __future__ import annotations

from typing import Any

from rest_caller import RestAnswer, RestCaller

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


def version(number: int, sql: str) -> dict[str, Any]:
    return {
        "version-id": number,
        "timestamp-ms": 1_700_000_000_000 + number,
        "schema-id": 0,
        "summary": {"engine-name": "spark"},
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
        "default-namespace": ["sales"],
    }


def create(rest: RestCaller, name: str = "recent") -> RestAnswer:
    body = {"name": name, "schema": SCHEMA, "view-version": version(1, "select 1 as id"), "properties": {"owner": "ann"}}
    return rest.post("namespaces/sales/views", body)


def test_view_that_was_created_is_loaded(sales: RestCaller) -> None:
    created = create(sales)

    assert created.status == 200, created.content
    assert created.json["metadata"]["properties"] == {"owner": "ann"}
    assert sales.get("namespaces/sales/views/recent").json == created.json
    assert sales.head("namespaces/sales/views/recent").status == 204
    assert sales.get("namespaces/sales/views").json["identifiers"] == [{"namespace": ["sales"], "name": "recent"}]


def test_view_and_table_share_no_name(sales: RestCaller) -> None:
    create(sales)
    sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA})

    assert create(sales).message.startswith("View already exists: sales.recent")
    assert create(sales, "orders").message.startswith("Table with same name already exists: sales.orders")
    table = sales.post("namespaces/sales/tables", {"name": "recent", "schema": SCHEMA})
    assert table.error == (409, "AlreadyExistsException")
    assert table.message.startswith("View with same name already exists: sales.recent")


def test_view_is_replaced_by_a_commit(sales: RestCaller) -> None:
    uuid = create(sales).json["metadata"]["view-uuid"]
    updates = [
        {"action": "add-view-version", "view-version": version(2, "select 2 as id")},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    body = {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": updates}

    replaced = sales.post("namespaces/sales/views/recent", body).json["metadata"]

    assert replaced["current-version-id"] == 2 and len(replaced["versions"]) == 2


def test_view_of_another_uuid_is_not_replaced(sales: RestCaller) -> None:
    create(sales)
    requirements = [{"type": "assert-view-uuid", "uuid": "00000000-0000-4000-8000-000000000000"}]

    refused = sales.post("namespaces/sales/views/recent", {"requirements": requirements, "updates": []})

    assert refused.error == (409, "CommitFailedException")
    assert "view UUID does not match" in refused.message


def test_view_is_renamed_and_dropped(sales: RestCaller) -> None:
    create(sales)
    source, target = {"namespace": ["sales"], "name": "recent"}, {"namespace": ["sales"], "name": "old"}

    assert sales.post("views/rename", {"source": source, "destination": target}).status == 204
    assert sales.delete("namespaces/sales/views/old").status == 204
    assert sales.delete("namespaces/sales/views/old").error == (404, "NoSuchViewException")
    assert sales.post("views/rename", {"source": source, "destination": target}).error == (404, "NoSuchViewException")


def test_dropped_view_is_registered_again(sales: RestCaller) -> None:
    created = create(sales).json
    sales.delete("namespaces/sales/views/recent")

    back = sales.post("namespaces/sales/register-view", {"name": "back", "metadata-location": created["metadata-location"]})

    assert back.json["metadata"] == created["metadata"]


def test_two_queries_in_one_dialect_are_an_illegal_argument(sales: RestCaller) -> None:
    twice = version(1, "select 1 as id")
    twice["representations"] *= 2
    body = {"name": "recent", "schema": SCHEMA, "view-version": twice, "properties": {}}

    assert sales.post("namespaces/sales/views", body).error == (400, "IllegalArgumentException")
