"""How the process is: what its probes say while it waits for the lead, and while it leads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headwater.clock import Clock
from headwater.settings import duration_text
from headwater_operator.leading import Lead
from headwater_operator.resources import Key
from headwater_operator.settings import OperatorSettings

__all__ = ["Looks", "Vitals"]

LEASE_SECONDS = 30.0
KINDS = ("Realm", "Catalog")


class Watches(Protocol):
    @property
    def is_listed(self) -> bool: ...
    def ages(self) -> Mapping[str, float]: ...


class Looks:
    """Which resources are looked at just now, and since when. Wraps what looks at them."""

    def __init__(self, reconcile: Callable[[Key], None], clock: Clock) -> None:
        self._reconcile = reconcile
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: dict[Key, float] = {}

    def __call__(self, key: Key) -> None:
        with self._lock:
            self._begun[key] = self._clock.monotonic()
        try:
            self._reconcile(key)
        finally:
            with self._lock:
                self._begun.pop(key, None)

    def longest(self) -> tuple[Key, float] | None:
        """The one that takes longest so far, and its seconds."""
        with self._lock:
            if not self._begun:
                return None
            key = min(self._begun, key=lambda one: self._begun[one])
            return key, self._clock.monotonic() - self._begun[key]


@dataclass
class Vitals:
    """What a probe finds, by what it is about: a sentence on what is wrong, or nothing.

    watches       None until this process leads
    has_met_store whether the store answered at least once: who was never able to reach it must not replace one who was
    """

    lead: Lead
    settings: OperatorSettings
    clock: Clock
    has_met_store: bool = False
    is_stopping: bool = False
    watches: Watches | None = None
    looks: Looks | None = None
    _watched_since: float = field(default=0.0)

    def begin(self, watches: Watches, looks: Looks) -> None:
        """This process leads, and watches from now on."""
        self._watched_since = self.clock.monotonic()
        self.looks = looks
        self.watches = watches

    def alive(self) -> dict[str, str]:
        """Without these, only a new start helps."""
        if self.watches is None:
            return {"lead": ""}
        return {f"watch of {kind} resources": self._silence(kind) for kind in KINDS} | {"reconciles": self._hanging()}

    def ready(self) -> dict[str, str]:
        """Whether this process does its part: it leads and has seen everything, or it could take over at any time."""
        found = {"process": "it is stopping" if self.is_stopping else ""}
        if self.watches is not None:
            lists = "" if self.watches.is_listed else "not everything that there is was listed yet"
            return found | {"lead": "" if self.lead.is_held else "the Lease is not held", "lists": lists}
        seen = self.lead.seen_seconds_ago
        lease = "" if seen <= LEASE_SECONDS else f"the Lease was not read {_since(seen)}"
        store = "" if self.has_met_store else "the store has not answered yet"
        return found | {"Lease": lease, "store": store}

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
