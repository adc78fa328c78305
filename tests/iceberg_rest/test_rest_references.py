"""Prefixes with a reference: tags and hashes are only read, odd names are found, what is gone or made anew is seen at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from rest_actions import ACTIONS, PREFIX, Documents, fill_lake, send
from rest_caller import RestCaller

from asgi_client import AsgiClient
from headwater import Store
from headwater.catalogs import Catalog
from headwater.store import id_text
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.request_target import path_segments
from rest_server import application_of

TABLE = "namespaces/sales/tables/orders"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}


@pytest.fixture
def client(store: Store, lake: Catalog) -> Iterator[AsgiClient]:
    application = application_of(store)
    yield AsgiClient(application)
    application.close()


@pytest.fixture
def documents(client: AsgiClient) -> Documents:
    return fill_lake(client)


def head_of(lake: Catalog) -> str:
    head = lake.resolve(None)
    assert head is not None
    return id_text(head.id)


def request_of(name: str, documents: Documents, prefix: str) -> tuple[str, str, Any]:
    method, path, body = ACTIONS[name].make(documents)
    return method, path.replace(PREFIX, prefix), body


def test_actions_are_all_that_can_be_written(documents: Documents) -> None:
    table, names = iceberg_table(), set()
    for action in ACTIONS.values():
        method, path, _ = action.make(documents)
        match = table.find(path_segments(path.partition("?")[0].encode()))
        assert match is not None
        names.add(match.routes[method].name)

    assert names == {route.name for route in table.routes if route.writes} - {"revokeToken"}


@pytest.mark.parametrize("reference", ["tag", "hash", "step"])
def test_reference_that_is_no_branch_is_only_read(
    client: AsgiClient, documents: Documents, lake: Catalog, reference: str
) -> None:
    lake.create_tag("v1")
    before = head_of(lake)
    name = {"tag": "v1", "hash": before, "step": "main~1"}[reference]
    prefix = f"{PREFIX}~{name}"

    for action in ACTIONS:
        method, path, body = request_of(action, documents, prefix)
        refused = send(client, (method, path, body))
        assert refused.error == (400, "BadRequestException"), (action, refused.content)
        assert f"{name!r} is not a branch" in refused.message and "can only be read" in refused.message, action
    assert client.request("GET", f"{prefix}/namespaces/sales/tables").status == 200
    assert head_of(lake) == before


def test_reference_that_never_was_cannot_be_written(client: AsgiClient, documents: Documents) -> None:
    for action in ACTIONS:
        refused = send(client, request_of(action, documents, f"{PREFIX}~nobody"))
        assert refused.error[0] == 404, (action, refused.content)


def test_table_is_not_staged_where_it_cannot_be_created(client: AsgiClient, documents: Documents, lake: Catalog) -> None:
    lake.create_tag("v1")
    body = {"name": "new", "schema": SCHEMA, "stage-create": True}

    staged = client.request("POST", f"{PREFIX}~v1/namespaces/sales/tables", json.dumps(body).encode())

    assert staged.error == (400, "BadRequestException")


@pytest.mark.parametrize("name", ["a/b/c", "1.2.3", "_x", "0123456789abcde", "Main", "heads", "v1/tables", "a.b-c_d/e"])
def test_branch_with_odd_name_is_served(sales: RestCaller, lake: Catalog, name: str) -> None:
    lake.create_branch(name)
    prefix = sales.get("/v1/config", warehouse=f"acme/lake@{name}").json["overrides"]["prefix"]

    assert sales.at(prefix).post("namespaces", {"namespace": ["fresh"]}).status == 200
    assert sales.at(prefix).head("namespaces/fresh").status == 204
    assert sales.head("namespaces/fresh").status == 404


def test_branch_that_vanishes_is_gone_at_once(sales: RestCaller, lake: Catalog) -> None:
    lake.create_branch("dev")
    dev = sales.at("acme~lake~dev")
    assert dev.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA}).status == 200

    lake.delete_branch("dev")

    assert dev.get(TABLE).error == (404, "NoSuchWarehouseException")
    assert dev.post("namespaces", {"namespace": ["late"]}).error == (404, "NoSuchWarehouseException")


def test_branch_that_is_made_anew_is_another(sales: RestCaller, lake: Catalog) -> None:
    lake.create_branch("dev")
    dev = sales.at("acme~lake~dev")
    assert dev.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA}).status == 200

    lake.delete_branch("dev")
    lake.create_branch("dev")

    assert dev.get(TABLE).error == (404, "NoSuchTableException")
    assert dev.post("namespaces", {"namespace": ["again"]}).status == 200


def test_tag_in_the_place_of_a_branch_is_read_only(sales: RestCaller, lake: Catalog) -> None:
    lake.create_branch("dev")
    dev = sales.at("acme~lake~dev")
    assert dev.post("namespaces", {"namespace": ["one"]}).status == 200

    lake.delete_branch("dev")
    lake.create_tag("dev")
    refused = dev.post("namespaces", {"namespace": ["two"]})

    assert refused.error == (400, "BadRequestException") and "tag" in refused.message
    assert dev.head("namespaces/sales").status == 204
