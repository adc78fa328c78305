"""Schedules of maintenance and imports: one task of each waits for its next time, and a failed one is left to a person.

Times come from a cron expression in a time zone, with daylight saving as in Debian's cron. Everything here is pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from headwater.clock import Micros, as_datetime
from headwater.errors import RefusedError
from headwater.reconcile.actions import Action, CancelTask, ReportDrift, SubmitTask
from headwater.reconcile.observed_state import TaskHistory
from headwater.store import Versioned, id_text
from headwater.tasks import Task, TaskState

_FIELDS = 5
_EXAMPLE = 'write minute, hour, day of month, month and day of week, for example "0 3 * * 0"'


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledWork:
    kind: str
    subject: str
    arguments: Mapping[str, Any]
    cron: str
    zone: str


def keep_scheduled(work: ScheduledWork, tasks: TaskHistory, *, since: Micros, now: Micros) -> list[Action]:
    """Keep one task of this kind and subject waiting for the next time of the schedule.

    since         the first time after this is due: the end of the last run, so that one run makes up for all that were missed
                  during a downtime
    """
    waiting = tasks.active(work.kind, work.subject)
    if waiting is None:
        # A run that a clock ended that was ahead does not put the next one off until that time.
        return [SubmitTask(work.kind, next_time(work.cron, work.zone, min(since, now)), work.subject, work.arguments)]
    task = waiting.value
    if task.state is not TaskState.WAITING or task.failures or task.due <= now:
        return []  # it is running, due, or waiting for another attempt
    due = next_time(work.cron, work.zone, now)
    if task.due == due:
        return []
    return [cancel_scheduled(waiting), SubmitTask(work.kind, due, work.subject, work.arguments)]


def cancel_scheduled(task: Versioned[Task]) -> CancelTask:
    return CancelTask(task.id, task.value.kind, task.value.subject)


def dead_letter(ended: Versioned[Task]) -> ReportDrift:
    """Report a task that failed for good or was cancelled, and is not requested again automatically."""
    task = ended.value
    name, what = id_text(ended.id), f"{task.kind} {task.subject}".strip()
    if task.finished is not None and task.state is TaskState.CANCELLED:
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


def next_time(cron: str, zone: str, after: Micros) -> Micros:
    """The first time of the schedule that is later than ``after``.

    A time that is skipped in spring comes as soon as the clocks have been put forward; one that occurs twice in autumn comes once.

    raises        RefusedError for an invalid cron expression or time zone
    """
    start = as_datetime(after).astimezone(ZoneInfo(checked_zone(zone)))
    # seen from the second showing of an hour, the first one is still to come: skip what is past
    times = (Micros(round(time.astimezone(UTC).timestamp()) * 1_000_000) for time in CronSim(checked_cron(cron), start))
    return next(time for time in times if time > after)


def weekly_schedule(realm_id: str) -> str:
    """The default schedule of a realm: once a week, at a time derived from its id so that they do not all run at once."""
    minute, hour, day = _spread(realm_id)
    return f"{minute} {hour} * * {day}"


def daily_schedule(name: str) -> str:
    """A schedule once a day, at a time derived from the name."""
    minute, hour, _ = _spread(name)
    return f"{minute} {hour} * * *"


def checked_cron(text: str) -> str:
    """Check a cron expression of five fields that has a next time.

    raises        RefusedError that says what is wrong
    """
    if len(text.split()) != _FIELDS:
        raise RefusedError(f'"{text}" is not a cron expression; {_EXAMPLE}')
    try:
        next(CronSim(text, datetime(2025, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise RefusedError(f'"{text}" is not a cron expression ({str(error).lower()}); {_EXAMPLE}') from error
    except StopIteration as error:
        raise RefusedError(f'"{text}" never comes; {_EXAMPLE}') from error
    return " ".join(text.split())


def checked_zone(text: str) -> str:
    """Check the name of a time zone.

    raises        RefusedError when there is none of this name
    """
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise RefusedError(f'"{text}" is not a time zone; write for example UTC or Europe/Berlin') from error
    return text


def _spread(name: str) -> tuple[int, int, int]:
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return number % 60, number // 60 % 24, number // 1440 % 7
