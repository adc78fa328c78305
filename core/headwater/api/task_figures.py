"""The tasks of a store as numbers, by kind."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.tasks import TaskFigures, TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFiguresInfo:
    """The tasks of one kind as numbers.

    waiting       active, and no worker runs them now
    running       being done
    due           waiting though they are due
    oldest_due_seconds  how long the one has waited that is due longest; None: none is due
    unreadable    tasks that are listed and cannot be read
    retries       failed or lost attempts of active tasks
    dead_letters  given up, and nothing has followed them
    mean_seconds  mean duration of the last that succeeded, one a subject; None: none did
    longest_seconds  the longest of these durations
    """

    kind: str
    waiting: int
    running: int
    due: int
    oldest_due_seconds: float | None
    unreadable: int
    retries: int
    dead_letters: int
    mean_seconds: float | None
    longest_seconds: float | None


def figures_by_kind(figures: TaskFigures) -> list[TaskFiguresInfo]:
    """The figures of each kind, by name."""
    kinds = {kind for kind, _ in figures.active} | set(figures.dead_letters) | set(figures.seconds) | set(figures.unreadable)
    return [
        TaskFiguresInfo(
            kind=kind,
            waiting=figures.active.get((kind, TaskState.WAITING), 0),
            running=figures.active.get((kind, TaskState.RUNNING), 0),
            due=figures.due.get(kind, 0),
            oldest_due_seconds=_rounded(figures.oldest_due_seconds.get(kind)),
            unreadable=figures.unreadable.get(kind, 0),
            retries=figures.retries.get(kind, 0),
            dead_letters=figures.dead_letters.get(kind, 0),
            mean_seconds=_rounded(figures.seconds.get(kind)),
            longest_seconds=_rounded(figures.longest_seconds.get(kind)),
        )
        for kind in sorted(kinds)
    ]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
