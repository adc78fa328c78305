"""How long a commit waits between its attempts."""

import pytest

from headwater.clock import FakeClock
from headwater.commits.pacing import Pace, wait_bounds
from headwater.settings import Settings

settings = Settings(commit_backoff_seconds=0.005, commit_backoff_limit_seconds=0.250)


def test_nothing_waits_before_the_first_attempt() -> None:
    clock = FakeClock()

    Pace(settings, clock).pause(0)

    assert clock.monotonic() == 0


@pytest.mark.parametrize("attempts_lost", [1, 3, 1000])
def test_a_wait_is_within_its_bounds(attempts_lost: int) -> None:
    clock = FakeClock()

    Pace(settings, clock).pause(attempts_lost)

    shortest, longest = wait_bounds(settings, attempts_lost)
    assert shortest <= clock.monotonic() <= longest


def test_two_waits_differ() -> None:
    first, second = FakeClock(), FakeClock()

    for clock in (first, second):
        for _ in range(10):
            Pace(settings, clock).pause(5)

    assert first.monotonic() != second.monotonic()


@pytest.mark.parametrize("attempts_lost", [1, 2, 20, 10**6])
def test_no_wait_is_beyond_the_limit(attempts_lost: int) -> None:
    shortest, longest = wait_bounds(settings, attempts_lost)

    assert 0 < shortest < longest <= 0.250


def test_a_limit_below_the_first_wait_leaves_the_first_wait() -> None:
    assert wait_bounds(Settings(commit_backoff_seconds=0.5, commit_backoff_limit_seconds=0.1), 3) == (0.5, 0.5)
