"""Two resources want one catalog or realm at the same moment: in every order of their calls one has it, the other changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from interleavings import Ending, draw_the_same, every_order

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Store
from headwater.catalogs import CatalogDefinition, CatalogManager, Catalogs
from headwater.errors import ConflictError
from headwater.realms import CredentialsHash, RealmManager, RealmRegistry, RealmState, bootstrap
from headwater.reconcile import (
    CatalogManifest,
    FileCredentials,
    ManagerIdentity,
    RealmManifest,
    ReconcileOutcome,
    reconcile_catalog,
    reconcile_realm,
)
from headwater.reconcile.manifests import ADOPT, CatalogSpec, ManifestMetadata, RealmSpec
from headwater.settings import Settings
from headwater.store import RealmId
from headwater.store.backends.memory import MemoryBackend

OWNER = RealmManager(cluster="here", namespace="default", name="acme")
ROOT = CredentialsHash(client_id="c", salt=b"s", digest=b"d")
RIVALS = ("one", "two")


@pytest.fixture(autouse=True)
def _foreseeable(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_the_same(monkeypatch)
    monkeypatch.setattr("headwater.realms.client_credentials._COST", 16)


def make_acme(store: Store) -> None:
    realms = RealmRegistry(store)
    realms.create_realm("acme", manager=OWNER)
    bootstrap(realms, "acme", ROOT)


def make_lake(store: Store, **fields: Any) -> CatalogDefinition:
    return Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("lake", base_location="s3://lake/", **fields)


def apply_catalog(name: str, annotations: dict[str, str], store: Store, *, location: str = "") -> ReconcileOutcome:
    location = location or f"s3://{name}/"
    spec = CatalogSpec(realm="acme", realm_id=RealmId("acme"), name="lake", base_location=location)
    manifest = CatalogManifest(metadata=ManifestMetadata(name=name, annotations=annotations), spec=spec)
    me, sink = ManagerIdentity(cluster="here", uid=name), FileCredentials("/nowhere")  # it has no connection
    return reconcile_catalog(store, manifest, credentials=sink, manager=me)


def lake(store: Store) -> CatalogDefinition:
    return Catalogs(RealmRegistry(store).open_realm("acme")).read_catalog("lake")


def check_one_has_it(ending: Ending) -> None:
    found = lake(ending.store)
    assert found.manager is not None
    owner = found.manager.name
    loser = ending.answers[1 - RIVALS.index(owner)]
    assert (found.base_location, found.unfinished) == (f"s3://{owner}/", False)
    assert ending.answers[RIVALS.index(owner)].is_settled
    assert (loser.done, [one.reason for one in loser.refused]) == ((), ["ManagedByAnother"])


def nothing(store: Store) -> None:
    """Nobody has made it."""


def by_hand(store: Store) -> None:
    make_lake(store)


def let_go(store: Store) -> None:
    made = make_lake(store)
    Catalogs(RealmRegistry(store).open_realm("acme")).update_catalog(
        made, former=CatalogManager(cluster="here", namespace="default", name="lake")
    )


@pytest.mark.long
@pytest.mark.parametrize("before", [nothing, by_hand, let_go])
def test_catalog_name_of_two_resources_belongs_to_one(settings: Settings, before: Callable[[Store], None]) -> None:
    def prepare(store: Store) -> None:
        make_acme(store)
        before(store)

    annotations = {} if before is nothing else {ADOPT: "acme/lake"}
    works = [partial(apply_catalog, name, annotations) for name in RIVALS]
    endings = 0
    for ending in every_order(settings, prepare, lambda: (works[0], works[1])):
        check_one_has_it(ending)
        endings += 1
    assert endings > 5


def test_catalog_that_a_person_made_elsewhere_is_left_alone(settings: Settings) -> None:
    store = Store(MemoryBackend(), url="memory://", settings=settings, clock=FakeClock())
    make_acme(store)
    before = make_lake(store)

    [refusal] = apply_catalog("one", {}, store).refused

    assert refusal.reason == "ManagedByAnother"
    assert lake(store) == before


def test_catalog_taken_while_made_by_hand_is_whole(settings: Settings) -> None:
    for call in range(1, 40):
        backend = FaultyBackend(MemoryBackend(), is_atomic=True)
        store = Store(backend, url="memory://", settings=settings, clock=FakeClock())  # type: ignore[arg-type]  # faulty is any
        make_acme(store)
        take = partial(apply_catalog, "one", {}, location="s3://lake")
        backend.intervene("*", partial(take, beside(store, backend)), at=call)
        with suppress(ConflictError):  # it is the resource's already
            make_lake(store)
        backend.heal()

        found, branches = lake(store), Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake").branches()
        assert (found.unfinished, [branch.name for branch in branches]) == (False, ["main"])
        assert (found.manager is None) == bool(take(store).done)


def beside(store: Store, backend: FaultyBackend) -> Store:
    """The same database for another process."""
    return Store(backend.backend, url="memory://", settings=store.settings, clock=store.clock)


def apply_realm(name: str, folder: Path, store: Store) -> ReconcileOutcome:
    manifest = RealmManifest(
        metadata=ManifestMetadata(name=name), spec=RealmSpec(realm_id=RealmId("acme"), properties={"by": name})
    )
    sink = FileCredentials(folder / name)
    return reconcile_realm(store, manifest, credentials=sink, manager=ManagerIdentity(cluster="here", uid=name))


def test_realm_id_of_two_resources_belongs_to_one(settings: Settings, tmp_path: Path) -> None:
    for call in range(1, 60):
        backend, folder = FaultyBackend(MemoryBackend(), is_atomic=True), tmp_path / str(call)
        store = Store(backend, url="memory://", settings=settings, clock=FakeClock())  # type: ignore[arg-type]  # faulty is any
        other = beside(store, backend)
        outcomes: list[ReconcileOutcome] = []
        backend.intervene("*", lambda: outcomes.append(apply_realm("two", folder, other)), at=call)  # noqa: B023
        outcomes.append(apply_realm("one", folder, store))

        found = RealmRegistry(store).read_realm("acme")
        assert found.state is RealmState.ACTIVE
        assert found.manager is not None
        assert found.properties == {"by": found.manager.name}
        assert [one.reason for outcome in outcomes for one in outcome.refused] == ["ManagedByAnother"] * (len(outcomes) - 1)
