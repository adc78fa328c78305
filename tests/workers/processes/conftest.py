"""Real worker processes on a SQLite store, with leases short enough to wait for."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes import Worker, wait_for

from free_ports import free_port
from headwater.settings import Settings
from headwater.store import Store, open_store
from headwater.tasks import TaskQueue

REDIS_SERVER = shutil.which("redis-server")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Settings of the workers. One row or table at a time, so that there is a middle to be hit."""
    ours = {
        "STORE": f"sqlite:///{tmp_path}/store.db",
        "TASK_LEASE": "3s",
        "TASK_HEARTBEAT": "500ms",
        "TASK_BACKOFF": "1s",
        "DISPATCH": "200ms",
        "UNSAFE_SHORT_GRACES": "true",
        "WRITER_GRACE": "2s",
        "READER_GRACE": "2s",
        "PURGE_HOLD": "1s",
        "DELETE_BATCH": "1",
        "IMPORT_BATCH": "1",
        "SPARK_MASTER": "off",
    }
    others = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    return others | {f"HEADWATER_{name}": value for name, value in ours.items()}


@pytest.fixture
def settings(environment: dict[str, str]) -> Settings:
    return Settings.from_environment(environment)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with open_store(settings.store, settings=settings) as opened:
        yield opened


@pytest.fixture
def tasks(store: Store) -> TaskQueue:
    return TaskQueue(store)


@pytest.fixture
def start_worker(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """``start_worker(BROKER=...)`` runs `headwater worker` with these settings changed, and arguments; all end with the test."""
    started: list[Worker] = []

    def start(*arguments: str, **changes: str) -> Worker:
        log = tmp_path / f"worker-{len(started)}.log"
        changed = environment | {f"HEADWATER_{name}": value for name, value in changes.items()}
        open_store(changed["HEADWATER_STORE"]).close()  # which a worker does not make
        with log.open("wb") as output:
            command = [sys.executable, "-m", "headwater", "worker", *arguments]
            process = subprocess.Popen(command, env=changed, stderr=output, stdout=output, start_new_session=True)
        worker = Worker(process, log)
        started.append(worker)
        wait_for(lambda: "worker started" in worker.said, why=lambda: worker.said)
        return worker

    yield start
    for worker in started:
        worker.signal(signal.SIGCONT)
        worker.signal(signal.SIGKILL)
        worker.process.wait()


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A Redis of this test's own, on a port of the loopback."""
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not on the PATH: install it, for example by `apt-get install redis-server`")
    port = free_port()
    command = [REDIS_SERVER, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        while "Ready to accept connections" not in (line := server.stdout.readline()):
            assert line, "redis-server did not start"
        yield f"redis://127.0.0.1:{port}/0"
        server.kill()
