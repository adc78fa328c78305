"""When a resource is looked at again, and when one that is being deleted may go."""

from __future__ import annotations

import pytest
from bodies import NOW, OK, catalog, later, realm, task

from headwater.errors import RefusedError
from headwater.reconcile import ReconcileOutcome, WaitUntil
from headwater.reconcile.actions import RefuseManifest
from headwater.store import RealmId
from headwater.tasks import TaskState
from headwater_operator.resource.store_pass import Belonging, may_go
from headwater_operator.runtime.workqueue import RequeuePace, seconds_until_next_look

PACE = RequeuePace(resync_seconds=300, crowd=10)


def test_resting_resource_is_looked_at_at_the_resync() -> None:
    assert seconds_until_next_look(OK, [], now=NOW, pace=PACE) == 300


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 270), (1.0, 330)])
def test_resyncs_are_jittered_by_a_tenth(chance: float, seconds: float) -> None:
    assert seconds_until_next_look(OK, [], now=NOW, pace=RequeuePace(300, 10, chance)) == pytest.approx(seconds)


def test_timed_wait_is_looked_at_right_after_it() -> None:
    waiting = ReconcileOutcome(subject="it", waits=(WaitUntil("PurgeHold", "held", later(60)),))

    assert seconds_until_next_look(waiting, [], now=NOW, pace=PACE) == 61


def test_task_that_comes_due_is_looked_at_right_after_that() -> None:
    assert seconds_until_next_look(OK, [task(due=later(30))], now=NOW, pace=PACE) == 31


@pytest.mark.parametrize("state", [TaskState.WAITING, TaskState.RUNNING])
def test_task_that_is_due_is_looked_at_every_few_seconds(state: TaskState) -> None:
    busy = task(state=state, due=NOW, started=NOW if state is TaskState.RUNNING else None)

    assert seconds_until_next_look(OK, [busy], now=NOW, pace=PACE) == 5


def test_task_that_lasts_is_looked_at_less_and_less_often() -> None:
    lasting = task(state=TaskState.RUNNING, due=later(-2000), started=later(-1000))

    assert seconds_until_next_look(OK, [lasting], now=NOW, pace=PACE) == 100


def test_many_resources_with_work_share_a_bounded_number_of_looks() -> None:
    assert seconds_until_next_look(OK, [task(due=NOW)], now=NOW, pace=RequeuePace(300, crowd=4000)) == 40


def test_resync_is_the_latest_look() -> None:
    old = task(state=TaskState.RUNNING, due=later(-90_000), started=later(-90_000))

    assert seconds_until_next_look(OK, [old], now=NOW, pace=PACE) == 300


REALM = realm()
LASTING = Belonging(REALM, RealmId("acme"))
ALONE = Belonging(None, RealmId("acme"))
GOING = Belonging(realm(deletionTimestamp="2026-05-28T20:26:40Z"), RealmId("acme"))


def refused(reason: str) -> ReconcileOutcome:
    return ReconcileOutcome(subject="it", refused=(RefuseManifest(reason, ""),))


def waits(reason: str) -> ReconcileOutcome:
    return ReconcileOutcome(subject="it", waits=(WaitUntil(reason, ""),))


@pytest.mark.parametrize(
    ("outcome", "belonging", "policy", "goes"),
    [
        (OK, LASTING, "Purge", True),
        (refused("RealmManagedByAnother"), LASTING, "Retain", True),
        (refused("RealmManagedByAnother"), LASTING, "Purge", False),
        (refused("DeletionProtected"), ALONE, "Retain", False),
        (waits("RealmNotActive"), LASTING, "Retain", False),
        (waits("RealmNotActive"), ALONE, "Retain", True),
        (waits("RealmNotActive"), GOING, "Retain", True),
        (waits("RealmNotActive"), ALONE, "Purge", False),
        (RefusedError("no"), LASTING, "Retain", False),
        (ReconcileOutcome(subject="it", error=RefusedError("no")), ALONE, "Retain", False),
    ],
)
def test_catalog_goes_when_nothing_is_left_to_do(
    outcome: ReconcileOutcome | Exception, belonging: Belonging, policy: str, goes: bool
) -> None:
    deleted = catalog(deletionTimestamp="2026-05-28T20:26:40Z", spec={"deletionPolicy": policy})

    assert may_go(deleted, outcome, belonging) is goes


@pytest.mark.parametrize(
    ("outcome", "goes"),
    [(OK, True), (waits("PurgeHold"), False), (refused("ManagedByAnother"), True), (refused("DeletionProtected"), False)],
)
def test_realm_goes_when_nothing_is_left_to_do(outcome: ReconcileOutcome, goes: bool) -> None:
    assert may_go(realm(deletionTimestamp="2026-05-28T20:26:40Z"), outcome) is goes
