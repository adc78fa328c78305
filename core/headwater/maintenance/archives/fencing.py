"""A fence that may be asked at every step, and asks the database only once in a while."""

from __future__ import annotations

from headwater.clock import Clock
from headwater.maintenance.garbage import Fence

__all__ = ["paced"]


def paced(fence: Fence, clock: Clock, *, seconds: float = 1.0) -> Fence:
    """The same fence, asked again ``seconds`` after it was asked last: for steps that write nothing, of which there are millions."""
    asked = clock.monotonic()

    def check() -> None:
        nonlocal asked
        if clock.monotonic() - asked >= seconds:
            fence()
            asked = clock.monotonic()

    return check
