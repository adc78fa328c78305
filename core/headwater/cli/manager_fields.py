"""The field of realms and catalogs that tells which resource manages them."""

from __future__ import annotations

from typing import Any

from headwater.catalogs import CatalogManager
from headwater.console import ViewField
from headwater.realms import RealmManager


def _manager(manager: RealmManager | CatalogManager | None) -> dict[str, str] | None:
    if manager is None:
        return None
    return {"cluster": manager.cluster, "namespace": manager.namespace, "name": manager.name, "uid": manager.uid}


def manager_field(source: str) -> ViewField[Any]:
    """The field of a realm and of a catalog that names its resource."""
    inside = {
        ".cluster": "empty: manifests in files",
        ".namespace": "of the resource",
        ".name": "of the resource",
        ".uid": "of the resource; empty: manifests in files",
    }
    return ViewField("manager", "the resource that manages it; null: none does", source, form=_manager, inside=inside)
