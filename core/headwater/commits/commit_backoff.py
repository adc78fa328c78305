"""How long a commit waits before its next attempt."""

from __future__ import annotations

import random

from headwater.clock import Clock
from headwater.settings import Settings

_BURST = 3
"""Attempts of the first burst."""


class CommitBackoff:
    """The waits between the attempts of one commit. Made when the commit begins.

    After a fault the waits double: the database may be overloaded, and immediate retries make it worse. A swap that was beaten is no
    fault, and waits that grow with each would be unfair: a process that commits in a loop is always there, and beats one that sleeps
    and tries once. So beaten commits are retried in bursts: a few attempts, one right after the other; then a long sleep, in which
    others commit undisturbed; then twice as many attempts, and so on. A commit that has waited long wins soon.

    Eight processes that commit in a loop to one reference get a little more done so than with waits that double, and the longest wait
    is a fifth; with no waits at all each commit is beaten several times. docs/develop/decisions/0007 has what else was tried,
    docs/operate/performance.md the figures of a machine to itself.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._quickest = 0.0

    def pause(self, attempts_lost: int, *, attempt_seconds: float = 0.0) -> None:
        """Sleep before the next attempt; not at all before the first, when none is lost.

        attempt_seconds  how long the last one took from reading the reference to learning that its swap was beaten; 0 after a fault
        """
        if attempts_lost < 1:
            return
        if attempt_seconds > 0:
            self._quickest = min(attempt_seconds, self._quickest or attempt_seconds)
            bounds = bounds_after_beaten(self._settings, attempts_lost, self._quickest)
        else:
            bounds = bounds_after_fault(self._settings, attempts_lost)
        self._clock.sleep(random.uniform(*bounds))


def bounds_after_fault(settings: Settings, attempts_lost: int) -> tuple[float, float]:
    """The shortest and the longest wait in seconds after ``attempts_lost`` faults, 1 or more."""
    shortest = settings.commit_backoff_seconds
    longest = min(settings.commit_backoff_limit_seconds, shortest * 2 ** min(attempts_lost, 20))
    return shortest, max(shortest, longest)


def bounds_after_beaten(settings: Settings, attempts_lost: int, attempt_seconds: float) -> tuple[float, float]:
    """The shortest and the longest wait in seconds after a beaten swap: up to one attempt within a burst, half a limit or more after it."""
    limit = settings.commit_backoff_limit_seconds
    return (limit / 2, limit) if _is_end_of_burst(attempts_lost) else (0.0, min(attempt_seconds, limit))


def _is_end_of_burst(attempts_lost: int) -> bool:
    """Bursts of 3, 6, 12 ... attempts end after 3, 9, 21 ... of them."""
    bursts, rest = divmod(attempts_lost, _BURST)
    return rest == 0 and (bursts + 1).bit_count() == 1
