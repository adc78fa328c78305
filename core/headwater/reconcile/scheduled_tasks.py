"""Scheduled tasks of a manifest: one of each waits for its time, and a failed one is left to a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.clock import Micros
from headwater.reconcile.actions import Action, CancelTask, ReportDrift, SubmitTask
from headwater.reconcile.observed_state import ObservedTask, TaskHistory
from headwater.reconcile.schedule import next_time
from headwater.store import id_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledWork:
    kind: str
    subject: str
    arguments: Mapping[str, Any]
    cron: str
    zone: str


def keep_scheduled(work: ScheduledWork, tasks: TaskHistory, *, since: Micros, now: Micros) -> list[Action]:
    """Keep one task of this kind and subject waiting for the next time of the schedule.

    since         the first time after this is due: the end of the last run, so that a run missed during a downtime is made up for
    """
    waiting = tasks.active(work.kind, work.subject)
    if waiting is None:
        return [SubmitTask(work.kind, next_time(work.cron, work.zone, since), work.subject, work.arguments)]
    if not waiting.is_scheduled or waiting.due <= now:
        return []  # it is running, due, or waiting for another attempt
    due = next_time(work.cron, work.zone, now)
    if waiting.due == due:
        return []
    return [cancel_scheduled(waiting), SubmitTask(work.kind, due, work.subject, work.arguments)]


def cancel_scheduled(task: ObservedTask) -> CancelTask:
    return CancelTask(task.id, task.kind, task.subject)


def dead_letter(task: ObservedTask) -> ReportDrift:
    """Report a task that failed for good or was cancelled, and is not requested again automatically."""
    name, what = id_text(task.id), f"{task.kind} {task.subject}".strip()
    if task.finished is not None and task.state.value == "CANCELLED":
        return ReportDrift(
            "TaskCancelled", f"task {name} ({what}) was cancelled; `headwater task retry {name}` lets it run after all"
        )
    times = "once" if task.failures == 1 else f"{task.failures} times"
    cause = f": {task.error.splitlines()[0]}" if task.error.strip() else ""
    return ReportDrift(
        "TaskDeadLettered",
        f"task {name} ({what}) failed {times} and is not tried again{cause}; "
        f"once the cause is gone, run `headwater task retry {name}`",
    )
