"""The life of a task on the databases that are servers, each in a few calls; the embedded ones are asked everything elsewhere."""

from __future__ import annotations

import pytest

from backend_fixtures import STORES
from fake_clock import FakeClock
from headwater.tasks import AttemptEnd, FollowUpTask, LeaseWatch, TaskQueue, TaskState


@pytest.fixture(params=["postgresql", "mongodb"])
def store_url(request: pytest.FixtureRequest) -> str:
    return STORES[request.param](request)


def test_task_is_lost_put_off_failed_retried_and_done(tasks: TaskQueue, watch: LeaseWatch, clock: FakeClock) -> None:
    task_id = tasks.submit_task("gc", realm="acme", max_attempts=2).id
    assert tasks.submit_task("gc", realm="acme").id == task_id
    assert tasks.claim_task(task_id, "worker-1") is not None
    tasks.find_claimable(watch)
    clock.advance(61)
    for end in ("put off", "fail"):
        claim = tasks.claim_task(task_id, "worker-2", watch)
        assert claim is not None
        claim.put_off("the realm sleeps") if end == "put off" else claim.fail_task("no luck")
        clock.advance(60)
    assert tasks.read_figures().dead_letters == {"gc": 1}
    tasks.retry_task(task_id)
    last = tasks.claim_task(task_id, "worker-3")
    assert last is not None
    last.finish_task({"done": 1}, FollowUpTask(kind="purge", realm="acme"))

    task = tasks.read_task(task_id).value
    assert [attempt.outcome for attempt in task.attempts] == [
        AttemptEnd.LOST,
        AttemptEnd.PUT_OFF,
        AttemptEnd.FAILED,
        AttemptEnd.SUCCEEDED,
    ]
    assert [one.value.after for one in tasks.list_tasks(state=TaskState.WAITING, realm="acme")] == [task_id]


def test_tasks_are_asked_for_and_counted(tasks: TaskQueue, clock: FakeClock) -> None:
    old = tasks.submit_task("import", realm="acme", subject="lake").id
    clock.advance(100)
    tasks.submit_task("import", realm="acme", subject="pond")
    tasks.cancel_task(old)

    assert [one.id for one in tasks.list_tasks(subject="lake", before=clock.now())] == [old]
    assert [one.value.subject for one in tasks.list_tasks(since=clock.now())] == ["pond"]
    assert tasks.read_figures().active == {("import", TaskState.WAITING): 1}
