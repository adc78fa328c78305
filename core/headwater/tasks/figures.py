"""The tasks of a store as numbers, for whoever watches over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwater.clock import Micros
from headwater.tasks.task import Task, TaskState

__all__ = ["TaskFigures", "figures_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """
    active                  by kind and state, WAITING or RUNNING
    due                     by kind: those that wait though they are due
    oldest_due_seconds      by kind: for how long the one that is due longest has waited
    dead_letters            by kind: those that nothing has followed
    retries                 by kind: failed or lost attempts of active tasks
    seconds                 by kind: the mean duration of the last attempts, of those that succeeded
    """

    active: Mapping[tuple[str, TaskState], int]
    due: Mapping[str, int]
    oldest_due_seconds: Mapping[str, float]
    dead_letters: Mapping[str, int]
    retries: Mapping[str, int]
    seconds: Mapping[str, float]


def figures_of(tasks: Iterable[Task], *, now: Micros) -> TaskFigures:
    """Count the active tasks, and the last of the finished ones."""
    active: Counter[tuple[str, TaskState]] = Counter()
    dead: Counter[str] = Counter()
    retries: Counter[str] = Counter()
    due: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for task in tasks:
        if task.is_active:
            active[task.kind, task.state] += 1
            retries[task.kind] += task.failures
            if task.state is TaskState.WAITING and task.due <= now:
                due.setdefault(task.kind, []).append((now - task.due) / 1_000_000)
        elif task.state is TaskState.FAILED:
            dead[task.kind] += 1
        elif task.state is TaskState.SUCCEEDED and task.attempts:
            last = task.attempts[-1]
            seconds.setdefault(task.kind, []).append(((last.ended or now) - last.started) / 1_000_000)
    return TaskFigures(
        active=dict(active),
        due={kind: len(ages) for kind, ages in due.items()},
        oldest_due_seconds={kind: max(ages) for kind, ages in due.items()},
        dead_letters=dict(dead),
        retries={kind: count for kind, count in retries.items() if count},
        seconds={kind: sum(lengths) / len(lengths) for kind, lengths in seconds.items()},
    )
