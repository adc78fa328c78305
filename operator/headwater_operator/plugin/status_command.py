"""``kubectl headwater status``: one page on a realm, or a table of all, as plain data and as lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from headwater.console import bytes_text, count_text, output_option
from headwater.exits import FINDINGS
from headwater.text_tables import cell, text_table
from headwater_operator.kube import resource_path
from headwater_operator.plugin.cluster_session import (
    REALM,
    ClusterSession,
    CommandTarget,
    cluster_options,
    status_of,
    target_realm_id,
)
from headwater_operator.resource.reasons import CONDITIONS

_EVENTS_SHOWN = 10
_GOOD = {condition.name: condition.good for condition in CONDITIONS}
_LIMIT_UNTIL_MINUTES = 2 * 60

Resource = Mapping[str, Any]


@click.command(name="status")
@click.argument("realm", metavar="[REALM]", type=REALM, required=False)
@click.option("-A", "--all-namespaces", is_flag=True, help="Without REALM: those of every namespace.")
@cluster_options
@output_option
@click.pass_obj
def status_command(session: ClusterSession, realm: CommandTarget | None, all_namespaces: bool) -> int:
    """Show one page on a realm, or a table of all realms. Ends with 8 when something is not as it should be."""
    if realm is None:
        return _show_all(session, all_namespaces)
    resource, now = session.read_resource(realm), session.current_time()
    catalogs = session.catalogs_of(realm.name)
    page = realm_page(resource, catalogs, _events_of(session, [resource, *catalogs]), now)
    session.print_result(page, lambda: page_lines(page, now))
    return FINDINGS if page["findings"] else 0


def _show_all(session: ClusterSession, all_namespaces: bool) -> int:
    now = session.current_time()
    realms = session.api.list_resources(resource_path("Realm", None if all_namespaces else session.namespace, None))
    rows = sorted(map(realm_row, realms), key=lambda row: (row["namespace"], row["name"]))
    session.print_result(rows, lambda: row_lines(rows, now, with_namespace=all_namespaces))
    return FINDINGS if any(row["findings"] for row in rows) else 0


def _events_of(session: ClusterSession, resources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events about these very resources, without those of earlier resources with the same names."""
    uids = {resource["metadata"]["uid"] for resource in resources}
    events = session.api.list_resources(resource_path("Event", session.namespace, None))
    return [event for event in events if (event.get("involvedObject") or {}).get("uid") in uids]


def realm_page(realm: Resource, catalogs: Sequence[Resource], events: Sequence[Resource], now: datetime) -> dict[str, Any]:
    """Everything that a person on call asks first. ``findings`` is empty when all is well."""
    status, spec, metadata = status_of(realm), realm.get("spec", {}), realm["metadata"]
    problems = [*findings(realm), *(f"catalog {c['metadata']['name']}: {text}" for c in catalogs for text in findings(c))]
    return {
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "realmId": target_realm_id(realm),
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
    """A realm in one line of a table."""
    status = status_of(realm)
    ready = _condition(realm, "Ready")
    return {
        "namespace": realm["metadata"].get("namespace", ""),
        "name": realm["metadata"]["name"],
        "realmId": target_realm_id(realm),
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
    """The problems of a resource, one sentence each."""
    conditions = status_of(resource).get("conditions") or ()
    if not conditions:
        return ["no operator has looked at it yet"]
    wrong = [f"{c['type']} is {c['status']} ({c.get('reason', '')}): {c.get('message', '')}" for c in conditions if _is_bad(c)]
    seen, asked = status_of(resource).get("observedGeneration"), resource["metadata"].get("generation")
    if seen is not None and asked is not None and seen < asked:
        wrong.append(f"the operator has not acted on the last change yet (generation {asked}, seen {seen})")
    return wrong


def next_things(realm: Resource, catalogs: Sequence[Resource], now: datetime) -> list[dict[str, str]]:
    """The automatic actions ahead, soonest first."""
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


def page_lines(page: Mapping[str, Any], now: datetime) -> list[str]:
    lines = [*_head(page, now), *_list("FINDINGS", page["findings"])]
    for name, (heads, cells) in _SECTIONS.items():
        lines += _section(name.upper(), heads, [cells(entry, now) for entry in page[name]])
    return lines


def row_lines(rows: Sequence[Mapping[str, Any]], now: datetime, *, with_namespace: bool) -> list[str]:
    if not rows:
        return ["no realms"]
    heads = ("NAMESPACE", "REALM", "ID", "STATE", "READY", "CATALOGS", "TABLES", "NEXT MAINTENANCE", "MESSAGE")
    first = 0 if with_namespace else 1
    return text_table(heads[first:], [_row_cells(row, now)[first:] for row in rows])


def _row_cells(row: Mapping[str, Any], now: datetime) -> tuple[Any, ...]:
    place = (row["namespace"], row["name"], row["realmId"])
    return (*place, row["state"], _ready(row), row["catalogs"], row["tables"], _ahead(row["nextMaintenance"], now), _first(row))


_Cells = Callable[[Mapping[str, Any], datetime], Sequence[Any]]
_SECTIONS: dict[str, tuple[Sequence[str], _Cells]] = {
    "conditions": (
        ("TYPE", "STATUS", "REASON", "AGE", "MESSAGE"),
        lambda c, now: (
            c.get("type"),
            c.get("status"),
            c.get("reason"),
            _age(c.get("lastTransitionTime"), now),
            c.get("message"),
        ),
    ),
    "catalogs": (
        ("NAME", "STATE", "READY", "TABLES", "IMPORTS", "MESSAGE"),
        lambda c, now: (c["name"], c["state"], c["ready"], c["tables"], _imports(c["imports"], now), c["message"]),
    ),
    "tasks": (
        ("KIND", "SUBJECT", "STATE", "ATTEMPT", "PROGRESS", "WHEN", "MESSAGE"),
        lambda t, now: (*map(t.get, ("kind", "subject", "state", "attempt")), progress_text(t), _due(t, now), t.get("message")),
    ),
    "next": (("WHEN", "TIME", "WHAT"), lambda n, now: (f"in {_until(n['time'], now)}", n["time"], n["what"])),
    "events": (
        ("AGE", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"),
        lambda e, now: (_age(e["time"], now), e["type"], e["reason"], e["object"], e["count"], e["message"]),
    ),
}
"""The parts of a page that are tables: their heads, and the cells of an entry."""


def _head(page: Mapping[str, Any], now: datetime) -> Iterator[str]:
    yield f"Realm {page['namespace']}/{page['name']}: {page['state'] or 'not looked at yet'}"
    if page["message"]:
        yield f"  {page['message']}"
    fields = {
        "realm id": page["realmId"] + (f" (key {page['realmKey']})" if page["realmKey"] else ""),
        "deletion": _deletion(page, now),
        "credentials": f"Secret {page['credentialsSecret']}" if page["credentialsSecret"] else "",
        "last maintenance": _maintenance(page["maintenance"], now),
        "purge": _purge(page["purge"], now),
    }
    width = max(map(len, fields)) + 2
    yield from (f"  {(name + ':').ljust(width)}{value}" for name, value in fields.items() if value)


def _deletion(page: Mapping[str, Any], now: datetime) -> str:
    policy = page["deletionPolicy"] + (", protected" if page["deletionProtection"] else "")
    asked = page["deletionRequested"]
    return f"{policy}; asked for {_age(asked, now)} ago" if asked else policy


def _maintenance(maintenance: Mapping[str, Any], now: datetime) -> str:
    parts = []
    if maintenance.get("lastResult"):
        parts.append(f"{maintenance['lastResult']} {_age(maintenance.get('lastTime'), now)} ago")
    if maintenance.get("objectsDeleted") is not None:
        size = bytes_text(int(maintenance.get("bytesReclaimed") or 0))
        parts.append(f"{count_text(int(maintenance['objectsDeleted']), 'object')} deleted, {size} reclaimed")
    if maintenance.get("lastResult") not in (None, "Succeeded") and maintenance.get("lastSuccessTime"):
        parts.append(f"last success {_age(maintenance['lastSuccessTime'], now)} ago")
    return "; ".join([*parts, *(["suspended"] if maintenance.get("suspended") else [])])


def _purge(purge: Mapping[str, Any], now: datetime) -> str:
    if purge.get("rowsRemaining") is not None or purge.get("rowsDeleted") is not None:
        return f"{count_text(int(purge.get('rowsDeleted') or 0), 'row')} deleted, {purge.get('rowsRemaining', '?')} remaining"
    return f"held until {purge['holdUntil']} (in {_until(purge['holdUntil'], now)})" if purge.get("holdUntil") else ""


def _imports(imports: Iterable[Mapping[str, Any]], now: datetime) -> str:
    return "; ".join(_import(entry, now) for entry in imports)


def _import(entry: Mapping[str, Any], now: datetime) -> str:
    """``initial Succeeded 3d ago, 13 imported, 1 quarantined (Corrupt)`` or ``initial RUNNING 5 of 14 tables``."""
    words = [str(entry.get("name")), str(entry.get("state") or "")]
    if entry.get("done") is not None and entry.get("state") in _ACTIVE:  # earlier operators left the progress of what has ended
        return " ".join(filter(None, (*words, progress_text(entry))))
    if entry.get("lastResult"):
        words = [words[0], f"{entry['lastResult']} {_age(entry.get('lastTime'), now)} ago"]
    if entry.get("lastResult") not in (None, "Succeeded"):
        return " ".join(filter(None, words))  # the counts are those of an earlier run
    counts = [
        f"{entry[name]} {name}"
        for name in ("imported", "updated", "unchanged", "gone", "dropped", "quarantined")
        if entry.get(name)
    ]
    codes = ", ".join(str(quarantine.get("code")) for quarantine in entry.get("quarantineCodes") or ())
    return ", ".join([" ".join(filter(None, words)), *counts]) + (f" ({codes})" if codes else "")


_ACTIVE = ("WAITING", "RUNNING")


def _due(task: Mapping[str, Any], now: datetime) -> str:
    if task.get("state") == "RUNNING":
        return f"for {_age(task.get('started'), now)}" if task.get("started") else "now"
    due = moment(task.get("due"))
    return "" if due is None else (f"in {span((due - now).total_seconds())}" if due > now else "due")


def _section(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    return ["", title, *text_table(heads, rows, "  ")] if rows else []


def _list(title: str, texts: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {cell(text)}" for text in texts)] if texts else []


def _ready(row: Mapping[str, Any]) -> str:
    return f"{row['ready']} ({row['reason']})" if row["ready"] not in ("", "True") else str(row["ready"])


def _first(row: Mapping[str, Any]) -> str:
    return str(row["message"] or next(iter(row["findings"]), ""))


def _age(text: Any, now: datetime) -> str:
    time = moment(text)
    return "-" if time is None else span((now - time).total_seconds())


def _until(text: Any, now: datetime) -> str:
    time = moment(text)
    return "-" if time is None else span((time - now).total_seconds())


def _ahead(text: Any, now: datetime) -> str:
    time = moment(text)
    if time is None:
        return ""
    return f"in {span((time - now).total_seconds())}" if time > now else "due"


def moment(text: Any) -> datetime | None:
    """Parse a time as Kubernetes writes it; None where it is missing or invalid."""
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def time_text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """A duration in one or two units: ``45s``, ``12m``, ``5h``, ``3d``."""
    whole = max(round(seconds), 0)
    if whole < _LIMIT_UNTIL_MINUTES:
        return f"{whole}s"
    for size, unit, limit in ((60, "m", 120 * 60), (3600, "h", 48 * 3600)):
        if whole < limit:
            return f"{whole // size}{unit}"
    return f"{whole // 86400}d"


def progress_text(task: Mapping[str, Any]) -> str:
    """The progress as ``3 of 14 tables``; unknown parts are left out."""
    done, total, unit = task.get("done"), task.get("total"), str(task.get("unit") or "")
    if done is None and total is None:
        return ""
    amount = f"{done or 0} of {total}" if total is not None else str(done)
    return f"{amount} {unit}".strip()
