"""A real server on loopback in a thread of this process, and connections that send it whatever bytes they like."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import Any

from headwater import Settings
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import DrainedServer, ListenAddress, uvicorn_config
from headwater_server.tls import CertificateFiles

SECONDS = 10.0


@dataclass
class WireAnswer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.content)


class WireConnection:
    """A connection that sends raw bytes, and reads answers one by one."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> WireConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def send(self, data: bytes) -> WireConnection:
        self.socket.sendall(data)
        return self

    def answer(self, method: str = "GET") -> WireAnswer:
        """The next answer. ``HTTPResponse`` reads from a file that is kept, so that the answer behind it is not lost."""
        response = HTTPResponse(_Kept(self._file), method=method)  # type: ignore[arg-type]  # it only calls makefile
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return WireAnswer(response.status, headers, response.read())

    def read(self, count: int) -> bytes:
        """So many bytes, or fewer at the end of the connection."""
        return self._file.read(count)

    def rest(self) -> bytes:
        """Everything up to the end of the connection; a reset is an end, too."""
        try:
            return self._file.read()
        except ConnectionError:
            return b""


@dataclass
class _Kept:
    file: Any

    def makefile(self, mode: str) -> _Kept:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def close(self) -> None:
        """Answers that follow are read from the same file."""


@dataclass
class WireServer:
    application: ServerApplication
    settings: Settings
    certificate: CertificateFiles | None = None
    port: int = field(default=0, init=False)

    def __enter__(self) -> WireServer:
        listener = ListenAddress("127.0.0.1", 0).listen()
        self.port = listener.getsockname()[1]
        self.server = DrainedServer(
            uvicorn_config(self.application, self.settings, self.certificate), self.application.drain, self.certificate
        )
        ready = threading.Event()
        self.server.on_ready = ready.set
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        assert ready.wait(SECONDS), "the server does not start"
        return self

    def __exit__(self, *_: object) -> None:
        self.application.drain.begin()
        self.join()

    def join(self) -> None:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the server does not end"

    def connect(self) -> WireConnection:
        return WireConnection(self.port)

    def get(self, path: str) -> WireAnswer:
        with self.connect() as connection:
            return connection.send(request("GET", path)).answer()

    @property
    def connections(self) -> int:
        return len(self.server.server_state.connections)


def request(method: str, path: str, body: bytes | None = None, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def until(condition: Callable[[], bool], *, seconds: float = 120) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)
