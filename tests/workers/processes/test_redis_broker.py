"""A real Redis as broker."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from celery import Celery
from processes import Worker, ended, in_the_middle, wait_for
from work import Collection, Import

from headwater.settings import Settings
from headwater.store import SYSTEM_REALM, Store, open_store
from headwater.tasks import AttemptEnd, TaskQueue, TaskState
from headwater_workers.celery_app import LookMessages, broker_of, make_app
from headwater_workers.dispatcher import Dispatcher

pytestmark = pytest.mark.long
CHILDREN = 2


def test_tasks_are_done_by_way_of_a_redis(
    store: Store, tasks: TaskQueue, start_worker: Callable[..., Worker], redis_url: str, tmp_path: Path
) -> None:
    work = Import.prepare(store, tmp_path)
    worker = start_worker(BROKER=redis_url)

    assert ended(tasks, work.task).state is TaskState.SUCCEEDED
    work.check(store)
    assert not list(tmp_path.glob("*-broker"))
    worker.process.terminate()
    assert worker.process.wait(30) == 0


def test_killed_workers_task_is_done_by_another_over_redis(
    store: Store, tasks: TaskQueue, start_worker: Callable[..., Worker], redis_url: str, tmp_path: Path
) -> None:
    work = Collection.prepare(store, tmp_path)
    first = start_worker(BROKER=redis_url)
    in_the_middle(tasks, work.task)
    first.signal(signal.SIGKILL)
    start_worker(BROKER=redis_url)

    assert [attempt.outcome for attempt in ended(tasks, work.task).attempts] == [AttemptEnd.LOST, AttemptEnd.SUCCEEDED]
    work.check(store)


def test_worker_waits_out_a_redis_that_refuses_commands(
    store: Store, tasks: TaskQueue, start_worker: Callable[..., Worker], redis_url: str
) -> None:
    """As while another server takes over: READONLY and UNBLOCKED, MASTERDOWN, NOAUTH."""
    url = urlsplit(redis_url)
    admin = redis.Redis(host=str(url.hostname), port=int(url.port or 0))
    worker = start_worker("--concurrency", "1", BROKER=redis_url)
    ended(tasks, tasks.submit_task("gc", realm=SYSTEM_REALM, subject="before").id)
    for refuse, recover in (
        (["REPLICAOF 127.0.0.1 1"], ["REPLICAOF NO ONE"]),
        (["CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"], ["REPLICAOF NO ONE"]),
        (["CONFIG SET requirepass secret", "AUTH secret", "CLIENT KILL TYPE normal SKIPME yes"], ["CONFIG SET requirepass ''"]),
    ):
        said = len(worker.said)
        for command in refuse:
            admin.execute_command(*command.split())
        task = tasks.submit_task("gc", realm=SYSTEM_REALM, subject=refuse[0]).id
        wait_for(lambda said=said: "the due tasks could not be looked at" in worker.said[said:], why=lambda: worker.said)  # type: ignore[misc]
        for command in recover:
            admin.execute_command(*command.replace("''", "").split(" "))
        ended(tasks, task)
        assert worker.process.poll() is None, worker.said


def test_1500_waiting_tasks_are_a_few_messages(redis_url: str) -> None:
    """Two dispatchers fill one Redis, round after round, while somebody takes a message now and then."""
    settings = Settings(store="sqlite:///unused.db", broker=redis_url)
    app = make_app(settings, broker_of(settings))
    messages, most = LookMessages(app), 0
    with open_store("memory://") as store:
        tasks = TaskQueue(store)
        for number in range(1500):
            tasks.submit_task("gc", realm=f"realm-{number}")
        two = [Dispatcher(store, messages, children=CHILDREN, kinds={"gc"}) for _ in range(2)]
        for turn in range(30):
            for dispatcher in two:
                dispatcher.step()
            most = max(most, messages.count_waiting())
            for _ in range(turn % 3):
                take_message(app)

    assert CHILDREN < most <= 4 * 2 * CHILDREN


def take_message(app: Celery) -> None:
    with app.connection_or_acquire() as connection, connection.SimpleQueue(app.conf.task_default_queue) as queue:
        queue.get(timeout=10).ack()
