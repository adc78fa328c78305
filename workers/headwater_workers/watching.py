"""What `up` shows of tasks: each change as one line, and what is still to be waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.clock import Micros, as_text
from headwater.store import ObjectId, Versioned, id_text
from headwater.tasks import AttemptEnd, Progress, Task, Tasks, TaskState

__all__ = ["TaskWatcher", "changes", "duration_words", "is_due", "spent_seconds"]


RECENT = 1000
"""So many tasks are looked at: all that are active, and beside them those that ended last."""


class TaskWatcher:
    """Remembers what was told of each task, and tells what is new.

    tell          prints one line
    """

    def __init__(self, tasks: Tasks, tell: Callable[[str], None]) -> None:
        self._tasks = tasks
        self._tell = tell
        self._known = {seen.id: seen.value for seen in tasks.list(limit=RECENT) if not seen.value.is_active}
        self._mine: dict[ObjectId, Versioned[Task]] = {}

    def look(self) -> list[Versioned[Task]]:
        """Tell what changed since the last look; returns the active tasks."""
        seen = self._tasks.list(limit=RECENT)
        if len(seen) == RECENT and seen[-1].value.is_active:
            seen = self._tasks.list()  # there may be more active ones
        for task in seen:
            before = self._known.get(task.id)
            if before == task.value:
                continue
            for line in changes(task.id, before, task.value):
                self._tell(line)
            self._known[task.id] = task.value
            self._mine[task.id] = task
        return [task for task in seen if task.value.is_active]

    @property
    def seen(self) -> Sequence[Versioned[Task]]:
        """Every task that was active at some time since the start, as it was seen last."""
        return list(self._mine.values())


def changes(task_id: ObjectId, before: Task | None, now: Task) -> list[str]:
    """A line for each thing about a task that a person wants to see as it happens."""
    name = f"task {id_text(task_id)} {now}"
    begun = before is None or now.attempt > before.attempt
    lines = _lost(name, before, now)
    if now.state is TaskState.RUNNING and begun:
        lines.append(f"{name}: started" + (f", attempt {now.attempt}" if now.attempt > 1 else ""))
    if now.state is TaskState.RUNNING and now.progress is not None and (before is None or now.progress != before.progress):
        lines.append(f"{name}: {_progress(now.progress)}")
    if now.state is not TaskState.RUNNING and (begun or (before is not None and now.state is not before.state)):
        lines += _left(name, now)
    return lines


def spent_seconds(task: Task) -> float:
    """How long its attempts have taken, all together."""
    return sum((attempt.ended - attempt.started) / 1e6 for attempt in task.attempts if attempt.ended is not None)


def duration_words(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


def _lost(name: str, before: Task | None, now: Task) -> list[str]:
    """Attempts that were lost since, where the task goes on."""
    if before is None or now.state is not TaskState.RUNNING or now.attempt == before.attempt:
        return []
    lost = [attempt for attempt in now.attempts if attempt.number >= before.attempt and attempt.outcome is AttemptEnd.LOST]
    return [f"{name}: attempt {attempt.number} was lost: {attempt.error}" for attempt in lost]


def _left(name: str, now: Task) -> list[str]:
    if now.state is TaskState.WAITING:
        if not now.attempts:
            return []
        if now.attempts[-1].outcome is AttemptEnd.FAILED:
            return [f"{name}: attempt {now.attempt} failed, the next one is due {as_text(now.due)}: {now.error}"]
        return [f"{name}: handed back"]
    told = {TaskState.SUCCEEDED: "finished", TaskState.CANCELLED: "cancelled", TaskState.FAILED: "given up"}[now.state]
    why = f": {now.error}" if now.state is TaskState.FAILED else ""
    return [f"{name}: {told} after {_attempts(now)}, {duration_words(spent_seconds(now))}{why}"]


def _attempts(task: Task) -> str:
    return "1 attempt" if task.attempt == 1 else f"{task.attempt} attempts"


def _progress(progress: Progress) -> str:
    of = f" of {progress.total}" if progress.total is not None else ""
    return f"{progress.done}{of} {progress.unit}".rstrip()


def is_due(task: Task, *, until: Micros) -> bool:
    """Whether something happens to an active task before a time."""
    return task.state is TaskState.RUNNING or task.due <= until
