"""Committers as processes: with leases that are short enough to wait for, killed and stopped by tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["CommitterProgram", "environment_of", "running_program", "wait_for"]

SERVE = """
import os, sys
from pathlib import Path
from headwater.files import open_file_references
from headwater.settings import Settings
from headwater_workers.celery_app import broker_of, configure_worker_logs
from headwater_workers.file_queue import serve_committers
settings = Settings.from_environment()
folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None
configure_worker_logs(settings)
sys.exit(serve_committers(settings, broker_of(settings, folder), open_file_references, lease_seconds=float(sys.argv[1])))
"""


class CommitterProgram:
    """A process and what it said."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)

    @property
    def said(self) -> str:
        return self.log.read_text()

    def await_words(self, words: str) -> None:
        wait_for(lambda: words in self.said or self.process.poll() is not None, why=lambda: self.said)
        assert words in self.said, self.said

    def kill(self) -> None:
        """End it and all that it started, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def environment_of(store: str, broker: str = "embedded", **others: str) -> dict[str, str]:
    ours = {"STORE": store, "BROKER": broker, **others}
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    return own | {f"HEADWATER_{name}": value for name, value in ours.items()}


@contextmanager
def running_program(
    environment: dict[str, str], folder: Path, *arguments: str, lease_seconds: float = 1.0
) -> Iterator[CommitterProgram]:
    """Committers, or `headwater` with arguments; killed at the end."""
    command = (
        [sys.executable, "-m", "headwater", *arguments] if arguments else [sys.executable, "-c", SERVE, str(lease_seconds)]
    )
    program = CommitterProgram(command, environment, folder / f"log-{time.monotonic_ns()}")
    try:
        program.await_words("started")
        yield program
    finally:
        program.kill()


def wait_for(condition: Callable[[], bool], *, seconds: float = 60, why: Callable[[], object] = lambda: "") -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, why()
        time.sleep(0.02)
