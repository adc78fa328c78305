"""Tables of (manifest, what is seen) to actions, for the scheduled work on a catalog's lake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from headwater.catalogs import CatalogDefinition, CatalogMaintenance, CatalogManager, LakeSchedule
from headwater.clock import Micros
from headwater.jobs import EXPIRE_SNAPSHOTS, REPORT_FILES, lake_arguments
from headwater.policies import MetadataFileRule, PolicyKind, StoredPolicy
from headwater.realms import MaintenanceSchedule, Realm, RealmManager, RealmState
from headwater.reconcile import CatalogManifest, next_time, plan_catalog, weekly_schedule
from headwater.reconcile.actions import Action, CancelTask, RecordHandled, ReportDrift, RunTaskNow, SubmitTask, UpdateCatalog
from headwater.reconcile.manifests import CONFIRM_PURGE, DELETE, RUN_NOW
from headwater.reconcile.observed_state import ObservedCatalog, TaskHistory
from headwater.reconcile.schedule import daily_schedule
from headwater.store import ObjectId, RealmId, RealmKey, Versioned
from headwater.tasks import Task, TaskState

MakeCatalog = Callable[..., CatalogManifest]

NOW = Micros(1_780_000_000_000_000)
HOUR = 3_600_000_000
OWNER = RealmManager(cluster="here", namespace="default", name="acme")
ME = CatalogManager(cluster="here", namespace="default", name="lake")
ZONE = "Europe/Berlin"
REALM = Realm(
    id=RealmId("acme"),
    key=RealmKey(1),
    state=RealmState.ACTIVE,
    manager=OWNER,
    maintenance=MaintenanceSchedule(time_zone=ZONE),
)
SUSPENDED = msgspec.structs.replace(REALM, maintenance=MaintenanceSchedule(time_zone=ZONE, suspend=True))
HOURLY = LakeSchedule(schedule="0 * * * *")
DAILY = LakeSchedule(schedule="30 4 * * *")
POLICIES = (
    StoredPolicy(kind=PolicyKind.METADATA_FILES, catalog_id="00000000000000aa", metadata_files=MetadataFileRule(keep=9)),
)
EXPIRY, REPORTS = CatalogMaintenance(expire_snapshots=HOURLY), CatalogMaintenance(report_files=HOURLY)


def catalog(manifest: CatalogManifest, **fields: Any) -> CatalogDefinition:
    """A catalog of mine as the manifest says, unless a field says otherwise."""
    defaults: dict[str, Any] = {"id": "00000000000000aa", "name": "lake", "manager": ME, **manifest.spec.fields()}
    return CatalogDefinition(**(defaults | fields))


LAKE = CatalogDefinition(id="00000000000000aa", name="lake")


def plan(
    manifest: CatalogManifest,
    *tasks: Versioned[Task],
    realm: Realm = REALM,
    seen: CatalogDefinition | None = None,
    lets_go: bool = False,
) -> list[Action]:
    observed = ObservedCatalog(
        realm=realm,
        realm_owner=OWNER,
        me=ME,
        catalog=seen or catalog(manifest),
        tasks=TaskHistory(tasks),
        policies=POLICIES if lets_go else (),
    )
    return plan_catalog(manifest, observed, NOW)


def task(
    kind: str, state: TaskState = TaskState.WAITING, *, due: int = NOW - HOUR, of: CatalogDefinition = LAKE
) -> Versioned[Task]:
    ended = None if state.is_active else Micros(NOW - HOUR)
    made = Task(
        kind=kind, realm="acme", due=Micros(due), subject="lake", state=state, finished=ended, arguments=lake_arguments(of)
    )
    return Versioned(ObjectId(7), made, token="1", created=Micros(NOW - HOUR))


def submit(kind: str, due: int) -> SubmitTask:
    return SubmitTask(kind, Micros(due), "lake", lake_arguments(LAKE))


def coming(schedule: str, after: int = NOW) -> int:
    return next_time(schedule, ZONE, Micros(after))


@pytest.mark.parametrize(("said", "kind"), [(EXPIRY, EXPIRE_SNAPSHOTS), (REPORTS, REPORT_FILES)])
def test_work_waits_for_its_next_time(make_catalog: MakeCatalog, said: CatalogMaintenance, kind: str) -> None:
    manifest = make_catalog(maintenance=said)

    assert plan(manifest) == [submit(kind, coming("0 * * * *"))]
    assert plan(manifest, task(kind, due=coming("0 * * * *"))) == []
    assert plan(manifest, task(kind)) == [], "it is due"


def test_work_that_was_missed_is_made_up_for_once(make_catalog: MakeCatalog) -> None:
    ended = task(REPORT_FILES, TaskState.SUCCEEDED)

    assert plan(make_catalog(maintenance=REPORTS), ended) == [submit(REPORT_FILES, coming("0 * * * *", NOW - HOUR))]


def test_changed_schedule_counts_from_now(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(maintenance=CatalogMaintenance(report_files=DAILY))
    waiting = task(REPORT_FILES, due=coming("0 * * * *"))

    assert plan(manifest, waiting) == [CancelTask(waiting.id, REPORT_FILES, "lake"), submit(REPORT_FILES, coming("30 4 * * *"))]

    before = catalog(manifest, maintenance=REPORTS)
    ended = task(REPORT_FILES, TaskState.SUCCEEDED)
    assert plan(manifest, ended, seen=before)[-1] == submit(REPORT_FILES, coming("30 4 * * *"))
    assert isinstance(plan(manifest, ended, seen=before)[0], UpdateCatalog)


def test_catalog_that_says_nothing_has_no_schedule(make_catalog: MakeCatalog) -> None:
    assert plan(make_catalog()) == []


def test_policy_alone_schedules_expiry_daily(make_catalog: MakeCatalog) -> None:
    daily = daily_schedule("acme/lake expire-snapshots")

    assert plan(make_catalog(), lets_go=True) == [submit(EXPIRE_SNAPSHOTS, coming(daily))]


def test_reports_without_a_schedule_are_weekly(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog(maintenance=CatalogMaintenance(report_files=LakeSchedule()))

    assert plan(manifest) == [submit(REPORT_FILES, coming(weekly_schedule("acme/lake report-files")))]


@pytest.mark.parametrize(
    ("said", "realm", "lets_go"),
    [
        (CatalogMaintenance(expire_snapshots=LakeSchedule(schedule="0 * * * *", suspend=True)), REALM, True),
        (EXPIRY, SUSPENDED, True),
        (CatalogMaintenance(), REALM, False),
    ],
)
def test_suspended_work_is_taken_back(make_catalog: MakeCatalog, said: CatalogMaintenance, realm: Realm, lets_go: bool) -> None:
    manifest, waiting = make_catalog(maintenance=said), task(EXPIRE_SNAPSHOTS, due=NOW + HOUR)

    assert plan(manifest, waiting, realm=realm, lets_go=lets_go) == [CancelTask(waiting.id, EXPIRE_SNAPSHOTS, "lake")]
    assert plan(manifest, task(EXPIRE_SNAPSHOTS), realm=realm, lets_go=lets_go) == [], "a person has asked for it"
    assert plan(manifest, realm=realm, lets_go=lets_go) == []


@pytest.mark.parametrize("realm", [REALM, SUSPENDED])
@pytest.mark.parametrize("said", [CatalogMaintenance(), EXPIRY])
def test_asked_for_work_runs_at_once_and_once(make_catalog: MakeCatalog, realm: Realm, said: CatalogMaintenance) -> None:
    asked = {RUN_NOW: "expire-snapshots:again"}
    manifest = make_catalog(asked, maintenance=said)
    handled = RecordHandled(RUN_NOW, "expire-snapshots:again")
    waiting = task(EXPIRE_SNAPSHOTS, due=coming("0 * * * *"))

    assert plan(manifest, realm=realm) == [submit(EXPIRE_SNAPSHOTS, NOW), handled]
    assert plan(manifest, task(EXPIRE_SNAPSHOTS, TaskState.RUNNING), realm=realm) == [handled]
    if said is EXPIRY and realm is REALM:
        assert plan(manifest, waiting, realm=realm) == [RunTaskNow(waiting.id, EXPIRE_SNAPSHOTS), handled]
    acted = catalog(manifest, acted=asked)
    assert plan(manifest, task(EXPIRE_SNAPSHOTS), seen=acted, realm=realm) == []


def test_annotation_that_is_gone_may_act_again(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog()

    assert plan(manifest, seen=catalog(manifest, acted={RUN_NOW: "report-files"})) == [RecordHandled(RUN_NOW, None)]


def test_failed_work_is_left_to_a_person(make_catalog: MakeCatalog) -> None:
    [told] = plan(make_catalog(maintenance=REPORTS), task(REPORT_FILES, TaskState.FAILED))

    assert isinstance(told, ReportDrift) and told.reason == "TaskDeadLettered"


def test_task_of_an_earlier_catalog_makes_way(make_catalog: MakeCatalog) -> None:
    old = task(REPORT_FILES, of=CatalogDefinition(id="00000000000000bb", name="lake"))
    failed = task(REPORT_FILES, TaskState.FAILED, of=CatalogDefinition(id="00000000000000bb", name="lake"))

    assert plan(make_catalog(maintenance=REPORTS), old) == [CancelTask(old.id, REPORT_FILES, "lake")]
    assert plan(make_catalog(maintenance=REPORTS), failed) == [submit(REPORT_FILES, coming("0 * * * *"))]


def test_deleted_catalog_has_no_work(make_catalog: MakeCatalog) -> None:
    manifest = make_catalog({DELETE: "true", CONFIRM_PURGE: "acme/lake"}, deletion_policy="Purge", maintenance=REPORTS)
    waiting = task(REPORT_FILES, due=NOW + HOUR)

    assert CancelTask(waiting.id, REPORT_FILES, "lake") in plan(manifest, waiting)
