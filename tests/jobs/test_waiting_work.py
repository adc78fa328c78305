"""What users asked for in a realm that sleeps: it waits, and is done once the realm is ACTIVE again."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from fake_clock import FakeClock
from headwater.catalogs import Catalogs, ImportSpec
from headwater.jobs import IMPORT, run_import
from headwater.jobs.task_runs import list_runs
from headwater.realms import RealmRegistry, RealmState
from headwater.store import ObjectId, Store
from headwater.tasks import AttemptEnd, LeaseExpiry, Task, TaskLease, TaskQueue, TaskState
from headwater_workers.task_executor import execute_task
from lakes import HandmadeSurvey, make_realm, rows_of

SPEC = ImportSpec(name="initial", locations=("s3://lake/",))


@pytest.fixture
def asked(store: Store) -> ObjectId:
    """An import that was asked for in a realm that is INACTIVE by now."""
    realm = make_realm(store)
    lake = Catalogs(rows_of(store)).create_catalog("lake", base_location="s3://lake/", imports=(SPEC,))
    arguments = {"catalog": "lake", "catalogId": lake.id, "import": SPEC.name, "digest": SPEC.digest()}
    RealmRegistry(store).move_realm(realm, RealmState.INACTIVE)
    return TaskQueue(store).submit_task(IMPORT, realm="acme", realm_key=realm.key, arguments=arguments).id


def import_nothing(store: Store, claim: TaskLease) -> dict[str, Any]:
    return run_import(store, claim, survey=HandmadeSurvey(lambda scope, progress: []))


def work(store: Store, task_id: ObjectId) -> Task:
    with capture_logs():
        execute_task(store, task_id, LeaseExpiry(None), owner="here", is_stopping=lambda: False, kinds={IMPORT: import_nothing})
    return TaskQueue(store).read_task(task_id).value


def test_import_waits_for_a_realm_that_sleeps(store: Store, asked: ObjectId) -> None:
    task = work(store, asked)

    assert (task.state, task.failures, task.attempts[-1].outcome) == (TaskState.WAITING, 0, AttemptEnd.PUT_OFF)
    assert "realm 'acme' is INACTIVE" in task.error
    assert list_runs(store) == []


def test_import_is_done_once_its_realm_is_awake(store: Store, asked: ObjectId, clock: FakeClock) -> None:
    work(store, asked)
    RealmRegistry(store).move_realm(RealmRegistry(store).read_realm("acme"), RealmState.ACTIVE)
    clock.advance(60)

    assert work(store, asked).state is TaskState.SUCCEEDED


def test_import_of_a_realm_that_goes_is_given_up(store: Store, asked: ObjectId, clock: FakeClock) -> None:
    clock.advance(86_400)
    RealmRegistry(store).move_realm(RealmRegistry(store).read_realm("acme"), RealmState.PURGING)

    assert work(store, asked).state is TaskState.FAILED
