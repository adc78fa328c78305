"""What the server tells about itself: version, health, what is served, and OpenAPI."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubeapi import discovery, openapi, protobuf
from kubeapi.failures import Failure, NotServed
from kubeapi.kinds import Kinds

__all__ = ["About", "Answer"]

Body = dict[str, Any]
_encode = msgspec.json.encode


@dataclass(slots=True)
class Answer:
    code: int
    body: bytes
    media: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


class About:
    """Answers to everything that is no resource."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._documents: dict[tuple[int, str], bytes] = {}

    def answer(self, method: str, path: str, accept: str, host: str, known: str = "") -> Answer:
        """``host`` is the address by which the client knows the server. ``known`` is the tag of an answer that it has already."""
        answer = self._answer(method, path, accept, host)
        if answer.media != discovery.AGGREGATED and "openapi" not in path:
            return answer
        tag = f'"{hashlib.sha512(answer.body).hexdigest().upper()}"'
        if tag == known:
            return Answer(304, b"", answer.media, {"ETag": tag})
        answer.headers["ETag"] = tag
        return answer

    def _answer(self, method: str, path: str, accept: str, host: str) -> Answer:
        path, parts = path.rstrip("/"), path.strip("/").split("/")
        if method not in ("GET", "HEAD"):
            raise Failure.not_allowed()
        if path in ("/readyz", "/healthz", "/livez") or parts[0] in ("readyz", "healthz", "livez"):
            return Answer(200, b"ok", "text/plain; charset=utf-8")
        if path == "/version":
            return Answer(200, _encode(discovery.VERSION))
        if parts[0] == "openapi":
            return self._openapi(parts[1:])
        is_aggregated = "as=APIGroupDiscoveryList" in accept
        if path in ("/api", "/apis") and is_aggregated and "v=v2;" in accept + ";":
            return Answer(200, _encode(discovery.aggregated(self._kinds, core=path == "/api")), discovery.AGGREGATED)
        if path == "/api":
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
            versions = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
            return Answer(200, _encode(versions))
        if path == "/apis":
            return Answer(200, _encode(discovery.groups(self._kinds)))
        if parts[0] == "api" and len(parts) == 2:
            return Answer(200, _encode(discovery.resources(self._kinds, "", parts[1])))
        if parts[0] == "apis" and len(parts) == 2:
            return Answer(200, _encode(discovery.group(self._kinds, parts[1])))
        if parts[0] == "apis" and len(parts) == 3:
            return Answer(200, _encode(discovery.resources(self._kinds, parts[1], parts[2])))
        raise NotServed(path)

    def _openapi(self, parts: list[str]) -> Answer:
        if parts == ["v2"]:
            return Answer(200, protobuf.OPENAPI, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
        where = "/".join(parts[1:])
        if parts[:1] != ["v3"]:
            raise NotServed(where)
        key = (self._kinds.generation, where)
        if key not in self._documents:
            self._documents = {kept: raw for kept, raw in self._documents.items() if kept[0] == self._kinds.generation}
            self._documents[key] = _encode(openapi.document(self._kinds, where) if where else openapi.index(self._kinds))
        return Answer(200, self._documents[key], "application/json" if where else "text/plain; charset=utf-8")
