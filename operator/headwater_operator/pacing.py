"""When to look at a resource again. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwater.clock import Micros
from headwater.reconcile import Outcome, TaskDescription
from headwater.tasks import TaskState

__all__ = ["Pace", "seconds_until_next_look"]

BUSY_SECONDS = 5.0
"""How often progress is looked at, at most."""
LOOKS_PER_SECOND = 100
"""Looks at progress that all resources together may cause."""
SLACK_SECONDS = 1.0
"""What is due at a time is looked at this much later: a worker has taken it by then."""


@dataclass(frozen=True, slots=True)
class Pace:
    """
    resync_seconds  how often a resource is looked at when nothing happens; jittered, so that those of one moment part ways
    crowd           how many resources there are
    chance          from 0 to 1
    """

    resync_seconds: float
    crowd: int = 0
    chance: float = 0.5


def seconds_until_next_look(outcome: Outcome, tasks: Iterable[TaskDescription], *, now: Micros, pace: Pace) -> float:
    """The earliest time at which something will have changed by itself, and never later than the resync.

    tasks         those that are active
    """
    looks = [pace.resync_seconds * (0.9 + 0.2 * pace.chance)]
    if outcome.waits_until is not None:
        looks.append(max(_seconds(outcome.waits_until - now), 0.0) + SLACK_SECONDS)
    looks += [_look_at(task, now, pace) for task in tasks]
    return min(looks)


def _look_at(task: TaskDescription, now: Micros, pace: Pace) -> float:
    """One that lasts is looked at less and less often: its progress is a smaller part of it each time."""
    if task.state is TaskState.WAITING and task.due > now:
        return _seconds(task.due - now) + SLACK_SECONDS
    began = task.started if task.state is TaskState.RUNNING and task.started is not None else task.due
    return max(BUSY_SECONDS, pace.crowd / LOOKS_PER_SECOND, _seconds(now - began) / 10)


def _seconds(micros: int) -> float:
    return micros / 1_000_000
