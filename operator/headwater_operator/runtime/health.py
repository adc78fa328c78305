"""Health of the operator's process, for a standby and a leader. An unhealthy answer says why."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headwater.clock import Clock
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
    schema_faults why the schema that the API server serves for a kind is older than this operator
    has_met_store whether the store answered at least once: a process that never reached it must not replace one that did
    """

    lead: LeadHolder
    settings: OperatorSettings
    clock: Clock
    has_met_store: bool = False
    is_stopping: bool = False
    schema_faults: Callable[[], Mapping[str, str]] = field(default=dict)
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
        findings |= {f"schema of {kind} resources": fault for kind, fault in self.schema_faults().items()}
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
