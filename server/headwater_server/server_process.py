"""The process of a server: where it listens, uvicorn around the application, signals, and the end."""

from __future__ import annotations

import errno
import ipaddress
import logging
import math
import os
import resource
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

import structlog
import uvicorn

from headwater.errors import RefusedError, UnavailableError
from headwater.settings import Settings
from headwater_server.drain import ServerDrain
from headwater_server.server_application import ServerApplication
from headwater_server.server_connection import HEAD_BYTES_LIMIT, ConnectionLimits, ServerConnection
from headwater_server.tls import CertificateFiles

log = structlog.get_logger(__name__)

CUT_SHORT: Final = 7
"""The exit code of a process that ended while requests still ran: nobody knows what became of them."""
EVERYWHERE: Final = "*"
_FORCED: Final = 128
_BACKLOG: Final = 1024
_REREAD_TICKS: Final = 50
"""uvicorn ticks ten times a second."""
_SPARE_FILES: Final = 512
"""Files that a process opens beside its connections: those of databases, of tables, of logs."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a server listens."""

    host: str
    port: int

    @classmethod
    def of_setting(cls, variable: str, text: str) -> ListenAddress:
        """The address in a setting.

        raises        RefusedError that names the variable, for what has another form
        """
        try:
            return cls.parse(text)
        except RefusedError as wrong:
            raise RefusedError(f"{variable}: {wrong}") from wrong

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        """An address such as ``127.0.0.1:8181``, ``[::1]:8181`` or ``localhost:8181``; port 0 takes a free one.

        raises        RefusedError for what has another form
        """
        name, colon, digits = text.rpartition(":")
        host = name.removeprefix("[").removesuffix("]").lower()
        if not colon or not host or not (digits.isascii() and digits.isdigit()) or int(digits) > 65535:
            raise RefusedError(f"{text!r} is no address to listen on: write for example 127.0.0.1:8181 or [::1]:8181")
        return cls("127.0.0.1" if host == "localhost" else host, int(digits))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check_loopback(self) -> None:
        """raises RefusedError for an address that others than this machine reach, where nobody has to prove who they are"""
        if not self.is_loopback:
            raise RefusedError(
                f"the server does not listen on {self.host}: nobody has to prove who calls, so it would give everything to everybody who"
                " reaches it; set HEADWATER_SERVER_SIGNING_KEYS or HEADWATER_SERVER_ISSUERS, or listen on 127.0.0.1 or [::1]"
            )

    def listen(self, *, asks_who_calls: bool = False) -> socket.socket:
        """Listen for requests.

        asks_who_calls  whoever calls has to prove who it is: then the address may be one that others reach
        raises        RefusedError for such an address otherwise; UnavailableError when somebody else listens there
        """
        if not asks_who_calls:
            self.check_loopback()
        return self._open()

    def listen_for_probes(self) -> socket.socket:
        """Listen where others may come, too: for answers that are for everybody.

        raises        UnavailableError when somebody else listens there
        """
        return self._open()

    def _open(self) -> socket.socket:
        try:
            if self.host == EVERYWHERE and socket.has_dualstack_ipv6():
                return socket.create_server(("::", self.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG)
            host = "0.0.0.0" if self.host == EVERYWHERE else self.host
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, self.port), family=family, backlog=_BACKLOG)
        except OSError as fault:
            told = f"the server cannot listen on {self.host} port {self.port}"
            if fault.errno == errno.EADDRINUSE:
                raise UnavailableError(
                    f"{told}: another process does; end it, or name another port, or port 0 for a free one"
                ) from fault
            raise UnavailableError(f"{told}: {fault.strerror}") from fault


def serve_application(
    application: ServerApplication, listener: socket.socket, *, settings: Settings, tell: Callable[[str], None]
) -> int:
    """Serve until SIGTERM or SIGINT; a second one ends the process at once.

    listener      listens already; it is closed at the end
    tell          called with the server's URL once it is ready
    returns       the exit code
    raises        RefusedError for certificate files that cannot be used
    """
    certificate = certificate_of(settings)
    _allow_files(settings.server_connections + _SPARE_FILES)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what clients send is no news: it is counted, and answered
    scheme = "https" if certificate else "http"
    server = DrainedServer(uvicorn_config(application, settings, certificate), application.drain, certificate)
    host, port = listener.getsockname()[:2]
    server.on_ready = lambda: tell(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
    application.metrics.gauges.connections = lambda: len(server.server_state.connections)
    server.run(sockets=[listener, *_probe_listener(application, settings)])
    application.close()
    if running := application.admission.running:
        log.warning("the server ends while requests run", requests=running)
        _end_at_once(CUT_SHORT)
    return 0


def _probe_listener(application: ServerApplication, settings: Settings) -> list[socket.socket]:
    """The socket for probes alone, if the settings name one. Its port is how the application knows the requests that come there."""
    if not settings.server_probes:
        return []
    listener = ListenAddress.of_setting("HEADWATER_SERVER_PROBES", settings.server_probes).listen_for_probes()
    application.probe_port = listener.getsockname()[1]
    return [listener]


def certificate_of(settings: Settings) -> CertificateFiles | None:
    """The certificate that the settings name; None for a server without TLS.

    raises        RefusedError for one file without the other, and for files that cannot be used
    """
    if bool(settings.server_certificate) != bool(settings.server_private_key):
        raise RefusedError("HEADWATER_SERVER_CERTIFICATE and HEADWATER_SERVER_PRIVATE_KEY go together: set both, or none")
    if not settings.server_certificate:
        return None
    return CertificateFiles(Path(settings.server_certificate), Path(settings.server_private_key))


def uvicorn_config(application: ServerApplication, settings: Settings, certificate: CertificateFiles | None) -> uvicorn.Config:
    """uvicorn as this server needs it: nothing but HTTP/1.1, no log, no headers and no forwarded address of its own."""
    connection: Any = partial(ServerConnection, limits=ConnectionLimits.of_settings(settings))
    config = uvicorn.Config(
        application,
        http=connection,
        ws="none",
        loop="asyncio",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=math.ceil(settings.server_idle_timeout_seconds),
        timeout_graceful_shutdown=math.ceil(settings.server_drain_timeout_seconds),
        h11_max_incomplete_event_size=HEAD_BYTES_LIMIT,
    )
    config.load()
    config.ssl = certificate.context if certificate else None
    return config


class DrainedServer(uvicorn.Server):
    """uvicorn, which goes on after SIGTERM until no change runs any more, and only then closes."""

    def __init__(self, config: uvicorn.Config, drain: ServerDrain, certificate: CertificateFiles | None = None) -> None:
        super().__init__(config)
        self.on_ready: Callable[[], None] = lambda: None
        self._drain = drain
        self._certificate = certificate

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._drain.is_draining:
            _end_at_once(_FORCED + sig)
        self._drain.begin()

    async def on_tick(self, counter: int) -> bool:
        if self._certificate is not None and counter % _REREAD_TICKS == 0:
            self._certificate.reread()
        return await super().on_tick(counter) or self._drain.may_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn waits for what runs; what was spent on changes is not given a second time
        self.config.timeout_graceful_shutdown = max(1, math.ceil(self._drain.left_seconds))
        await super().shutdown(sockets)


def _allow_files(count: int) -> None:
    """Raise the soft limit of open files as far as the hard one allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _end_at_once(code: int) -> None:
    """End without waiting for threads: the interpreter's own end would wait for every handler that hangs."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
