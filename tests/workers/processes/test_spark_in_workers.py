"""Spark in a worker's child: its JVM is no longer there than the child."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from processes import Worker, ended, wait_for
from work import Import

from headwater.store import Store
from headwater.tasks import AttemptEnd, TaskQueue

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not on the PATH: install a JRE 17"),
]


@pytest.mark.rare(3)
def test_killed_childs_jvm_ends_and_another_imports(
    store: Store, tasks: TaskQueue, start_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    work = Import.prepare(store, tmp_path)
    start_worker(SPARK_MASTER="local[1]", SPARK_FROM_TABLES="1", IMPORT_BATCH="100")
    wait_for(lambda: tasks.read_task(work.task).value.owner != "")
    child = psutil.Process(int(tasks.read_task(work.task).value.owner.rpartition(":")[2]))
    wait_for(lambda: bool(_jvms(child)))
    jvms = _jvms(child)
    os.kill(child.pid, signal.SIGKILL)

    _, alive = psutil.wait_procs(jvms, timeout=30)
    assert alive == []
    assert [attempt.outcome for attempt in ended(tasks, work.task).attempts] == [AttemptEnd.LOST, AttemptEnd.SUCCEEDED]
    work.check(store)


def _jvms(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children(recursive=True) if _name(child) == "java"]


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""  # the launcher of a JVM is gone once the JVM runs
