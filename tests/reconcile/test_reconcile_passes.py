"""Whole passes over real stores: what is there afterwards, and that a second pass changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import CatalogMaintenance, Catalogs, ImportSpec, LakeSchedule
from headwater.policies import PolicyKind, SnapshotRule, StoredPolicy, set_policy
from headwater.realms import MaintenanceSchedule, RealmManager, RealmRegistry, RealmState
from headwater.reconcile import (
    CatalogManifest,
    FileCredentials,
    ManagerIdentity,
    RealmManifest,
    ReconcileOutcome,
    known_realms,
    reconcile,
)
from headwater.reconcile.manifests import ADOPT, CONFIRM_PURGE, DELETE, RUN_NOW
from headwater.store import RealmId
from headwater.tasks import LeaseWatch, TaskQueue, TaskState

MakeRealm = Callable[..., RealmManifest]
MakeCatalog = Callable[..., CatalogManifest]
Apply = Callable[..., list[ReconcileOutcome]]
PURGE = {DELETE: "true", CONFIRM_PURGE: "acme"}


def finish(store: Store, kind: str) -> None:
    """Do the active task of this kind as a worker would, without its work."""
    tasks = TaskQueue(store)
    [task] = [task for task in tasks.list_tasks(kind=kind) if task.value.is_active]
    claim = tasks.claim_task(task.id, "worker", LeaseWatch(store.clock, 60))
    assert claim is not None
    claim.finish_task({})


def purge(store: Store) -> None:
    """Do what the task of a purge does."""
    realm = RealmRegistry(store).read_realm("acme")
    while store.backend.delete_realm(realm.key, 1000):
        pass
    RealmRegistry(store).move_realm(realm, RealmState.PURGED)
    finish(store, "purge")


def versions(store: Store) -> dict[str, int]:
    """The version of each reference of the store that a pass may move."""
    names = ("realms", "tasks")
    found = {name: store.system.read_reference(name, fresh=True).version for name in names}
    for realm in RealmRegistry(store).list_realms():
        rows = store.rows(realm.id, realm.key)
        found |= {
            f"{realm.id} {name}": rows.read_reference(name, fresh=True).version
            for name in RealmRegistry(store).reference_names(realm)
            if rows.find_reference(name) is not None
        }
    return found


def test_applied_realm_is_active_and_its_collection_waits(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    [outcome] = apply(make_realm())

    assert RealmRegistry(store).read_realm("acme").state is RealmState.ACTIVE
    assert [(task.value.kind, task.value.state) for task in TaskQueue(store).list_tasks()] == [("gc", TaskState.WAITING)]
    assert outcome.is_settled


def test_applied_catalog_is_there_and_its_import_is_asked_for(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, initial_import: ImportSpec
) -> None:
    apply(make_catalog(imports=(initial_import,)), make_realm())

    assert Catalogs(RealmRegistry(store).open_realm("acme")).read_catalog("lake").imports == (initial_import,)
    assert [task.value.subject for task in TaskQueue(store).list_tasks(kind="import")] == ["lake/initial"]


def test_work_on_a_lake_is_scheduled_run_now_and_taken_back(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog
) -> None:
    def waiting() -> dict[str, bool]:
        """The kinds of the tasks that wait, and whether each is due."""
        tasks = [task.value for task in TaskQueue(store).list_tasks(state=TaskState.WAITING) if task.value.kind != "gc"]
        return {task.kind: task.due <= store.clock.now() for task in tasks}

    said = CatalogMaintenance(expire_snapshots=LakeSchedule(), report_files=LakeSchedule())
    apply(make_realm(), make_catalog(maintenance=said))
    assert waiting() == {"expire-snapshots": False, "report-files": False}

    before = versions(store)
    apply(make_realm(), make_catalog(maintenance=said))
    assert versions(store) == before

    for _ in range(2):  # the second one has nothing to do
        apply(make_realm(), make_catalog({RUN_NOW: "report-files:1"}, maintenance=said))
    assert waiting() == {"expire-snapshots": False, "report-files": True}

    finish(store, "report-files")
    apply(make_realm(), make_catalog({RUN_NOW: "report-files:1"}, maintenance=said))
    assert waiting() == {"expire-snapshots": False, "report-files": False}

    apply(make_realm(maintenance=MaintenanceSchedule(suspend=True)), make_catalog(maintenance=said))
    assert waiting() == {}


def test_policy_by_hand_schedules_expiry(store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog) -> None:
    apply(make_realm(), make_catalog())
    rows = RealmRegistry(store).open_realm("acme")
    lake = Catalogs(rows).read_catalog("lake")
    rule = SnapshotRule(max_age_seconds=86400.0)
    set_policy(rows, lake, StoredPolicy(kind=PolicyKind.SNAPSHOTS, catalog_id=lake.id, snapshots=(rule,)))

    apply(make_realm(), make_catalog())

    assert [task.value.subject for task in TaskQueue(store).list_tasks(kind="expire-snapshots")] == ["lake"]


def test_manifests_applied_twice_make_no_commit_and_no_task(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, initial_import: ImportSpec
) -> None:
    manifests = (make_realm({RUN_NOW: "gc"}), make_catalog(imports=(initial_import,)))
    apply(*manifests)
    before, tasks = versions(store), len(TaskQueue(store).list_tasks())

    again = apply(*manifests)

    assert [outcome.done for outcome in again] == [(), ()]
    assert (versions(store), len(TaskQueue(store).list_tasks())) == (before, tasks)


def test_resources_do_not_change_before_the_next_collection(
    store: Store, apply: Apply, make_realm: MakeRealm, clock: FakeClock
) -> None:
    apply(make_realm())
    waiting = TaskQueue(store).list_tasks(kind="gc")[0].value
    clock.advance((waiting.due - clock.now()) / 1_000_000 + 3600)

    [outcome] = apply(make_realm())

    assert outcome.done == ()


def test_collection_is_waited_for_after_the_one_before(
    store: Store, apply: Apply, make_realm: MakeRealm, clock: FakeClock
) -> None:
    apply(make_realm())
    clock.advance(8 * 86400)
    finish(store, "gc")

    apply(make_realm())

    first, second = TaskQueue(store).list_tasks(kind="gc")
    assert first.value.due == second.value.due + 7 * 86400 * 1_000_000


def test_import_that_succeeded_is_remembered_and_never_asked_for_again(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog, initial_import: ImportSpec
) -> None:
    manifests = (make_realm(), make_catalog(imports=(initial_import,)))
    apply(*manifests)
    finish(store, "import")
    apply(*manifests)

    assert Catalogs(RealmRegistry(store).open_realm("acme")).read_catalog("lake").imported == {
        "initial": initial_import.digest()
    }
    assert [outcome.done for outcome in apply(*manifests)] == [(), ()]
    assert len(TaskQueue(store).list_tasks(kind="import")) == 1


def test_confirmed_purge_waits_for_the_hold_then_its_task(
    store: Store, apply: Apply, make_realm: MakeRealm, clock: FakeClock
) -> None:
    apply(make_realm(deletion_policy="Purge"))
    manifest = make_realm(PURGE, deletion_policy="Purge", purge_hold_seconds=5.0)

    [held] = apply(manifest)
    clock.advance(6)
    [purging] = apply(manifest)

    assert [wait.reason for wait in (*held.waits, *purging.waits)] == ["PurgeHold", "Purging"]
    assert 0 < clock.now() - (held.waits_until or 0) < 1_100_000
    assert [task.value.state for task in TaskQueue(store).list_tasks(kind="purge")] == [TaskState.WAITING]


def test_purged_realm_is_deleted_with_its_credentials(
    store: Store, apply: Apply, make_realm: MakeRealm, clock: FakeClock, sink: FileCredentials
) -> None:
    manifest = make_realm(PURGE, deletion_policy="Purge", purge_hold_seconds=5.0)
    apply(make_realm())
    apply(manifest)
    clock.advance(6)
    apply(manifest)
    purge(store)

    [gone] = apply(manifest)

    assert (gone.done, gone.is_settled) == (("deleted realm acme",), True)
    assert RealmRegistry(store).find_realm("acme") is None
    assert not (sink.folder / "acme.json").exists()
    assert apply(manifest)[0].done == ()


def test_realm_under_another_manager_is_refused_until_it_is_adopted(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    there = ManagerIdentity(cluster="there")
    apply(make_realm())

    [refused] = apply(make_realm(), manager=there)
    [adopted] = apply(make_realm({ADOPT: "acme"}), manager=there)
    [lost] = apply(make_realm())

    assert [refusal.reason for refusal in (*refused.refused, *lost.refused)] == ["ManagedByAnother", "ManagedByAnother"]
    assert adopted.is_settled
    assert RealmRegistry(store).read_realm("acme").manager == RealmManager(cluster="there", namespace="default", name="acme")


def test_resources_that_both_adopt_a_realm_stop_fighting(store: Store, apply: Apply, make_realm: MakeRealm) -> None:
    apply(make_realm())
    greedy = make_realm({ADOPT: "acme"})
    apply(greedy, manager=ManagerIdentity(cluster="there"))
    apply(greedy)

    [refused] = apply(greedy, manager=ManagerIdentity(cluster="there"))

    assert [refusal.reason for refusal in refused.refused] == ["ManagedByAnother"]


def test_one_failing_manifest_does_not_stop_the_others(
    store: Store, apply: Apply, make_realm: MakeRealm, sink: FileCredentials
) -> None:
    sink.folder.mkdir()
    (sink.folder / "acme.json").write_text("no credentials")

    bad, good = apply(make_realm(), make_realm(name="other"))

    assert "holds no credentials" in str(bad.error)
    assert RealmRegistry(store).read_realm("other").state is RealmState.ACTIVE
    assert good.is_settled


def test_every_step_is_told_as_it_is_done(apply: Apply, make_realm: MakeRealm) -> None:
    told: list[tuple[str, str]] = []

    [outcome] = apply(make_realm(), tell=lambda subject, sentence: told.append((subject, sentence)))

    assert told == [("Realm acme", sentence) for sentence in outcome.done]
    assert told[0] == ("Realm acme", "created realm acme")


def test_catalog_waits_for_a_realm_that_is_not_active(apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog) -> None:
    _, catalog = apply(make_realm(state="Inactive"), make_catalog())

    assert [wait.message for wait in catalog.waits] == ["catalog acme/lake waits for its realm to be ACTIVE; it is INACTIVE"]


def test_confirmed_deletion_takes_a_catalog_down_and_leaves_its_realm(
    store: Store, apply: Apply, make_realm: MakeRealm, make_catalog: MakeCatalog
) -> None:
    apply(make_realm(), make_catalog(deletion_protection=True))

    deleted, _ = apply(make_realm(), make_catalog({DELETE: "true", CONFIRM_PURGE: "acme/lake"}, deletion_policy="Purge"))

    assert deleted.done[-1].startswith("deleted catalog lake of realm acme; it can be undeleted until ")
    assert Catalogs(RealmRegistry(store).open_realm("acme")).list_catalogs() == []


def test_known_realms_are_this_clusters_and_nobodys(
    store: Store, make_realm: MakeRealm, sink: FileCredentials, apply: Apply
) -> None:
    RealmRegistry(store).create_realm("free")
    apply(make_realm())
    reconcile(store, [make_realm(name="foreign")], credentials=sink, manager=ManagerIdentity(cluster="there"))

    known = known_realms(store, cluster="here")

    assert {realm: str(resource) for realm, resource in known.items()} == {
        RealmId("acme"): "default/acme",
        RealmId("free"): "None",
    }
