"""A connection to an API server that fails on demand: one request, before it has an effect or after."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import urllib3

from headwater_operator.kube import KubeConnection

__all__ = ["FAULTS", "FaultyConnection", "HttpFault"]

Kind = Literal["409", "429", "500", "cut"]


@dataclass(frozen=True)
class HttpFault:
    """``is_after``: the request takes effect, and its answer is lost or replaced."""

    kind: Kind
    is_after: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {'after' if self.is_after else 'before'}"


FAULTS = [HttpFault("429"), HttpFault("409"), *(HttpFault(kind, after) for kind in ("500", "cut") for after in (False, True))]
"""An API server says 409 and 429 only of what it has not done."""


class FaultyConnection:
    """Wraps a connection. ``requests`` has method and path of each request since the last ``fail``; ``wrote`` is told of each write
    that the server may have seen, after it.
    """

    def __init__(self, connection: KubeConnection, wrote: Callable[[], None] = lambda: None) -> None:
        self._connection = connection
        self._wrote = wrote
        self._lock = threading.Lock()
        self._fault: HttpFault | None = None
        self._at = 0
        self.requests: list[str] = []

    @property
    def host(self) -> str:
        return self._connection.host

    def headers(self) -> dict[str, str]:
        return self._connection.headers()

    def renew(self, refused: Mapping[str, str]) -> None:
        self._connection.renew(refused)

    def pool(self) -> FaultyConnection:
        return self

    @property
    def writes(self) -> list[str]:
        return [one for one in self.requests if not one.startswith("GET")]

    def fail(self, fault: HttpFault | None, *, at: int = 1) -> None:
        """Let the ``at``-th request from now fail; None: forget it."""
        with self._lock:
            self._fault, self._at, self.requests = fault, at, []

    def request(self, method: str, url: str, **others: Any) -> Any:
        with self._lock:
            self.requests.append(f"{method} {url.removeprefix(self.host)}")
            fault = self._fault if len(self.requests) == self._at else None
        if fault is not None and not fault.is_after:
            return _failed(fault, method)
        try:
            response = self._connection.pool().request(method, url, **others)
        finally:
            if method != "GET":
                self._wrote()
        return response if fault is None else _failed(fault, method)


def _failed(fault: HttpFault, method: str) -> urllib3.HTTPResponse:
    if fault.kind == "cut" or (fault.kind == "409" and method == "GET"):
        raise urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError("injected"))
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "injected", "code": int(fault.kind)}
    return urllib3.HTTPResponse(json.dumps(said).encode(), status=int(fault.kind), headers={"Retry-After": "0"})
