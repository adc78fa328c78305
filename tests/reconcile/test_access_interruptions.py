"""Passes over declared access that are killed at any call of the database end, in a new process, as undisturbed ones would have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from killed_passes import Process, until_it_lives

from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.realms import Credentials, RealmRegistry, find_principal, log_in, read_realm_grants
from headwater.reconcile import CatalogManifest, FileCredentials, Manifest, RealmManifest
from headwater.reconcile.declared_access import (
    DeclaredCatalogRole,
    DeclaredConnection,
    DeclaredGrant,
    DeclaredPrincipal,
    DeclaredRole,
)
from headwater.reconcile.manifests import ROTATE_CREDENTIALS, ROTATE_PRINCIPAL
from headwater.store import RealmId
from tiers import Sample

MakeRealm = Callable[..., RealmManifest]
MakeCatalog = Callable[..., CatalogManifest]

ACME = RealmId("acme")
NAMES = ("etl", "connection.lake")


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.realms.client_credentials._COST", 16)


@pytest.fixture
def bare(make_realm: MakeRealm, make_catalog: MakeCatalog) -> tuple[Manifest, ...]:
    return make_realm(), make_catalog()


@pytest.fixture
def make_manifests(make_realm: MakeRealm, make_catalog: MakeCatalog) -> Callable[..., tuple[Manifest, ...]]:
    """A realm and a catalog with access; ``rotated`` has the credentials rotated."""

    def make(*, rotated: bool = False, drift_policy: str = "Correct") -> tuple[Manifest, ...]:
        grant = DeclaredGrant(privileges=("TABLE_READ_DATA",), namespace=("sales",))
        realm = make_realm(
            {ROTATE_PRINCIPAL: "etl:1"} if rotated else {},
            principals=(DeclaredPrincipal(name="etl", roles=("readers",)),),
            roles=(DeclaredRole(name="readers", privileges=("TASK_READ",)),),
            drift_policy=drift_policy,
        )
        catalog = make_catalog(
            {ROTATE_CREDENTIALS: "1"} if rotated else {},
            roles=(DeclaredCatalogRole(name="sales", granted_to=("readers",), grants=(grant,)),),
            connection=DeclaredConnection(roles=("sales",), uri="https://lake"),
        )
        return realm, catalog

    return make


@pytest.fixture
def make_process(settings: Settings, clock: FakeClock, sink: FileCredentials) -> Callable[[], Process]:
    """A process on a new database, with no credentials kept."""

    def make() -> Process:
        for name in ("root", *NAMES):
            sink.of_principal(name).remove_credentials(ACME, lambda: None)
        return Process(settings, clock, sink)

    return make


def assert_is_complete(store: Store, sink: FileCredentials) -> None:
    realms = RealmRegistry(store)
    for name, role in zip(NAMES, ("readers", "connection.lake"), strict=True):
        told = json.loads(Path(sink.of_principal(name).place(ACME)).read_text())["credential"]
        client, _, secret = told.removeprefix("acme.").partition(":")
        principal = log_in(realms, "acme", Credentials(client, secret))
        assert principal.name == name
        held = read_realm_grants(realms.open_realm("acme")).roles_of(principal.entity)
        assert [each.name for each in held] == [role]


@pytest.mark.long
@pytest.mark.parametrize("drift_policy", ["Correct", "Report"])
def test_killed_making_of_access_converges(
    sample: Sample,
    drift_policy: str,
    make_process: Callable[[], Process],
    bare: tuple[Manifest, ...],
    make_manifests: Callable[..., tuple[Manifest, ...]],
    sink: FileCredentials,
) -> None:
    def run(killed_at: int) -> bool:
        process = make_process()
        process.run(bare)
        lived = process.run(make_manifests(drift_policy=drift_policy), killed_at=killed_at)
        assert process.run(make_manifests(drift_policy=drift_policy))
        assert_is_complete(process.store, sink)
        return lived

    assert until_it_lives(run, sample) > 50


@pytest.mark.long
def test_killed_rotation_of_principals_converges(
    sample: Sample,
    make_process: Callable[[], Process],
    make_manifests: Callable[..., tuple[Manifest, ...]],
    sink: FileCredentials,
) -> None:
    def run(killed_at: int) -> bool:
        process = make_process()
        process.run(make_manifests())
        lived = process.run(make_manifests(rotated=True), killed_at=killed_at)
        assert process.run(make_manifests(rotated=True))
        assert_is_complete(process.store, sink)
        return lived

    assert until_it_lives(run, sample) > 10


@pytest.mark.long
def test_killed_end_of_access_converges_and_begins_again(
    sample: Sample,
    make_process: Callable[[], Process],
    bare: tuple[Manifest, ...],
    make_manifests: Callable[..., tuple[Manifest, ...]],
    sink: FileCredentials,
) -> None:
    def run(killed_at: int) -> bool:
        process = make_process()
        process.run(make_manifests())
        lived = process.run(bare, killed_at=killed_at)
        assert process.run(bare)
        for name in NAMES:
            principal = find_principal(RealmRegistry(process.store), "acme", name)
            assert principal is not None
            assert principal.disabled is not None
            assert Path(sink.of_principal(name).place(ACME)).exists()
        assert process.run(make_manifests())
        assert_is_complete(process.store, sink)
        return lived

    assert until_it_lives(run, sample) > 20
