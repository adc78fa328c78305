"""A process of a test that stops before one of its calls to the database, so that others can run to their end in between."""

from __future__ import annotations

import threading
from collections.abc import Callable

from faulty_backend import FaultyBackend
from headwater.errors import HeadwaterError

__all__ = ["WAIT_SECONDS", "Actor"]

WAIT_SECONDS = 60.0


class Actor:
    """One process, which is stopped before one of its calls until it may go on.

    faults        its backend
    losing        errors that say that another one was faster; any other one fails the test
    """

    def __init__(self, faults: FaultyBackend, act: Callable[[], object], *, losing: type[HeadwaterError]) -> None:
        self.faults = faults
        self.error: HeadwaterError | None = None
        self._act, self._losing = act, losing
        self._stopped, self._may_go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def run_until(self, call: int) -> None:
        """Returns when it is stopped, or at its end."""
        self.faults.intervene("*", self._stop, at=call)
        self._thread.start()
        assert self._stopped.wait(WAIT_SECONDS)

    def finish(self) -> None:
        self._may_go.set()
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()

    def _stop(self) -> None:
        self._stopped.set()
        assert self._may_go.wait(WAIT_SECONDS)

    def _run(self) -> None:
        try:
            self._act()
        except self._losing as lost:
            self.error = lost
        finally:
            self._stopped.set()
