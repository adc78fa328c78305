"""Every operation of the OpenAPI document responds as the document says, whatever the document allows to be sent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from headwater import open_store
from headwater.catalogs import Catalogs
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater_server.openapi import openapi_document
from headwater_server.server_probes import SERVER_PROBES
from headwater_server.server_tables import server_tables
from rest_server import serve_store

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]
EXAMPLES = 100 if os.environ.get("HEADWATER_SOAK") else 8
"""Requests for each of 144 operations."""
DOCUMENT = openapi_document(server_tables(), SERVER_PROBES, version="1")
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
NAMES = {"realm": "acme", "catalog": "lake", "prefix": "acme~lake"}
"""What is there: else every request would end with 404 for its realm."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("whole")
    with open_store(f"sqlite:///{folder}/store.db") as store:
        realms = RealmRegistry(store)
        realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
        realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
        realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
        Catalogs(realms.open_realm("acme")).create_catalog("lake", base_location=(folder / "warehouse").as_uri())
        with serve_store(store, server_tables()) as served:
            yield served


def operations() -> Iterator[tuple[str, Any]]:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    for found in schema.get_all_operations():
        operation = found.ok()
        yield operation.definition.raw["operationId"], operation


@pytest.mark.parametrize(("name", "operation"), [pytest.param(name, each, id=name) for name, each in operations()])
def test_operation_responds_as_the_document_says(url: str, name: str, operation: Any) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case: Any) -> None:
        known = {key: value for key, value in NAMES.items() if key in (case.path_parameters or {})}
        if name != "deleteCatalog":  # what the others need stays
            case.path_parameters = {**(case.path_parameters or {}), **known}
        response = case.call(base_url=url, timeout=60)
        case.validate_response(response, checks=CHECKS)

    send()
