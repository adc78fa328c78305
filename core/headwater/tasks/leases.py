"""Who may take over a running task: whoever saw its token stand still for a whole lease, on a clock of its own."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from headwater.clock import Clock
from headwater.store import ObjectId

__all__ = ["Evidence", "LeaseWatch", "StoodStill"]


class Evidence(Protocol):
    def stood_still(self, task_id: ObjectId, token: str) -> bool:
        """Whether this token of the task was seen unchanged for a whole lease."""
        ...


@dataclass(frozen=True, slots=True)
class StoodStill:
    """Someone else's finding, as a message carries it. It cannot become wrong: a token that has changed never comes back."""

    token: str | None

    def stood_still(self, task_id: ObjectId, token: str) -> bool:
        return self.token == token


class LeaseWatch:
    """Remembers since when the token of each running task stands still. Wall clocks, and those of others, play no part.

    lease_seconds  how long a token must stand still
    """

    def __init__(self, clock: Clock, lease_seconds: float) -> None:
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._lock = threading.Lock()
        self._since: dict[ObjectId, tuple[str, float]] = {}

    def now(self) -> float:
        """Take this before the read whose token goes to ``observe``."""
        return self._clock.monotonic()

    def observe(self, task_id: ObjectId, token: str, *, asked: float) -> bool:
        """Note what a read begun at ``asked`` has found; whether the token stood still for the lease.

        A token counts from the end of the first read that found it to the start of the last one.
        """
        with self._lock:
            known, since = self._since.get(task_id, ("", 0.0))
            if known != token:
                self._since[task_id] = (token, self._clock.monotonic())
                return False
            return asked - since >= self._lease_seconds

    def stood_still(self, task_id: ObjectId, token: str) -> bool:
        return self.observe(task_id, token, asked=self.now())

    def keep_only(self, task_ids: Collection[ObjectId]) -> None:
        """Forget all others."""
        with self._lock:
            self._since = {task_id: seen for task_id, seen in self._since.items() if task_id in task_ids}
