"""Everything that a client can change over Iceberg REST, one action each, on a lake that has what they need."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asgi_client import AsgiAnswer, AsgiClient

__all__ = ["ACTIONS", "PREFIX", "RestAction", "fill_lake", "send"]

PREFIX = "/iceberg/v1/acme~lake"
SALES, TABLES, VIEWS = f"{PREFIX}/namespaces/sales", f"{PREFIX}/namespaces/sales/tables", f"{PREFIX}/namespaces/sales/views"
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1_780_000_000_000,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    "default-namespace": ["sales"],
}
Documents = Mapping[str, Any]
"""What the lake's tables and views are loaded as before an action, by name; ``staged`` is what a staged creation was answered."""


@dataclass(frozen=True)
class RestAction:
    """One request that changes something.

    make          method, path and body
    already       what an equal request without a key may be told once it has happened
    tasks         how many it asks for, too, to be done later
    """

    make: Callable[[Documents], tuple[str, str, Any]]
    already: frozenset[int] = field(default_factory=frozenset)
    tasks: int = 0


def _post(path: str, body: Any, *already: int) -> RestAction:
    return RestAction(lambda _: ("POST", path, body), frozenset(already))


def _made(path: str, body: Callable[[Documents], Any], *already: int) -> RestAction:
    return RestAction(lambda documents: ("POST", path, body(documents)), frozenset(already))


def _delete(path: str, *, tasks: int = 0) -> RestAction:
    return RestAction(lambda _: ("DELETE", path, None), frozenset({404}), tasks)


def _rename(source: str, target: str) -> dict[str, Any]:
    return {name: {"namespace": ["sales"], "name": text} for name, text in (("source", source), ("destination", target))}


def append_body(document: Documents, snapshot_id: int, *, after: int | None = None, number: int = 1) -> dict[str, Any]:
    """The body of an append of one snapshot to ``main``, as engines send it."""
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": number,
        "timestamp-ms": document["metadata"]["last-updated-ms"] + number,
        "manifest-list": f"{document['metadata']['location']}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    } | ({} if after is None else {"parent-snapshot-id": after})
    return {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": document["metadata"]["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": after},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id},
        ],
    }


def properties_body(**properties: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}


def creation_body(document: Documents) -> dict[str, Any]:
    """The body of the commit by which an engine creates a table that was staged."""
    staged = document["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": staged["format-version"]},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": staged["location"]},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


def _transaction(documents: Documents) -> dict[str, Any]:
    changes = {"orders": append_body(documents["orders"], 7), "lines": properties_body(owner="ann")}
    return {
        "table-changes": [{"identifier": {"namespace": ["sales"], "name": name}, **change} for name, change in changes.items()]
    }


def _next_view(documents: Documents) -> dict[str, Any]:
    version = VERSION | {"version-id": 2, "representations": [{"type": "sql", "sql": "select 2", "dialect": "spark"}]}
    return {
        "requirements": [{"type": "assert-view-uuid", "uuid": documents["totals"]["metadata"]["view-uuid"]}],
        "updates": [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }


ACTIONS: Mapping[str, RestAction] = {
    "create namespace": _post(f"{PREFIX}/namespaces", {"namespace": ["new"], "properties": {"a": "1"}}, 409),
    "drop namespace": _delete(f"{PREFIX}/namespaces/void"),
    "change namespace": _post(f"{SALES}/properties", {"removals": ["gone", "missing"], "updates": {"kept": "2"}}),
    "create table": _post(TABLES, {"name": "new", "schema": SCHEMA}, 409),
    "create staged table": _made(f"{TABLES}/staged", lambda documents: creation_body(documents["staged"])),
    "append": _made(f"{TABLES}/orders", lambda documents: append_body(documents["orders"], 7)),
    "set properties": _post(f"{TABLES}/orders", properties_body(owner="ann")),
    "drop table": _delete(f"{TABLES}/orders"),
    "purge table": _delete(f"{TABLES}/orders?purgeRequested=true", tasks=1),
    "rename table": _post(f"{PREFIX}/tables/rename", _rename("orders", "moved"), 404),
    "register table": _made(
        f"{SALES}/register",
        lambda documents: {"name": "back", "metadata-location": documents["gone"]["metadata-location"]},
        409,
    ),
    "register over table": _made(
        f"{SALES}/register",
        lambda documents: {
            "name": "lines",
            "metadata-location": documents["gone"]["metadata-location"],
            "overwrite": True,
        },
    ),
    "transaction": _made(f"{PREFIX}/transactions/commit", _transaction),
    "create view": _post(VIEWS, {"name": "new", "schema": SCHEMA, "view-version": VERSION, "properties": {}}, 409),
    "replace view": _made(f"{VIEWS}/totals", _next_view),
    "rename view": _post(f"{PREFIX}/views/rename", _rename("totals", "moved"), 404),
    "register view": _made(
        f"{SALES}/register-view",
        lambda documents: {"name": "back", "metadata-location": documents["lost"]["metadata-location"]},
        409,
    ),
    "drop view": _delete(f"{VIEWS}/totals"),
}
"""Every endpoint that changes something, some of them twice; the creation of a staged table stands for the stage, too."""


def send(client: AsgiClient, request: tuple[str, str, Any], *, key: str | None = None) -> AsgiAnswer:
    method, path, body = request
    headers = {} if key is None else {"idempotency_key": key}
    return client.request(method, path, b"" if body is None else json.dumps(body).encode(), **headers)


def fill_lake(client: AsgiClient) -> Documents:
    """Make what the actions need; returns what its tables and views are answered as."""

    def post(path: str, body: Any) -> Any:
        answer = send(client, ("POST", path, body))
        assert answer.status == 200, answer.content
        return answer.data

    post(f"{PREFIX}/namespaces", {"namespace": ["sales"], "properties": {"gone": "1", "kept": "1"}})
    post(f"{PREFIX}/namespaces", {"namespace": ["void"]})
    tables = {name: post(TABLES, {"name": name, "schema": SCHEMA}) for name in ("orders", "lines", "gone")}
    views = {
        name: post(VIEWS, {"name": name, "schema": SCHEMA, "view-version": VERSION, "properties": {}})
        for name in ("totals", "lost")
    }
    for path in (f"{TABLES}/gone", f"{VIEWS}/lost"):
        assert send(client, ("DELETE", path, None)).status == 204
    staged = post(TABLES, {"name": "staged", "schema": SCHEMA, "stage-create": True})
    return {**tables, **views, "staged": staged}
