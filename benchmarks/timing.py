"""Contenders that run by turns, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, TypeVar

__all__ = ["Round", "median", "race", "timed"]

K = TypeVar("K")
Round = Callable[[], float]
"""Does its work once, and returns the seconds that count: without what it took to prepare."""


def race(contenders: Mapping[K, Round], rounds: int) -> dict[K, float]:
    """The median seconds of a round of each. One round of each goes before and counts for nothing; the order turns each time."""
    for run in contenders.values():
        run()
    taken: dict[K, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        order = list(contenders.items())
        for name, run in order if number % 2 else reversed(order):
            taken[name].append(run())
    return {name: median(seconds) for name, seconds in taken.items()}


def timed(action: Callable[..., Any], *arguments: Any) -> float:
    """How long one call takes, in seconds."""
    started = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - started
