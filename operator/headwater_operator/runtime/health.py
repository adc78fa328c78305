"""Health of the process, for a standby and a leader, and the HTTP server of `/healthz`, `/readyz` and `/metrics`.

An unhealthy answer says why.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from aiohttp import web

from headwater.clock import Clock
from headwater.errors import UnavailableError
from headwater.settings import duration_text
from headwater_operator.runtime.informer_cache import ResourceKey
from headwater_operator.runtime.leader_election import LeadHolder
from headwater_operator.runtime.operator_settings import OperatorSettings

LEASE_SECONDS = 30.0
KINDS = ("Realm", "Catalog")


class Watches(Protocol):
    @property
    def is_listed(self) -> bool: ...
    def ages(self) -> Mapping[str, float]: ...


class LookTimes:
    """Records which resources are in a pass, and since when. Wraps the reconcile function."""

    def __init__(self, reconcile: Callable[[ResourceKey], None], clock: Clock) -> None:
        self._reconcile = reconcile
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: dict[ResourceKey, float] = {}

    def __call__(self, key: ResourceKey) -> None:
        with self._lock:
            self._begun[key] = self._clock.monotonic()
        try:
            self._reconcile(key)
        finally:
            with self._lock:
                self._begun.pop(key, None)

    def longest(self) -> tuple[ResourceKey, float] | None:
        """The pass that has taken longest so far, and its seconds."""
        with self._lock:
            if not self._begun:
                return None
            key = min(self._begun, key=lambda begun: self._begun[begun])
            return key, self._clock.monotonic() - self._begun[key]


@dataclass
class ProcessHealth:
    """The findings of a probe by part of the process: a sentence on what is wrong, or nothing.

    watches       None until this process leads
    has_met_store whether the store answered at least once: a process that never reached it must not replace one that did
    """

    lead: LeadHolder
    settings: OperatorSettings
    clock: Clock
    has_met_store: bool = False
    is_stopping: bool = False
    watches: Watches | None = None
    looks: LookTimes | None = None
    _watched_since: float = field(default=0.0)

    def begin_leading(self, watches: Watches, looks: LookTimes) -> None:
        """Record that this process leads, and watches from now on."""
        self._watched_since = self.clock.monotonic()
        self.looks = looks
        self.watches = watches

    def alive(self) -> dict[str, str]:
        """The conditions without which only a restart helps."""
        if self.watches is None:
            return {"lead": ""}
        return {f"watch of {kind} resources": self._silence(kind) for kind in KINDS} | {"reconciles": self._hanging()}

    def ready(self) -> dict[str, str]:
        """Whether this process does its part: as a leader it has seen everything; as a standby it could take over at any time."""
        findings = {"process": "it is stopping" if self.is_stopping else ""}
        if self.watches is not None:
            lists = "" if self.watches.is_listed else "not everything that there is was listed yet"
            return findings | {"lead": "" if self.lead.is_held else "the Lease is not held", "lists": lists}
        age = self.lead.seen_seconds_ago
        lease = "" if age <= LEASE_SECONDS else f"the Lease was not read {_since(age)}"
        store = "" if self.has_met_store else "the store has not answered yet"
        return findings | {"Lease": lease, "store": store}

    def _silence(self, kind: str) -> str:
        assert self.watches is not None
        since = self.clock.monotonic() - self._watched_since
        age = self.watches.ages().get(kind, since)
        if age <= self.settings.watch_silence_seconds:
            return ""
        return f"nothing was heard of it {_since(age)}"

    def _hanging(self) -> str:
        longest = self.looks.longest() if self.looks is not None else None
        if longest is None or longest[1] <= self.settings.reconcile_limit_seconds:
            return ""
        return f"that of {longest[0]} has not ended {_since(longest[1])}"


def _since(seconds: float) -> str:
    return "yet" if seconds == float("inf") else f"for {duration_text(round(seconds))}"


log = structlog.get_logger(__name__)

START_SECONDS, STOP_SECONDS = 10.0, 2.0
EVERYWHERE = "*"


@dataclass
class Health:
    """The functions that a probe calls. Each may be replaced while the process starts.

    alive, ready  what is wrong, by what it is about: a sentence, or "" when it is well
    """

    alive: Callable[[], Mapping[str, str]] = field(default=dict)
    ready: Callable[[], Mapping[str, str]] = field(default=lambda: {"start": "the process is starting"})


class ProbeServer:
    """A small HTTP server with an event loop and a thread of its own, so that it answers while everything else is busy.

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
        """Start to listen and answer.

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
    """200 when nothing is wrong, else 503; with a line for each finding."""
    is_well = not any(findings.values())
    lines = [f"{what}: {why or 'ok'}" for what, why in findings.items()]
    return web.Response(text="".join(f"{line}\n" for line in lines) or "ok\n", status=200 if is_well else 503)
