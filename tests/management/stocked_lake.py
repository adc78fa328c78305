"""A catalog with something in it: two namespaces with tables and a view, a log, and a branch beside the default one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from headwater.catalogs import Catalog, Catalogs, ContentKey, DeltaLakeTable, IcebergTable, IcebergView, Namespace, Put
from headwater.catalogs.content import Content
from headwater.iceberg.metadata_json import split_metadata
from headwater.store import ObjectId, id_text
from metadata_fixtures import LOCATION, snapshot, table, view

SALES, ORDERS, TOP = ContentKey.of("sales"), ContentKey.of("sales", "orders"), ContentKey.of("sales", "top")
PLACE = "file:///nowhere/sales/orders"
"""There is nothing: who looks finds that out at once, and needs no network."""
VAULT, SECRETS = ContentKey.of("vault"), ContentKey.of("vault", "secrets")


@dataclass(frozen=True)
class StockedLake:
    """The commits of ``main``, oldest first, and that of ``dev`` on top of the second."""

    namespaces: str
    orders: str
    secrets: str
    dev: str


def stock_lake(catalogs: Catalogs, name: str) -> StockedLake:
    """main: the namespaces ``sales`` and ``vault``; ``sales.orders`` with the view ``sales.top``; ``vault.secrets``.
    dev: made after the second commit, with ``sales.returns`` on top. gone: a deleted branch.
    """
    catalog = catalogs.open_catalog(name)
    first = put(catalog, "main", {SALES: Namespace(), VAULT: Namespace()}, "make namespaces")
    document = orders_document()
    orders = Put(ORDERS, IcebergTable(metadata_location=f"{PLACE}/metadata/v2.json", snapshot_id=22), metadata=_parts(document))
    top = Put(TOP, IcebergView(metadata_location="s3://lake/sales/top/v1.json", version_id=1), metadata=_parts(view()))
    second = catalog.commit("main", [orders, top], message="add orders", authors=["ada"]).commit_id
    catalog.create_branch("dev")
    third = put(catalog, "main", {SECRETS: delta()}, "hide secrets")
    catalog.create_branch("gone")
    catalog.delete_branch("gone")
    fourth = put(catalog, "dev", {ContentKey.of("sales", "returns"): delta()}, "try returns")
    assert second is not None
    return StockedLake(first, id_text(second), third, fourth)


def put(catalog: Catalog, branch: str, contents: dict[ContentKey, Content], message: str) -> str:
    """Commit contents; returns the hash."""
    done = catalog.commit(branch, [Put(key, content) for key, content in contents.items()], message=message, authors=["ada"])
    assert done.commit_id is not None
    return id_text(ObjectId(done.commit_id))


def put_orders(catalog: Catalog, branch: str, message: str, **fields: Any) -> str:
    """Commit a version of ``sales.orders`` of which some fields of the document are others; returns the hash."""
    stored = catalog.get_content(branch, ORDERS)
    assert isinstance(stored, IcebergTable)
    document = {**orders_document(), **{name.replace("_", "-"): value for name, value in fields.items()}}
    content = replace(stored, metadata_location=f"{PLACE}/metadata/{message}.json", snapshot_id=document["current-snapshot-id"])
    done = catalog.commit(branch, [Put(ORDERS, content, stored, metadata=_parts(document))], message=message, authors=["ada"])
    assert done.commit_id is not None
    return id_text(done.commit_id)


def appended(*rows: int) -> dict[str, Any]:
    """The fields of a version with further snapshots, of so many rows each."""
    snapshots, last = orders_document()["snapshots"], 22
    for sequence, count in enumerate(rows, start=3):
        summary = {"operation": "append", "added-records": str(count), "added-data-files": "1"}
        snapshots.append(_moved(snapshot(11 * sequence, sequence, summary=summary, **{"parent-snapshot-id": last})))
        last = 11 * sequence
    refs = {"main": {"type": "branch", "snapshot-id": last}}
    return {"snapshots": snapshots, "current_snapshot_id": last, "last_sequence_number": 2 + len(rows), "refs": refs}


def orders_document() -> dict[str, Any]:
    return {**table(2), "location": PLACE, "snapshots": [_moved(each) for each in table(2)["snapshots"]]}


def delta() -> DeltaLakeTable:
    return DeltaLakeTable()


def _moved(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {**snapshot, "manifest-list": snapshot["manifest-list"].replace(LOCATION, PLACE)}


def _parts(document: dict[str, Any]) -> Any:
    return split_metadata(msgspec.json.encode(document))
