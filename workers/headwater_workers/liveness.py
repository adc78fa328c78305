"""A file that is kept fresh while a worker is well, so that a probe only checks its age."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import structlog
from celery import Celery, bootsteps

__all__ = ["DISPATCHER", "MAIN_LOOP", "Pulse", "beat_in_the_main_loop"]

DISPATCHER, MAIN_LOOP = "dispatcher", "main loop"
PATIENCE_SECONDS = 120.0
"""A loop without a beat for this long hangs. A step of the dispatcher may wait a minute at most for a slow database."""
TOUCH_SECONDS, LOOP_SECONDS = 5.0, 5.0

log = structlog.get_logger(__name__)


class Pulse:
    """Tracks the loops of a process. With a file, touches it from a separate thread while all loops turn.

    An unreachable database or broker stops no loop and so not the pulse: a restart would not help.
    """

    def __init__(self, file: Path | None, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._monotonic = monotonic
        self._beats: dict[str, float] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def __enter__(self) -> Pulse:
        if self._file is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def beat(self, loop: str) -> None:
        """Record a beat of a loop; after its first beat the loop is watched."""
        self._beats[loop] = self._monotonic()

    def forget_beat(self, loop: str) -> None:
        """Stop watching a loop that ended in an orderly way."""
        self._beats.pop(loop, None)

    def stuck(self) -> list[str]:
        """The loops whose last beat is too old."""
        now = self._monotonic()
        return sorted(loop for loop, last in self._beats.copy().items() if now - last > PATIENCE_SECONDS)

    def _run(self) -> None:
        told: list[str] = []
        while True:
            stuck = self.stuck()
            if not stuck:
                self._touch()
            elif stuck != told:
                log.error("the worker hangs: its alive file is left to grow old", stuck=", ".join(stuck))
            told = stuck
            if self._stopped.wait(TOUCH_SECONDS):
                return

    def _touch(self) -> None:
        assert self._file is not None
        try:
            self._file.touch()
        except OSError as fault:
            log.warning("the alive file cannot be written", file=str(self._file), error=str(fault))


def beat_in_the_main_loop(app: Celery, pulse: Pulse) -> None:
    """Let the event loop that reads messages beat while it is connected; without a broker it waits and is not watched.

    The embedded broker is read by a plain loop without timers, which is not watched.
    """

    class Beat(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def start(self, parent: Any) -> None:
            if parent.hub is not None:
                pulse.beat(MAIN_LOOP)
                parent.timer.call_repeatedly(LOOP_SECONDS, pulse.beat, (MAIN_LOOP,))

        def stop(self, parent: Any) -> None:
            pulse.forget_beat(MAIN_LOOP)

    app.steps["consumer"].add(Beat)
