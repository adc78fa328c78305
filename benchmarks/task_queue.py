"""Tasks that wait: what a look of a dispatcher at them costs, and how many messages they become."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.places import Place
from benchmarks.report import Row, at_most, say
from benchmarks.timing import median

from headwater.commits import commit_change
from headwater.settings import Settings
from headwater.store import Store, open_store
from headwater.tasks import LeaseWatch, TaskQueue
from headwater.tasks.task import Task
from headwater.tasks.task_index import REFERENCE, add_task
from headwater_workers.celery_app import LookMessages, broker_of, make_app
from headwater_workers.dispatcher import Dispatcher

__all__ = ["looks", "messages"]

KIND, CHILDREN, DISPATCHERS = "gc", 2, 2
_ADDED_AT_ONCE = 250


class FullBroker:
    """A broker without room: a look sends nothing."""

    def send(self, task_id: object, token: str | None) -> None:
        raise AssertionError("there is no room")

    def count_waiting(self) -> int:
        return 1_000_000


def looks(place: Place, size: int, rounds: int) -> Iterator[Row]:
    """The processor time of one look of a worker, which is made every second, and of a read of all due tasks beside it."""
    say(f"{place.name}: looks at {size:,} due tasks")
    with open_store(place.url(f"tasks_{size}")) as store:
        _add_due_tasks(store, size)
        dispatcher = Dispatcher(store, FullBroker(), children=CHILDREN, kinds={KIND})
        dispatcher.step()
        look = median([_cpu_ms(dispatcher.step) for _ in range(10 * rounds)])
        queue, watch = TaskQueue(store), LeaseWatch(store.clock, 60)
        whole = median([_cpu_ms(lambda: queue.find_claimable(watch)) for _ in range(rounds)])
        yield Row(f"look at {size:,} due tasks, processor time", place.name, look, "ms", None, at_most(10))
        yield Row(f"all of {size:,} due tasks, processor time", place.name, whole, "ms")


def messages(folder: Path, size: int) -> Iterator[Row]:
    """The most messages that two workers' dispatchers keep in a real Redis from which nobody takes any."""
    with ExitStack() as closing:
        url = closing.enter_context(_redis_server(folder))
        if url is None:
            say("redis-server is missing: messages are not counted")
            return
        settings = Settings(store=f"sqlite:///{folder}/unused.db", broker=url)
        broker = LookMessages(make_app(settings, broker_of(settings)))
        store = closing.enter_context(open_store("memory://"))
        _add_due_tasks(store, size)
        dispatchers = [Dispatcher(store, broker, children=CHILDREN, kinds={KIND}) for _ in range(DISPATCHERS)]
        most = 0
        for _ in range(20):
            for dispatcher in dispatchers:
                dispatcher.step()
                most = max(most, broker.count_waiting())
        children = DISPATCHERS * CHILDREN
        case = f"messages in Redis, {size:,} waiting tasks, {DISPATCHERS} workers of {CHILDREN} children"
        yield Row(case, "redis", most, "messages", None, at_most(4 * children))


def _add_due_tasks(store: Store, size: int) -> None:
    store.system.ensure_reference(REFERENCE)
    now = store.clock.now()
    for first in range(0, size, _ADDED_AT_ONCE):
        numbers = range(first, min(first + _ADDED_AT_ONCE, size))
        tasks = [Task(kind=KIND, realm=f"realm-{number}", created=now, due=now) for number in numbers]
        commit_change(store.system, REFERENCE, lambda tx, tasks=tasks: [add_task(tx, task) for task in tasks])  # type: ignore[misc]


def _cpu_ms(step: Callable[[], object]) -> float:
    before = time.process_time()
    step()
    return 1000 * (time.process_time() - before)


@contextmanager
def _redis_server(folder: Path) -> Iterator[str | None]:
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            _wait_for(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.kill()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise TimeoutError("redis-server did not start")
