"""A small HTTP server that answers as a test tells it, and remembers what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["Answering", "Asked", "answering", "status"]


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Answering:
    """``answer`` gets each request; it returns a code and a body (JSON, or bytes as they are), and headers if it likes.

    None: the connection is closed without an answer
    """

    answer: Callable[[Asked], tuple[Any, ...] | None] = lambda asked: (200, {})
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def script(self, *answers: tuple[Any, ...] | None) -> None:
        """Give these answers, one after the other; the last one for ever."""
        remaining = list(answers)
        self.answer = lambda asked: remaining.pop(0) if len(remaining) > 1 else remaining[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
        asked = Asked(self.command, parts.path, parameters, dict(self.headers), json.loads(sent) if sent else None)
        self.server.state.asked.append(asked)
        answer = self.server.state.answer(asked)
        if answer is None:
            self.close_connection = True
            return
        code, body, *headers = answer
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers[0] if headers else {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by the library
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    state: Answering

    def handle_error(self, request: Any, client_address: Any) -> None:
        return  # a client that goes away, or does not trust the certificate


@contextmanager
def answering(*, certificate: str | None = None, key: str | None = None, clients: str | None = None) -> Iterator[Answering]:
    """Serve on a free port. With a certificate by TLS; ``clients`` is the authority that clients' certificates must be of."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            if clients is not None:
                context.load_verify_locations(clients)
                context.verify_mode = ssl.CERT_REQUIRED
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "http" if certificate is None else "https"
        server.state = Answering(url=f"{scheme}://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.state
        finally:
            server.shutdown()
            thread.join()


def status(code: int, reason: str, message: str, **details: Any) -> tuple[int, dict[str, Any]]:
    """A failure as an API server words it."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason}
    return code, body | {"code": code} | ({"details": details} if details else {})
