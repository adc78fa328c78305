"""Somebody else acts between a look and a step: the pass looks again, and hits nothing that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Store
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.errors import SwapConflictError
from headwater.realms import RealmRegistry, RealmState, find_root, new_credentials, verify_secret
from headwater.reconcile import CatalogManifest, FileCredentials, ManagerIdentity, RealmManifest, ReconcileOutcome, reconcile
from headwater.reconcile.manifests import CONFIRM_PURGE, DELETE, RUN_NOW, ResourceName
from headwater.settings import Settings
from headwater.store import RealmId
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import LeaseWatch, TaskQueue, TaskState

MakeRealm = Callable[..., RealmManifest]
MakeCatalog = Callable[..., CatalogManifest]
Apply = Callable[..., list[ReconcileOutcome]]
GOING = {DELETE: "true", CONFIRM_PURGE: "acme"}


@pytest.fixture
def backend(store: Store) -> FaultyBackend:
    return FaultyBackend(store.backend)


@pytest.fixture
def mine(backend: FaultyBackend, settings: Settings, clock: FakeClock) -> Store:
    """The store as the pass sees it, with a backend at which others intervene."""
    return Store(backend, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # faulty is any backend


def end_collection(store: Store) -> None:
    tasks = TaskQueue(store)
    [task] = tasks.list_tasks(kind="gc", state=TaskState.WAITING)
    tasks.run_now(task.id)
    claim = tasks.claim_task(task.id, "worker", LeaseWatch(store.clock, 60))
    assert claim is not None
    claim.finish_task({})


@pytest.mark.parametrize("annotations", [GOING, {RUN_NOW: "gc"}], ids=["cancelled", "hurried"])
def test_task_that_ends_before_it_is_touched_stops_nothing(
    store: Store,
    mine: Store,
    backend: FaultyBackend,
    apply: Apply,
    make_realm: MakeRealm,
    sink: FileCredentials,
    annotations: dict[str, str],
) -> None:
    apply(make_realm())
    if annotations is GOING:
        RealmRegistry(store).move_realm(RealmRegistry(store).read_realm("acme"), RealmState.INACTIVE)
    backend.intervene("update_object", lambda: end_collection(store))

    [outcome] = apply(make_realm(annotations, deletion_policy="Purge"), store=mine)

    assert outcome.error is None


def make_purged(store: Store, sink: FileCredentials, manager: ManagerIdentity) -> None:
    """A realm of which only the entry and the credentials are left."""
    realms = RealmRegistry(store)
    realm = realms.create_realm("acme", manager=manager.of_realm(ResourceName("default", "acme")))
    realms.move_realm(realms.move_realm(realm, RealmState.PURGING), RealmState.PURGED)
    sink.write_credentials(realm.id, new_credentials())


def is_open(store: Store, sink: FileCredentials) -> bool:
    """Whether the credentials that are kept open the realm."""
    root = find_root(RealmRegistry(store), "acme")
    return root is not None and verify_secret(root.credentials, sink.write_credentials(RealmId("acme"), new_credentials()))


def test_late_removal_leaves_credentials_of_a_realm_made_again(
    settings: Settings, manager: ManagerIdentity, make_realm: MakeRealm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.realms.client_credentials._COST", 16)
    going, coming = make_realm(GOING, deletion_policy="Purge"), make_realm()
    for call in count(1):
        backend, sink = FaultyBackend(MemoryBackend(), is_atomic=True), FileCredentials(tmp_path / str(call))
        mine = Store(backend, url="memory://", settings=settings, clock=FakeClock())  # type: ignore[arg-type]  # faulty is any
        other = Store(backend.backend, url="memory://", settings=settings, clock=FakeClock())
        make_purged(other, sink, manager)
        again = partial(reconcile, other, credentials=sink, manager=manager)
        backend.intervene("*", lambda: (again([going]), again([coming])), at=call)  # type: ignore[func-returns-value]  # noqa: B023

        reconcile(mine, [going], credentials=sink, manager=manager)

        if RealmRegistry(other).find_realm("acme") is None:
            break
        assert is_open(other, sink)
    assert call > 5


def test_catalog_made_anew_is_not_deleted_for_the_old(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm())
    catalogs = Catalogs(RealmRegistry(store).open_realm("acme"))

    def create() -> CatalogDefinition:
        return catalogs.create_catalog("lake", base_location="s3://lake/")

    seen = create()
    catalogs.delete_catalog("lake")
    new = create()

    with pytest.raises(SwapConflictError):
        catalogs.delete_catalog("lake", seen=seen)
    assert catalogs.find_catalog("lake") == new
