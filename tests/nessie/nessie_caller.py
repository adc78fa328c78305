"""Calls Nessie's API in this process, through everything that a request passes through but a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

from asgi_client import AsgiAnswer, AsgiClient
from headwater_server.nessie.nessie_errors import CLIENT_SPEC_HEADER


@dataclass(frozen=True)
class NessieAnswer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def data(self) -> Any:
        """The body of an answer that succeeded."""
        assert self.status == 200, self.content
        return json.loads(self.content)

    @property
    def error(self) -> tuple[int, str]:
        """Status and code of an error."""
        body = json.loads(self.content)
        assert body["status"] == self.status and {"status", "reason", "message", "errorCode"} <= set(body) <= _ERROR_FIELDS
        return self.status, body["errorCode"]

    @property
    def message(self) -> str:
        assert self.error
        return str(json.loads(self.content)["message"])

    @property
    def details(self) -> Any:
        """The details of an error; None: it has none."""
        assert self.error
        return json.loads(self.content).get("errorDetails")


_ERROR_FIELDS = {"status", "reason", "message", "errorCode", "errorDetails"}


@dataclass(frozen=True)
class NessieCaller:
    """A client of one catalog. Paths stand below ``/nessie/REALM/CATALOG/api/vVERSION/``, as they are sent.

    Names of the query are given with underscores, and sent as the version spells them; a list is sent as several values, and None is
    left out.
    """

    client: AsgiClient
    version: int = 2
    warehouse: str = "acme/lake"
    headers: Mapping[str, str] = field(default_factory=lambda: {CLIENT_SPEC_HEADER: "2"})

    @property
    def v1(self) -> NessieCaller:
        return replace(self, version=1)

    def with_headers(self, **headers: str) -> NessieCaller:
        """The caller with further headers, named with underscores."""
        return replace(self, headers={**self.headers, **headers})

    def get(self, path: str, **query: Any) -> NessieAnswer:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Any = None, **query: Any) -> NessieAnswer:
        return self.call("POST", path, body=body, query=query)

    def put(self, path: str, body: Any = None, **query: Any) -> NessieAnswer:
        return self.call("PUT", path, body=body, query=query)

    def delete(self, path: str, **query: Any) -> NessieAnswer:
        return self.call("DELETE", path, query=query)

    def call(self, method: str, path: str, *, body: Any = None, query: Mapping[str, Any] | None = None) -> NessieAnswer:
        """One request; a body of bytes is sent as it is, and None is no body."""
        given = {self._spelled(name): value for name, value in (query or {}).items() if value is not None}
        target = f"/nessie/{self.warehouse}/api/v{self.version}/{path}"
        target += f"?{urlencode(given, doseq=True)}" if given else ""
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        answer: AsgiAnswer = self.client.request(method, target, raw, **self.headers)
        return NessieAnswer(answer.status, answer.headers, answer.content)

    def read_all(self, path: str, field_name: str, **query: Any) -> list[Any]:
        """What is in a field of all pages."""
        found: list[Any] = []
        page = self.get(path, **query).data
        for _ in range(1000):
            found += page[field_name]
            assert page["hasMore"] is (page["token"] is not None)
            if not page["hasMore"]:
                return found
            page = self.get(path, **query, page_token=page["token"]).data
        raise AssertionError(f"{path} has no end")

    def hash_of(self, name: str = "main") -> str:
        """The hash that a branch or tag is at."""
        return str(self.get(f"trees/{quote(name, safe='')}").data["reference"]["hash"])

    def at_head(self, name: str = "main") -> str:
        """The path below ``trees`` of a branch at the hash that it is at now."""
        return f"trees/{quote(name, safe='')}@{self.hash_of(name)}"

    def _spelled(self, name: str) -> str:
        first, *rest = name.split("_")
        return "-".join([first, *rest]) if self.version == 2 else first + "".join(part.title() for part in rest)


def elements(*names: str) -> dict[str, list[str]]:
    """A key as bodies have it."""
    return {"elements": list(names)}
