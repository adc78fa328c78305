"""Somebody else acts between a look and a step: the pass looks again, and hits nothing that it has not seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater import Store
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.clock import FakeClock
from headwater.errors import BeatenError
from headwater.realms import Realms, RealmState
from headwater.reconcile import CatalogManifest, FileCredentials, Outcome, RealmManifest
from headwater.reconcile.manifests import CONFIRM_PURGE, DELETE, RUN_NOW
from headwater.settings import Settings
from headwater.store import FaultyBackend
from headwater.tasks import LeaseWatch, Tasks, TaskState

MakeRealm = Callable[..., RealmManifest]
MakeCatalog = Callable[..., CatalogManifest]
Apply = Callable[..., list[Outcome]]
GOING = {DELETE: "true", CONFIRM_PURGE: "acme"}


@pytest.fixture
def backend(store: Store) -> FaultyBackend:
    return FaultyBackend(store.backend)


@pytest.fixture
def mine(backend: FaultyBackend, settings: Settings, clock: FakeClock) -> Store:
    """The store as the pass sees it, with a backend at which others intervene."""
    return Store(backend, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # faulty is any backend


def end_collection(store: Store) -> None:
    tasks = Tasks(store)
    [task] = tasks.list(kind="gc", state=TaskState.WAITING)
    tasks.run_now(task.id)
    claim = tasks.claim(task.id, "worker", LeaseWatch(store.clock, 60))
    assert claim is not None
    claim.finish({})


@pytest.mark.parametrize("annotations", [GOING, {RUN_NOW: "gc"}], ids=["cancelled", "hurried"])
def test_a_task_that_ends_before_it_is_touched_stops_nothing(
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
        Realms(store).move(Realms(store).read("acme"), RealmState.INACTIVE)
    backend.intervene("update_object", lambda: end_collection(store))

    [outcome] = apply(make_realm(annotations, deletion_policy="Purge"), store=mine)

    assert outcome.error is None


def test_a_catalog_that_was_made_anew_is_not_deleted_for_the_old_one(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm())
    catalogs = Catalogs(Realms(store).open("acme"))

    def create() -> CatalogDefinition:
        return catalogs.create("lake", base_location="s3://lake/")

    seen = create()
    catalogs.delete("lake")
    new = create()

    with pytest.raises(BeatenError):
        catalogs.delete("lake", seen=seen)
    assert catalogs.find("lake") == new
