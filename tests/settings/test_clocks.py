"""Clocks: wall time that never steps back, and one that moves only when told to."""

from __future__ import annotations

import time

import pytest

from fake_clock import FakeClock
from forked_children import run_forked
from headwater.clock import ClockWatch, SystemClock, as_datetime, as_text


def test_system_clock_stands_still_when_the_wall_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, before = SystemClock(), time.time_ns()
    first = clock.now()
    monkeypatch.setattr(time, "time_ns", lambda: before - 3_600_000_000_000)

    assert clock.now() == first


def test_system_clock_works_in_a_forked_child() -> None:
    clock = SystemClock()
    with clock._lock:  # as if another thread were asking at that moment
        (answer,) = run_forked(1, lambda _: clock.now())

    assert answer > 0


def test_sleeping_moves_a_fake_clock() -> None:
    clock = FakeClock(start=1_000_000)
    clock.sleep(2.5)

    assert (clock.now(), clock.monotonic()) == (3_500_000, 2.5)


def test_watch_finds_when_a_clock_was_set_ahead() -> None:
    clock = FakeClock(start=1_000_000)
    watch = ClockWatch(clock)
    clock.advance(100)
    clock.set_ahead(20)
    clock.advance(5)

    assert watch.look(tolerated_seconds=10) == (126_000_000, 106_000_000)
    clock.advance(100)
    assert watch.look(tolerated_seconds=10) == (126_000_000, 106_000_000)


def test_watch_tolerates_a_machine_that_sleeps() -> None:
    clock = FakeClock(start=1_000_000)
    watch = ClockWatch(clock)
    for _ in range(10):
        clock.set_ahead(9)

        assert watch.look(tolerated_seconds=10) == (1_000_000, 0)


def test_times_are_shown_in_utc() -> None:
    assert as_text(1_740_787_200_000_000) == "2025-03-01T00:00:00Z"
    assert as_datetime(1_740_787_200_500_000).microsecond == 500_000
