"""Calls the handlers of Iceberg REST as the server does, in this thread and without HTTP."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from headwater.errors import HeadwaterError
from headwater_server.call import Call, ServedStore
from headwater_server.error_answers import error_answer
from headwater_server.iceberg_rest.iceberg_routes import iceberg_table
from headwater_server.json_body import convert_body, convert_query, parse_json
from headwater_server.request_target import path_segments, query_parameters
from headwater_server.server_application import encoded_answer

PREFIX = "acme~lake"


@dataclass(frozen=True)
class RestAnswer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> tuple[int, str]:
        """Status and type of an error."""
        assert self.json["error"]["code"] == self.status
        return self.status, self.json["error"]["type"]

    @property
    def message(self) -> str:
        return str(self.json["error"]["message"])


@dataclass
class RestCaller:
    """``path`` stands below the prefix, unless it begins with ``/``: then below ``/iceberg``."""

    served: ServedStore
    prefix: str = PREFIX
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._table = iceberg_table()

    def at(self, prefix: str) -> RestCaller:
        return RestCaller(self.served, prefix, self.headers)

    def get(self, path: str, *, headers: Mapping[str, str] | None = None, **query: str) -> RestAnswer:
        return self.call("GET", path, query=query, headers=headers)

    def head(self, path: str) -> RestAnswer:
        return self.call("HEAD", path)

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> RestAnswer:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.call("POST", path, body=raw, headers={} if key is None else {"idempotency-key": key})

    def delete(self, path: str, *, key: str | None = None, **query: str) -> RestAnswer:
        return self.call("DELETE", path, query=query, headers={} if key is None else {"idempotency-key": key})

    def call(
        self,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RestAnswer:
        raw_path = f"/iceberg{path}" if path.startswith("/") else f"/iceberg/v1/{self.prefix}/{path}"
        try:
            return self._dispatch(method, raw_path, body, urlencode(query or {}), {**self.headers, **(headers or {})})
        except HeadwaterError as error:
            answer = error_answer(error, meanings=self._table.meanings)
            return RestAnswer(answer.meaning.status, answer.headers, answer.content)

    def _dispatch(self, method: str, raw_path: str, body: bytes, query: str, headers: Mapping[str, str]) -> RestAnswer:
        match = self._table.find(path_segments(raw_path.encode()))
        assert match is not None, f"nothing is served at {raw_path}"
        route = match.routes[method]
        parameters = query_parameters(query.encode(), route.query_names)
        asked = None if route.query is None else convert_query(parameters, route.query)
        answer = route.handler(
            Call(
                served=self.served,
                method=method,
                raw_path=raw_path,
                path=match.path[method],
                query=asked if route.complete_query is None else route.complete_query(self.served, asked),
                body=body if route.body in (None, bytes) else convert_body(parse_json(body), route.body),
                raw_body=body,
                headers=headers,
            )
        )
        assert answer.status in route.answers, f"{route.name} does not declare {answer.status}"
        return RestAnswer(answer.status, answer.headers, encoded_answer(answer).content)


def new_key() -> str:
    """A key for a request, as a client makes it: a UUID of version 7."""
    millis, chance = int(time.time() * 1000), secrets.randbits(74)
    return str(UUID(int=(millis << 80) | (7 << 76) | ((chance >> 62) << 64) | (2 << 62) | (chance & ((1 << 62) - 1))))
