"""How long to wait between two attempts of a commit.

After a fault the waits double: the database may be ill, and everyone who comes at once makes it worse. A swap that was beaten is no
illness. There the waits are measured in attempts, and shrink: who has lost more often comes sooner.

    waits after a beaten swap            eight processes that commit in a loop to one reference, on two processors
    (d: the shortest attempt so far)     PostgreSQL: commits/s · p99 · longest      SQLite: commits/s · p99 · longest
    plain loop, 5-25 ms to 250 ms                    119 · 3.0 s · 3.4 s                          94 · 2.2 s · 3.2 s
    none                                             134 · 0.4 s · 0.7 s                         640 · 0.1 s · 0.4 s
    0 to 4 d, divided by the losses                  180 · 0.4 s · 0.5 s                         398 · 0.3 s · 0.6 s
    0 to 16 d, divided by the losses                 195 · 0.5 s · 0.6 s                         325 · 0.3 s · 0.7 s
    0 to 16 d                                        229 · 0.6 s · 1.0 s                         325 · 0.4 s · 0.9 s

Without waits each commit is beaten four times, which with a change of 5 ms halves what all get done together. With waits that grow,
or that do not shrink, one process goes from commit to commit while the others sleep: it answers more in all, and they starve.
docs/decisions/0007 tells how this was measured.
"""

from __future__ import annotations

import random

from headwater.clock import Clock
from headwater.settings import Settings

__all__ = ["Pace", "longest_after_beaten", "wait_bounds"]

_ATTEMPTS = 16
"""The longest wait after the first beaten swap, in attempts."""


class Pace:
    """The waits of one commit. Made when the commit begins."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._shortest: float | None = None

    def pause(self, attempts_lost: int, *, attempt_seconds: float = 0.0) -> None:
        """Sleep before the next attempt; not at all before the first, when none is lost.

        attempt_seconds  how long the last one took from reading the reference to learning that its swap was beaten; 0 after a fault
        """
        if attempts_lost < 1:
            return
        shortest, longest = wait_bounds(self._settings, attempts_lost)
        if attempt_seconds > 0:
            self._shortest = min(attempt_seconds, self._shortest or attempt_seconds)
            shortest, longest = 0.0, longest_after_beaten(self._settings, attempts_lost, self._shortest)
        self._clock.sleep(random.uniform(shortest, longest))


def wait_bounds(settings: Settings, attempts_lost: int) -> tuple[float, float]:
    """The shortest and the longest wait, in seconds, after so many attempts that were lost: 1 or more."""
    shortest = settings.commit_backoff_seconds
    longest = min(settings.commit_backoff_limit_seconds, shortest * 2 ** min(attempts_lost, 20))
    return shortest, max(shortest, longest)


def longest_after_beaten(settings: Settings, attempts_lost: int, attempt_seconds: float) -> float:
    """The longest wait, in seconds, after a swap was beaten for the so-manieth time, when an attempt takes so long."""
    return min(settings.commit_backoff_limit_seconds, _ATTEMPTS * attempt_seconds / attempts_lost)
