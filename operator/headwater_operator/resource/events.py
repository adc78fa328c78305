"""Events: which of them a pass causes, and how they are posted.

An event reports a transition, never a pass: a step that was done, or a condition that changed its status or reason. The words
are those of the catalogue.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from headwater.clock import Clock, as_text
from headwater.errors import FencedError, HeadwaterError, NotFoundError, SwapConflictError
from headwater.reconcile import PlannedStep
from headwater_operator.kube import resource_path
from headwater_operator.resource.conditions import MESSAGE_LIMIT, cut_message, find_condition
from headwater_operator.resource.reasons import CONDITIONS, REASONS, EventType, reason_named
from headwater_operator.runtime.informer_cache import CachedResource

_RANK = (
    "RealmDeleted",
    "CatalogDeleted",
    "RealmDetached",
    "RealmCreated",
    "CatalogCreated",
    "RealmAdopted",
    "CredentialsRotated",
    "RealmMoved",
    "RealmUpdated",
    "CatalogUpdated",
    "RealmBootstrapped",
    "ConnectionProvided",
    "ConnectionRetired",
    "CredentialsRemoved",
    "PrincipalProvided",
    "PrincipalRetired",
    "PrincipalDisabled",
    "PrincipalEnabled",
    "AccessUpdated",
    "TaskRescheduled",
    "TaskRequested",
    "TaskCancelled",
)
"""The step that names the event of a pass: the first of these. A finished import is reported with its counts instead."""
_CORRECTIONS = ("RealmMoved", "RealmUpdated", "CatalogUpdated", "PrincipalDisabled", "PrincipalEnabled", "AccessUpdated")
_REPETITIONS = frozenset(condition.name for condition in CONDITIONS if condition.good == "absent")
"""Conditions that repeat what Ready says, and cause no events of their own."""

BURST = 25
REFILL_SECONDS = 300.0
"""The burst of events of one object, and the interval after it, as in client-go."""
OBJECTS_KNOWN = 4096

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Event:
    """``type`` is Normal or Warning, ``reason`` a word of the catalogue."""

    type: EventType
    reason: str
    message: str


def events_for(
    resource: CachedResource, before: Mapping[str, Any], after: Mapping[str, Any], steps: Sequence[PlannedStep]
) -> list[Event]:
    """The events of one pass; none if nothing happened.

    before, after the status as it was, and as it is now
    steps         all of a pass make one event, named after the most important of them
    """
    events = [*_of_steps(resource, before, steps), *_of_ended_work(before, after, steps)]
    told = {event.reason for event in events}
    if any(step.reason in _RANK for step in steps):
        told.add("Reconciled")
    for event in _of_conditions(before, after):
        if event.reason not in told:
            told.add(event.reason)
            events.append(event)
    return events


def is_drift_corrected(resource: CachedResource, before: Mapping[str, Any], steps: Iterable[PlannedStep]) -> bool:
    """Whether the steps undid a change that was made past the resource: it was as declared, and its declaration did not change since."""
    ready = find_condition(before.get("conditions") or (), "Ready")
    was_ready = ready is not None and ready.get("status") == "True" and ready.get("reason") == "Reconciled"
    is_same = was_ready and ready is not None and ready.get("observedGeneration") == resource.generation
    return is_same and not resource.is_deleted and any(step.reason in _CORRECTIONS for step in steps)


def _of_steps(resource: CachedResource, before: Mapping[str, Any], steps: Sequence[PlannedStep]) -> Iterator[Event]:
    told = [step for step in steps if step.reason in _RANK]
    if not told:
        return
    named = min((step.reason for step in told), key=_RANK.index)
    if is_drift_corrected(resource, before, steps):
        named = "DriftCorrected"
    elif resource.is_deleted and resource.kind == "Catalog" and named == "CatalogUpdated":
        named = "Detached"
    yield _event(named, "; ".join(step.message for step in told))


def _of_ended_work(before: Mapping[str, Any], after: Mapping[str, Any], steps: Iterable[PlannedStep]) -> Iterator[Event]:
    """Tasks that have succeeded since the last pass. Failures are reported by the conditions."""
    old, new = _mapping(before.get("maintenance")), _mapping(after.get("maintenance"))
    if old and new.get("lastResult") == "Succeeded" and new.get("lastTask") != old.get("lastTask"):
        counts = f"{new.get('objectsDeleted', 0)} rows deleted, {new.get('bytesReclaimed', 0)} bytes reclaimed"
        yield _event("CollectionDone", f"collected garbage: {counts} (task {new.get('lastTask')})")
    # an import that this pass recorded as done was never reported, even if no status showed it before
    ended: dict[Any, Any] = {step.subject: None for step in steps if step.reason == "ImportDone"}
    ended |= {entry.get("name"): entry.get("lastTime") for entry in _mappings(before.get("imports"))}
    for entry in _mappings(after.get("imports")):
        name = entry.get("name")
        if name in ended and entry.get("lastResult") == "Succeeded" and entry.get("lastTime") != ended[name]:
            yield _event("ImportDone", f"import {name} has run: {_import_counts(entry)}")
    known = {entry.get("kind"): entry.get("lastTime") for entry in _mappings(before.get("lakeWork"))}
    for entry in _mappings(after.get("lakeWork")):
        kind = entry.get("kind")
        if kind in known and entry.get("lastResult") == "Succeeded" and entry.get("lastTime") != known[kind]:
            yield _event("LakeWorkDone", f"{kind} has run, and ended at {entry.get('lastTime')}")


def _import_counts(entry: Mapping[str, Any]) -> str:
    """``9 tables (3 new, 1 moved forward), 2 left alone: Corrupt 1, NoMetadata 1``."""
    new, moved, same = (int(entry.get(name) or 0) for name in ("imported", "updated", "unchanged"))
    counts = f"{new + moved + same} tables ({new} new, {moved} moved forward), {entry.get('quarantined') or 0} left alone"
    codes = ", ".join(f"{code.get('code')} {code.get('tables')}" for code in _mappings(entry.get("quarantineCodes")))
    return f"{counts}: {codes}" if codes else counts


def _of_conditions(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    former = _mappings(before.get("conditions"))
    for condition in _mappings(after.get("conditions")):
        if condition["type"] in _REPETITIONS:
            continue
        old = find_condition(former, str(condition["type"])) or {}
        # reasons of other writers and of other releases are not in the catalogue
        reason = REASONS.get(str(condition["reason"]))
        is_same = (old.get("status"), old.get("reason")) == (condition["status"], condition["reason"])
        if is_same or reason is None or reason.event is None:
            continue
        if reason.name != "Reconciled":
            yield _event(reason.name, str(condition["message"]) or reason.meaning)
        elif condition["type"] == "Ready" and _was_told(old):
            yield _event(reason.name, str(condition["message"]) or "everything is as declared again")


def _was_told(condition: Mapping[str, Any]) -> bool:
    """Whether an event reported the obstacle, so that another one reports its end."""
    reason = REASONS.get(str(condition.get("reason")))
    return reason is not None and reason.event is not None and reason.name != "Reconciled"


def _event(reason: str, message: str) -> Event:
    entry = reason_named(reason)
    return Event(entry.event or "Normal", entry.name, cut_message(message, MESSAGE_LIMIT))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


class EventsApi(Protocol):
    """The part of the Kubernetes API that posting needs."""

    def get_resource(self, path: str) -> dict[str, Any]: ...
    def create_resource(self, path: str, body: dict[str, Any]) -> dict[str, Any]: ...
    def patch_resource(self, path: str, body: Any, *, kind: Any) -> dict[str, Any]: ...


class EventPoster:
    """Posts events. A failure is logged: no pass fails because of it.

    component     who reports, as a name
    instance      which of its processes
    observe       called with the reason of each posted event

    Events with the same reason for the same object share a name, so that a repetition increments the count.
    """

    def __init__(
        self,
        api: EventsApi,
        *,
        component: str,
        instance: str,
        clock: Clock,
        observe: Callable[[str], None] | None = None,
    ) -> None:
        self._api = api
        self._component = component
        self._instance = instance
        self._clock = clock
        self._observe = observe
        self._bound = _Bound(clock)

    def post(self, resource: CachedResource, events: Iterable[Event]) -> None:
        """Post the events of a resource.

        raises        FencedError, and nothing else, when this process may not write any more
        """
        for event in events:
            if not self._bound.takes(resource.uid):
                _log.info(
                    "too many events of one object: this one is only logged", resource=str(resource.key), reason=event.reason
                )
                continue
            try:
                self._post(resource, event)
            except FencedError:
                raise
            except HeadwaterError as fault:
                _log.warning("an event was not posted", resource=str(resource.key), reason=event.reason, fault=str(fault))
            else:
                if self._observe is not None:
                    self._observe(event.reason)

    def _post(self, resource: CachedResource, event: Event) -> None:
        body = self._body(resource, event)
        try:
            self._api.create_resource(resource_path("Event", resource.namespace, None), body)
        except FencedError:
            raise
        except SwapConflictError:
            self._count_up(resource, body)

    def _count_up(self, resource: CachedResource, body: dict[str, Any]) -> None:
        path = resource_path("Event", resource.namespace, body["metadata"]["name"])
        try:
            posted = self._api.get_resource(path)
            count = int(posted.get("count") or 1) + 1
            self._api.patch_resource(path, {"count": count, "lastTimestamp": body["lastTimestamp"]}, kind="merge")
        except NotFoundError:  # its time ran out between the two
            self._api.create_resource(resource_path("Event", resource.namespace, None), body)

    def _body(self, resource: CachedResource, event: Event) -> dict[str, Any]:
        now = as_text(self._clock.now())
        text = "\n".join((resource.uid, event.type, event.reason, event.message))
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{resource.name[:200].rstrip('-.')}.{digest}", "namespace": resource.namespace},
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "namespace": resource.namespace,
                "name": resource.name,
                "uid": resource.uid,
                "resourceVersion": resource.resource_version,
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }


class _Bound:
    """A bucket of events for each object; those that were not used for longest are dropped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def takes(self, uid: str) -> bool:
        now = self._clock.monotonic()
        with self._lock:
            left, since = self._buckets.pop(uid, (float(BURST), now))
            left = min(left + (now - since) / REFILL_SECONDS, BURST)
            is_taken = left >= 1
            self._buckets[uid] = (left - is_taken, now)
            while len(self._buckets) > OBJECTS_KNOWN:
                self._buckets.popitem(last=False)
            return is_taken
