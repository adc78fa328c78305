"""The OpenAPI document of a server, made from its tables of routes: what it does not say is not served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from headwater_server.route_table import Route, RouteTable

_REFERENCE: Final = "#/components/schemas/{name}"
_BODYLESS: Final = (None, bytes)


class ErrorModel(msgspec.Struct):
    """What went wrong: a sentence for people, and a type and the status for programs."""

    message: str
    type: str
    code: int


class ErrorEnvelope(msgspec.Struct):
    """The body of every answer to a request that did not succeed."""

    error: ErrorModel


def openapi_document(tables: Sequence[RouteTable], *, version: str) -> dict[str, Any]:
    """The document, in version 3.1, as plain data.

    version       of Headwater
    """
    routes = [(table, route) for table in tables for route in table.routes]
    types = _unique([ErrorEnvelope, *(kind for _, route in routes for kind in _types_of(route))])
    references, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    schemas = dict(zip(map(_key, types), references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for table, route in routes:
        paths.setdefault(table.mount + route.template, {})[route.method.lower()] = _operation(table, route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headwater", "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(table: RouteTable, route: Route, schemas: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [table.mount.strip("/") or "server"],
        "parameters": [*map(_path_parameter, route.parameters), *_query_parameters(route.query)],
        "responses": {str(status): _answer(status, kind, schemas) for status, kind in sorted(route.answers.items())},
    }
    operation["responses"]["default"] = _answer(None, ErrorEnvelope, schemas)
    if route.body is bytes:
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": {}}}
    elif route.body is not None:
        operation["requestBody"] = {"required": True, "content": _json_content(route.body, schemas)}
    return operation


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _query_parameters(kind: type[Any] | None) -> list[dict[str, Any]]:
    """The fields of a query's type, as parameters."""
    if kind is None:
        return []
    (reference,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    schema = components[reference["$ref"]]
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": _without_null(field)}
        for name, field in schema.get("properties", {}).items()
    ]


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A query has no null: what may be None is a parameter that may be left out."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf" and (name, value) != ("default", None)}
    if len(kinds) == 1:
        return {**kinds[0], **rest}
    return {"anyOf": kinds, **rest} if kinds else rest


def _answer(status: int | None, kind: Any, schemas: Mapping[str, Any]) -> dict[str, Any]:
    description = "An error" if status is None else HTTPStatus(status).phrase
    if kind is None:
        return {"description": description}
    if kind is bytes:
        return {"description": description, "content": {"application/json": {}}}
    return {"description": description, "content": _json_content(kind, schemas)}


def _json_content(kind: Any, schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schemas[_key(kind)]}}


def _types_of(route: Route) -> list[Any]:
    return [kind for kind in (route.body, *route.answers.values()) if kind not in _BODYLESS]


def _unique(types: Iterable[Any]) -> list[Any]:
    return list({_key(kind): kind for kind in types}.values())


def _key(kind: Any) -> str:
    """Types such as ``dict[str, str]`` are made anew at each mention, so that their identity says nothing."""
    return f"{getattr(kind, '__module__', '')} {kind!r}"
