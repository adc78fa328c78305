"""One active task for each kind, realm and subject."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from fake_clock import FakeClock
from headwater.commits import read_head
from headwater.errors import NotFoundError, RefusedError
from headwater.store import ObjectId, Store
from headwater.tasks import TaskLease, TaskQueue, TaskState


def test_submitted_task_waits_and_is_due_now(tasks: TaskQueue, clock: FakeClock) -> None:
    submitted = tasks.submit_task("import", realm="acme", subject="lake", arguments={"catalog": "lake"})

    task = tasks.read_task(submitted.id).value
    assert submitted.created
    assert (task.state, task.due, task.arguments) == (TaskState.WAITING, clock.now(), {"catalog": "lake"})


def test_same_work_is_asked_for_once(tasks: TaskQueue, waiting: ObjectId) -> None:
    again = tasks.submit_task("gc", realm="acme")

    assert again.id == waiting
    assert not again.created


def test_asking_twice_makes_no_commit(tasks: TaskQueue, store: Store, waiting: ObjectId) -> None:
    before = read_head(store.system, "tasks", fresh=True)

    tasks.submit_task("gc", realm="acme")

    after = read_head(store.system, "tasks", fresh=True)
    assert before is not None
    assert after is not None
    assert after.id == before.id


@pytest.mark.parametrize("other", [("gc", "other", ""), ("purge", "acme", ""), ("gc", "acme", "lake")])
def test_other_work_is_another_task(tasks: TaskQueue, waiting: ObjectId, other: tuple[str, str, str]) -> None:
    kind, realm, subject = other

    assert tasks.submit_task(kind, realm=realm, subject=subject).created


def test_work_may_be_asked_for_again_after_its_task(tasks: TaskQueue, claim: TaskLease) -> None:
    claim.finish_task({})

    again = tasks.submit_task("gc", realm="acme")

    assert again.created
    assert again.id != claim.id


def test_many_who_ask_at_once_get_one_task(tasks: TaskQueue) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lambda _: tasks.submit_task("gc", realm="acme"), range(16)))

    assert len({submitted.id for submitted in asked}) == 1
    assert sum(submitted.created for submitted in asked) == 1


def test_active_task_is_found_by_its_kind_realm_and_subject(tasks: TaskQueue, waiting: ObjectId) -> None:
    assert tasks.active_tasks("gc", "acme") == tasks.read_task(waiting).value
    assert tasks.active_tasks("gc", "acme", "lake") is None


def test_store_without_tasks_has_none_active(tasks: TaskQueue) -> None:
    assert tasks.active_tasks("gc", "acme") is None
    assert tasks.list_tasks() == []


@pytest.mark.parametrize("arguments", [{"rows": {1, 2}}, {"at": b"x"}, {"of": {1: "x"}}, {"text": "x" * 20_000}])
def test_arguments_that_are_no_names_and_ids_are_refused(tasks: TaskQueue, arguments: dict[str, object]) -> None:
    with pytest.raises(RefusedError, match="arguments of gc of realm 'acme'"):
        tasks.submit_task("gc", realm="acme", arguments=arguments)


def test_unknown_task_is_missing(tasks: TaskQueue) -> None:
    with pytest.raises(NotFoundError, match="no task 000000000001e240"):
        tasks.read_task(ObjectId(123456))


def test_task_of_the_future_is_not_claimed(tasks: TaskQueue, clock: FakeClock) -> None:
    later = tasks.submit_task("gc", realm="acme", due=clock.now() + 5_000_000).id

    assert tasks.claim_task(later, "worker-1") is None

    clock.advance(5)
    assert tasks.claim_task(later, "worker-1") is not None
