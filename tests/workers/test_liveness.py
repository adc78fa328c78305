"""A worker's pulse: which loops turn, told by a file's age."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater_workers.liveness import DISPATCHER, MAIN_LOOP, Pulse


class Monotonic:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def monotonic() -> Monotonic:
    return Monotonic()


@pytest.fixture
def pulse(monotonic: Monotonic) -> Pulse:
    return Pulse(None, monotonic=monotonic)


def comes_true(condition: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_worker_that_only_begins_is_not_stuck(pulse: Pulse, monotonic: Monotonic) -> None:
    monotonic.now += 10_000

    assert pulse.stuck() == []


def test_loop_that_turns_is_not_stuck(pulse: Pulse, monotonic: Monotonic) -> None:
    for _ in range(10):
        pulse.beat(DISPATCHER)
        monotonic.now += 60

    assert pulse.stuck() == []


def test_loop_that_stopped_turning_is_stuck_whatever_the_other_does(pulse: Pulse, monotonic: Monotonic) -> None:
    pulse.beat(DISPATCHER)
    monotonic.now += 121
    pulse.beat(MAIN_LOOP)

    assert pulse.stuck() == [DISPATCHER]


def test_loop_that_ended_in_an_orderly_way_is_not_stuck(pulse: Pulse, monotonic: Monotonic) -> None:
    pulse.beat(MAIN_LOOP)
    pulse.forget_beat(MAIN_LOOP)
    monotonic.now += 10_000

    assert pulse.stuck() == []


def test_file_is_there_at_once(tmp_path: Path, monotonic: Monotonic) -> None:
    with Pulse(tmp_path / "alive", monotonic=monotonic):
        assert comes_true((tmp_path / "alive").exists)


def test_file_of_a_stuck_worker_is_left_to_grow_old(tmp_path: Path, monotonic: Monotonic) -> None:
    file = tmp_path / "alive"
    file.touch()
    os.utime(file, (1, 1))
    pulse = Pulse(file, monotonic=monotonic)
    pulse.beat(DISPATCHER)
    monotonic.now += 121
    with pulse:
        pass

    assert file.stat().st_mtime == 1


def test_file_that_cannot_be_written_does_not_end_the_worker(tmp_path: Path) -> None:
    with Pulse(tmp_path / "missing" / "alive") as pulse:
        assert pulse.stuck() == []


def test_pulse_without_a_file_is_never_stuck(pulse: Pulse) -> None:
    with pulse:
        assert pulse.stuck() == []
