"""How long to wait between two attempts of a commit, so that those who lost do not meet again."""

from __future__ import annotations

import random

from headwater.clock import Clock
from headwater.settings import Settings

__all__ = ["Pace", "wait_bounds"]


class Pace:
    """The waits of one commit. Made when the commit begins."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    def pause(self, attempts_lost: int) -> None:
        """Sleep before the next attempt; not at all before the first, when none is lost."""
        if attempts_lost > 0:
            self._clock.sleep(random.uniform(*wait_bounds(self._settings, attempts_lost)))


def wait_bounds(settings: Settings, attempts_lost: int) -> tuple[float, float]:
    """The shortest and the longest wait, in seconds, after so many attempts that were lost: 1 or more."""
    shortest = settings.commit_backoff_seconds
    longest = min(settings.commit_backoff_limit_seconds, shortest * 2 ** min(attempts_lost, 20))
    return shortest, max(shortest, longest)
