"""The store's figures for metrics, read periodically in a separate thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import structlog

from headwater.clock import Clock
from headwater.errors import HeadwaterError
from headwater.realms import RealmRegistry
from headwater.store import Store
from headwater.tasks import TaskFigures, TaskQueue

log = structlog.get_logger(__name__)

SHARE = 20
"""Reading the figures of a large store takes at most one part in so many of the time."""
PROBE = "store-probe"
UNREADABLE = "UNREADABLE"
"""The state of a realm whose definition cannot be read."""


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """One reading of the store.

    is_up     the store answered
    realms    by state; tasks: by the labels of their metric. Both None where this process does not lead, or the store did not answer
    """

    is_up: bool
    realms: Mapping[str, int] | None = None
    tasks: TaskFigures | None = None
    error: str = ""


@dataclass
class FiguresReader:
    """Reads all figures while this process leads, and otherwise only whether the store answers.

    Several operators would export the same counts of one store, and a sum over them would count each realm twice.

    tell          called with each reading
    guard         held while the store is read, and its reading is told
    """

    store: Store
    clock: Clock
    every_seconds: float
    is_leading: Callable[[], bool]
    tell: Callable[[StoreFigures], None]
    guard: AbstractContextManager[Any] = field(default_factory=nullcontext)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _woken: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._go_on, name="figures", daemon=True)
        self._thread.start()

    def stop(self, *, seconds: float = 1.0) -> None:
        self._stopped.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def wake(self) -> None:
        """Read now instead of at the next time."""
        self._woken.set()

    def read_figures(self) -> StoreFigures:
        """Read the figures once. A store that does not answer gives a reading, too."""
        try:
            if not self.is_leading():
                RealmRegistry(self.store).find_realm(PROBE)
                return StoreFigures(is_up=True)
            listed = RealmRegistry(self.store).list_realms()
            realms = Counter(realm.state.value for realm in listed)
            if listed.unreadable:
                realms[UNREADABLE] = len(listed.unreadable)
            return StoreFigures(is_up=True, realms=realms, tasks=TaskQueue(self.store).read_figures())
        except HeadwaterError as fault:
            return StoreFigures(is_up=False, error=str(fault))

    def _go_on(self) -> None:
        was_up = True
        while not self._stopped.is_set():
            self._woken.clear()
            began = self.clock.monotonic()
            with self.guard:
                was_up = self._read_and_tell(was_up)
            took = self.clock.monotonic() - began
            self._woken.wait(max(self.every_seconds, took * SHARE))

    def _read_and_tell(self, was_up: bool) -> bool:
        try:
            figures = self.read_figures()
        except Exception as fault:
            log.exception("the store's figures cannot be read")
            figures = StoreFigures(is_up=False, error=type(fault).__name__)
        if figures.is_up is not was_up:
            log.warning("store answers again" if figures.is_up else "store does not answer", error=figures.error)
        self.tell(figures)
        return figures.is_up
