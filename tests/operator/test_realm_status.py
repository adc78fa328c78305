"""The status of a Realm: what it says in each situation, and that it says it once."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import HOUR, NOW_TEXT, OK, condition, ended, later, realm, realm_seen, task

from headwater.clock import as_text
from headwater.errors import (
    CommitTimeoutError,
    ConflictError,
    CorruptionError,
    HeadwaterError,
    RefusedError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.realms import RealmState
from headwater.reconcile import (
    ManifestError,
    PlanPreview,
    RealmDescription,
    ReconcileOutcome,
    RefuseManifest,
    ReportDrift,
    WaitUntil,
)
from headwater.reconcile.manifests import ManifestFault
from headwater.tasks import TaskState
from headwater_operator.resource.conditions import UNSEEN, SecretSeen, UnreadState
from headwater_operator.resource.resource_status import PlanMade, asked_plan, is_written, realm_status
from headwater_operator.runtime.informer_cache import CachedResource

ACTIVE = realm_seen()
SECRET = SecretSeen("acme-root-credentials", True)
FOREIGN = RefuseManifest("ManagedByAnother", "realm acme is managed by there/team/acme")
PURGE = {"spec": {"deletionPolicy": "Purge"}, "deletionTimestamp": NOW_TEXT}
HOLD = WaitUntil("PurgeHold", "realm acme is INACTIVE and held before its purge", later(3600))


def status(
    resource: CachedResource | None = None,
    outcome: ReconcileOutcome | Exception = OK,
    seen: RealmDescription | UnreadState | None = ACTIVE,
    **others: Any,
) -> dict[str, Any]:
    return realm_status(resource or realm(), outcome, seen, **{"now": later(0), "secret": SECRET} | others)


def wait(reason: str) -> ReconcileOutcome:
    return ReconcileOutcome(subject="it", waits=(WaitUntil(reason, "it waits"),))


def failed(error: HeadwaterError) -> ReconcileOutcome:
    return ReconcileOutcome(subject="it", error=error)


def after(former: dict[str, Any], **others: Any) -> CachedResource:
    return realm(status=former, **others)


# All is well


def test_realm_as_declared_is_ready_and_has_nothing_to_say() -> None:
    shown = status()

    assert [(one["type"], one["status"], one["reason"]) for one in shown["conditions"]] == [
        ("Ready", "True", "Reconciled"),
        ("Accepted", "True", "Accepted"),
        ("StoreReachable", "True", "StoreAnswered"),
        ("MaintenanceHealthy", "True", "AsScheduled"),
        ("CredentialsAvailable", "True", "SecretPresent"),
        ("Drifted", "False", "Reconciled"),
    ]
    assert (shown["message"], shown["state"], shown["observedGeneration"]) == ("", "ACTIVE", 1)


def test_status_shows_whose_rows_they_are_and_how_many() -> None:
    shown = status(realm(name="blue", spec={"realmId": "acme"}))

    assert (shown["realmId"], shown["realmKey"], shown["catalogs"], shown["tables"]) == ("acme", "024850f600111000", 1, 7)
    assert shown["credentialsSecret"] == "acme-root-credentials"


def test_realm_without_an_id_has_that_of_its_resource() -> None:
    assert status(CachedResource.from_body({"kind": "Realm", "metadata": {"name": "blue"}}))["realmId"] == "blue"


def test_wait_for_ready_ends_for_a_realm_to_be_inactive() -> None:
    shown = status(realm(spec={"state": "Inactive"}), seen=realm_seen(state=RealmState.INACTIVE, tasks=()))

    assert condition(shown, "Ready") == ("True", "Reconciled")
    assert condition(shown, "MaintenanceHealthy") == ("True", "NothingScheduled")


def test_every_condition_is_about_the_generation_that_was_looked_at() -> None:
    assert {one["observedGeneration"] for one in status(realm(generation=7))["conditions"]} == {7}


def test_status_does_not_change_when_nothing_happened() -> None:
    first = status()

    assert status(after(first), now=later(240)) == first
    assert is_written(after(first), first)


# Not as declared


@pytest.mark.parametrize("state", [RealmState.CREATED, RealmState.INITIALIZING, RealmState.INACTIVE])
def test_realm_on_its_way_is_not_ready(state: RealmState) -> None:
    shown = status(seen=realm_seen(state=state))

    assert condition(shown, "Ready") == ("False", "Progressing")
    assert shown["message"] == f"realm acme is {state}, and not yet ACTIVE"


def test_realm_that_is_not_there_has_no_state() -> None:
    shown = status(seen=None)

    assert condition(shown, "Ready") == ("False", "Progressing")
    assert "state" not in shown
    assert shown["tasks"] == []


@pytest.mark.parametrize("reason", ["Loading", "Purging", "Purged"])
def test_wait_stands_in_ready(reason: str) -> None:
    shown = status(outcome=wait(reason))

    assert condition(shown, "Ready") == ("False", reason)
    assert shown["message"] == "it waits"


def test_refusal_comes_before_a_wait() -> None:
    both = ReconcileOutcome(
        subject="it",
        waits=(WaitUntil("Loading", "it waits"),),
        refused=(RefuseManifest("DeletionProtected", "it is protected"),),
    )

    assert condition(status(outcome=both), "Ready") == ("False", "DeletionProtected")


def test_realm_of_another_manager_is_not_shown() -> None:
    shown = status(after(status()), ReconcileOutcome(subject="it", refused=(FOREIGN,)))

    assert condition(shown, "Accepted") == ("False", "ManagedByAnother")
    assert condition(shown, "Ready") == ("False", "ManagedByAnother")
    assert shown["message"] == FOREIGN.message
    assert shown.keys() == {"observedGeneration", "specDigest", "realmId", "message", "conditions"}
    assert {one["type"] for one in shown["conditions"]} == {"Ready", "Stalled", "Accepted", "StoreReachable"}


def test_manifest_with_faults_is_not_accepted() -> None:
    faults = ManifestError([ManifestFault("", 0, "spec.purgeHold", "is too short"), ManifestFault("", 0, "", "is odd")])

    shown = status(outcome=faults, seen=UNSEEN)

    assert condition(shown, "Accepted") == ("False", "SpecInvalid")
    assert condition(shown, "Ready") == ("False", "SpecInvalid")
    assert shown["message"] == "is odd; spec.purgeHold: is too short"


def test_drift_only_reported_leaves_a_realm_ready() -> None:
    drifted = ReconcileOutcome(subject="it", reports=(ReportDrift("Drifted", "properties is {}"),))

    shown = status(outcome=drifted)

    assert condition(shown, "Drifted") == ("True", "DriftReported")
    assert condition(shown, "Ready") == ("True", "DriftReported")
    assert shown["message"] == "properties is {}"


def test_drift_only_reported_is_not_ready_in_another_state() -> None:
    drifted = ReconcileOutcome(subject="it", reports=(ReportDrift("Drifted", "state is INACTIVE"),))

    shown = status(outcome=drifted, seen=realm_seen(state=RealmState.INACTIVE))

    assert condition(shown, "Ready") == ("False", "DriftReported")


# Errors


@pytest.mark.parametrize("outcome", [failed(UnavailableError("no route")), UnavailableError("no route"), OK])
def test_store_that_does_not_answer_leaves_what_was_seen_last(outcome: ReconcileOutcome | Exception) -> None:
    first = status(seen=realm_seen(last_collection=ended(), last_success=later(-60)))

    shown = status(after(first), outcome, UNSEEN, now=later(60), secret=UNSEEN)

    assert condition(shown, "StoreReachable") == ("False", "StoreUnavailable")
    assert condition(shown, "Ready") == ("Unknown", "StoreUnavailable")
    changed = {"conditions", "message"}
    assert {name: value for name, value in shown.items() if name not in changed} == {
        name: value for name, value in first.items() if name not in changed
    }
    for kept in ("MaintenanceHealthy", "CredentialsAvailable", "Drifted", "Accepted"):
        assert condition(shown, kept) == condition(first, kept)


def test_store_that_never_answered_leaves_acceptance_open() -> None:
    shown = status(outcome=UnavailableError("no route"), seen=UNSEEN, secret=UNSEEN)

    assert condition(shown, "Accepted") == ("Unknown", "StoreUnavailable")
    assert {one["type"] for one in shown["conditions"]} == {"Ready", "Reconciling", "Accepted", "StoreReachable"}


def test_store_that_refuses_everybody_is_no_fault_of_the_resource() -> None:
    shown = status(outcome=RefusedError("the password is wrong"), seen=UNSEEN, secret=UNSEEN)

    assert condition(shown, "StoreReachable") == ("False", "StoreUnavailable")
    assert condition(shown, "Accepted") == ("Unknown", "StoreUnavailable")
    assert "the password is wrong" in shown["message"]


def test_spec_is_not_accepted_while_the_store_is_away() -> None:
    shown = status(after(status(), generation=2), UnavailableError("no route"), UNSEEN)

    assert condition(shown, "Accepted") == ("Unknown", "StoreUnavailable")


@pytest.mark.parametrize(
    ("error", "standing"),
    [
        (UnavailableError("POST /api: no answer"), ("False", "Unavailable")),
        (CommitTimeoutError("others were always faster"), ("False", "Unavailable")),
        (UnknownOutcomeError("the answer was lost"), ("Unknown", "OutcomeUnknown")),
        (RefusedError("overlaps with catalog b"), ("False", "Refused")),
        (ConflictError("other credentials"), ("False", "Conflict")),
        (CorruptionError("holds no credentials"), ("False", "Unreadable")),
        (HeadwaterError("of no kind"), ("Unknown", "InternalError")),
    ],
)
def test_error_in_a_step_is_told_although_the_store_answers(error: HeadwaterError, standing: tuple[str, str]) -> None:
    shown = status(outcome=failed(error))

    assert condition(shown, "Ready") == standing
    assert condition(shown, "StoreReachable") == ("True", "StoreAnswered")
    assert shown["message"] == str(error)


def test_refusal_for_good_is_not_accepted() -> None:
    assert condition(status(outcome=failed(RefusedError("no"))), "Accepted") == ("False", "Refused")


def test_bug_is_told_by_its_kind_alone() -> None:
    shown = status(outcome=ValueError("password=hunter2"), seen=UNSEEN)

    assert condition(shown, "Ready") == ("Unknown", "InternalError")
    assert "hunter2" not in str(shown)
    assert "ValueError" in shown["message"]


def test_long_message_is_cut_for_a_glance() -> None:
    shown = status(outcome=failed(RefusedError("It is refused, and this is why.\n" * 100)))

    assert len(shown["message"]) <= 256
    assert max(len(one["message"]) for one in shown["conditions"]) <= 1024


# Deletion


def test_purge_that_nobody_confirmed_is_waited_for() -> None:
    shown = status(realm(**PURGE), wait("PurgeUnconfirmed"))

    for type_, standing in (("Ready", "False"), ("Deleting", "True"), ("Purging", "False")):
        assert condition(shown, type_) == (standing, "PurgeUnconfirmed")
    assert (shown["message"], shown["state"]) == ("it waits", "ACTIVE")


def test_end_of_the_hold_is_told() -> None:
    seen = realm_seen(state=RealmState.INACTIVE, tasks=(), hold_until=later(3600))

    shown = status(realm(**PURGE), ReconcileOutcome(subject="it", waits=(HOLD,)), seen)

    assert condition(shown, "Purging") == ("False", "PurgeHold")
    assert shown["purge"] == {"holdUntil": as_text(later(3600))}
    assert shown["message"].endswith(f"(until {as_text(later(3600))})")


def test_hold_is_shown_only_where_a_purge_is_to_come() -> None:
    inactive = realm_seen(state=RealmState.INACTIVE, hold_until=later(3600))

    assert "purge" not in status(realm(spec={"state": "Inactive"}), seen=inactive)
    assert "purge" not in status(realm(deletionTimestamp=NOW_TEXT), seen=inactive)


def test_purge_counts() -> None:
    purge = task(kind="purge", state=TaskState.RUNNING, attempt=1, due=later(-5), done=600, total=1000, unit="rows")
    seen = realm_seen(state=RealmState.PURGING, tasks=(purge,), purge=purge, catalogs=None, tables=None)

    shown = status(realm(**PURGE), wait("Purging"), seen)

    assert condition(shown, "Purging") == ("True", "Purging")
    assert shown["purge"] == {"rowsDeleted": 600, "rowsRemaining": 400}
    assert "tables" not in shown


@pytest.mark.parametrize("total", [None, 0, 100])
def test_remains_of_a_purge_are_left_out_where_unknown(total: int | None) -> None:
    purge = task(kind="purge", state=TaskState.RUNNING, attempt=1, due=later(-5), done=600, total=total, unit="rows")

    shown = status(realm(**PURGE), wait("Purging"), realm_seen(state=RealmState.PURGING, tasks=(purge,), purge=purge))

    assert shown["purge"] == {"rowsDeleted": 600}


def test_purge_that_has_ended_leaves_nothing() -> None:
    purge = ended(kind="purge", outcome={"rowsDeleted": 1200})

    shown = status(realm(**PURGE), seen=realm_seen(state=RealmState.PURGED, tasks=(), purge=purge))

    assert condition(shown, "Purging") == ("True", "Purged")
    assert shown["purge"] == {"rowsDeleted": 1200, "rowsRemaining": 0}


@pytest.mark.parametrize(("state", "reason"), [(TaskState.FAILED, "TaskDeadLettered"), (TaskState.CANCELLED, "TaskCancelled")])
def test_end_waits_for_a_purge_that_nobody_carries_out(state: TaskState, reason: str) -> None:
    purge = ended(state, kind="purge", failures=5, error="disk full")
    seen = realm_seen(state=RealmState.PURGING, tasks=(), purge=purge)
    stuck = ReconcileOutcome(
        subject="it", waits=(WaitUntil("Purging", "it is emptied"),), reports=(ReportDrift(reason, "it is stuck"),)
    )

    shown = status(realm(**PURGE), stuck, seen)

    assert condition(shown, "Deleting") == ("True", reason)
    assert condition(shown, "Ready") == ("False", reason)
    assert condition(shown, "MaintenanceHealthy") == ("False", reason)
    assert shown["message"] == "it is stuck"


def test_deletion_under_retain_does_not_speak_of_purging() -> None:
    shown = status(realm(deletionTimestamp=NOW_TEXT))

    assert condition(shown, "Purging") == ("", "")
    assert condition(shown, "Deleting") == ("True", "Progressing")


def test_purge_keeps_its_condition_while_the_store_is_away() -> None:
    seen = realm_seen(state=RealmState.PURGING, tasks=())
    first = status(realm(**PURGE), wait("Purging"), seen)

    shown = status(after(first, **PURGE), UnavailableError("no route"), UNSEEN)

    assert condition(shown, "Purging") == ("True", "Purging")
    assert condition(shown, "Deleting") == ("True", "StoreUnavailable")


# Maintenance


def test_last_and_the_next_collection_are_told() -> None:
    last = ended(outcome={"deleted": 12, "deletedBytes": 3456})

    shown = status(seen=realm_seen(last_collection=last, last_success=last.finished))

    assert shown["maintenance"] == {
        "suspended": False,
        "lastTime": as_text(later(-60)),
        "lastResult": "Succeeded",
        "lastSuccessTime": as_text(later(-60)),
        "nextTime": as_text(later(86_400)),
        "lastTask": last.id,
        "objectsDeleted": 12,
        "bytesReclaimed": 3456,
    }


def test_last_success_is_remembered_over_a_failure() -> None:
    first = status(seen=realm_seen(last_collection=ended(), last_success=later(-60)))
    last = ended(TaskState.FAILED, failures=5, error="boom")

    shown = status(after(first), seen=realm_seen(last_collection=last, tasks=(), next_collection=None))

    assert shown["maintenance"] == {
        "suspended": False,
        "lastTime": as_text(later(-60)),
        "lastResult": "Failed",
        "lastTask": last.id,
        "lastSuccessTime": as_text(later(-60)),
    }


def test_record_of_a_collection_outlives_its_task() -> None:
    first = status(seen=realm_seen(last_collection=ended(outcome={"deleted": 1}), last_success=later(-60)))

    assert status(after(first), seen=realm_seen(last_collection=None))["maintenance"] == first["maintenance"]


def test_later_realm_of_the_same_id_inherits_no_record() -> None:
    first = status(seen=realm_seen(last_collection=ended(), last_success=later(-60)))

    shown = status(after(first), seen=realm_seen(key=77))

    assert shown["maintenance"] == {"suspended": False, "nextTime": as_text(later(86_400))}


def test_collection_that_runs_is_not_the_next_one() -> None:
    running = task(state=TaskState.RUNNING, attempt=1, due=later(-10))

    shown = status(seen=realm_seen(tasks=(running,), next_collection=running.due))

    assert "nextTime" not in shown["maintenance"]


@pytest.mark.parametrize(
    ("tasks", "reason"),
    [
        ((task(due=later(-299)),), "AsScheduled"),
        ((task(due=later(-300)),), "TaskOverdue"),
        ((task(due=later(-3000), since=later(-9), attempt=1),), "AsScheduled"),
        ((task(kind="import", subject="lake/initial", due=later(-3000)),), "AsScheduled"),
        ((task(due=later(5), failures=2, error="boom\nmore"),), "TaskRetrying"),
        ((task(state=TaskState.RUNNING, due=later(-3000), attempt=1),), "AsScheduled"),
        ((task(state=TaskState.RUNNING, due=later(-3000), attempt=2, failures=1),), "TaskRetrying"),
        ((task(state=TaskState.RUNNING, due=later(-86_400), attempt=1),), "CollectionOverdue"),
        ((task(due=later(-300), failures=1), task(kind="purge", due=later(9), failures=1)), "TaskOverdue"),
    ],
)
def test_maintenance_is_as_healthy_as_its_tasks(tasks: tuple[Any, ...], reason: str) -> None:
    standing = "True" if reason == "AsScheduled" else "False"

    assert condition(status(seen=realm_seen(tasks=tasks)), "MaintenanceHealthy") == (standing, reason)


def test_task_that_nobody_takes_is_told_in_steady_words() -> None:
    seen = realm_seen(tasks=(task(due=later(-HOUR // 1_000_000)),))

    first = status(seen=seen)

    assert first["message"] == f"task 024850f60011101e (gc) is due since {as_text(later(-3600))}, and no worker took it"
    assert status(after(first), seen=seen, now=later(600)) == first


def test_dead_letter_says_what_to_do() -> None:
    dead = ended(TaskState.FAILED, failures=5, error="disk full\nmore")

    shown = status(seen=realm_seen(tasks=(), last_collection=dead, next_collection=None))

    assert condition(shown, "MaintenanceHealthy") == ("False", "TaskDeadLettered")
    assert shown["message"] == (
        "task 024850f60011101e (gc) failed 5 times and is not tried again: disk full; "
        "once the cause is gone, run `headwater task retry 024850f60011101e`"
    )


@pytest.mark.parametrize(
    "seen",
    [
        realm_seen(last_collection=ended(TaskState.FAILED, failures=5)),
        realm_seen(last_collection=ended(TaskState.CANCELLED), tasks=()),
        realm_seen(last_collection=ended(TaskState.FAILED, failures=5), tasks=(), state=RealmState.INACTIVE),
    ],
)
def test_collection_with_or_without_a_successor_is_no_dead_letter(seen: RealmDescription) -> None:
    assert condition(status(seen=seen), "MaintenanceHealthy")[0] == "True"


@pytest.mark.parametrize("last", [None, ended(TaskState.FAILED, failures=5)])
def test_suspended_maintenance_is_healthy(last: Any) -> None:
    shown = status(seen=realm_seen(is_suspended=True, tasks=(), next_collection=None, last_collection=last))

    assert condition(shown, "MaintenanceHealthy") == ("True", "Suspended")
    assert (shown["message"], shown["maintenance"]["suspended"]) == ("", True)


# Tasks


def test_tasks_that_run_come_first_and_ten_are_shown() -> None:
    waiting = [task(id=f"{number:016x}", due=later(number)) for number in range(20)]
    running = task(
        kind="import",
        subject="lake/initial",
        state=TaskState.RUNNING,
        attempt=2,
        started=later(-5),
        due=later(-9),
        done=3,
        total=9,
        unit="tables",
    )

    shown = status(seen=realm_seen(tasks=(*reversed(waiting), running)))["tasks"]

    assert shown[0] == {
        "id": running.id,
        "kind": "import",
        "subject": "lake/initial",
        "state": "RUNNING",
        "attempt": 2,
        "due": as_text(later(-9)),
        "started": as_text(later(-5)),
        "done": 3,
        "total": 9,
        "unit": "tables",
    }
    assert [one["id"] for one in shown[1:]] == [f"{number:016x}" for number in range(9)]


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"is_stopping": True, "state": TaskState.RUNNING}, "is being stopped"),
        ({"failures": 1, "error": "boom\nmore"}, "boom more"),
        ({"due": later(-300)}, f"due since {as_text(later(-300))}, and no worker took it"),
    ],
)
def test_task_says_what_is_the_matter_with_it(others: dict[str, Any], message: str) -> None:
    (shown,) = status(seen=realm_seen(tasks=(task(**others),)))["tasks"]

    assert shown["message"] == message


# Credentials


def test_secret_that_is_gone_leaves_the_realm_ready() -> None:
    shown = status(after(status()), secret=SecretSeen("acme-root-credentials", False))

    assert condition(shown, "CredentialsAvailable") == ("False", "SecretMissing")
    assert condition(shown, "Ready") == ("True", "Reconciled")
    assert "headwater.dev/rotate-credentials" in shown["message"]
    assert "credentialsSecret" not in shown


def test_secret_that_was_not_looked_for_is_as_before() -> None:
    first = status()

    assert status(after(first), secret=UNSEEN) == first


def test_rotation_that_waits_is_told() -> None:
    waiting = ReconcileOutcome(subject="it", reports=(ReportDrift("RotationWaits", "rotated once it is ACTIVE"),))

    shown = status(realm(spec={"state": "Inactive"}), waiting, realm_seen(state=RealmState.INACTIVE))

    assert condition(shown, "CredentialsAvailable") == ("True", "RotationWaits")


@pytest.mark.parametrize("state", [RealmState.CREATED, RealmState.INITIALIZING, RealmState.PURGING])
def test_credentials_are_not_mentioned_outside_of_a_realms_life(state: RealmState) -> None:
    assert condition(status(seen=realm_seen(state=state)), "CredentialsAvailable") == ("", "")


# Plans


def asking(token: str, **others: Any) -> CachedResource:
    return realm(annotations={"headwater.dev/plan": f'{{"token": "{token}"}}'}, **others)


def test_plan_is_asked_for_until_it_is_made() -> None:
    preview = PlanPreview(steps=("create realm acme",), waits=(HOLD,), refused=(FOREIGN,))
    assert asked_plan(realm()) is None
    assert asked_plan(asking("t1")) == "t1"

    made = status(asking("t1"), plan=PlanMade("t1", preview))

    assert made["plan"] == {
        "token": "t1",
        "steps": ["create realm acme"],
        "waits": [f"PurgeHold: {HOLD.message} (until {as_text(later(3600))})"],
        "refused": [f"ManagedByAnother: {FOREIGN.message}"],
        "reports": [],
        "time": NOW_TEXT,
    }
    assert asked_plan(asking("t1", status=made)) is None
    assert asked_plan(asking("t2", status=made)) == "t2"


def test_plan_stays_as_long_as_it_is_asked_for() -> None:
    made = status(asking("t1"), plan=PlanMade("t1", PlanPreview()))

    assert status(asking("t1", status=made), now=later(60)) == made
    assert status(asking("t1", status=made), plan=PlanMade("t1", PlanPreview()), now=later(60)) == made
    assert "plan" not in status(asking("t2", status=made))
    assert "plan" not in status(after(made))


def test_plan_is_made_for_any_other_text_too() -> None:
    odd = [asked_plan(realm(annotations={"headwater.dev/plan": text})) for text in ("now", "[]", '{"token": 7}')]

    assert len(set(odd)) == 3
    assert None not in odd


def test_plan_that_nobody_asked_for_is_not_shown() -> None:
    assert "plan" not in status(plan=PlanMade("t1", PlanPreview()))


# Writing


def test_condition_of_somebody_else_is_no_reason_to_write() -> None:
    shown = status()
    others = {**shown, "conditions": [*shown["conditions"], {"type": "Audited", "status": "True"}], "note": "theirs"}

    assert is_written(after(others), shown)


@pytest.mark.parametrize("name", ["state", "conditions", "tasks", "maintenance", "message"])
def test_field_missing_or_changed_is_a_reason_to_write(name: str) -> None:
    shown = status()

    assert not is_written(after({key: value for key, value in shown.items() if key != name}), shown)


def test_field_to_be_gone_is_a_reason_to_write() -> None:
    shown = status()

    assert not is_written(after({**shown, "purge": {"rowsDeleted": 1}}), shown)
