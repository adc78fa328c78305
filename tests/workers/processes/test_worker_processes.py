"""What a worker does besides its work: limits, logs, its end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Worker, ended, wait_for
from work import Collection, Import

from free_ports import free_port
from headwater.store import Store
from headwater.tasks import TaskQueue, TaskState

pytestmark = pytest.mark.long


def test_task_that_runs_too_long_is_stopped_and_tried_again(
    store: Store, tasks: TaskQueue, start_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    work = Collection.prepare(store, tmp_path)
    start_worker(TASK_TIME_LIMIT="1s")

    wait_for(lambda: tasks.read_task(work.task).value.failures > 0, why=lambda: tasks.read_task(work.task))
    assert tasks.read_task(work.task).value.attempts[0].error == "it ran longer than the time limit of 1s"


def test_lines_of_a_log_carry_task_realm_and_catalog(
    store: Store, tasks: TaskQueue, start_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    work = Import.prepare(store, tmp_path)
    worker = start_worker(LOG_FORMAT="json", IMPORT_BATCH="100")
    assert ended(tasks, work.task).state is TaskState.SUCCEEDED
    wait_for(lambda: "task finished" in worker.said)

    lines = [json.loads(line) for line in worker.said.splitlines() if line.startswith("{")]
    (finished,) = [line for line in lines if line["event"] == "task finished"]
    assert (finished["kind"], finished["realm"], finished["catalog"]) == ("import", "acme", "lake")
    assert int(finished["task"], 16) == work.task
    assert finished["imported"] > 0


@pytest.mark.usefixtures("store")
def test_worker_ends_when_the_process_that_started_it_is_gone(environment: dict[str, str], tmp_path: Path) -> None:
    starter = (
        "import os, subprocess, sys; print(subprocess.Popen(sys.argv[1:] + [str(os.getpid())], stderr=open('log', 'w')).pid)"
    )
    command = [sys.executable, "-c", starter, sys.executable, "-m", "headwater", "worker", "--parent"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)

    wait_for(lambda: "worker stopped" in (tmp_path / "log").read_text(), why=(tmp_path / "log").read_text)
    wait_for(lambda: not Path(f"/proc/{done.stdout.split()[0]}").exists())


def test_store_in_memory_can_have_no_worker(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "headwater", "--store", "memory://", "worker"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 5
    assert "memory:// lives in one process" in done.stderr


def test_worker_that_cannot_reach_its_broker_ends_when_asked(start_worker: Callable[..., Worker]) -> None:
    worker = start_worker(BROKER=f"redis://127.0.0.1:{free_port()}/0")
    wait_for(lambda: "Connection refused" in worker.said, why=lambda: worker.said)
    worker.process.terminate()

    assert worker.process.wait(30) == 0
    assert "bug" not in worker.said
