"""Load over HTTP/1.1: one thread that keeps many connections busy, each with one request at a time, and does as little as it can beside.

A client library would take longer for a call than the server does.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.storms import Storm

__all__ = ["HttpConnection", "HttpReply", "RepeatedRequest", "RequestScript", "request_bytes", "run_scripts"]

PATIENCE_SECONDS = 60.0
_READ_BYTES = 1 << 18
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"\r\ncontent-length: "
_CHUNKED = b"\r\ntransfer-encoding: chunked"


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    head: bytes
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        """The value of a header; empty where it is not there."""
        _, _, rest = self.head.lower().partition(f"\r\n{name.lower()}: ".encode())
        start = len(self.head) - len(rest)
        return self.head[start:].partition(b"\r\n")[0].decode("latin-1") if rest else ""


class RequestScript(Protocol):
    """What one connection sends, one request after the other."""

    def next_request(self) -> bytes: ...

    def take_reply(self, reply: HttpReply) -> str | None:
        """Returns None for a success that counts, a name for a failure, and "" for what does not count."""
        ...


@dataclass(frozen=True, slots=True)
class RepeatedRequest:
    """The same request again and again, which is always answered with this status."""

    request: bytes
    status: int

    def next_request(self) -> bytes:
        return self.request

    def take_reply(self, reply: HttpReply) -> str | None:
        return None if reply.status == self.status else str(reply.status)


def request_bytes(method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    if body or method == "POST":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


class HttpConnection:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()

    def call(self, request: bytes) -> HttpReply:
        self.socket.sendall(request)
        while (reply := self.read_some()) is None:
            pass
        return reply

    def post(self, path: str, body: Any) -> HttpReply:
        return self.call(request_bytes("POST", path, body=json.dumps(body).encode()))

    def read_some(self) -> HttpReply | None:
        """Read once what is there; the reply if that was the rest of it. Raises ConnectionError where the server has closed."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        self._buffer += data
        reply = _whole_reply(self._buffer)
        if reply is not None:
            self._buffer.clear()  # there is one request at a time, so nothing follows
        return reply

    def close(self) -> None:
        self.socket.close()


def _whole_reply(buffer: bytearray) -> HttpReply | None:
    """The reply that a buffer holds; None as long as a part of it is missing."""
    end = buffer.find(_HEAD_END)
    if end < 0:
        return None
    head = bytes(buffer[:end])
    _, is_long, rest = head.lower().partition(_LENGTH)
    start = end + len(_HEAD_END)
    if is_long:
        length = int(rest.partition(b"\r\n")[0])
        body = bytes(buffer[start:]) if len(buffer) >= start + length else None
    else:
        body = _joined_chunks(bytes(buffer[start:])) if _CHUNKED in head.lower() else b""
    return None if body is None else HttpReply(int(head[9:12]), head, body)


def _joined_chunks(data: bytes) -> bytes | None:
    """A body that came in chunks; None as long as the last one is missing."""
    chunks: list[bytes] = []
    while True:
        size, found, data = data.partition(b"\r\n")
        if not found or len(data) < int(size, 16) + 2:
            return None
        if not int(size, 16):
            return b"".join(chunks)
        chunks.append(data[: int(size, 16)])
        data = data[int(size, 16) + 2 :]


@dataclass(slots=True)
class _Line:
    connection: HttpConnection
    script: RequestScript
    sent: float = field(default=0.0)

    def send(self) -> None:
        request = self.script.next_request()
        self.sent = time.perf_counter()
        self.connection.socket.sendall(request)


def run_scripts(port: int, scripts: Sequence[RequestScript], seconds: float) -> Storm:
    """Run all of them at once, for so long. Calls under way at the end are waited for, and count as waits alone."""
    storm = Storm(seconds=seconds)
    lines = [_Line(HttpConnection(port), script) for script in scripts]
    with selectors.DefaultSelector() as selector:
        for line in lines:
            selector.register(line.connection.socket, selectors.EVENT_READ, line)
        end = time.perf_counter() + seconds
        for line in lines:
            line.send()
        while selector.get_map():
            for key, _ in selector.select(PATIENCE_SECONDS):
                _go_on(key.data, storm, end, selector.unregister)
    for line in lines:
        line.connection.close()
    return storm


def _go_on(line: _Line, storm: Storm, end: float, forget: Callable[[socket.socket], object]) -> None:
    try:
        reply = line.connection.read_some()
    except ConnectionError as fault:
        storm.failures[type(fault).__name__] += 1
        forget(line.connection.socket)
        return
    if reply is None:
        return
    now = time.perf_counter()
    failure = line.script.take_reply(reply)
    if failure != "":
        storm.waits.append(now - line.sent)
    if failure:
        storm.failures[failure] += 1
    elif failure is None and now <= end:
        storm.done += 1
    if now >= end:
        forget(line.connection.socket)
    else:
        line.send()
