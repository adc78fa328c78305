"""The tasks of a store as numbers, for whoever watches over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.clock import Micros
from headwater.store import ObjectId
from headwater.tasks.entries import Active, Ended
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
    longest_seconds         by kind: the longest of these
    unreadable              by kind: those that are listed and cannot be read; they are counted nowhere else
    """

    active: Mapping[tuple[str, TaskState], int]
    due: Mapping[str, int]
    oldest_due_seconds: Mapping[str, float]
    dead_letters: Mapping[str, int]
    retries: Mapping[str, int]
    seconds: Mapping[str, float]
    longest_seconds: Mapping[str, float]
    unreadable: Mapping[str, int] = field(default_factory=dict)


class _Standing(NamedTuple):
    kind: str
    state: TaskState
    due: Micros
    failures: int


def figures_of(
    active: Iterable[Active],
    ended: Iterable[Ended],
    read: Mapping[ObjectId, Task],
    *,
    now: Micros,
    unreadable: Container[ObjectId] = (),
) -> TaskFigures:
    """Count entries.

    read          the tasks of those entries that do not tell enough; other active ones count as waiting
    """
    active, ended = list(active), list(ended)
    entries: list[Active | Ended] = [*active, *ended]
    broken = Counter(entry.kind for entry in entries if entry.id in unreadable)
    active = [entry for entry in active if entry.id not in unreadable]
    states: Counter[tuple[str, TaskState]] = Counter()
    retries: Counter[str] = Counter()
    ages: dict[str, list[float]] = {}
    for one in _standings(active, read):
        states[one.kind, one.state] += 1
        retries[one.kind] += one.failures
        if one.state is TaskState.WAITING and one.due <= now:
            ages.setdefault(one.kind, []).append((now - one.due) / 1_000_000)
    endings = list(_endings(ended, read))
    dead = Counter(kind for kind, state, _ in endings if state is TaskState.FAILED)
    seconds: dict[str, list[float]] = {}
    for kind, state, took in endings:
        if state is TaskState.SUCCEEDED:
            seconds.setdefault(kind, []).append(took)
    return TaskFigures(
        active=dict(states),
        due={kind: len(found) for kind, found in ages.items()},
        oldest_due_seconds={kind: max(found) for kind, found in ages.items()},
        dead_letters=dict(dead),
        retries={kind: count for kind, count in retries.items() if count},
        seconds={kind: sum(found) / len(found) for kind, found in seconds.items()},
        longest_seconds={kind: max(found) for kind, found in seconds.items()},
        unreadable=dict(broken),
    )


def _standings(active: Iterable[Active], read: Mapping[ObjectId, Task]) -> Iterator[_Standing]:
    for entry in active:
        task = read.get(entry.id)
        if task is None:
            yield _Standing(entry.kind, TaskState.WAITING, entry.due, 0)
        elif task.is_active:  # or else it has ended, and its entries follow
            yield _Standing(task.kind, task.state, task.due, task.failures)


def _endings(ended: Iterable[Ended], read: Mapping[ObjectId, Task]) -> Iterator[tuple[str, TaskState, float]]:
    for entry in ended:
        task = read.get(entry.id)
        if entry.state is not None and entry.seconds is not None:
            yield entry.kind, entry.state, entry.seconds
        elif task is not None and not task.is_active:
            last = task.attempts[-1] if task.attempts else None
            took = (last.ended or last.started) - last.started if last is not None else 0
            yield task.kind, task.state, took / 1_000_000
