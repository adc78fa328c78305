"""Tables of (manifest, what is seen) to actions, for catalogs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import pytest

from headwater.catalogs import CatalogChanges, CatalogDefinition, CatalogFields, CatalogManager, ImportSpec
from headwater.clock import Micros
from headwater.policies import FileRule, MetadataFileRule, PolicyKind, StoredPolicy
from headwater.realms import MaintenanceSchedule, Realm, RealmManager, RealmState
from headwater.reconcile import CatalogManifest, RefuseManifest, WaitUntil, next_time, plan_catalog
from headwater.reconcile.actions import (
    Action,
    CancelTask,
    CompleteCatalog,
    CreateCatalog,
    DeclarePolicies,
    DeleteCatalog,
    RecordImported,
    SubmitTask,
    UpdateCatalog,
    only,
)
from headwater.reconcile.manifests import ADOPT, CONFIRM_PURGE, DELETE
from headwater.reconcile.observed_state import ObservedCatalog, TaskHistory, import_arguments
from headwater.store import ObjectId, RealmId, RealmKey, Versioned
from headwater.tasks import Task, TaskState

MakeCatalog = Callable[..., CatalogManifest]
M = TypeVar("M", RealmManager, CatalogManager)

NOW = Micros(1_780_000_000_000_000)
EARLIER = Micros(NOW - 3_600_000_000)
OWNER = RealmManager(cluster="here", namespace="default", name="acme")
ME = CatalogManager(cluster="here", namespace="default", name="lake")
OTHER = CatalogManager(cluster="here", namespace="default", name="other")
REALM = Realm(
    id=RealmId("acme"),
    key=RealmKey(1),
    state=RealmState.ACTIVE,
    manager=OWNER,
    maintenance=MaintenanceSchedule(time_zone="Europe/Berlin"),
)
ONCE = ImportSpec(name="initial", locations=("s3://old/",))
SYNC = ImportSpec(name="initial", locations=("s3://old/",), mode="sync", schedule="0 * * * *")
GOING = {DELETE: "true", CONFIRM_PURGE: "acme/lake"}


def catalog(manifest: CatalogManifest, **fields: Any) -> CatalogDefinition:
    """A catalog of mine as the manifest says, unless a field says otherwise."""
    defaults: dict[str, Any] = {"id": "00000000000000aa", "name": "lake", "manager": ME, **manifest.spec.fields()}
    return CatalogDefinition(**(defaults | fields))


def plan(
    manifest: CatalogManifest,
    seen: CatalogDefinition | None,
    *tasks: Versioned[Task],
    realm: Realm | None = REALM,
    **fields: Any,
) -> list[Action]:
    given: dict[str, Any] = {"realm_owner": OWNER, "me": ME, "tasks": TaskHistory(tasks)} | fields
    observed = ObservedCatalog(realm=realm, catalog=seen, **given)
    return plan_catalog(manifest, observed, NOW)


def task(spec: ImportSpec, seen: CatalogDefinition, state: TaskState, **fields: Any) -> Versioned[Task]:
    defaults: dict[str, Any] = {
        "kind": "import",
        "realm": "acme",
        "due": EARLIER,
        "subject": f"lake/{spec.name}",
        "state": state,
        "finished": None if state.is_active else EARLIER,
        "arguments": import_arguments(seen, spec),
    }
    return Versioned(ObjectId(7), Task(**(defaults | fields)), token="1", created=EARLIER)


def submit(spec: ImportSpec, seen: CatalogDefinition, due: int = NOW) -> SubmitTask:
    return SubmitTask("import", Micros(due), f"lake/{spec.name}", import_arguments(seen, spec))


def with_uid(manager: M, uid: str) -> M:
    return msgspec.structs.replace(manager, uid=uid)


def kinds(actions: list[Action]) -> list[str]:
    return [f"{type(action).__name__} {getattr(action, 'reason', '')}".strip() for action in actions]


def in_state(state: RealmState) -> Realm:
    return Realm(id=RealmId("acme"), key=RealmKey(1), state=state, manager=OWNER)


# Beginning


@pytest.mark.parametrize(
    ("realm", "wanted"),
    [
        (None, ["WaitUntil RealmMissing"]),
        (in_state(RealmState.CREATED), ["WaitUntil RealmNotActive"]),
        (in_state(RealmState.INACTIVE), ["WaitUntil RealmNotActive"]),
        (in_state(RealmState.PURGING), ["WaitUntil RealmNotActive"]),
    ],
)
def test_catalog_waits_until_its_realm_is_active(make_catalog: MakeCatalog, realm: Realm | None, wanted: list[str]) -> None:
    assert kinds(plan(make_catalog(), None, realm=realm)) == wanted


def test_missing_catalog_is_created_with_its_manager(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(imports=(ONCE,))

    assert plan(manifest, None) == [CreateCatalog(CatalogFields(**manifest.spec.fields(), manager=ME))]


def test_catalog_whose_making_was_broken_off_is_completed(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog()

    assert plan(manifest, catalog(manifest, unfinished=True)) == [CompleteCatalog()]


def test_catalog_made_by_hand_is_completed_and_taken(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog()

    assert plan(manifest, catalog(manifest, manager=None)) == [CompleteCatalog(), UpdateCatalog(CatalogChanges(manager=ME))]


@pytest.mark.parametrize("fields", [{"base_location": "s3://person/lake/"}, {"default_branch": "trunk"}])
def test_catalog_made_by_hand_elsewhere_is_changed_only_when_asked(make_catalog: MakeCatalog, fields: dict[str, str]) -> None:
    seen = catalog(make_catalog(), manager=None, **fields)

    [refusal] = plan(make_catalog(), seen)

    assert isinstance(refusal, RefuseManifest)
    assert f"at {seen.base_location} with the default branch {seen.default_branch}, and this" in refusal.message
    assert "asks for s3://lake/ with main: make baseLocation and defaultBranch of the Catalog equal" in refusal.message
    assert kinds(plan(make_catalog({ADOPT: "acme/lake"}), seen)) == ["CompleteCatalog", "UpdateCatalog"]


def test_refusal_shows_no_credentials_of_either_location(make_catalog: MakeCatalog) -> None:
    seen = catalog(make_catalog(), manager=None, base_location="s3://key:made@by-hand@lake/")
    manifest = make_catalog(base_location="s3://key:declared@lake/")

    [refusal] = plan(manifest, seen)

    assert isinstance(refusal, RefuseManifest)
    assert "s3://***@lake/" in refusal.message
    assert not any(secret in refusal.message for secret in ("made", "declared", "by-hand"))


@pytest.mark.parametrize("written", ["s3://lake", "s3://lake//"])
def test_location_that_is_written_otherwise_is_the_same(make_catalog: MakeCatalog, written: str) -> None:
    seen = catalog(make_catalog(), manager=None, base_location=written)

    assert kinds(plan(make_catalog(), seen)) == ["CompleteCatalog", "UpdateCatalog"]


def test_catalog_that_is_as_it_should_be_needs_nothing(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(imports=(ONCE,))

    assert plan(manifest, catalog(manifest, imported={"initial": ONCE.digest()})) == []


def test_drifted_field_of_a_catalog_is_corrected(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(properties={"a": "b"})

    assert plan(manifest, catalog(manifest, properties={})) == [UpdateCatalog(CatalogChanges(properties={"a": "b"}))]


OF_FILES = StoredPolicy(kind=PolicyKind.FILE_COLLECTION, catalog_id="", files=FileRule(mode="off"))
OF_LOG = StoredPolicy(kind=PolicyKind.METADATA_FILES, catalog_id="", metadata_files=MetadataFileRule(keep=9))


@pytest.mark.parametrize(
    ("declared", "stored", "changed"),
    [
        ((OF_FILES,), (), (PolicyKind.FILE_COLLECTION,)),
        ((OF_FILES,), ((OF_FILES, {"declared": True}),), ()),
        ((OF_FILES,), ((OF_FILES, {"declared": False}),), (PolicyKind.FILE_COLLECTION,)),
        ((OF_FILES,), ((OF_FILES, {"declared": True, "files": FileRule(mode="report")}),), (PolicyKind.FILE_COLLECTION,)),
        ((), ((OF_FILES, {"declared": False}), (OF_LOG, {"declared": True})), (PolicyKind.METADATA_FILES,)),
        ((), ((OF_LOG, {"declared": True, "content_id": UUID(int=7)}),), ()),
        ((OF_FILES, OF_LOG), (), (PolicyKind.METADATA_FILES, PolicyKind.FILE_COLLECTION)),
    ],
)
def test_policies_become_what_is_declared(
    make_catalog: MakeCatalog,
    declared: tuple[StoredPolicy, ...],
    stored: tuple[tuple[StoredPolicy, dict[str, Any]], ...],
    changed: tuple[PolicyKind, ...],
) -> None:
    manifest = make_catalog(policies=declared)
    seen = tuple(msgspec.structs.replace(policy, catalog_id="00000000000000aa", **fields) for policy, fields in stored)

    steps = only(plan(manifest, catalog(manifest), policies=seen), DeclarePolicies)

    assert steps == ((DeclarePolicies(declared, changed),) if changed else ())


# Managers


@pytest.mark.parametrize("uid", ["", "made-again"])
def test_same_resource_may_go_on_under_another_uid(make_catalog: MakeCatalog, uid: str) -> None:
    manifest = make_catalog()
    manager = CatalogManager(cluster="here", namespace="default", name="lake", uid=uid)

    assert not any(isinstance(step, RefuseManifest) for step in plan(manifest, catalog(manifest, manager=manager)))


def test_catalog_of_another_resource_is_refused(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog()

    [refusal] = plan(manifest, catalog(manifest, manager=CatalogManager(cluster="there", name="lake")))

    assert isinstance(refusal, RefuseManifest)
    assert refusal.message.startswith("catalog acme/lake is managed by there/lake; ")


def test_resource_takes_back_what_it_let_go(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog()
    before = CatalogManager(cluster="here", namespace="default", name="lake", uid="before")

    steps = plan(manifest, catalog(manifest, manager=None, former=before))

    assert steps == [CompleteCatalog(), UpdateCatalog(CatalogChanges(manager=ME, former=None))]


@pytest.mark.parametrize(
    ("annotations", "manager", "wanted"),
    [
        ({}, None, ["RefuseManifest ManagedByAnother"]),
        ({ADOPT: "lake"}, None, ["RefuseManifest ManagedByAnother"]),
        ({ADOPT: "acme/lake"}, None, ["CompleteCatalog", "UpdateCatalog"]),
        ({ADOPT: "acme/lake"}, OTHER, ["RefuseManifest ManagedByAnother"]),
    ],
)
def test_catalog_that_another_let_go_is_adopted_when_asked(
    make_catalog: MakeCatalog, annotations: dict[str, str], manager: CatalogManager | None, wanted: list[str]
) -> None:
    manifest = make_catalog(annotations)

    assert kinds(plan(manifest, catalog(manifest, manager=manager, former=OTHER))) == wanted


@pytest.mark.parametrize(
    ("manager", "may_be_unmanaged", "is_refused"),
    [
        (OWNER, False, False),
        (None, False, True),
        (None, True, False),
        (RealmManager(cluster="there", namespace="default", name="acme"), True, True),
    ],
)
def test_catalog_goes_only_into_a_realm_of_its_resource(
    make_catalog: MakeCatalog, manager: RealmManager | None, may_be_unmanaged: bool, is_refused: bool
) -> None:
    realm = Realm(id=RealmId("acme"), key=RealmKey(1), state=RealmState.ACTIVE, manager=manager)

    steps = plan(make_catalog(), None, realm=realm, may_be_unmanaged=may_be_unmanaged)

    assert (kinds(steps) == ["RefuseManifest RealmManagedByAnother"]) is is_refused


@pytest.mark.parametrize(
    ("acted", "wanted"),
    [({}, "WaitUntil RealmMissing"), ({"headwater.dev/succeeded-uids": "0 1"}, "RefuseManifest RealmManagedByAnother")],
)
def test_catalog_waits_until_its_realm_is_taken_back(make_catalog: MakeCatalog, acted: dict[str, str], wanted: str) -> None:
    realm = msgspec.structs.replace(REALM, manager=msgspec.structs.replace(OWNER, uid="2"), acted=acted)

    assert kinds(plan(make_catalog(), None, realm=realm, realm_owner=msgspec.structs.replace(OWNER, uid="1"))) == [wanted]


def test_nameless_cluster_leaves_catalogs_of_a_live_realm(make_catalog: MakeCatalog) -> None:
    owner, realm = with_uid(OWNER, "1"), msgspec.structs.replace(REALM, manager=with_uid(OWNER, "2"))
    manifest = make_catalog()
    seen = catalog(manifest, manager=with_uid(ME, "theirs"))

    steps = plan(manifest, seen, realm=realm, realm_owner=owner, is_cluster_named=False)

    assert kinds(steps) == ["RefuseManifest RealmManagedByAnother"]


@pytest.mark.parametrize(("annotations", "spec"), [({DELETE: "true"}, {}), (GOING, {"deletion_policy": "Purge"})])
@pytest.mark.parametrize("realm", [msgspec.structs.replace(REALM, manager=None), REALM])
def test_nameless_cluster_does_not_delete_what_another_uid_has(
    make_catalog: MakeCatalog, annotations: dict[str, str], spec: dict[str, Any], realm: Realm
) -> None:
    manifest = make_catalog(annotations, **spec)
    seen = catalog(manifest, manager=with_uid(ME, "theirs"))

    steps = plan(manifest, seen, realm=realm, is_cluster_named=False, may_be_unmanaged=True)

    assert [kind for kind in kinds(steps) if kind != "RefuseManifest ManagedByAnother"] == []


def test_owner_of_the_realm_takes_catalogs_of_another_uid_back(make_catalog: MakeCatalog) -> None:
    owner, me = with_uid(OWNER, "2"), with_uid(ME, "mine")
    manifest = make_catalog()
    seen = catalog(manifest, manager=with_uid(ME, "before"))

    steps = plan(
        manifest,
        seen,
        realm=msgspec.structs.replace(REALM, manager=owner),
        realm_owner=owner,
        me=me,
        is_cluster_named=False,
    )

    assert steps == [UpdateCatalog(CatalogChanges(manager=me))]


def test_nameless_cluster_takes_back_a_catalog_let_go(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog()

    steps = plan(manifest, catalog(manifest, manager=None, former=with_uid(ME, "before")), is_cluster_named=False)

    assert steps == [CompleteCatalog(), UpdateCatalog(CatalogChanges(manager=ME, former=None))]


# Imports


def test_import_is_asked_for_once(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(imports=(ONCE,))
    seen = catalog(manifest)

    assert plan(manifest, seen) == [submit(ONCE, seen)]
    assert plan(manifest, seen, task(ONCE, seen, TaskState.WAITING)) == []
    assert plan(manifest, seen, task(ONCE, seen, TaskState.RUNNING)) == []


def test_import_that_succeeded_is_recorded_in_the_catalog(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(imports=(ONCE,))
    seen = catalog(manifest)

    assert plan(manifest, seen, task(ONCE, seen, TaskState.SUCCEEDED)) == [RecordImported("initial", ONCE.digest())]


@pytest.mark.parametrize(("state", "reason"), [(TaskState.FAILED, "TaskDeadLettered"), (TaskState.CANCELLED, "TaskCancelled")])
def test_import_that_ended_badly_is_reported_and_not_repeated(make_catalog: MakeCatalog, state: TaskState, reason: str) -> None:
    manifest = make_catalog(imports=(ONCE,))
    seen = catalog(manifest)

    assert kinds(plan(manifest, seen, task(ONCE, seen, state))) == [f"ReportDrift {reason}"]


@pytest.mark.parametrize("state", [TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED])
def test_import_that_was_changed_since_is_asked_for_anew(make_catalog: MakeCatalog, state: TaskState) -> None:
    changed = ImportSpec(name="initial", locations=("s3://elsewhere/",))
    manifest = make_catalog(imports=(changed,))
    seen = catalog(manifest, imported={"initial": ONCE.digest()})

    assert plan(manifest, seen, task(ONCE, seen, state)) == [submit(changed, seen)]


def test_waiting_import_of_an_earlier_version_gives_way(make_catalog: MakeCatalog) -> None:
    changed = ImportSpec(name="initial", locations=("s3://elsewhere/",))
    manifest = make_catalog(imports=(changed,))
    seen = catalog(manifest)

    assert plan(manifest, seen, task(ONCE, seen, TaskState.RUNNING)) == []
    assert plan(manifest, seen, task(ONCE, seen, TaskState.WAITING)) == [
        CancelTask(ObjectId(7), "import", "lake/initial"),
        submit(changed, seen),
    ]


def test_import_of_an_earlier_namesake_does_not_count(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(imports=(ONCE,))
    earlier, seen = catalog(manifest, id="00000000000000bb"), catalog(manifest)

    assert plan(manifest, seen, task(ONCE, earlier, TaskState.SUCCEEDED)) == [submit(ONCE, seen)]


def test_import_that_is_no_longer_wanted_is_cancelled(make_catalog: MakeCatalog) -> None:
    seen = catalog(make_catalog(imports=(ONCE,)))

    steps = plan(make_catalog(), seen, task(ONCE, seen, TaskState.WAITING))

    assert steps == [CancelTask(ObjectId(7), "import", "lake/initial"), UpdateCatalog(CatalogChanges(imports=()))]


def test_repeated_import_runs_at_once_then_by_its_schedule(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(imports=(SYNC,))
    seen, done = catalog(manifest), catalog(manifest, imported={"initial": SYNC.digest()})
    last = task(SYNC, seen, TaskState.SUCCEEDED)

    assert plan(manifest, seen) == [submit(SYNC, seen)]
    assert plan(manifest, seen, last) == [RecordImported("initial", SYNC.digest())]
    assert plan(manifest, done, last) == [submit(SYNC, done, next_time("0 * * * *", "Europe/Berlin", EARLIER))]


# Going


@pytest.mark.parametrize(
    ("annotations", "spec", "wanted"),
    [
        ({DELETE: "true"}, {}, [UpdateCatalog(CatalogChanges(manager=None, former=ME))]),
        (GOING, {"deletion_policy": "Purge"}, [DeleteCatalog()]),
    ],
)
def test_deleting_a_catalog_follows_its_policy(
    make_catalog: MakeCatalog, annotations: dict[str, str], spec: dict[str, Any], wanted: list[Action]
) -> None:
    manifest = make_catalog(annotations, **spec)

    assert plan(manifest, catalog(manifest)) == wanted


def test_deletion_of_a_catalog_waits_for_its_confirmation(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog({DELETE: "true", CONFIRM_PURGE: "lake"}, deletion_policy="Purge")

    [wait] = plan(manifest, catalog(manifest))

    assert isinstance(wait, WaitUntil)
    assert "annotate headwater.dev/confirm-purge: acme/lake, and not lake, to have" in wait.message


def test_protected_catalog_is_not_deleted(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(GOING, deletion_policy="Purge", deletion_protection=True)

    assert kinds(plan(manifest, catalog(manifest))) == ["RefuseManifest DeletionProtected"]


def test_protection_taken_from_the_manifest_leaves_the_catalog_first(
    make_catalog: MakeCatalog,
) -> None:
    manifest = make_catalog(GOING, deletion_policy="Purge", imports=(ONCE,))
    seen = catalog(manifest, deletion_protection=True)

    assert plan(manifest, seen, task(ONCE, seen, TaskState.RUNNING)) == [
        UpdateCatalog(CatalogChanges(deletion_protection=False)),
        CancelTask(ObjectId(7), "import", "lake/initial"),
        DeleteCatalog(),
    ]


@pytest.mark.parametrize("state", [RealmState.CREATED, RealmState.INITIALIZING, RealmState.INACTIVE, RealmState.PURGED])
def test_deletion_of_what_is_missing_waits_for_no_realm(make_catalog: MakeCatalog, state: RealmState) -> None:
    assert plan(make_catalog({DELETE: "true"}, deletion_policy="Purge"), None, realm=in_state(state)) == []


def test_deletion_of_what_is_not_there_needs_nothing(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(GOING, deletion_policy="Purge")

    assert plan(manifest, None) == []
    assert plan(manifest, None, realm=None) == []
