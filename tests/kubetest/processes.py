"""Processes that a test starts, asks, stops and kills: the operator, a worker, a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from free_ports import free_port
from kubetest.waits import wait_for
from servers.process_pause import wait_until_stopped

__all__ = ["Operator", "Process", "Worker", "clean_environment", "start_operator", "start_process", "start_worker"]

LINES_SHOWN = 150


@dataclass(frozen=True)
class Process:
    """A process with all its children, which are in one session. What it says goes into a file."""

    name: str
    popen: subprocess.Popen[str]
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        return self.popen.poll() is None

    def stop(self, *, seconds: float = 20) -> int:
        """Ask it to end, as Kubernetes does, and wait for that. Returns its exit code."""
        self.popen.terminate()
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {seconds:g} s of SIGTERM:\n{self.last_words()}") from None

    def kill(self) -> None:
        """End all of it at once, however it is at that moment."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGKILL)
        self.popen.wait()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)
        wait_until_stopped(self.pid)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def last_words(self) -> str:
        return "\n".join([f"--- {self.name} said:", *self.said.splitlines()[-LINES_SHOWN:], ""])

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            return


@dataclass(frozen=True)
class Operator(Process):
    port: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)

    def ready(self) -> bool:
        return self._status("/readyz") == 200

    def alive(self) -> bool:
        return self._status("/healthz") == 200

    def get(self, path: str) -> tuple[int, str]:
        """Status and text; (0, reason) where nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Of one metric, by labels."""
        status, text = self.get("/metrics")
        assert status == 200, f"/metrics answers {status}: {text}"
        families = text_string_to_metric_families(text)
        return [(sample.labels, sample.value) for family in families for sample in family.samples if sample.name == name]

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples with these labels, whatever others they have."""
        return sum(value for found, value in self.samples(name) if labels.items() <= found.items())

    def is_leader(self) -> bool:
        """Whether it says so; nobody who does not answer leads."""
        return bool(self.is_running and self.get("/metrics")[0] == 200 and self.metric("headwater_operator_leader"))

    def passes(self) -> float:
        """How often a resource was looked at."""
        return self.metric("headwater_operator_reconcile_total")

    def wait_until_ready(self, *, seconds: float = 120) -> Operator:
        wait_for(
            lambda: self.ready() or not self.is_running, seconds=seconds, why=lambda: (self.get("/readyz"), self.last_words())
        )
        assert self.is_running, f"the operator ended with exit code {self.popen.returncode}\n{self.last_words()}"
        return self

    def _status(self, path: str) -> int:
        return self.get(path)[0]


class Worker(Process):
    """A worker, with its children."""


def start_process(
    name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str], folder: Path | None = None
) -> subprocess.Popen[str]:
    with log.open("a", encoding="utf-8") as output:
        return subprocess.Popen(
            list(command), env=dict(environment), stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            text=True, cwd=folder, start_new_session=True,
        )  # fmt: skip


def start_operator(environment: Mapping[str, str], log: Path, *, name: str = "operator") -> Operator:
    """``headwater-operator run``; returns at once. A port is chosen where the environment names none."""
    changed = dict(environment)
    port = int(changed.setdefault("HEADWATER_OPERATOR_PORT", str(free_port())))
    program = str(Path(sys.executable).with_name("headwater-operator"))
    popen = start_process(name, [program, "run"], log=log, environment=changed)
    return Operator(name, popen, log, port, changed)


def start_worker(environment: Mapping[str, str], log: Path, *, name: str = "worker") -> Worker:
    """``headwater worker``; returns when it works."""
    command = [sys.executable, "-m", "headwater", "worker"]
    worker = Worker(name, start_process(name, command, log=log, environment=environment), log)
    wait_for(lambda: "worker started" in worker.said or not worker.is_running, seconds=60, why=worker.last_words)
    assert worker.is_running, worker.last_words()
    return worker


def clean_environment() -> dict[str, str]:
    """The environment of this process without anything that says which store or cluster is meant."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("HEADWATER_", "KUBE", "POD_"))}
