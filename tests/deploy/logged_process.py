"""A process whose health, metrics and log are read."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS, STOP_SECONDS = 60.0, 60.0


@dataclass(frozen=True)
class LoggedProcess:
    """A process in a session of its own.

    paths         of standard output and standard error
    port          of its health and metrics
    """

    process: subprocess.Popen[bytes]
    paths: list[Path]
    port: int

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of an answer; status 0 where nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as fault:
            return 0, str(fault)

    def wait_until_ready(self) -> None:
        end = time.monotonic() + START_SECONDS
        while (answer := self.get("/readyz"))[0] != 200:
            assert self.process.poll() is None and time.monotonic() < end, (answer, self.said())
            time.sleep(0.1)

    def metric_names(self, *, with_: str) -> set[str]:
        """The names of all metrics as Prometheus reads them, once one of them is there."""
        end = time.monotonic() + START_SECONDS
        while with_ not in (text := self.get("/metrics")[1]):
            assert time.monotonic() < end, text
            time.sleep(0.1)
        return set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))

    def terminate(self) -> int:
        """Send SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def said(self) -> list[str]:
        return [line for path in self.paths for line in path.read_text(encoding="utf-8").splitlines()]

    def log(self) -> list[dict[str, Any]]:
        """All lines of both streams.

        raises        AssertionError for a line that is no JSON object
        """
        lines = []
        for line in self.said():
            try:
                lines.append(json.loads(line))
            except ValueError as wrong:
                raise AssertionError(f"not a line of JSON: {line!r}, in {self.said()}") from wrong
        return lines

    def kill(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return
        self.process.wait()
