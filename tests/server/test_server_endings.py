"""How a server's process ends: what runs may end after SIGTERM, and what hangs does not keep it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wire_server import SECONDS, WireConnection, request, until

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("thing_process.py")


@pytest.fixture
def start_process() -> Iterator[Callable[[float], tuple[subprocess.Popen[str], int]]]:
    """Starts a server's process, with so much time to drain. Returns it and its port."""
    started: list[subprocess.Popen[str]] = []

    def start(drain_seconds: float) -> tuple[subprocess.Popen[str], int]:
        path = os.pathsep.join([str(PROGRAM.parent), *sys.path])
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(drain_seconds)],
            env=environment | {"PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), "the server did not start"
        return process, int(url.rpartition(":")[2])

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_until_begun(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None and process.stdout.readline() == "begun\n"


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_idle_process_ends_well(
    start_process: Callable[[float], tuple[subprocess.Popen[str], int]], number: signal.Signals
) -> None:
    process, port = start_process(500.0)
    with WireConnection(port) as connection:
        assert connection.send(request("GET", "/api/v1/things/a")).answer().status == 200
        process.send_signal(number)

        assert process.wait(10 * SECONDS) == 0  # long before it would give up on requests under way
        assert connection.rest() == b""


def test_hanging_request_is_cut_short(start_process: Callable[[float], tuple[subprocess.Popen[str], int]]) -> None:
    process, port = start_process(0.5)
    with WireConnection(port) as connection:
        connection.send(request("POST", "/api/v1/things/a/wait", b""))
        wait_until_begun(process)
        process.send_signal(signal.SIGTERM)

        assert process.wait(10 * SECONDS) == 7


def test_second_signal_ends_at_once(start_process: Callable[[float], tuple[subprocess.Popen[str], int]]) -> None:
    process, port = start_process(20.0)
    with WireConnection(port) as connection:
        connection.send(request("POST", "/api/v1/things/a/wait", b""))
        wait_until_begun(process)
        process.send_signal(signal.SIGTERM)
        until(lambda: not is_listening(port))
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)

        assert process.wait(10 * SECONDS) == 128 + signal.SIGTERM
