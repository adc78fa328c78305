"""Processes as the compose file starts them, on the loopback, with a PostgreSQL and a Redis of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from logged_process import LoggedProcess

from free_ports import free_port
from noisy_python import noisy_variables
from servers.redis_broker import redis_server


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    with redis_server(tmp_path) as url:
        yield url


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., LoggedProcess]]:
    """``start(["worker"], {"HEADWATER_STORE": ...})`` runs `headwater worker`; what still runs at the end is killed.

    Each has a variable that is no setting and one that Kubernetes sets for a Service, and is noisy.
    """
    started: list[LoggedProcess] = []
    common = {"HEADWATER_QWERTY": "1", "HEADWATER_SERVER_SERVICE_HOST": "10.0.0.1"} | noisy_variables(tmp_path)

    def run(words: list[str], variables: dict[str, str], *, port: int | None = None) -> LoggedProcess:
        others = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        paths = [tmp_path / f"{len(started)}.{stream}" for stream in ("out", "err")]
        with paths[0].open("wb") as out, paths[1].open("wb") as err:
            command = [sys.executable, "-m", "headwater", *words]
            process = subprocess.Popen(
                command, env=others | common | variables, stdout=out, stderr=err, cwd=tmp_path, start_new_session=True
            )
        started.append(LoggedProcess(process, paths, port or free_port()))
        return started[-1]

    yield run
    for one in started:
        one.kill(signal.SIGKILL)
