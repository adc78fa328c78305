"""The page of a realm as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from headwater.console import bytes_text, cell, count_text, text_table
from headwater_operator.plugin.age_text import moment, progress_text, span

__all__ = ["page_lines", "row_lines"]


def page_lines(page: Mapping[str, Any], now: datetime) -> list[str]:
    lines = [*_head(page, now), *_list("FINDINGS", page["findings"])]
    conditions = [
        (c.get("type"), c.get("status"), c.get("reason"), _age(c.get("lastTransitionTime"), now), c.get("message"))
        for c in page["conditions"]
    ]
    catalogs = [
        (c["name"], c["state"], c["ready"], c["tables"], _imports(c["imports"], now), c["message"]) for c in page["catalogs"]
    ]
    tasks = [
        (t.get("kind"), t.get("subject"), t.get("state"), t.get("attempt"), progress_text(t), _due(t, now), t.get("message"))
        for t in page["tasks"]
    ]
    things = [(f"in {_until(thing['time'], now)}", thing["time"], thing["what"]) for thing in page["next"]]
    events = [(_age(e["time"], now), e["type"], e["reason"], e["object"], e["count"], e["message"]) for e in page["events"]]
    return [
        *lines,
        *_section("CONDITIONS", ("TYPE", "STATUS", "REASON", "AGE", "MESSAGE"), conditions),
        *_section("CATALOGS", ("NAME", "STATE", "READY", "TABLES", "IMPORTS", "MESSAGE"), catalogs),
        *_section("TASKS", ("KIND", "SUBJECT", "STATE", "ATTEMPT", "PROGRESS", "WHEN", "MESSAGE"), tasks),
        *_section("NEXT", ("WHEN", "TIME", "WHAT"), things),
        *_section("EVENTS", ("AGE", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"), events),
    ]


def row_lines(rows: Sequence[Mapping[str, Any]], now: datetime, *, with_namespace: bool) -> list[str]:
    if not rows:
        return ["no realms"]
    heads = ["REALM", "ID", "STATE", "READY", "CATALOGS", "TABLES", "NEXT MAINTENANCE", "MESSAGE"]
    cells = [
        [
            r["name"],
            r["realmId"],
            r["state"],
            _ready(r),
            r["catalogs"],
            r["tables"],
            _ahead(r["nextMaintenance"], now),
            _first(r),
        ]
        for r in rows
    ]
    if with_namespace:
        heads.insert(0, "NAMESPACE")
        cells = [[row["namespace"], *line] for row, line in zip(rows, cells, strict=True)]
    return text_table(heads, cells)


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
    if entry.get("done") is not None:
        return " ".join(filter(None, (*words, progress_text(entry))))
    if entry.get("lastResult"):
        words = [words[0], f"{entry['lastResult']} {_age(entry.get('lastTime'), now)} ago"]
    if entry.get("lastResult") not in (None, "Succeeded"):
        return " ".join(filter(None, words))  # the counts are those of a run before
    counts = [
        f"{entry[name]} {name}"
        for name in ("imported", "updated", "unchanged", "gone", "dropped", "quarantined")
        if entry.get(name)
    ]
    codes = ", ".join(str(one.get("code")) for one in entry.get("quarantineCodes") or ())
    return ", ".join([" ".join(filter(None, words)), *counts]) + (f" ({codes})" if codes else "")


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
