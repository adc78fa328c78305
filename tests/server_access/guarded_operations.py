"""Every operation of Iceberg REST on one lake, with the privileges that it needs and what it is answered without them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from asgi_client import AsgiAnswer
from guarded_server import SCHEMA, GuardedServer, Guest, held, updates
from headwater.access import Privilege
from headwater.catalogs import CatalogGrant

P = Privilege
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1_780_000_000_000,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "select * from sales.orders", "dialect": "spark"}],
    "default-namespace": ["sales"],
}
RENAMED = {"source": {"namespace": ["sales"], "name": "orders"}, "destination": {"namespace": ["sales"], "name": "moved"}}
OWNED = {"action": "set-properties", "updates": {"owner": "me"}}


@dataclass(frozen=True)
class NeededRight:
    """A privilege that an operation needs, and the words by which an error names what it is needed on."""

    grant: CatalogGrant
    on: str


@dataclass(frozen=True)
class GuardedOperation:
    """One request for an operation.

    needs         all of these, and no more
    hidden        names in the request for other ones that nothing has: whoever may not see the former is answered as for the latter
    status        of the answer when the needs are met
    """

    method: str
    path: str
    needs: tuple[NeededRight, ...] = ()
    body: Any = None
    hidden: tuple[tuple[str, str], ...] = ()
    status: int = 200

    def ask(self, guest: Guest, **other: str) -> AsgiAnswer:
        """Ask for it, with other names in its path and body."""
        path, text = self.path, json.dumps(self.body)
        for old, new in other.items():
            path, text = path.replace(old, new), text.replace(f'"{old}"', f'"{new}"')
        return guest.call(self.method, path, b"" if self.body is None else text.encode())


def needed(privilege: Privilege, *path: str, on: str = "", names: str = "") -> NeededRight:
    """A need of a privilege on a namespace, or on a table or view with ``on``; ``names`` what is made below the namespace."""
    kind = names.partition(" ")[0] or on or "namespace"
    told = names.partition(" ")[2] or ".".join(path)
    return NeededRight(held(privilege, *path, on=on), f"{kind} {told} of catalog lake")


def on_table(privilege: Privilege) -> NeededRight:
    return needed(privilege, "sales", "orders", on="table")


def on_view(privilege: Privilege) -> NeededRight:
    return needed(privilege, "sales", "totals", on="view")


def fill_sales(server: GuardedServer) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Make the namespaces ``sales`` and ``sales.void``, its table ``orders`` and its view ``totals``; returns these two as loaded."""
    table, root = server.make_table("sales", "orders").data, server.guest("root")
    assert root.post("namespaces", {"namespace": ["sales", "void"]}).status == 200
    view = root.post("namespaces/sales/views", {"name": "totals", "schema": SCHEMA, "view-version": VERSION, "properties": {}})
    assert view.status == 200, view.content
    return table, view.data


def free_copy(loaded: Mapping[str, Any], kind: str) -> str:
    """A metadata file like that of a table or view, of another uuid and place, which no catalog has; returns its location."""
    document = json.loads(json.dumps(loaded["metadata"]))
    document[f"{kind}-uuid"], document["location"] = str(uuid4()), f"{document['location']}-copy"
    document["metadata-log"] = []
    location = f"{document['location']}/metadata/00000-{uuid4()}.metadata.json"
    file = Path(location.removeprefix("file://"))
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(document))
    return location


SALES, ORDERS, TOTALS = "namespaces/sales", "namespaces/sales/tables/orders", "namespaces/sales/views/totals"
IN_SALES, THE_TABLE, THE_VIEW = (("sales", "nowhere"),), (("orders", "nothing"),), (("totals", "nothing"),)


def guarded_operations(table: Mapping[str, Any], view: Mapping[str, Any]) -> Mapping[str, GuardedOperation]:
    """The requests by the names of their routes; those that need no right in a catalog are ``OPEN``."""
    next_view = [
        {"action": "add-view-version", "view-version": VERSION | {"version-id": 2, "timestamp-ms": 1_780_000_000_001}},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    table_change = {"identifier": {"namespace": ["sales"], "name": "orders"}, **updates(table, OWNED)}
    make = GuardedOperation
    return {
        "listNamespaces": make("GET", "namespaces?parent=sales", (needed(P.NAMESPACE_LIST, "sales"),), hidden=IN_SALES),
        "createNamespace": make(
            "POST",
            "namespaces",
            (needed(P.NAMESPACE_CREATE, "sales", names="namespace sales.new"),),
            {"namespace": ["sales", "new"]},
            IN_SALES,
        ),
        "loadNamespaceMetadata": make("GET", SALES, (needed(P.NAMESPACE_READ_PROPERTIES, "sales"),), hidden=IN_SALES),
        "namespaceExists": make("HEAD", SALES, (needed(P.NAMESPACE_LIST, "sales"),), hidden=IN_SALES, status=204),
        "dropNamespace": make(
            "DELETE",
            "namespaces/sales%1Fvoid",
            (needed(P.NAMESPACE_DROP, "sales", "void"),),
            hidden=(("void", "nothing"),),
            status=204,
        ),
        "updateProperties": make(
            "POST",
            f"{SALES}/properties",
            (needed(P.NAMESPACE_WRITE_PROPERTIES, "sales"),),
            {"updates": {"owner": "me"}},
            IN_SALES,
        ),
        "listTables": make("GET", f"{SALES}/tables", (needed(P.NAMESPACE_LIST, "sales"),), hidden=IN_SALES),
        "createTable": make(
            "POST",
            f"{SALES}/tables",
            (needed(P.TABLE_CREATE, "sales", names="table sales.new"),),
            {"name": "new", "schema": SCHEMA},
            IN_SALES,
        ),
        "registerTable": make(
            "POST",
            f"{SALES}/register",
            (needed(P.TABLE_CREATE, "sales", names="table sales.new"),),
            {"name": "new", "metadata-location": free_copy(table, "table")},
            IN_SALES,
        ),
        "loadTable": make("GET", ORDERS, (on_table(P.TABLE_READ_PROPERTIES),), hidden=THE_TABLE),
        "tableExists": make("HEAD", ORDERS, (on_table(P.TABLE_LIST),), hidden=THE_TABLE, status=204),
        "updateTable": make("POST", ORDERS, (on_table(P.TABLE_WRITE_PROPERTIES),), updates(table, OWNED), THE_TABLE),
        "dropTable": make("DELETE", ORDERS, (on_table(P.TABLE_DROP),), hidden=THE_TABLE, status=204),
        "loadCredentials": make("GET", f"{ORDERS}/credentials", (on_table(P.TABLE_READ_DATA),), hidden=THE_TABLE),
        "renameTable": make(
            "POST",
            "tables/rename",
            (
                on_table(P.TABLE_DROP),
                on_table(P.TABLE_READ_DATA),
                needed(P.TABLE_CREATE, "sales", names="table sales.moved"),
            ),
            RENAMED,
            THE_TABLE,
            204,
        ),
        "commitTransaction": make(
            "POST",
            "transactions/commit",
            (on_table(P.TABLE_WRITE_PROPERTIES),),
            {"table-changes": [table_change]},
            THE_TABLE,
            204,
        ),
        "listViews": make("GET", f"{SALES}/views", (needed(P.NAMESPACE_LIST, "sales"),), hidden=IN_SALES),
        "createView": make(
            "POST",
            f"{SALES}/views",
            (needed(P.VIEW_CREATE, "sales", names="view sales.new"),),
            {"name": "new", "schema": SCHEMA, "view-version": VERSION, "properties": {}},
            IN_SALES,
        ),
        "loadView": make("GET", TOTALS, (on_view(P.VIEW_READ_PROPERTIES),), hidden=THE_VIEW),
        "viewExists": make("HEAD", TOTALS, (on_view(P.VIEW_LIST),), hidden=THE_VIEW, status=204),
        "replaceView": make("POST", TOTALS, (on_view(P.VIEW_WRITE_PROPERTIES),), {"updates": next_view}, THE_VIEW),
        "dropView": make("DELETE", TOTALS, (on_view(P.VIEW_DROP),), hidden=THE_VIEW, status=204),
        "renameView": make(
            "POST",
            "views/rename",
            (
                on_view(P.VIEW_DROP),
                on_view(P.VIEW_READ_PROPERTIES),
                needed(P.VIEW_CREATE, "sales", names="view sales.moved"),
            ),
            {side: {**names, "name": names["name"].replace("orders", "totals")} for side, names in RENAMED.items()},
            THE_VIEW,
            204,
        ),
        "registerView": make(
            "POST",
            f"{SALES}/register-view",
            (needed(P.VIEW_CREATE, "sales", names="view sales.new"),),
            {"name": "new", "metadata-location": free_copy(view, "view")},
            IN_SALES,
        ),
    }


OPEN = frozenset({"getConfig", "getToken", "revokeToken", "reportMetrics"})
"""Routes that tell nothing of what a catalog holds: each has tests of its own."""
