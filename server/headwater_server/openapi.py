"""The OpenAPI document of a server, made from its tables of routes: what it does not say is not served."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from inspect import cleandoc
from typing import Any, Final, NamedTuple, cast

import msgspec

from headwater_server.route_table import HeaderField, Route, RouteTable
from headwater_server.server_probes import ServerProbe

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


class _ErrorKind(NamedTuple):
    """What an error of a status says to a client."""

    description: str
    is_retried: bool = False


_ERRORS: Final = {
    400: _ErrorKind("The request is refused: change it"),
    401: _ErrorKind("Nobody has proved who calls: get a token, and send the request with it"),
    403: _ErrorKind(
        "Whoever calls lacks the privilege that the message names, or a page of this origin may change nothing here"
    ),
    404: _ErrorKind("Something that the request names is not there"),
    408: _ErrorKind("The body did not arrive in time"),
    409: _ErrorKind("Nothing happened: another request was faster, or what was expected is not so"),
    413: _ErrorKind("The body is too large"),
    415: _ErrorKind("A body of this type or encoding is not read"),
    421: _ErrorKind("The server is not called by this name"),
    422: _ErrorKind("The request contradicts itself, or its key was another request's"),
    431: _ErrorKind("The line and the headers of the request are too large"),
    429: _ErrorKind("Nothing was begun: the server has enough to do", is_retried=True),
    500: _ErrorKind("Nobody knows whether it happened, or something stored is damaged"),
    503: _ErrorKind("Certainly nothing happened", is_retried=True),
    505: _ErrorKind("This version of HTTP is not served"),
}
_ANYWHERE: Final = (400, 421, 429, 431, 500, 503, 505)
_BEFORE_TABLES: Final = (400, 403, 421)
"""What is answered before it is known which protocol a path belongs to, in the words of Iceberg's REST specification."""
_OF_CONNECTIONS: Final = (431, 505)
_OF_NAMES: Final = (404,)
_OF_BODIES: Final = (408, 413, 415)
_OF_CALLERS: Final = (401, 403)
_OF_PAGES: Final = (403,)
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_RETRY_AFTER: Final = HeaderField("Retry-After", "After how many seconds to send the request again", is_certain=True)
_REQUEST_ID: Final = HeaderField("X-Request-ID", "What the access log names the request by", is_certain=True)
_CACHE_CONTROL: Final = HeaderField("Cache-Control", "Caches ask each time whether an answer still holds", is_certain=True)
_CHALLENGE: Final = HeaderField("WWW-Authenticate", "How to prove who calls: by a bearer token", is_certain=True)
_OF_ANSWERS: Final = (_REQUEST_ID, _CACHE_CONTROL)
_BEARER: Final = "token"


def openapi_document(tables: Sequence[RouteTable], probes: Sequence[ServerProbe] = (), *, version: str) -> dict[str, Any]:
    """The document, in version 3.1, as plain data.

    version       of Headwater
    """
    routes = [(table, route) for table in tables for route in table.routes]
    shapes = {name: shape for table in tables for name, shape in table.shapes.items()}
    declared = [shape for shape in shapes.values() if not isinstance(shape, Mapping)]
    shapes_of_errors = [table.error_shape for table in tables if table.error_shape is not None]
    types = _unique([ErrorEnvelope, *shapes_of_errors, *declared, *(kind for _, route in routes for kind in _types_of(route))])
    references, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    schemas = dict(zip(map(_key, types), references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for table, route in routes:
        paths.setdefault(table.mount + route.template, {})[route.method.lower()] = _operation(table, route, schemas)
    for probe in probes:
        paths[probe.path] = {"get": _probe_operation(probe)}
    named = {
        name: shape if isinstance(shape, Mapping) else schemas[_key(shape)]
        for name, shape in shapes.items()
        if name not in components
    }
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Headwater", "version": version},
        "paths": paths,
        "components": {
            "schemas": {**components, **named},
            "headers": {header.name: _header(header) for header in (_RETRY_AFTER, _CHALLENGE, *_OF_ANSWERS)},
            "parameters": {_REQUEST_ID.name: {"name": _REQUEST_ID.name, "in": "header", **_value_of(_REQUEST_ID)}},
            "securitySchemes": {
                _BEARER: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of POST /iceberg/v1/oauth/tokens or of an identity provider; without effect where nobody has to"
                    " prove who calls",
                }
            },
            "responses": {str(status): _error(kind, schemas) for status, kind in _ERRORS.items()},
        },
    }
    return cast("dict[str, Any]", _portable(document))


def _operation(table: RouteTable, route: Route, schemas: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        **({"description": f"Needs {route.needs}."} if route.needs else {}),
        "tags": [table.mount.strip("/") or "server"],
        "parameters": [
            *map(_path_parameter, route.parameters),
            *_query_parameters(route.query),
            *({"name": header.name, "in": "header", "required": False, **_value_of(header)} for header in route.headers),
            {"$ref": f"#/components/parameters/{_REQUEST_ID.name}"},
        ],
        "responses": _responses(table, route, schemas),
        **({} if route.is_open else {"security": [{_BEARER: []}, {}]}),
    }
    if route.body is bytes:
        operation["requestBody"] = {"required": False, "content": {route.raw_type: {}}}
    elif route.body is not None:
        operation["requestBody"] = {"required": True, "content": _json_content(route.body, schemas)}
    return operation


def _responses(table: RouteTable, route: Route, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The answers that a route declares, and every error that a request to it may meet."""
    responses: dict[str, Any] = {str(status): _answer(status, kind, schemas, route) for status, kind in route.answers.items()}
    of_body = () if route.body is None else _OF_BODIES
    of_page = () if route.method in _SAFE_METHODS else _OF_PAGES
    of_caller = () if route.is_open else _OF_CALLERS
    of_names = _OF_NAMES if route.parameters else ()
    for status in {*_ANYWHERE, *of_body, *of_page, *of_caller, *of_names, *route.errors}:
        declared = route.answers.get(status)
        if declared is not None:
            kinds = [schemas[_key(declared)], schemas[_key(ErrorEnvelope)]]
            responses[str(status)]["content"]["application/json"]["schema"] = {"anyOf": kinds}
        elif route.method != "HEAD" and table.error_shape is not None and status not in _OF_CONNECTIONS:
            kinds = [table.error_shape, *([ErrorEnvelope] if status in _BEFORE_TABLES else [])]
            responses[str(status)] = _error(_ERRORS[status], schemas, kinds)
        elif route.method == "HEAD":
            responses[str(status)] = {"description": _ERRORS[status].description, "headers": _headers_of(_ERRORS[status])}
        else:
            responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return dict(sorted(responses.items()))


def _probe_operation(probe: ServerProbe) -> dict[str, Any]:
    content: dict[str, Any] = {probe.media_type.partition(";")[0]: {}}
    headers = _references(_OF_ANSWERS)
    responses: dict[str, Any] = {
        str(status): {"description": HTTPStatus(status).phrase, "content": content, "headers": headers}
        for status in probe.statuses
    }
    for status in sorted({400, 500}.difference(probe.statuses)):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return {
        "operationId": probe.name,
        "summary": probe.summary,
        "tags": ["server"],
        "parameters": [{"$ref": f"#/components/parameters/{_REQUEST_ID.name}"}],
        "responses": responses,
    }


def _error(kind: _ErrorKind, schemas: Mapping[str, Any], bodies: Sequence[Any] = (ErrorEnvelope,)) -> dict[str, Any]:
    schema = [schemas[_key(body)] for body in bodies]
    return {
        "description": kind.description,
        "headers": _headers_of(kind),
        "content": {"application/json": {"schema": schema[0] if len(schema) == 1 else {"anyOf": schema}}},
    }


def _headers_of(kind: _ErrorKind) -> dict[str, Any]:
    own = (_RETRY_AFTER,) if kind.is_retried else (_CHALLENGE,) if kind is _ERRORS[401] else ()
    return _references((*_OF_ANSWERS, *own))


def _references(headers: Iterable[HeaderField]) -> dict[str, Any]:
    return {header.name: {"$ref": f"#/components/headers/{header.name}"} for header in headers}


def _header(header: HeaderField) -> dict[str, Any]:
    return {"required": header.is_certain, **_value_of(header)}


def _value_of(header: HeaderField) -> dict[str, Any]:
    return {"description": header.summary, "schema": dict(header.schema)}


def _portable(value: Any) -> Any:
    """Patterns as JSON Schema has them, where the ends of a text are written in another way; docstrings without their indentation."""
    if isinstance(value, Mapping):
        return {
            name: _PORTABLE[name](inner) if name in _PORTABLE and isinstance(inner, str) else _portable(inner)
            for name, inner in value.items()
        }
    return [_portable(inner) for inner in value] if isinstance(value, list | tuple) else value


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


_PORTABLE: Final[Mapping[str, Callable[[str], str]]] = {
    "description": cleandoc,
    "pattern": lambda text: text.replace(r"\A", "^").replace(r"\Z", "$"),
}


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


def _answer(status: int, kind: Any, schemas: Mapping[str, Any], route: Route) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": HTTPStatus(status).phrase,
        "headers": {**_references(_OF_ANSWERS), **{header.name: _header(header) for header in route.answer_headers}},
    }
    if kind is bytes:
        answer["content"] = {route.answer_type.partition(";")[0]: {}}
    elif kind is not None:
        answer["content"] = _json_content(kind, schemas)
    return answer


def _json_content(kind: Any, schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schemas[_key(kind)]}}


def _types_of(route: Route) -> list[Any]:
    return [kind for kind in (route.body, *route.answers.values()) if kind not in _BODYLESS]


def _unique(types: Iterable[Any]) -> list[Any]:
    return list({_key(kind): kind for kind in types}.values())


def _key(kind: Any) -> str:
    """Types such as ``dict[str, str]`` are made anew at each mention, so that their identity says nothing."""
    return f"{getattr(kind, '__module__', '')} {kind!r}"
