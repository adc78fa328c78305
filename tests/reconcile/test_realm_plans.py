"""Tables of (manifest, what is seen) to actions, for realms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from headwater.clock import Micros
from headwater.realms import HistoryRetention, MaintenanceSchedule, Realm, RealmFields, RealmManager, RealmState
from headwater.reconcile import RealmManifest, RefuseManifest, ReportDrift, WaitUntil, next_time, plan_realm, weekly_schedule
from headwater.reconcile.actions import (
    Action,
    AdoptRealm,
    BootstrapRealm,
    CancelTask,
    CreateRealm,
    DetachRealm,
    MoveRealm,
    RecordHandled,
    RemoveRealm,
    RunTaskNow,
    SubmitTask,
    UpdateRealm,
)
from headwater.reconcile.manifests import ADOPT, CONFIRM_PURGE, DELETE, RUN_NOW
from headwater.reconcile.observed_state import ObservedRealm, TaskHistory
from headwater.reconcile.realm_plan import APPLIED, adopt_record, with_manager, without_manager
from headwater.store import ObjectId, RealmId, RealmKey, Versioned, id_text
from headwater.tasks import Task, TaskAttempt, TaskState

MakeRealm = Callable[..., RealmManifest]

DAY = 86_400_000_000
NOW = Micros(1_780_000_000_000_000)
YESTERDAY = Micros(NOW - DAY)
ME = RealmManager(cluster="here", namespace="default", name="acme", uid="1")
OTHER = RealmManager(cluster="there", namespace="default", name="acme", uid="2")
MADE_BEFORE = RealmManager(cluster="here", namespace="default", name="acme", uid="0")
DUE = next_time(weekly_schedule("acme"), "UTC", YESTERDAY)
ID = ObjectId(77)

PURGE = {DELETE: "true", CONFIRM_PURGE: "acme"}
GOING: dict[str, Any] = {"deletion_policy": "Purge"}


def task(task_id: ObjectId = ID, **fields: Any) -> Versioned[Task]:
    defaults: dict[str, Any] = {"kind": "gc", "realm": "acme", "due": next_time(weekly_schedule("acme"), "UTC", NOW)}
    return Versioned(task_id, Task(**(defaults | fields)), token="1", created=YESTERDAY)


WAITING = task()


def ended(state: TaskState, *, kind: str = "gc", **fields: Any) -> Versioned[Task]:
    return task(kind=kind, state=state, finished=YESTERDAY, **fields)


def realm(manifest: RealmManifest | None = None, **fields: Any) -> Realm:
    """A realm of mine as the manifest says, unless a field says otherwise."""
    defaults: dict[str, Any] = {
        "id": RealmId("acme"),
        "key": RealmKey(1),
        "state": RealmState.ACTIVE,
        "manager": ME,
        "created": YESTERDAY,
        "acted": {} if manifest is None else {APPLIED: manifest.spec.digest()},
    }
    spec: dict[str, Any] = {} if manifest is None else dict(manifest.spec.fields())
    return Realm(**(defaults | spec | fields))


def plan(manifest: RealmManifest, seen: Realm | None, *tasks: Versioned[Task], hold_until: int | None = None) -> list[Action]:
    held = None if hold_until is None else Micros(hold_until)
    return plan_realm(manifest, ObservedRealm(realm=seen, me=ME, hold_until=held, tasks=TaskHistory(tasks)), NOW)


def kinds(actions: list[Action]) -> list[str]:
    return [f"{type(action).__name__} {getattr(action, 'reason', '')}".strip() for action in actions]


# Beginning


def test_absent_realm_is_created_and_bootstrapped(make_realm: MakeRealm) -> None:
    manifest = make_realm()

    assert plan(manifest, None) == [CreateRealm(RealmFields(**manifest.spec.fields(), manager=ME)), BootstrapRealm()]


@pytest.mark.parametrize("state", [RealmState.CREATED, RealmState.INITIALIZING])
def test_interrupted_bootstrap_goes_on(make_realm: MakeRealm, state: RealmState) -> None:
    assert plan(make_realm(), realm(state=state)) == [BootstrapRealm()]


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (RealmState.LOADING, ["WaitUntil Loading"]),
        (RealmState.PURGING, ["SubmitTask", "WaitUntil Purging"]),
        (RealmState.PURGED, ["WaitUntil Purged"]),
    ],
)
def test_realm_that_cannot_be_served_now_waits(make_realm: MakeRealm, state: RealmState, wanted: list[str]) -> None:
    assert kinds(plan(make_realm(), realm(state=state))) == wanted


def test_fresh_realm_gets_its_digest_and_its_first_collection(make_realm: MakeRealm) -> None:
    manifest = make_realm()

    assert plan(manifest, realm()) == [UpdateRealm(RealmFields(), manifest.spec.digest()), SubmitTask("gc", DUE)]


def test_realm_that_is_as_it_should_be_needs_nothing(make_realm: MakeRealm) -> None:
    manifest = make_realm()

    assert plan(manifest, realm(manifest), WAITING) == []


# Drift


@pytest.mark.parametrize(
    ("wished", "state", "to"),
    [("Active", RealmState.INACTIVE, RealmState.ACTIVE), ("Inactive", RealmState.ACTIVE, RealmState.INACTIVE)],
)
def test_realm_is_moved_to_its_wished_state(make_realm: MakeRealm, wished: str, state: RealmState, to: RealmState) -> None:
    manifest = make_realm(state=wished)

    assert MoveRealm(to) in plan(manifest, realm(manifest, state=state))


def test_drifted_field_is_corrected(make_realm: MakeRealm) -> None:
    manifest = make_realm(properties={"team": "lake"})

    [update] = plan(manifest, realm(manifest, properties={}), WAITING)

    assert update == UpdateRealm(RealmFields(properties={"team": "lake"}), manifest.spec.digest())


def test_drift_is_only_reported_where_the_manifest_says_so(make_realm: MakeRealm) -> None:
    manifest = make_realm(drift_policy="Report")

    [report] = plan(manifest, realm(manifest, properties={"a": "b"}, state=RealmState.INACTIVE))

    assert isinstance(report, ReportDrift)
    assert report.message.endswith('state is INACTIVE, not ACTIVE; properties is {"a":"b"}, not {}')


def test_drift_is_told_in_the_words_of_manifests(make_realm: MakeRealm) -> None:
    manifest = make_realm(drift_policy="Report")
    longer = HistoryRetention(content_age_seconds=7 * 86400)

    report, *_ = plan(manifest, realm(manifest, purge_hold_seconds=90.0, retention=longer))

    assert isinstance(report, ReportDrift)
    assert 'purgeHold is "1m30s", not null' in report.message
    assert '"contentAge":"7d"' in report.message


def test_changed_manifest_is_applied_even_where_drift_is_only_reported(make_realm: MakeRealm) -> None:
    before, after = make_realm(drift_policy="Report"), make_realm(drift_policy="Report", properties={"a": "b"})

    [update] = plan(after, realm(before), WAITING)

    assert update == UpdateRealm(RealmFields(properties={"a": "b"}), after.spec.digest())


# Managers


@pytest.mark.parametrize("manager", [OTHER, None])
def test_realm_of_another_manager_or_of_none_is_refused(make_realm: MakeRealm, manager: RealmManager | None) -> None:
    [refusal] = plan(make_realm(), realm(manager=manager))

    assert isinstance(refusal, RefuseManifest)
    assert refusal.message.endswith("annotate headwater.dev/adopt: acme to take it over")


@pytest.mark.parametrize("manager", [MADE_BEFORE, None])
def test_resource_that_was_made_again_takes_its_realm_back(make_realm: MakeRealm, manager: RealmManager | None) -> None:
    acted = {} if manager else without_manager(realm(manager=MADE_BEFORE)).get("acted", {})

    assert plan(make_realm(), realm(manager=manager, acted=acted)) == [AdoptRealm(ME)]


def test_uid_that_was_succeeded_does_not_come_back_by_itself(make_realm: MakeRealm) -> None:
    taken = realm(**with_manager(realm(manager=ME), MADE_BEFORE))

    [refusal] = plan(make_realm(), taken)

    assert isinstance(refusal, RefuseManifest)
    assert "which took it over from this one; annotate headwater.dev/adopt: acme" in refusal.message
    assert kinds(plan(make_realm({ADOPT: "acme"}), taken)) == ["AdoptRealm"]


@pytest.mark.parametrize("state", [state for state in RealmState if state not in (RealmState.ACTIVE, RealmState.INACTIVE)])
def test_realm_is_adopted_only_if_whole_and_staying(make_realm: MakeRealm, state: RealmState) -> None:
    [refusal] = plan(make_realm({ADOPT: "acme"}), realm(manager=OTHER, state=state))

    assert isinstance(refusal, RefuseManifest)
    assert refusal.message.startswith(f"realm acme is managed by there/default/acme/2 and {state}: it is ")


def test_realm_that_is_being_loaded_is_taken_back_afterwards(make_realm: MakeRealm) -> None:
    assert kinds(plan(make_realm(), realm(manager=MADE_BEFORE, state=RealmState.LOADING))) == ["WaitUntil Loading"]


def test_adoption_is_recorded_with_the_manager(make_realm: MakeRealm) -> None:
    assert plan(make_realm({ADOPT: "acme"}), realm(manager=OTHER)) == [AdoptRealm(ME, adopt_record(ME), "acme")]


@pytest.mark.parametrize(
    ("annotations", "acted", "wanted"),
    [
        ({ADOPT: "other"}, {}, ["RefuseManifest ManagedByAnother"]),
        ({ADOPT: "acme"}, {adopt_record(ME): "acme"}, ["RefuseManifest ManagedByAnother"]),
        ({}, {adopt_record(ME): "acme"}, ["RecordHandled", "RefuseManifest ManagedByAnother"]),
        ({DELETE: "true"}, {}, []),
    ],
)
def test_adoption_acts_once_for_each_request(
    make_realm: MakeRealm, annotations: dict[str, str], acted: dict[str, str], wanted: list[str]
) -> None:
    assert kinds(plan(make_realm(annotations), realm(manager=OTHER, acted=acted))) == wanted


# Maintenance


def test_next_collection_is_due_after_the_last_one(make_realm: MakeRealm) -> None:
    manifest = make_realm(maintenance=MaintenanceSchedule(schedule="0 * * * *"))

    [submit] = plan(manifest, realm(manifest, created=Micros(0)), ended(TaskState.SUCCEEDED))

    assert submit == SubmitTask("gc", next_time("0 * * * *", "UTC", YESTERDAY))


@pytest.mark.parametrize(
    "waiting",
    [
        task(due=YESTERDAY),
        task(due=NOW),
        task(due=Micros(NOW + 5), failures=1),
        task(state=TaskState.RUNNING, due=YESTERDAY),
    ],
)
def test_collection_that_is_due_or_runs_is_left_alone(make_realm: MakeRealm, waiting: Versioned[Task]) -> None:
    manifest = make_realm()

    assert plan(manifest, realm(manifest), waiting) == []


def test_changed_schedule_moves_the_waiting_collection(make_realm: MakeRealm) -> None:
    manifest = make_realm(maintenance=MaintenanceSchedule(schedule="0 3 * * 0", time_zone="Europe/Berlin"))

    assert plan(manifest, realm(manifest), WAITING) == [
        CancelTask(ID, "gc"),
        SubmitTask("gc", next_time("0 3 * * 0", "Europe/Berlin", NOW)),
    ]


def test_schedule_taken_up_again_skips_what_was_suspended(make_realm: MakeRealm) -> None:
    suspended, manifest = make_realm(maintenance=MaintenanceSchedule(suspend=True)), make_realm()

    *_, submit = plan(manifest, realm(suspended, created=Micros(0)))

    assert submit == SubmitTask("gc", WAITING.value.due)


def test_suspending_takes_the_waiting_collection_back(make_realm: MakeRealm) -> None:
    manifest = make_realm(maintenance=MaintenanceSchedule(suspend=True))

    assert plan(manifest, realm(manifest), WAITING) == [CancelTask(ID, "gc")]
    assert plan(manifest, realm(manifest), task(due=NOW)) == []
    assert plan(manifest, realm(manifest)) == []


@pytest.mark.parametrize(
    ("tasks", "step"),
    [
        ((), SubmitTask("gc", NOW)),
        ((WAITING,), RunTaskNow(ID, "gc")),
        ((task(due=YESTERDAY),), None),
        ((ended(TaskState.FAILED),), SubmitTask("gc", NOW)),
    ],
)
def test_collection_that_is_asked_for_runs_now_and_once(
    make_realm: MakeRealm, tasks: tuple[Versioned[Task], ...], step: Action | None
) -> None:
    manifest = make_realm({RUN_NOW: "gc"})
    record = RecordHandled(RUN_NOW, "gc")

    assert plan(manifest, realm(manifest), *tasks) == ([record] if step is None else [step, record])


@pytest.mark.parametrize(
    ("asked", "acted", "record"),
    [("gc", "gc", []), ("gc:2", "gc", [RecordHandled(RUN_NOW, "gc:2")]), (None, "gc", [RecordHandled(RUN_NOW, None)])],
)
def test_annotation_acts_again_when_changed_or_removed(
    make_realm: MakeRealm, asked: str | None, acted: str, record: list[Action]
) -> None:
    manifest = make_realm({} if asked is None else {RUN_NOW: asked})
    seen = realm(manifest)

    steps = plan(manifest, msgspec.structs.replace(seen, acted=seen.acted | {RUN_NOW: acted}), WAITING)

    assert [step for step in steps if isinstance(step, RecordHandled)] == record


def test_dead_collection_is_reported_and_not_asked_for_again(make_realm: MakeRealm) -> None:
    manifest = make_realm()

    [report] = plan(
        manifest,
        realm(manifest),
        ended(TaskState.FAILED, failures=5, attempts=(TaskAttempt(number=5, error="disk full\nat line 3"),)),
    )

    assert isinstance(report, ReportDrift)
    assert report.message == (
        f"task {id_text(ID)} (gc) failed 5 times and is not tried again: disk full; "
        f"once the cause is gone, run `headwater task retry {id_text(ID)}`"
    )


def test_inactive_realm_is_not_collected(make_realm: MakeRealm) -> None:
    manifest = make_realm({RUN_NOW: "gc"}, state="Inactive")

    assert plan(manifest, realm(manifest, state=RealmState.INACTIVE), WAITING) == [CancelTask(ID, "gc")]


# Going

TO_INACTIVE, TO_PURGING = MoveRealm(RealmState.INACTIVE), MoveRealm(RealmState.PURGING)
ASK = SubmitTask("purge", NOW)


@pytest.mark.parametrize(
    ("annotations", "spec", "wanted"),
    [
        ({DELETE: "true"}, {}, [DetachRealm()]),
        ({DELETE: "true"}, {"state": "Inactive"}, [MoveRealm(RealmState.INACTIVE), DetachRealm()]),
        ({DELETE: "true"}, {"state": "Inactive", "drift_policy": "Report"}, [DetachRealm()]),
        (PURGE, GOING, [TO_INACTIVE]),
    ],
)
def test_deleting_an_active_realm_follows_its_policy(
    make_realm: MakeRealm, annotations: dict[str, str], spec: dict[str, Any], wanted: list[Action]
) -> None:
    manifest = make_realm(annotations, **spec)

    assert plan(manifest, realm(manifest)) == wanted


@pytest.mark.parametrize("annotations", [{DELETE: "true"}, {DELETE: "true", CONFIRM_PURGE: "other"}])
def test_unconfirmed_purge_waits_and_names_the_annotation(make_realm: MakeRealm, annotations: dict[str, str]) -> None:
    [wait] = plan(make_realm(annotations, **GOING), realm())

    assert isinstance(wait, WaitUntil)
    assert "annotate headwater.dev/confirm-purge: acme" in wait.message


def test_confirmation_of_something_else_is_named(make_realm: MakeRealm) -> None:
    [wait] = plan(make_realm({DELETE: "true", CONFIRM_PURGE: "other"}, **GOING), realm())

    assert isinstance(wait, WaitUntil)
    assert "confirm-purge: acme, and not other, to have" in wait.message


@pytest.mark.parametrize("policy", ["Retain", "Purge"])
def test_protected_realm_is_not_deleted(make_realm: MakeRealm, policy: str) -> None:
    manifest = make_realm(PURGE, deletion_policy=policy, deletion_protection=True)

    assert kinds(plan(manifest, realm(manifest))) == ["RefuseManifest DeletionProtected"]


def test_purge_waits_for_the_hold_and_stops_other_work(make_realm: MakeRealm) -> None:
    manifest = make_realm(PURGE, **GOING)
    import_ = task(ObjectId(78), kind="import", subject="lake/initial", state=TaskState.RUNNING)

    *cancelled, wait = plan(manifest, realm(manifest, state=RealmState.INACTIVE), WAITING, import_, hold_until=NOW + 1)

    assert cancelled == [CancelTask(ID, "gc"), CancelTask(ObjectId(78), "import", "lake/initial")]
    assert isinstance(wait, WaitUntil)
    assert (wait.reason, wait.until) == ("PurgeHold", NOW + 1)


def test_changed_hold_counts_before_it_is_waited_for(make_realm: MakeRealm) -> None:
    manifest = make_realm(PURGE, **GOING, purge_hold_seconds=5.0)

    steps = plan(manifest, realm(state=RealmState.INACTIVE), hold_until=NOW + DAY)

    assert steps == [UpdateRealm(RealmFields(deletion_policy="Purge", purge_hold_seconds=5.0), "")]


@pytest.mark.parametrize(
    ("state", "hold_until", "wanted"),
    [
        (RealmState.INACTIVE, NOW, [TO_PURGING, ASK]),
        (RealmState.CREATED, None, [TO_PURGING, ASK]),
        (RealmState.INITIALIZING, None, [TO_PURGING, ASK]),
        (RealmState.LOADING, None, [TO_PURGING, ASK]),
        (RealmState.PURGED, None, [RemoveRealm()]),
    ],
)
def test_purge_goes_on_from_every_state(
    make_realm: MakeRealm, state: RealmState, hold_until: int | None, wanted: list[Action]
) -> None:
    manifest = make_realm(PURGE, **GOING)

    assert plan(manifest, realm(manifest, state=state), hold_until=hold_until) == wanted


@pytest.mark.parametrize(
    ("tasks", "wanted"),
    [
        ((), ["SubmitTask", "WaitUntil Purging"]),
        ((task(kind="purge"),), ["WaitUntil Purging"]),
        ((ended(TaskState.FAILED, kind="purge"),), ["ReportDrift TaskDeadLettered", "WaitUntil Purging"]),
        ((ended(TaskState.CANCELLED, kind="purge"),), ["ReportDrift TaskCancelled", "WaitUntil Purging"]),
        ((ended(TaskState.SUCCEEDED, kind="purge"),), ["SubmitTask", "WaitUntil Purging"]),
    ],
)
def test_purging_realm_has_one_purge_task_until_that_is_dead(
    make_realm: MakeRealm, tasks: tuple[Versioned[Task], ...], wanted: list[str]
) -> None:
    assert kinds(plan(make_realm(PURGE, **GOING), realm(state=RealmState.PURGING), *tasks)) == wanted


def test_purge_can_be_called_off_only_before_it_begins(make_realm: MakeRealm) -> None:
    manifest = make_realm(PURGE)

    assert plan(manifest, realm(state=RealmState.INACTIVE)) == [MoveRealm(RealmState.ACTIVE), DetachRealm()]
    assert kinds(plan(manifest, realm(state=RealmState.PURGING))) == ["SubmitTask", "WaitUntil Purging"]


def test_deleted_realm_that_is_gone_needs_nothing(make_realm: MakeRealm) -> None:
    assert plan(make_realm(PURGE, **GOING), None) == []
