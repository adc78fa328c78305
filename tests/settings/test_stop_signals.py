"""SIGTERM and SIGINT as an event: heard wherever they come, and obeyed at once when they come twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("told_at_each_step.py")
TOLD_TWICE = """
import signal
from headwater.exits import stop_at_signals
stop = stop_at_signals({arguments})
signal.raise_signal(signal.SIGTERM)
signal.raise_signal(signal.SIGINT)
raise SystemExit(0 if stop.wait(30) else 1)
"""


def told_twice(arguments: str = "") -> int:
    return subprocess.run([sys.executable, "-c", TOLD_TWICE.format(arguments=arguments)], timeout=60, check=False).returncode


def test_signal_is_heard_at_every_step_of_the_wait_for_it() -> None:
    told = subprocess.run([sys.executable, str(PROGRAM)], timeout=120, check=True, stdout=subprocess.PIPE)

    assert int(told.stdout) > 20


def test_second_signal_ends_the_process_at_once() -> None:
    assert told_twice() == 128 + signal.SIGINT


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_sets_the_event(number: signal.Signals) -> None:
    program = TOLD_TWICE.replace("signal.raise_signal(signal.SIGTERM)\n", "").replace("signal.SIGINT", f"{int(number)}")

    assert subprocess.run([sys.executable, "-c", program.format(arguments="")], timeout=60, check=False).returncode == 0


def test_second_signal_changes_nothing_where_that_is_asked_for() -> None:
    assert told_twice("is_forced_by_second=False") == 0
