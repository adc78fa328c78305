"""How things stand with realms and catalogs, and what would be done about them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalogs, ContentKey, IcebergTable, ImportSpec, Put
from headwater.realms import RealmManager, RealmRegistry, RealmState
from headwater.reconcile import (
    CatalogManifest,
    ContentCounts,
    ManagerIdentity,
    RealmManifest,
    ReconcileOutcome,
    describe_catalog,
    describe_realm,
    preview_catalog,
    preview_realm,
)
from headwater.reconcile.manifests import CONFIRM_PURGE, DELETE, RUN_NOW
from headwater.tasks import TaskQueue, TaskState

MakeRealm = Callable[..., RealmManifest]
MakeCatalog = Callable[..., CatalogManifest]
Apply = Callable[..., list[ReconcileOutcome]]


@pytest.fixture
def lake(apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, initial_import: ImportSpec) -> None:
    """Realm acme with catalog lake, whose import is asked for."""
    apply(make_realm(), make_catalog(imports=(initial_import,)))


def test_realm_that_is_not_there_has_no_description(store: Store) -> None:
    assert describe_realm(store, "acme") is None
    assert describe_catalog(store, "acme", "lake") is None


@pytest.mark.usefixtures("lake")
def test_realm_tells_its_state_its_content_and_its_next_collection(store: Store) -> None:
    described = describe_realm(store, "acme")

    assert described is not None
    assert (described.state, described.catalogs, described.tables) == (RealmState.ACTIVE, 1, 0)
    waiting = TaskQueue(store).active_tasks("gc", "acme")
    assert waiting is not None
    assert described.next_collection == waiting.due


@pytest.mark.usefixtures("lake")
def test_catalog_tells_of_its_imports(store: Store) -> None:
    described = describe_catalog(store, "acme", "lake")

    assert described is not None
    (initial,) = described.imports
    assert (initial.name, initial.mode, initial.last) == ("initial", "once", None)
    assert initial.active is not None
    assert initial.active.state is TaskState.WAITING


@pytest.mark.usefixtures("lake")
def test_collection_that_ended_is_the_last_one(store: Store, apply: Apply, make_realm: MakeRealm, clock: FakeClock) -> None:
    apply(make_realm({RUN_NOW: "gc"}))
    seen = TaskQueue(store).find_active("gc", "acme")
    assert seen is not None
    claim = TaskQueue(store).claim_task(seen.id, "worker")
    assert claim is not None
    clock.advance(5)
    claim.finish_task({"deleted": 7})
    described = describe_realm(store, "acme")

    assert described is not None
    assert described.last_collection is not None
    assert described.last_collection.outcome == {"deleted": 7}
    assert described.last_success == clock.now()


def test_collection_taken_back_before_its_time_is_no_run(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm())
    apply(make_realm(state="Inactive"))
    described = describe_realm(store, "acme")

    assert described is not None
    assert (described.last_collection, described.next_collection) == (None, None)


@pytest.mark.usefixtures("lake")
def test_task_that_was_handed_back_waits_since_then(store: Store, clock: FakeClock) -> None:
    seen = TaskQueue(store).find_active("import", "acme", "lake/initial")
    assert seen is not None
    claim = TaskQueue(store).claim_task(seen.id, "worker")
    assert claim is not None
    clock.advance(5)
    claim.hand_back("its worker stops")
    described = describe_catalog(store, "acme", "lake")

    assert described is not None
    active = described.imports[0].active
    assert active is not None
    assert (active.due, active.since) == (seen.value.due, clock.now())


def test_realm_that_is_purged_has_nothing_to_count(store: Store, apply: Apply, make_realm: MakeRealm, clock: FakeClock) -> None:
    apply(make_realm(deletion_policy="Purge"))
    going = make_realm({DELETE: "true", CONFIRM_PURGE: "acme"}, deletion_policy="Purge")
    apply(going)
    held = describe_realm(store, "acme")
    clock.advance(61)
    apply(going)
    described = describe_realm(store, "acme")

    assert held is not None
    assert held.hold_until is not None
    assert described is not None
    assert (described.state, described.catalogs, described.tables) == (RealmState.PURGING, None, None)
    assert described.purge is not None


def test_preview_of_a_new_realm_takes_none_of_its_steps(store: Store, make_realm: MakeRealm, manager: ManagerIdentity) -> None:
    preview = preview_realm(store, make_realm(), manager=manager)

    assert preview.steps == ("create realm acme", "bootstrap realm acme, and keep the credentials of its root")
    assert RealmRegistry(store).list_realms() == []


@pytest.mark.usefixtures("lake")
def test_preview_of_what_is_as_declared_is_empty(
    store: Store, make_realm: MakeRealm, make_catalog: MakeCatalog, initial_import: ImportSpec, manager: RealmManager
) -> None:
    catalog = make_catalog(imports=(initial_import,))

    assert preview_realm(store, make_realm(), manager=manager).steps == ()
    assert preview_catalog(store, catalog, manager=manager).steps == ()


@pytest.mark.usefixtures("lake")
def test_preview_tells_what_a_change_would_do(store: Store, make_realm: MakeRealm, manager: ManagerIdentity) -> None:
    changed = make_realm(state="Inactive", properties={"team": "a"})
    preview = preview_realm(store, changed, manager=manager)

    assert preview.steps[:2] == ("move realm acme to INACTIVE", "update realm acme: properties")


@pytest.mark.usefixtures("lake")
def test_preview_tells_what_is_waited_for(store: Store, make_realm: MakeRealm, manager: ManagerIdentity) -> None:
    preview = preview_realm(store, make_realm({DELETE: "true"}, deletion_policy="Purge"), manager=manager)

    assert [wait.reason for wait in preview.waits] == ["PurgeUnconfirmed"]


@pytest.mark.usefixtures("lake")
def test_counts_are_made_again_when_the_branch_moves(store: Store) -> None:
    counts, catalog = ContentCounts(), Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    found = []
    for name in ("a", "b"):
        catalog.commit("main", [Put(ContentKey.of(name), IcebergTable(metadata_location=f"s3://lake/{name}"))])
        found += [describe_catalog(store, "acme", "lake", counts=counts) for _ in range(2)]

    assert [one.tables for one in found if one is not None] == [1, 1, 2, 2]
