"""Committers as processes that are killed, stopped and started again."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from committer_programs import environment_of, running_program, wait_for
from crowded_table import CrowdedTable

from headwater.errors import UnavailableError
from headwater.files import open_file_references, wait_for_outcomes
from headwater.settings import Settings
from headwater.store import Store, open_store
from headwater_workers.celery_app import broker_of
from headwater_workers.file_queue import QueuedRequestSender, RequestQueue, open_request_queue
from servers.postgresql import PostgresqlServer

pytestmark = pytest.mark.long

KILLS = 60 if os.environ.get("HEADWATER_SOAK") == "1" else 4
JOBS = 40


class QueuedStore:
    """A store that processes share, with a broker, and the sending end of its queue."""

    def __init__(self, url: str, broker: str, folder: Path) -> None:
        self.environment = environment_of(url, broker)
        self.folder = folder
        settings = Settings.from_environment(self.environment)
        self.store: Store = open_store(url, settings=settings)
        self.queue: RequestQueue = open_request_queue(
            broker_of(settings, folder / "broker" if broker == "embedded" and url.startswith("postgresql") else None)
        )
        self.sender = QueuedRequestSender(self.queue)

    def faults(self, table: CrowdedTable) -> list[str]:
        return table.faults(open_file_references(self.store, table.scope))

    def await_outcomes(self, table: CrowdedTable, seconds: float = 60) -> None:
        references = open_file_references(self.store, table.scope)
        waited = wait_for_outcomes(references, table.scope, table.jobs, sender=self.sender, timeout_seconds=seconds)
        assert (waited.open, waited.set_aside) == ((), {}), self.queue.figures()

    def close(self) -> None:
        self.queue.close()
        self.store.close()


OpenStore = Callable[[str, str], QueuedStore]


@pytest.fixture
def open_queued(tmp_path: Path) -> Iterator[OpenStore]:
    opened: list[QueuedStore] = []

    def open_one(url: str, broker: str) -> QueuedStore:
        opened.append(QueuedStore(url, broker, tmp_path))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def queued(open_queued: OpenStore, tmp_path: Path) -> QueuedStore:
    return open_queued(f"sqlite:///{tmp_path}/store.db", "embedded")


def kill_again_and_again(queued: QueuedStore) -> None:
    """Send jobs of three tables, each twice, while the committers are killed and started again; then look at everything."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - shown with a failure
    chance = random.Random(seed)
    tables = [CrowdedTable.create(queued.store, table=name, leaves=JOBS) for name in "abc"]
    messages = [(table, job) for table in tables for job in table.jobs] * 2
    chance.shuffle(messages)
    is_over = threading.Event()

    def send() -> None:
        while messages and not is_over.wait(0.01):
            table, job = messages.pop()
            queued.sender.send_requests(table.scope, [job])

    sending = threading.Thread(target=send)
    sending.start()
    try:
        for _ in range(KILLS):
            with running_program(queued.environment, queued.folder) as program:
                time.sleep(chance.random() * 0.6)
                program.kill()
        with running_program(queued.environment, queued.folder):
            sending.join()
            for table in tables:
                queued.await_outcomes(table)
            wait_for(lambda: not queued.queue.has_requests(), why=queued.queue.figures)
    finally:
        is_over.set()
        sending.join()
    assert [queued.faults(table) for table in tables] == [[], [], []]
    assert queued.queue.list_set_aside() == []


def test_jobs_of_killed_committers_are_applied_once(queued: QueuedStore) -> None:
    kill_again_and_again(queued)


def test_jobs_of_killed_committers_are_applied_once_over_redis(
    open_queued: OpenStore, redis_url: str, postgresql_url: str
) -> None:
    kill_again_and_again(open_queued(postgresql_url, redis_url))


def test_jobs_survive_a_database_that_is_killed(open_queued: OpenStore, redis_url: str) -> None:
    with PostgresqlServer() as server:
        queued = open_queued(server.url("lake"), redis_url)
        tables = [CrowdedTable.create(queued.store, table=name, leaves=JOBS) for name in "ab"]
        with running_program(queued.environment, queued.folder):
            for number in range(JOBS):
                for table in tables:
                    queued.sender.send_requests(table.scope, [table.job(number)])
                if number % 15 == 7:
                    server.kill()
                    time.sleep(random.random() * 0.3)
                    server.restart()
            for table in tables:
                queued.await_outcomes(table)
        assert [queued.faults(table) for table in tables] == [[], []]
        queued.close()


def test_term_lets_held_batches_end(queued: QueuedStore) -> None:
    tables = [CrowdedTable.create(queued.store, table=name, leaves=JOBS) for name in "abc"]
    with running_program(queued.environment, queued.folder, lease_seconds=60) as program:
        for table in tables:
            queued.sender.send_requests(table.scope, table.jobs)
        wait_for(lambda: "batch of requests" in program.said)
        code = program.stop()
        figures = queued.queue.figures()

        assert (code, figures.held) == (0, {})
        assert "drained=True" in program.said


def test_worker_starts_committers_and_replaces_killed_ones(queued: QueuedStore) -> None:
    first, second = (CrowdedTable.create(queued.store, table=name) for name in "ab")
    with running_program(queued.environment, queued.folder, "worker", "--concurrency", "1") as worker:
        assert committers_of(worker.process.pid) == []
        queued.sender.send_requests(first.scope, first.jobs)
        queued.await_outcomes(first)
        wait_for(lambda: not queued.queue.has_requests())
        committers_of(worker.process.pid)[0].kill()
        queued.sender.send_requests(second.scope, second.jobs)
        queued.await_outcomes(second)
        [committer] = committers_of(worker.process.pid)
        worker.stop()

        wait_for(lambda: not psutil.pid_exists(committer.pid))
    assert (queued.faults(first), queued.faults(second)) == ([], [])


def test_committers_of_a_worker_that_was_killed_end(queued: QueuedStore) -> None:
    table = CrowdedTable.create(queued.store)
    with running_program(queued.environment, queued.folder, "worker", "--concurrency", "1") as worker:
        queued.sender.send_requests(table.scope, table.jobs)
        queued.await_outcomes(table)
        [committer] = committers_of(worker.process.pid)
        worker.process.kill()
        worker.process.wait()

        wait_for(lambda: not psutil.pid_exists(committer.pid))


def test_sender_says_that_the_broker_is_away(open_queued: OpenStore, tmp_path: Path) -> None:
    queued = open_queued(f"sqlite:///{tmp_path}/store.db", "redis://user:geheim@127.0.0.1:1/0")
    table = CrowdedTable.create(queued.store)

    with pytest.raises(UnavailableError, match=r"the broker redis://\*\*\*@127\.0\.0\.1:1/0 does not do") as refused:
        queued.sender.send_requests(table.scope, table.jobs)
    assert "geheim" not in str(refused.value)


def committers_of(worker: int) -> list[psutil.Process]:
    children = psutil.Process(worker).children(recursive=True)
    return [child for child in children if "file-committer" in child.cmdline()]
