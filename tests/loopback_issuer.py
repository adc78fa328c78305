"""An issuer on loopback: a real HTTP server with keys, whose answers a test may spoil, and tokens that it signs."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc.jwa import JWS_ALGORITHMS
from joserfc.jwk import ECKey, OKPKey, RSAKey

from headwater_server.identity import IssuerTokens

SigningKey = RSAKey | ECKey | OKPKey
MakeToken = Callable[..., str]
MakeTokens = Callable[..., IssuerTokens]
MakeIssuer = Callable[..., "LoopbackIssuer"]
Answer = Callable[[BaseHTTPRequestHandler], None]
KEYS = "/keys"
DISCOVERY = "/.well-known/openid-configuration"
_MODELS = {model.name: model for model in JWS_ALGORITHMS}


@cache
def signing_key(kind: str = "RSA", number: int = 0) -> SigningKey:
    """A key pair by its kind, which is RSA or a curve; the same for each number."""
    if kind == "RSA":
        return RSAKey.generate_key(2048)
    return OKPKey.generate_key(kind) if kind.startswith("Ed") else ECKey.generate_key(kind)  # type: ignore[arg-type]  # any curve


def public_entry(key: SigningKey, **fields: Any) -> dict[str, Any]:
    """What a set of keys says of a key."""
    return {**key.as_dict(private=False), **fields}


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def as_json(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def compact_token(header: Any, claims: Any, sign: Callable[[bytes], bytes]) -> str:
    """A token of a header and claims, as values or as the bytes of their JSON, with whatever signature."""
    content = f"{encoded(as_json(header))}.{encoded(as_json(claims))}"
    return f"{content}.{encoded(sign(content.encode()))}"


def signer(algorithm: str, key: SigningKey) -> Callable[[bytes], bytes]:
    return lambda content: _MODELS[algorithm].sign(content, key)


def json_answer(value: Any, *, status: int = 200, **headers: str) -> Answer:
    """Answers with JSON, or with bytes as they are."""
    content = as_json(value)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, text in {"Content-Length": str(len(content)), **headers}.items():
            handler.send_header(name.replace("_", "-"), text)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def redirect_answer(url: str) -> Answer:
    return json_answer(b"", status=302, Location=url)


def endless_answer(pause: float) -> Answer:
    """Answers with a byte after each pause, as long as somebody reads."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" ")
            time.sleep(pause)

    return answer


class _QuietServer(ThreadingHTTPServer):
    """A client that ends a connection, or trusts no certificate, is no error here."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None: ...


class LoopbackIssuer:
    """Serves keys at ``/keys``, and its discovery document where the standard has it. ``asked`` has the paths of requests."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, Answer] = {}
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                answer = issuer.answers.get(self.path, json_answer(b"", status=404))
                try:
                    answer(self)
                except OSError:  # the other side is gone, as it should be
                    self.close_connection = True

            def log_message(self, *args: Any) -> None: ...

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"
        self.answers[DISCOVERY] = json_answer({"issuer": self.url, "jwks_uri": self.url + KEYS})
        self.publish(public_entry(signing_key(), kid="one"))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def publish(self, *entries: Any) -> None:
        self.answers[KEYS] = json_answer({"keys": entries})

    @property
    def fetches(self) -> int:
        """How often its keys were asked for."""
        return self.asked.count(KEYS)

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
