"""The specification of Iceberg REST, line by line: which operations there are, and where it leaves a choice or is not followed.

What is not followed stands in docs/operate/server.md, with the reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rest_caller import RestCaller

from headwater_server.iceberg_rest.iceberg_routes import iceberg_table

DOCS = Path(__file__).parents[2] / "docs/operate/server.md"
NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
TABLE = NAMESPACE + "/tables/{table}"
UNSERVED = {
    f"GET {NAMESPACE}/functions": "…/functions",
    f"GET {NAMESPACE}/functions/{{function}}": "…/functions",
    f"POST {TABLE}/plan": "…/plan",
    f"GET {TABLE}/plan/{{plan-id}}": "…/plan",
    f"DELETE {TABLE}/plan/{{plan-id}}": "…/plan",
    f"POST {TABLE}/tasks": "…/tasks",
    f"POST {TABLE}/sign": "…/sign",
    f"POST {TABLE}/unregister": "…/unregister",
}
"""Operations of the specification that are not served, and the words of the docs for them."""
SERVED = {
    "GET /v1/config",
    "POST /v1/oauth/tokens",
    "GET /v1/{prefix}/namespaces",
    "POST /v1/{prefix}/namespaces",
    f"GET {NAMESPACE}",
    f"HEAD {NAMESPACE}",
    f"DELETE {NAMESPACE}",
    f"POST {NAMESPACE}/properties",
    f"GET {NAMESPACE}/tables",
    f"POST {NAMESPACE}/tables",
    f"POST {NAMESPACE}/register",
    f"GET {TABLE}",
    f"HEAD {TABLE}",
    f"POST {TABLE}",
    f"DELETE {TABLE}",
    f"GET {TABLE}/credentials",
    f"POST {TABLE}/metrics",
    "POST /v1/{prefix}/tables/rename",
    "POST /v1/{prefix}/transactions/commit",
    f"GET {NAMESPACE}/views",
    f"POST {NAMESPACE}/views",
    f"GET {NAMESPACE}/views/{{view}}",
    f"HEAD {NAMESPACE}/views/{{view}}",
    f"POST {NAMESPACE}/views/{{view}}",
    f"DELETE {NAMESPACE}/views/{{view}}",
    "POST /v1/{prefix}/views/rename",
    f"POST {NAMESPACE}/register-view",
}
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
NULLS = {"partition-spec": None, "write-order": None, "properties": None, "location": None, "stage-create": None}
ORDERS = {"namespace": ["sales"], "name": "orders"}
CHANGE: dict[str, Any] = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}


@pytest.fixture
def orders(sales: RestCaller) -> RestCaller:
    """A caller of the lake with the table ``sales.orders``, whose optional fields were sent as null."""
    assert sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA, **NULLS}).status == 200
    return sales


def test_operations_of_the_specification_are_served() -> None:
    assert {route.endpoint for route in iceberg_table().routes} == SERVED | {"POST /v1/oauth/revoke"}  # RFC 7009


def test_operations_that_are_not_served_are_told() -> None:
    docs = DOCS.read_text(encoding="utf-8").partition("## What is not served")[2]

    assert [words for words in UNSERVED.values() if f"`{words}`" not in docs] == []


@pytest.mark.parametrize(
    ("method", "path", "query", "status"),
    [
        ("GET", "namespaces/sales/tables", {"pageSize": "0"}, 400),
        ("GET", "namespaces/sales/tables", {"pageSize": "-1"}, 400),
        ("GET", "namespaces/sales/tables", {"pageSize": "many"}, 400),
        ("GET", "namespaces/sales/tables", {"pageSize": ""}, 400),
        ("GET", "namespaces/sales/tables", {"pageSize": "null"}, 200),
        ("GET", "namespaces/sales/tables", {"pageSize": "99999999999999999999"}, 200),
        ("GET", "namespaces/sales/tables", {"pageToken": "null"}, 400),
        ("GET", "namespaces/sales/tables", {"unknown": "1"}, 200),
        ("GET", "namespaces", {"parent": ""}, 200),
        ("GET", "namespaces", {"parent": "sales", "pageToken": ""}, 200),
        ("GET", "namespaces", {"parent": "sales\x1f"}, 400),
        ("GET", "namespaces", {"parent": "none"}, 404),
        ("GET", "namespaces/sales.eu", {}, 404),
        ("GET", "namespaces/sales%1F", {}, 400),
        ("HEAD", "namespaces/none", {}, 404),
        ("GET", "namespaces/sales/tables/orders", {"snapshots": "other"}, 400),
        ("GET", "namespaces/sales/tables/orders", {"snapshots": ""}, 400),
        ("GET", "namespaces/sales/tables/orders", {"snapshots": "refs"}, 200),
        ("GET", "namespaces/sales/tables/orders", {"referenced-by": "sales\x1fv"}, 200),
        ("GET", "namespaces/sales/tables/orders/credentials", {"planId": "a", "referenced-by": "v"}, 200),
        ("DELETE", "namespaces/sales/tables/orders", {"purgeRequested": "maybe"}, 400),
        ("DELETE", "namespaces/sales/tables/orders", {"purgeRequested": ""}, 400),
        ("DELETE", "namespaces/sales/tables/none", {"purgeRequested": "True"}, 404),
        ("DELETE", "namespaces/sales/tables/orders", {"purgeRequested": "FALSE"}, 204),
        ("DELETE", "namespaces/sales", {}, 409),
    ],
)
def test_parameter_is_read_or_refused(orders: RestCaller, method: str, path: str, query: dict[str, str], status: int) -> None:
    assert orders.call(method, path, query=query).status == status


def test_refused_parameter_is_told_its_values(orders: RestCaller) -> None:
    message = orders.get("namespaces/sales/tables/orders", snapshots="other").message

    assert message == "snapshots: invalid enum value 'other'; give all or refs"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("namespaces", {"namespace": ["eu"], "properties": None}, 200),
        ("namespaces", {"namespace": ["a", "b", "c"]}, 200),
        ("namespaces", {"namespace": []}, 400),
        ("namespaces", {"namespace": ["a", ""]}, 400),
        ("namespaces", {"namespace": ["a\x1fb"]}, 400),
        ("namespaces", {"namespace": "eu"}, 400),
        ("namespaces", {"namespace": ["eu"], "properties": {"a": 1}}, 400),
        ("namespaces/sales/properties", {}, 200),
        ("namespaces/sales/properties", {"removals": ["a", "a"], "updates": None}, 200),
        ("namespaces/sales/properties", {"removals": ["a"], "updates": {"a": "1"}}, 422),
        ("namespaces/sales/tables/orders", CHANGE | {"identifier": ORDERS | {"name": "other"}}, 200),
        ("namespaces/sales/tables/orders", {"updates": []}, 400),
        ("namespaces/sales/tables/orders", {"requirements": None, "updates": []}, 400),
        ("namespaces/sales/tables/orders/metrics", {"report-type": "scan-report"}, 204),
        ("namespaces/sales/tables/none/metrics", {"report-type": "new"}, 204),
        ("tables/rename", {"source": ORDERS, "destination": ORDERS}, 204),
        ("tables/rename", {"source": ORDERS, "destination": {"namespace": [], "name": "a"}}, 400),
        ("transactions/commit", {"table-changes": []}, 400),
        ("transactions/commit", {"table-changes": [CHANGE]}, 400),
        ("transactions/commit", {"table-changes": [CHANGE | {"identifier": ORDERS}] * 2}, 400),
        ("transactions/commit", {"table-changes": [CHANGE | {"identifier": ORDERS}]}, 204),
        ("namespaces/sales/register", {"name": "new"}, 400),
        ("namespaces/sales/register", {"name": "orders", "metadata-location": "", "overwrite": None}, 400),
    ],
)
def test_body_is_taken_or_refused(orders: RestCaller, path: str, body: dict[str, Any], status: int) -> None:
    answer = orders.call("POST", path, body=json.dumps(body).encode())

    assert answer.status == status, answer.content


def test_size_of_a_page_alone_asks_for_pages(orders: RestCaller) -> None:
    orders.post("namespaces/sales/tables", {"name": "parts", "schema": SCHEMA})

    first = orders.get("namespaces/sales/tables", pageSize="1").json
    rest = orders.get("namespaces/sales/tables", pageToken=first["next-page-token"]).json
    assert [entry["name"] for page in (first, rest) for entry in page["identifiers"]] == ["orders", "parts"]
    assert rest["next-page-token"] is None


def test_page_token_holds_for_its_listing(orders: RestCaller) -> None:
    orders.post("namespaces/sales/tables", {"name": "parts", "schema": SCHEMA})
    token = orders.get("namespaces/sales/tables", pageSize="1").json["next-page-token"]
    orders.delete("namespaces/sales/tables/parts")

    page = orders.get("namespaces/sales/tables", pageToken=token).json
    assert [entry["name"] for entry in page["identifiers"]] == ["parts"]
    for caller, path in (
        (orders, "namespaces/sales/views"),
        (orders, "namespaces"),
        (orders.at("acme~lake~main~1"), "namespaces"),
    ):
        assert caller.get(path, pageToken=token).error == (400, "BadRequestException")
