"""Manifests of a realm and a catalog in it, and a pass over them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater import Store
from headwater.catalogs import ImportSpec
from headwater.reconcile import CatalogManifest, FileCredentials, ManagerIdentity, RealmManifest, ReconcileOutcome, reconcile
from headwater.reconcile.manifests import CatalogSpec, ManifestMetadata, RealmSpec
from headwater.store import RealmId

MakeRealm = Callable[..., RealmManifest]
MakeCatalog = Callable[..., CatalogManifest]
Apply = Callable[..., list[ReconcileOutcome]]


@pytest.fixture
def make_realm() -> MakeRealm:
    def make(annotations: dict[str, str] | None = None, *, name: str = "acme", **spec: Any) -> RealmManifest:
        metadata = ManifestMetadata(name=name, annotations=annotations or {})
        return RealmManifest(metadata=metadata, spec=RealmSpec(realm_id=RealmId(name), **spec))

    return make


@pytest.fixture
def make_catalog() -> MakeCatalog:
    def make(annotations: dict[str, str] | None = None, **spec: Any) -> CatalogManifest:
        defaults: dict[str, Any] = {"realm": "acme", "realm_id": RealmId("acme"), "name": "lake", "base_location": "s3://lake/"}
        return CatalogManifest(
            metadata=ManifestMetadata(name="lake", annotations=annotations or {}), spec=CatalogSpec(**(defaults | spec))
        )

    return make


@pytest.fixture
def initial_import() -> ImportSpec:
    return ImportSpec(name="initial", locations=("s3://old/",))


@pytest.fixture
def manager() -> ManagerIdentity:
    return ManagerIdentity(cluster="here")


@pytest.fixture
def sink(tmp_path: Path) -> FileCredentials:
    return FileCredentials(tmp_path / "credentials")


@pytest.fixture
def apply(store: Store, sink: FileCredentials, manager: ManagerIdentity) -> Apply:
    """Reconcile some manifests once."""

    def run(*manifests: RealmManifest | CatalogManifest, **options: Any) -> list[ReconcileOutcome]:
        return reconcile(options.pop("store", store), manifests, **({"credentials": sink, "manager": manager} | options))

    return run
