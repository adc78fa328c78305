"""A catalog with something in it: two namespaces with tables and a view, a log, and a branch beside the default one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.catalogs import Catalog, Catalogs, ContentKey, DeltaLakeTable, IcebergTable, IcebergView, Namespace, Put
from headwater.catalogs.content import Content
from headwater.iceberg.metadata_json import split_metadata
from headwater.store import ObjectId, id_text
from metadata_fixtures import LOCATION, table, view

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
    document = {**table(2), "location": PLACE, "snapshots": [_moved(each) for each in table(2)["snapshots"]]}
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


def delta() -> DeltaLakeTable:
    return DeltaLakeTable()


def _moved(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {**snapshot, "manifest-list": snapshot["manifest-list"].replace(LOCATION, PLACE)}


def _parts(document: dict[str, Any]) -> Any:
    return split_metadata(msgspec.json.encode(document))
