"""Ctrl-C ends the program in one line at any moment, also while it is being loaded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from headwater import Store

pytestmark = pytest.mark.long

PROGRAM = """\
import sys
from headwater.entry import run
from headwater.interrupts import end_at_interrupts
end_at_interrupts()
print("begun", flush=True)
sys.argv[1:] = {words!r}
run()
"""
"""The program as its script begins it, but that it says when it takes signals: before that, it is Python that starts."""


def interrupted(delay: float, *words: str, **environment: str) -> tuple[int, str]:
    """Exit code and standard error of a process that gets SIGINT so many seconds after it has begun."""
    command = [sys.executable, "-c", PROGRAM.format(words=[*words])]
    environment = {**os.environ, **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    return process.returncode, told


@pytest.mark.parametrize("delay", [0, 0.03, 0.1, 0.25, 0.5, 0.8])
def test_interrupt_is_one_line_and_130(store: Store, url: str, delay: float) -> None:
    assert interrupted(delay, "--store", url, "task", "list", "--watch") == (130, "headwater: interrupted\n")


def test_interrupt_of_a_json_log_is_json(url: str) -> None:
    code, told = interrupted(0.05, "--store", url, "realm", "list", HEADWATER_LOG_FORMAT="json")

    assert (code, json.loads(told)["event"]) == (130, "interrupted")


def test_process_that_ignores_interrupts_goes_on(url: str) -> None:
    script = f"trap '' INT; {sys.executable} -m headwater --store {url} realm list & sleep 0.3; kill -INT $!; wait $!"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, "there is no store" in done.stderr) == (3, True), done.stderr
