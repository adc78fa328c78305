"""Whether a server is alive and whether it is ready, for probes; an answer that is not well says why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from headwater.clock import Clock
from headwater.errors import HeadwaterError
from headwater.realms import RealmRegistry
from headwater.redaction import without_logins
from headwater.settings import Settings, duration_text
from headwater.store import Store
from headwater_server.admission import RequestAdmission
from headwater_server.drain import ServerDrain

_PROBE: Final = "store-probe"
_LOOK_SECONDS: Final = 2.0
_FRESH_SECONDS: Final = 1.0
_HANGING_TIMES: Final = 5


class ServerHealth:
    """What the probes ask. It has a thread of its own, so that it can say that all others are busy."""

    def __init__(
        self, store: Store, settings: Settings, clock: Clock, *, admission: RequestAdmission, drain: ServerDrain
    ) -> None:
        self._store = store
        self._clock = clock
        self._admission = admission
        self._drain = drain
        self._hanging_seconds = _HANGING_TIMES * settings.server_request_timeout_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._look: asyncio.Future[str] | None = None
        self._looked = 0.0

    def alive(self) -> Mapping[str, str]:
        """What only a restart helps against: a sentence by what it is about, or nothing."""
        seconds = self._admission.longest_seconds
        if seconds <= self._hanging_seconds:
            return {"requests": ""}
        return {"requests": f"one has been worked on for {duration_text(round(seconds))}"}

    async def ready(self) -> Mapping[str, str]:
        """Whether this process can do its part."""
        return {"process": "it is stopping" if self._drain.is_draining else "", "store": await self._store_fault()}

    def shut_down(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _store_fault(self) -> str:
        """Ask the store, at most once a second, and never twice at the same time."""
        age = self._clock.monotonic() - self._looked
        if self._look is None or (self._look.done() and age > _FRESH_SECONDS):
            self._looked, age = self._clock.monotonic(), 0.0
            self._look = asyncio.get_running_loop().run_in_executor(self._thread, self._ask_store)
        if not self._look.done():
            await asyncio.wait({self._look}, timeout=_LOOK_SECONDS)
        if self._look.done():
            return self._look.result()
        return f"it has not answered for {duration_text(round(age + _LOOK_SECONDS))}"

    def _ask_store(self) -> str:
        try:
            RealmRegistry(self._store).find_realm(_PROBE)
        except HeadwaterError as fault:
            return without_logins(str(fault))
        return ""


def health_text(findings: Mapping[str, str]) -> tuple[int, bytes]:
    """The status and the text of a probe's answer: 200 when nothing is wrong, else 503; a line for each finding."""
    lines = [f"{what}: {why or 'ok'}\n" for what, why in findings.items()]
    return (503 if any(findings.values()) else 200), "".join(lines).encode()
