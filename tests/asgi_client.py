"""Calls an ASGI application in this process: what a server would hand to it, without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater_server.server_application import ServerApplication


@dataclass(frozen=True)
class AsgiAnswer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> tuple[int, str]:
        """Status and type of an error; its code is the status."""
        error = self.data["error"]
        assert error["code"] == self.status and set(error) == {"message", "type", "code"}
        return self.status, error["type"]

    @property
    def message(self) -> str:
        message: str = self.data["error"]["message"]
        return message


@dataclass
class AsgiClient:
    """
    host, peer    where requests say they go, and where they come from
    port          where they are received
    """

    application: ServerApplication
    host: str = "localhost:8181"
    peer: str = "127.0.0.1"
    port: int = 8181

    def request(
        self,
        method: str,
        target: str,
        body: bytes | Sequence[bytes] = b"",
        *,
        state: Mapping[str, Any] | None = None,
        **headers: str,
    ) -> AsgiAnswer:
        """One request; the body may come in pieces, and headers are named with underscores."""
        return asyncio.run(self.send(method, target, body, state=state, **headers))

    async def send(
        self,
        method: str,
        target: str,
        body: bytes | Sequence[bytes] = b"",
        *,
        state: Mapping[str, Any] | None = None,
        **headers: str,
    ) -> AsgiAnswer:
        pieces = [body] if isinstance(body, bytes) else list(body)
        raw_path, _, query = target.partition("?")
        named = {"host": self.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "raw_path": raw_path.encode(),
            "path": "what it decodes to must not matter",
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in named.items()],
            "client": (self.peer, 50000),
            "server": ("127.0.0.1", self.port),
            "state": dict(state or {}),
        }
        sent: list[Mapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not pieces:
                return {"type": "http.disconnect"}
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def keep(message: Any) -> None:
            sent.append(message)

        await self.application(scope, receive, keep)
        if not sent:
            return AsgiAnswer(0, {}, b"")
        start, *rest = sent
        headers_sent = {name.decode(): value.decode() for name, value in start["headers"]}
        return AsgiAnswer(start["status"], headers_sent, b"".join(message["body"] for message in rest))
