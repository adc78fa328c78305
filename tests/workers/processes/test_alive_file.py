"""The file that a probe looks at, of real workers."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Worker, wait_for

from free_ports import free_port

pytestmark = pytest.mark.long
FRESH_SECONDS = 9


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "alive"


def is_fresh(file: Path) -> bool:
    """What the chart's probe asks, with less patience."""
    question = f"test -n \"$(find {file} -newermt '-{FRESH_SECONDS} seconds')\""
    return subprocess.run(["sh", "-c", question], check=False, capture_output=True).returncode == 0


def changes(file: Path) -> Callable[[], bool]:
    before = file.stat().st_mtime_ns
    return lambda: file.stat().st_mtime_ns != before


@pytest.mark.parametrize("broker", ["embedded", "redis"])
def test_file_of_a_worker_that_is_well_stays_fresh(
    start_worker: Callable[..., Worker], file: Path, broker: str, request: pytest.FixtureRequest
) -> None:
    url = "embedded" if broker == "embedded" else request.getfixturevalue("redis_url")
    worker = start_worker(f"--alive-file={file}", BROKER=url)
    wait_for(file.exists)
    for _ in range(2):
        wait_for(changes(file))
        assert is_fresh(file)

    worker.process.terminate()
    assert worker.process.wait(30) == 0


def test_worker_whose_broker_is_away_is_well(start_worker: Callable[..., Worker], file: Path) -> None:
    worker = start_worker(f"--alive-file={file}", BROKER=f"redis://127.0.0.1:{free_port()}/0")
    wait_for(file.exists)
    wait_for(lambda: "Cannot connect" in worker.said, why=lambda: worker.said)
    wait_for(changes(file))

    assert is_fresh(file)


def test_file_of_a_worker_that_stands_still_grows_old(start_worker: Callable[..., Worker], file: Path) -> None:
    worker = start_worker(f"--alive-file={file}")
    wait_for(lambda: is_fresh(file))
    worker.signal(signal.SIGSTOP)

    wait_for(lambda: not is_fresh(file))
