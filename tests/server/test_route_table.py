"""Routes are found by decoded segments: static ones before parameters, methods of all templates that fit."""

from __future__ import annotations

import pytest

from headwater_server.call import Answer, Call
from headwater_server.route_table import Route, RouteTable


def handler(call: Call[None, None]) -> Answer:
    return Answer()


def route(method: str, template: str, name: str, *also: str) -> Route:
    return Route(method=method, template=template, handler=handler, name=name, summary=name, also=also)


TABLE = RouteTable(
    "/iceberg",
    [
        route("GET", "/v1/{prefix}/namespaces", "list", "/v1/namespaces"),
        route("GET", "/v1/{prefix}/namespaces/{namespace}", "read"),
        route("POST", "/v1/{prefix}/tables/rename", "rename"),
        route("GET", "/v1/{prefix}/tables/{table}", "load"),
        route("HEAD", "/v1/{prefix}/tables/{name}", "check"),
    ],
)


def names(path: str) -> dict[str, str]:
    match = TABLE.find(path.split("/")[1:])
    return {} if match is None else {method: found.name for method, found in match.routes.items()}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/iceberg/v1/namespaces", {"GET": "list"}),
        ("/iceberg/v1/lake/namespaces", {"GET": "list"}),
        ("/iceberg/v1/lake/namespaces/..", {"GET": "read"}),
        ("/iceberg/v1/lake/tables/rename", {"POST": "rename", "GET": "load", "HEAD": "check"}),
        ("/iceberg/v1/lake/namespaces/", {}),
        ("/iceberg/v1//namespaces", {}),
        ("/iceberg/v1/lake/namespaces/a/b", {}),
        ("/iceberg", {}),
        ("/", {}),
    ],
)
def test_path_has_the_routes_of_its_templates(path: str, found: dict[str, str]) -> None:
    assert names(path) == found


def test_parameters_are_named_by_their_own_template() -> None:
    match = TABLE.find(["iceberg", "v1", "a/b", "tables", "t"])

    assert match is not None
    assert match.path == {"GET": {"prefix": "a/b", "table": "t"}, "HEAD": {"prefix": "a/b", "name": "t"}}


def test_head_is_allowed_where_get_is() -> None:
    match = TABLE.find(["iceberg", "v1", "namespaces"])

    assert match is not None and match.allowed == ("GET", "HEAD", "OPTIONS")


def test_endpoints_are_templates_without_the_mount() -> None:
    assert TABLE.endpoints[0] == "GET /v1/{prefix}/namespaces"


@pytest.mark.parametrize(
    "second", [route("GET", "/v1/{other}/namespaces", "other"), route("GET", "/v1/{prefix}/views", "list")]
)
def test_table_refuses_two_routes_for_the_same(second: Route) -> None:
    with pytest.raises(AssertionError):
        RouteTable("/iceberg", [route("GET", "/v1/{prefix}/namespaces", "list"), second])
