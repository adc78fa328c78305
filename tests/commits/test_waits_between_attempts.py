"""How long a commit waits between its attempts."""

from itertools import pairwise

import pytest

from fake_clock import FakeClock
from headwater.commits.commit_backoff import CommitBackoff, bounds_after_beaten, bounds_after_fault
from headwater.settings import Settings

settings = Settings(commit_backoff_seconds=0.005, commit_backoff_limit_seconds=0.250)
ATTEMPT = 0.001


def waits(losses: list[int], *, attempt_seconds: float = 0.0) -> list[float]:
    """What a commit waited after each of these losses."""
    clock = FakeClock()
    pace = CommitBackoff(settings, clock)
    ends = [0.0]
    for attempts_lost in losses:
        pace.pause(attempts_lost, attempt_seconds=attempt_seconds)
        ends.append(clock.monotonic())
    return [end - start for start, end in pairwise(ends)]


@pytest.mark.parametrize("attempt_seconds", [0.0, ATTEMPT])
def test_first_attempt_waits_for_nothing(attempt_seconds: float) -> None:
    assert waits([0], attempt_seconds=attempt_seconds) == [0]


class TestFaults:
    def test_waits_are_within_their_bounds(self) -> None:
        for attempts_lost in (1, 3, 1000):
            shortest, longest = bounds_after_fault(settings, attempts_lost)

            assert shortest <= waits([attempts_lost])[0] <= longest

    def test_waits_differ(self) -> None:
        assert len(set(waits([5] * 10))) > 1

    @pytest.mark.parametrize("attempts_lost", [1, 2, 20, 10**6])
    def test_no_wait_is_beyond_the_limit(self, attempts_lost: int) -> None:
        shortest, longest = bounds_after_fault(settings, attempts_lost)

        assert 0 < shortest < longest <= 0.250

    def test_limit_below_the_first_wait_leaves_the_first_wait(self) -> None:
        narrow = Settings(commit_backoff_seconds=0.5, commit_backoff_limit_seconds=0.1)

        assert bounds_after_fault(narrow, 3) == (0.5, 0.5)


class TestBeaten:
    def test_bursts_of_attempts_grow_and_a_long_sleep_follows_each(self) -> None:
        slept = waits(list(range(1, 50)), attempt_seconds=ATTEMPT)

        assert [lost for lost, wait in enumerate(slept, start=1) if wait >= 0.125] == [3, 9, 21, 45]

    def test_wait_within_a_burst_lasts_at_most_an_attempt(self) -> None:
        assert max(waits([1, 2, 4, 5, 8, 10, 100], attempt_seconds=ATTEMPT)) <= ATTEMPT

    def test_quickest_attempt_counts(self) -> None:
        clock = FakeClock()
        pace = CommitBackoff(settings, clock)
        pace.pause(1, attempt_seconds=1e-6)
        pace.pause(2, attempt_seconds=10.0)  # it had to wait for others

        assert clock.monotonic() <= 2e-6

    def test_slow_attempt_makes_no_wait_longer_than_the_limit(self) -> None:
        assert max(bounds_after_beaten(settings, 1, 60.0)) == max(bounds_after_beaten(settings, 3, 60.0)) == 0.250

    def test_fault_is_waited_out_though_attempts_were_quick_before(self) -> None:
        clock = FakeClock()
        pace = CommitBackoff(settings, clock)
        pace.pause(1, attempt_seconds=1e-6)
        pace.pause(2)

        assert clock.monotonic() >= 0.005
