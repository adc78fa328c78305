"""How long a commit waits between its attempts."""

import pytest

from headwater.clock import FakeClock
from headwater.commits.pacing import Pace, longest_after_beaten, wait_bounds
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


class TestBeaten:
    def test_a_wait_is_some_attempts_long_at_most(self) -> None:
        for attempts_lost in (1, 2, 5):
            clock = FakeClock()
            Pace(settings, clock).pause(attempts_lost, attempt_seconds=0.001)

            assert clock.monotonic() <= longest_after_beaten(settings, attempts_lost, 0.001) <= 0.016

    def test_who_lost_more_often_comes_sooner(self) -> None:
        longest = [longest_after_beaten(settings, attempts_lost, 0.001) for attempts_lost in (1, 2, 4, 100)]

        assert longest == sorted(longest, reverse=True)
        assert longest[-1] < longest[0] / 50

    def test_the_shortest_attempt_counts(self) -> None:
        clock = FakeClock()
        pace = Pace(settings, clock)
        pace.pause(1, attempt_seconds=1e-6)
        pace.pause(2, attempt_seconds=10.0)  # it had to wait for others

        assert clock.monotonic() < 0.001

    def test_a_slow_attempt_makes_no_wait_longer_than_the_limit(self) -> None:
        clock = FakeClock()
        Pace(settings, clock).pause(1, attempt_seconds=60)

        assert clock.monotonic() <= 0.250

    def test_a_fault_is_waited_out_though_attempts_were_quick_before(self) -> None:
        clock = FakeClock()
        pace = Pace(settings, clock)
        pace.pause(1, attempt_seconds=1e-6)
        pace.pause(2)

        assert clock.monotonic() >= 0.005
