"""uvicorn's HTTP/1.1 connection, with the bounds that it lacks: for clients that send no request, and for clients that read no answer.

h11 parses: it is strict about what separates one request from the next, and bounds the head of a request, which httptools does not. A
proxy that takes two requests for one would let a client speak for another.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from headwater.settings import Settings
from headwater_server.error_answers import ErrorAnswer, ProtocolError, error_answer
from headwater_server.server_application import SURPLUS_KEY

HEAD_BYTES_LIMIT: Final = 64 * 1024
_HEAD_TOO_LARGE: Final = 431


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one connection may cost.

    head_seconds   for the line and the headers of a request, from their first byte on
    unread_seconds an answer of which the client has read nothing for this long is given up
    connections    open ones at the same time
    """

    head_seconds: float
    unread_seconds: float
    connections: int

    @classmethod
    def of_settings(cls, settings: Settings) -> ConnectionLimits:
        return cls(
            head_seconds=settings.server_head_timeout_seconds,
            unread_seconds=settings.server_body_timeout_seconds,
            connections=settings.server_connections,
        )


def _phrase(answer: ErrorAnswer) -> bytes:
    return HTTPStatus(answer.meaning.status).phrase.encode()


class BoundedParser(h11.Connection):
    """h11's parser, which bounds a head also where all of it comes in one packet, and takes HTTP/1 alone.

    refusal       why the request is refused; None: it is not, or it is not HTTP
    """

    refusal: ProtocolError | None = None

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as fault:
            if fault.error_status_hint == _HEAD_TOO_LARGE:
                self.refusal = _large_head()
            raise
        if isinstance(event, h11.Request):
            self.refusal = _refusal_of(event)
            if self.refusal is not None:
                raise h11.RemoteProtocolError(str(self.refusal))
        return event


def _refusal_of(request: h11.Request) -> ProtocolError | None:
    head_bytes = len(request.method) + len(request.target) + sum(len(name) + len(value) + 4 for name, value in request.headers)
    if head_bytes > HEAD_BYTES_LIMIT:
        return _large_head()
    if not request.http_version.startswith(b"1."):
        version = request.http_version.decode("ascii")
        return ProtocolError(
            f"HTTP/{version} is not served here: use HTTP/1.1", status=505, type_="HttpVersionNotSupportedException"
        )
    return None


def _large_head() -> ProtocolError:
    return ProtocolError(
        f"the line and the headers of a request may have {HEAD_BYTES_LIMIT} bytes: send fewer or shorter headers",
        status=_HEAD_TOO_LARGE,
        type_="HeadTooLargeException",
    )


class ServerConnection(H11Protocol):
    """One connection. Its methods are called by uvicorn and the event loop."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn: BoundedParser = BoundedParser(h11.SERVER, HEAD_BYTES_LIMIT)
        self._limits = limits
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        # asyncio does it only for sockets that name their protocol, which accepted ones do not: an answer's body would wait for the
        # client's delayed acknowledgement of its head, some 40 ms
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > self._limits.connections:
            self.app_state = {**self.app_state, SURPLUS_KEY: True}
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._await_head()
        else:
            self._end_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head_timer()
        self._end_unread_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._end_unread_timer()
        self._watch_reader()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP. There may be an answer under way already, behind which this one would be taken for a part of it."""
        answer = error_answer(self.conn.refusal or ProtocolError("this is no HTTP request that can be read"))
        try:
            self._send_error(answer)
        except h11.LocalProtocolError:
            self.transport.abort()
        else:
            self.transport.close()

    def _send_error(self, answer: ErrorAnswer) -> None:
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(answer.content)).encode()),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=answer.meaning.status, headers=headers, reason=_phrase(answer)),
            h11.Data(data=answer.content),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")

    def _await_head(self) -> None:
        """The time runs from the first byte on, however many come after it: a byte a second would never end."""
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._limits.head_seconds, self.transport.close)

    def _end_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _watch_reader(self) -> None:
        """Look later whether something was read of what waits to be sent. A closed connection, too, waits until all of it is."""
        if waiting_bytes := self.transport.get_write_buffer_size():
            self._unread_timer = self.loop.call_later(self._limits.unread_seconds, self._check_reader, waiting_bytes)

    def _check_reader(self, unread_bytes: int) -> None:
        if self.transport.get_write_buffer_size() >= unread_bytes:
            self.transport.abort()
        else:
            self._watch_reader()

    def _end_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
