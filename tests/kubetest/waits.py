"""Waiting for what happens elsewhere: looking again and again, with a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_for"]

T = TypeVar("T")


def wait_for(look: Callable[[], T], *, seconds: float = 120, every: float = 0.05, why: Callable[[], object] = lambda: "") -> T:
    """What ``look`` returns, as soon as that is true. ``why`` says, when the time is over, what was there instead."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"not within {seconds:g} s: {why()}"
        time.sleep(every)
    return found
