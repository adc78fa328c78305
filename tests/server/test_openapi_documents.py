"""The OpenAPI document says what the table of routes serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from things import Things

from headwater_server.iceberg_rest import iceberg_table
from headwater_server.iceberg_rest.iceberg_routes import listed_endpoints
from headwater_server.openapi import openapi_document
from headwater_server.route_table import RouteTable
from headwater_server.server_probes import SERVER_PROBES
from headwater_server.server_tables import server_tables


@pytest.fixture
def document(things: Things) -> dict[str, Any]:
    return openapi_document([things.table()], version="1")


def test_document_has_every_route(document: dict[str, Any], things: Things) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]

    assert {operation["operationId"] for operation in operations} == {route.name for route in things.table().routes}


def test_operation_has_its_parameters(document: dict[str, Any]) -> None:
    parameters = document["paths"]["/api/v1/things/{thing}"]["get"]["parameters"]
    own = [parameter for parameter in parameters if "$ref" not in parameter]

    assert [(parameter["name"], parameter["in"], parameter["required"], parameter["schema"]) for parameter in own] == [
        ("thing", "path", True, {"type": "string", "minLength": 1}),
        ("pageToken", "query", False, {"type": "string"}),
        ("pageSize", "query", False, {"type": "integer"}),
        ("isWhole", "query", False, {"type": "boolean", "default": False}),
    ]


def test_operation_has_its_answers(document: dict[str, Any]) -> None:
    responses = document["paths"]["/api/v1/things/{thing}"]["get"]["responses"]

    assert list(responses) == ["200", "304", "400", "401", "403", "404", "421", "429", "431", "500", "503", "505"]
    assert responses["400"] == {"$ref": "#/components/responses/400"}


def test_error_has_its_shape_and_headers(document: dict[str, Any]) -> None:
    overload = document["components"]["responses"]["429"]

    assert overload["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorEnvelope"}
    assert set(overload["headers"]) == {"Cache-Control", "Retry-After", "X-Request-ID"}


def test_probes_are_in_the_document(things: Things) -> None:
    paths = openapi_document([things.table()], SERVER_PROBES, version="1")["paths"]

    assert {"/healthz", "/readyz", "/metrics", "/openapi.json"} < set(paths)
    assert list(paths["/readyz"]["get"]["responses"]) == ["200", "503", "400", "500"]


@pytest.mark.parametrize("table", server_tables(), ids=lambda table: table.mount)
def test_routes_are_told_in_every_place(table: RouteTable) -> None:
    page = (Path(__file__).parents[2] / "docs" / "operate" / "server.md").read_text(encoding="utf-8")
    paths = openapi_document([table], version="1")["paths"]

    for route in table.routes:
        match = table.find((table.mount + route.template).split("/")[1:])
        assert match is not None and match.routes[route.method] is route
        assert paths[table.mount + route.template][route.method.lower()]["operationId"] == route.name
        assert f"`{route.method} {table.mount}{route.template}`" in page


def test_endpoints_of_iceberg_are_its_routes_but_three() -> None:
    table = iceberg_table()

    unlisted = {route.name for route in table.routes if route.endpoint not in listed_endpoints(table)}
    assert unlisted == {"getConfig", "getToken", "revokeToken"}


def test_whole_document_leads_nowhere_else() -> None:
    document = openapi_document(server_tables(), SERVER_PROBES, version="1")
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]

    assert lost_references(document) == set() and len(names) == len(set(names))


def test_document_of_iceberg_types_its_parts() -> None:
    document = openapi_document([iceberg_table()], version="1")
    schemas = document["components"]["schemas"]

    assert schemas["CommitTableRequest"]["properties"]["updates"]["items"]["$ref"] == "#/components/schemas/TableUpdate"
    assert len(schemas["TableUpdate"]["anyOf"]) == 23 and len(schemas["TableRequirement"]["anyOf"]) == 8
    assert lost_references(document) == set()


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    assert lost_references(document) == set()


def lost_references(document: dict[str, Any]) -> set[str]:
    components = {f"#/components/{kind}/{name}" for kind, named in document["components"].items() for name in named}
    return references(document) - components


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        named = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return named.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_errors_of_nessie_are_flat() -> None:
    document = openapi_document(server_tables(), version="1")
    responses = document["paths"]["/nessie/{realm}/{catalog}/api/v2/config"]["get"]["responses"]
    schema = {
        status: answer["content"]["application/json"]["schema"] for status, answer in responses.items() if status == "404"
    }

    assert schema == {"404": {"$ref": "#/components/schemas/NessieError"}}
    assert set(document["components"]["schemas"]["NessieError"]["properties"]) == {
        "status",
        "reason",
        "message",
        "errorCode",
        "errorDetails",
    }
