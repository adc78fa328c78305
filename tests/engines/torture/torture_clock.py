"""Time that runs fast, and is the same for all processes of one torture, but for those that are shifted."""

from __future__ import annotations

import time
from dataclasses import dataclass

from headwater.clock import Micros

__all__ = ["FastClock", "Timeline"]

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """What the clocks of all processes count from: ``start`` at the machine's monotonic second ``base``, and then so fast."""

    base: float
    start: int
    speed: float

    @classmethod
    def before_now(cls, *, speed: float, seconds: float) -> Timeline:
        """One whose ``seconds`` on the machine are over a day before the machine's own time: who looks afterwards finds all of it old."""
        return cls(time.monotonic(), int((time.time() - DAY - 2 * seconds * speed) * 1_000_000), speed)


class FastClock:
    """A clock on a timeline. ``shift_seconds`` of its own time it goes before the others."""

    def __init__(self, timeline: Timeline, *, shift_seconds: float = 0.0) -> None:
        self._timeline = timeline
        self._start = timeline.start + round(shift_seconds * 1_000_000)

    def now(self) -> Micros:
        return Micros(self._start + round((time.monotonic() - self._timeline.base) * self._timeline.speed * 1_000_000))

    def wall(self) -> Micros:
        return self.now()

    def monotonic(self) -> float:
        return time.monotonic() * self._timeline.speed

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self._timeline.speed)
