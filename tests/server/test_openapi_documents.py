"""The OpenAPI document says what the table of routes serves."""

from __future__ import annotations

from typing import Any

import pytest
from things import Things

from headwater_server.openapi import openapi_document


@pytest.fixture
def document(things: Things) -> dict[str, Any]:
    return openapi_document([things.table()], version="1")


def test_document_has_every_route(document: dict[str, Any], things: Things) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]

    assert {operation["operationId"] for operation in operations} == {route.name for route in things.table().routes}


def test_operation_has_its_parameters(document: dict[str, Any]) -> None:
    parameters = document["paths"]["/api/v1/things/{thing}"]["get"]["parameters"]

    assert [(parameter["name"], parameter["in"], parameter["required"], parameter["schema"]) for parameter in parameters] == [
        ("thing", "path", True, {"type": "string", "minLength": 1}),
        ("pageToken", "query", False, {"type": "string"}),
        ("pageSize", "query", False, {"type": "integer"}),
        ("isWhole", "query", False, {"type": "boolean", "default": False}),
    ]


def test_operation_has_its_answers(document: dict[str, Any]) -> None:
    responses = document["paths"]["/api/v1/things/{thing}"]["get"]["responses"]

    assert list(responses) == ["200", "304", "default"]
    assert responses["default"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorEnvelope"}


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    assert {name.removeprefix("#/components/schemas/") for name in references(document)} == set(schemas)


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        named = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return named.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()
