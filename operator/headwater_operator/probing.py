"""Health and metrics over HTTP: `/healthz`, `/readyz`, `/metrics`. Says why not, where it is not well."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog
from aiohttp import web

from headwater.errors import UnavailableError

__all__ = ["Health", "ProbeServer"]

log = structlog.get_logger(__name__)

START_SECONDS, STOP_SECONDS = 10.0, 2.0
EVERYWHERE = "*"


@dataclass
class Health:
    """What is asked at the moment of a probe. Each may be replaced as the process comes to life.

    alive, ready  what is wrong, by what it is about: a sentence, or "" when it is well
    """

    alive: Callable[[], Mapping[str, str]] = field(default=dict)
    ready: Callable[[], Mapping[str, str]] = field(default=lambda: {"start": "the process is starting"})


class ProbeServer:
    """A small HTTP server with an event loop and a thread of its own, so that it answers while all else is busy.

    address       `*` for all addresses
    port          0 takes a free one; `port` says which, once it is started
    render        gives the metrics as text
    """

    def __init__(self, address: str, port: int, *, health: Health, render: Callable[[], bytes], content_type: str) -> None:
        self._address = None if address == EVERYWHERE else address
        self.port = port
        self._health = health
        self._render = render
        self._content_type = content_type
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="probes", daemon=True)
        self._runner: web.AppRunner | None = None
        self._started = threading.Event()
        self._fault: OSError | None = None

    def start(self) -> None:
        """Listen, and answer from now on.

        raises        UnavailableError when the address cannot be listened on
        """
        self._thread.start()
        if not self._started.wait(START_SECONDS):
            raise UnavailableError("the server of health and metrics does not start")
        if self._fault is not None:
            raise UnavailableError(f"health and metrics cannot be served on port {self.port}: {self._fault}") from self._fault

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_SECONDS)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._listen())
        except OSError as fault:
            self._fault = fault
        self._started.set()
        try:
            if self._fault is None:
                self._loop.run_forever()
            if self._runner is not None:
                self._loop.run_until_complete(self._runner.cleanup())
        finally:
            self._loop.close()

    async def _listen(self) -> None:
        application = web.Application()
        application.router.add_get("/healthz", self._answer_alive)
        application.router.add_get("/readyz", self._answer_ready)
        application.router.add_get("/metrics", self._answer_metrics)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=STOP_SECONDS / 2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._address, self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _answer_alive(self, request: web.Request) -> web.Response:
        return _answer(self._health.alive())

    async def _answer_ready(self, request: web.Request) -> web.Response:
        return _answer(self._health.ready())

    async def _answer_metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._render(), headers={"Content-Type": self._content_type})


def _answer(findings: Mapping[str, str]) -> web.Response:
    """200 when nothing is wrong, else 503; with a line for each thing that was asked."""
    is_well = not any(findings.values())
    lines = [f"{what}: {why or 'ok'}" for what, why in findings.items()]
    return web.Response(text="".join(f"{line}\n" for line in lines) or "ok\n", status=200 if is_well else 503)
