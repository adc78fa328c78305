"""What tests do to processes: wait, kill, stop."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headwater.store import ObjectId
from headwater.tasks import Task, TaskQueue
from servers.process_pause import wait_until_stopped

__all__ = ["Worker", "ended", "in_the_middle", "stop_between_transactions", "wait_for"]


@dataclass(frozen=True)
class Worker:
    """A worker with all its processes, which are in one session."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text()

    def signal(self, number: signal.Signals) -> None:
        """To all of its processes."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return


def wait_for(condition: Callable[[], bool], *, seconds: float = 180, why: Callable[[], object] = lambda: "") -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, why()
        time.sleep(0.02)


def in_the_middle(tasks: TaskQueue, task_id: ObjectId) -> Task:
    """The task as soon as it has done a part of its work."""

    def is_there() -> bool:
        task = tasks.read_task(task_id).value
        assert task.is_active, f"too fast to be hit: {task}"
        return task.progress is not None and task.progress.done > 0

    wait_for(is_there, why=lambda: tasks.read_task(task_id).value)
    return tasks.read_task(task_id).value


def ended(tasks: TaskQueue, task_id: ObjectId) -> Task:
    """The task after its end."""
    wait_for(lambda: not tasks.read_task(task_id).value.is_active, why=lambda: tasks.read_task(task_id).value)
    return tasks.read_task(task_id).value


def stop_between_transactions(worker: Worker, database: Path) -> None:
    """SIGSTOP at a moment when the worker does not hold the one write lock that SQLite has: nobody else could work until it wakes."""
    while True:
        worker.signal(signal.SIGSTOP)
        wait_until_stopped(worker.process.pid)
        connection = sqlite3.connect(database, timeout=0.1)
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError:
            worker.signal(signal.SIGCONT)
            time.sleep(0.003)
        finally:
            connection.close()
