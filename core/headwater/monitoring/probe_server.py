"""The HTTP server of `/healthz`, `/readyz` and `/metrics` of a process that serves nothing else. An unhealthy answer says why."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headwater.errors import RefusedError, UnavailableError

EVERYWHERE = "*"
REQUEST_SECONDS = 5.0
"""A client that is slower than this to send its request is cut off: whoever connects and says nothing holds no thread for long."""
_TEXT = "text/plain; charset=utf-8"


@dataclass
class Health:
    """The functions that a probe calls. Each may be replaced while the process starts.

    alive, ready  what is wrong, by what it is about: a sentence, or "" when it is well
    """

    alive: Callable[[], Mapping[str, str]] = field(default=dict)
    ready: Callable[[], Mapping[str, str]] = field(default=lambda: {"start": "the process is starting"})


class ProbeServer:
    """A small HTTP server with threads of its own, so that it answers while everything else is busy.

    address       `*` for all addresses
    port          0 takes a free one; `port` says which, once it is started
    render        gives the metrics as text
    """

    def __init__(self, address: str, port: int, *, health: Health, render: Callable[[], bytes], content_type: str) -> None:
        self.port = port
        self._address = address
        self._answers: Mapping[str, Callable[[], tuple[int, str, bytes]]] = {
            "/healthz": lambda: _health_answer(health.alive()),
            "/readyz": lambda: _health_answer(health.ready()),
            "/metrics": lambda: (200, content_type, render()),
        }
        self._server: _Server | None = None

    def start(self) -> None:
        """Start to listen and answer.

        raises        UnavailableError when the address cannot be listened on
        """
        try:
            self._server = _Server(self._address, self.port, self._answers)
        except OSError as fault:
            raise UnavailableError(f"health and metrics cannot be served on port {self.port}: {fault}") from fault
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="probes", daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> ProbeServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def parse_probe_address(variable: str, text: str) -> tuple[str, int]:
    """Host and port of an address such as ``127.0.0.1:8182``, ``[::1]:8182`` or ``*:8182``; port 0 takes a free one.

    raises        RefusedError that names the variable, for what has another form
    """
    name, colon, digits = text.rpartition(":")
    host = name.removeprefix("[").removesuffix("]")
    if not colon or not host or not (digits.isascii() and digits.isdigit()) or int(digits) > 65535:
        raise RefusedError(f"{variable}: {text!r} is no address to listen on: write for example 127.0.0.1:8182 or *:8182")
    return "127.0.0.1" if host == "localhost" else host, int(digits)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: str, port: int, answers: Mapping[str, Callable[[], tuple[int, str, bytes]]]) -> None:
        self.answers = answers
        self._is_dual = address == EVERYWHERE and socket.has_dualstack_ipv6()
        host = ("::" if self._is_dual else "0.0.0.0") if address == EVERYWHERE else address
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        if self._is_dual:
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # HTTPServer's own would look the machine's name up, which may ask a name server
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is gone before its answer is no news."""


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_SECONDS
    server: _Server

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def _answer(self, *, has_body: bool) -> None:
        find = self.server.answers.get(self.path.partition("?")[0])
        status, media_type, body = (404, _TEXT, b"not found\n") if find is None else find()
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if has_body:
            self.wfile.write(body)

    def version_string(self) -> str:
        return "headwater"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Probes are no news."""


def _health_answer(findings: Mapping[str, str]) -> tuple[int, str, bytes]:
    """200 when nothing is wrong, else 503; with a line for each finding."""
    lines = [f"{what}: {why or 'ok'}\n" for what, why in findings.items()]
    return (503 if any(findings.values()) else 200), _TEXT, ("".join(lines) or "ok\n").encode()
