"""What there is to say about a realm, as plain data: put together from its resource, its catalogs' and the events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from headwater.console import count_text
from headwater_operator.plugin.age_text import moment, time_text
from headwater_operator.plugin.naming import realm_id_of, status_of
from headwater_operator.reasons import CONDITIONS

__all__ = ["findings", "next_things", "realm_page", "realm_row"]

_EVENTS_SHOWN = 10
_GOOD = {condition.name: condition.good for condition in CONDITIONS}

Resource = Mapping[str, Any]


def realm_page(realm: Resource, catalogs: Sequence[Resource], events: Sequence[Resource], now: datetime) -> dict[str, Any]:
    """Everything that a person on call asks first. ``findings`` is empty when all is well."""
    status, spec, metadata = status_of(realm), realm.get("spec", {}), realm["metadata"]
    problems = [*findings(realm), *(f"catalog {c['metadata']['name']}: {text}" for c in catalogs for text in findings(c))]
    return {
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "realmId": realm_id_of(realm),
        "realmKey": status.get("realmKey", ""),
        "state": status.get("state", ""),
        "message": status.get("message", ""),
        "deletionRequested": metadata.get("deletionTimestamp"),
        "deletionPolicy": spec.get("deletionPolicy", "Retain"),
        "deletionProtection": bool(spec.get("deletionProtection")),
        "credentialsSecret": status.get("credentialsSecret", ""),
        "conditions": [dict(condition) for condition in status.get("conditions") or ()],
        "maintenance": dict(status.get("maintenance") or {}),
        "purge": dict(status.get("purge") or {}),
        "catalogs": [_catalog(catalog) for catalog in catalogs],
        "tasks": [dict(task) for task in status.get("tasks") or ()],
        "next": next_things(realm, catalogs, now),
        "events": [_event(event) for event in sorted(events, key=_event_time)[-_EVENTS_SHOWN:]],
        "findings": problems,
    }


def realm_row(realm: Resource) -> dict[str, Any]:
    """One line about a realm."""
    status = status_of(realm)
    ready = _condition(realm, "Ready")
    return {
        "namespace": realm["metadata"].get("namespace", ""),
        "name": realm["metadata"]["name"],
        "realmId": realm_id_of(realm),
        "state": status.get("state", ""),
        "ready": ready.get("status", ""),
        "reason": ready.get("reason", ""),
        "catalogs": status.get("catalogs"),
        "tables": status.get("tables"),
        "nextMaintenance": (status.get("maintenance") or {}).get("nextTime"),
        "message": status.get("message", ""),
        "findings": findings(realm),
    }


def findings(resource: Resource) -> list[str]:
    """What is not as it should be, one sentence each."""
    conditions = status_of(resource).get("conditions") or ()
    if not conditions:
        return ["no operator has looked at it yet"]
    wrong = [f"{c['type']} is {c['status']} ({c.get('reason', '')}): {c.get('message', '')}" for c in conditions if _is_bad(c)]
    seen, asked = status_of(resource).get("observedGeneration"), resource["metadata"].get("generation")
    if seen is not None and asked is not None and seen < asked:
        wrong.append(f"the operator has not acted on the last change yet (generation {asked}, seen {seen})")
    return wrong


def next_things(realm: Resource, catalogs: Sequence[Resource], now: datetime) -> list[dict[str, str]]:
    """What will happen by itself, soonest first."""
    things = sorted(_timed(realm, catalogs), key=lambda thing: thing[0])
    return [{"time": time_text(time), "what": what} for time, what in things if time >= now]


def _timed(realm: Resource, catalogs: Iterable[Resource]) -> Iterator[tuple[datetime, str]]:
    status = status_of(realm)
    known: set[str] = set()
    if held := moment((status.get("purge") or {}).get("holdUntil")):
        yield held, "the hold ends, and the purge begins: everything in the realm is deleted"
    maintenance = status.get("maintenance") or {}
    if (collection := moment(maintenance.get("nextTime"))) and not maintenance.get("suspended"):
        known.add("gc")
        yield collection, "collection of garbage"
    for catalog in catalogs:
        for entry in status_of(catalog).get("imports") or ():
            if again := moment(entry.get("nextTime")):
                known.add(str(entry.get("task")))
                yield again, f"import {entry.get('name')} of catalog {catalog['metadata']['name']}"
    for task in status.get("tasks") or ():
        due = moment(task.get("due"))
        if due and task.get("state") == "WAITING" and task.get("kind") not in known and str(task.get("id")) not in known:
            attempts = f" (after {count_text(task['attempt'], 'attempt')})" if task.get("attempt") else ""
            yield due, f"task {' '.join(filter(None, (task.get('kind'), task.get('subject'))))}{attempts}"


def _catalog(catalog: Resource) -> dict[str, Any]:
    status = status_of(catalog)
    return {
        "name": catalog["metadata"]["name"],
        "catalog": catalog.get("spec", {}).get("name") or catalog["metadata"]["name"],
        "state": status.get("state", ""),
        "ready": _condition(catalog, "Ready").get("status", ""),
        "tables": status.get("tables"),
        "namespaces": status.get("namespaces"),
        "imports": [dict(entry) for entry in status.get("imports") or ()],
        "message": status.get("message", ""),
    }


def _event(event: Resource) -> dict[str, Any]:
    involved = event.get("involvedObject") or {}
    return {
        "time": _event_time(event),
        "type": event.get("type", ""),
        "reason": event.get("reason", ""),
        "object": f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}",
        "count": event.get("count") or (event.get("series") or {}).get("count") or 1,
        "message": event.get("message", ""),
    }


def _event_time(event: Resource) -> str:
    times = (event.get("lastTimestamp"), (event.get("series") or {}).get("lastObservedTime"), event.get("eventTime"))
    return str(next((time for time in times if time), event["metadata"].get("creationTimestamp", "")))


def _condition(resource: Resource, kind: str) -> Mapping[str, Any]:
    return next((c for c in status_of(resource).get("conditions") or () if c.get("type") == kind), {})


def _is_bad(condition: Mapping[str, Any]) -> bool:
    good = _GOOD.get(str(condition.get("type")))
    return good not in (None, "absent") and condition.get("status") != good
