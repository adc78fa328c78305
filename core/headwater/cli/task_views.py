"""The views of tasks: a list, one task with its attempts, and figures by kind.

Everything here is pure. The names of fields are a contract: ``docs/cli.md`` is made from these tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from headwater.cli.result_output import ResultView, ViewField, duration_field, identifier, time_field
from headwater.clock import Micros
from headwater.store import Versioned, id_text
from headwater.tasks import AttemptEnd, FollowUpTask, Task, TaskAttempt, TaskFigures, TaskProgress, TaskState

UNTOUCHED_SECONDS = 60
"""Seconds that a due task may wait before the page advises to look at the workers."""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A task as read at one time."""

    seen: Versioned[Task]
    now: Micros


@dataclass(frozen=True, slots=True)
class FiguresRow:
    """The figures of the tasks of one kind."""

    kind: str
    figures: TaskFigures


def _progress(progress: TaskProgress | None) -> dict[str, Any] | None:
    return None if progress is None else {"done": progress.done, "total": progress.total, "unit": progress.unit}


def _attempt(attempt: TaskAttempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "owner": attempt.owner,
        "started": time_field(attempt.started),
        "ended": time_field(attempt.ended),
        "outcome": attempt.outcome.value,
        "seconds": None if attempt.ended is None else (attempt.ended - attempt.started) / 1_000_000,
        "progress": _progress(attempt.progress),
        "error": attempt.error or None,
    }


def _follow_up(follow_up: FollowUpTask | None) -> dict[str, Any] | None:
    return None if follow_up is None else {"kind": follow_up.kind, "realm": follow_up.realm, "subject": follow_up.subject}


TASK: ResultView[Versioned[Task]] = ResultView(
    "task",
    "tasks",
    (
        ViewField("id", "the task's id", lambda t: identifier(t.id), "TASK"),
        ViewField("kind", "what is to be done", lambda t: t.value.kind, "KIND"),
        ViewField("realm", "the realm's id", lambda t: t.value.realm, "REALM"),
        ViewField(
            "realmKey",
            "the key that the realm had when the task was submitted",
            lambda t: identifier(t.value.realm_key or None),
        ),
        ViewField("subject", "what within the realm, such as a catalog", lambda t: t.value.subject, "SUBJECT"),
        ViewField("arguments", "names and ids", lambda t: t.value.arguments),
        ViewField("state", "WAITING, RUNNING, SUCCEEDED, FAILED or CANCELLED", lambda t: t.value.state.value, "STATE"),
        ViewField("stopRequested", "somebody asked it to stop", lambda t: t.value.stop_requested),
        ViewField("attempt", "number of the last attempt; 0: none yet", lambda t: t.value.attempt, "ATTEMPT"),
        ViewField("failures", "attempts that failed or were lost", lambda t: t.value.failures, "FAILURES"),
        ViewField("maxAttempts", "failures until it is FAILED", lambda t: t.value.max_attempts),
        ViewField("owner", "who does it now", lambda t: t.value.owner),
        ViewField(
            "progress",
            "how far it is; null: no progress reported yet",
            lambda t: _progress(t.value.progress),
            "PROGRESS",
            inside={".done": "so many", ".total": "of so many; null: not known yet", ".unit": "of these"},
        ),
        ViewField("next", "what comes next, for people to read", lambda t: next_step(t, None)),
        ViewField("created", "when it was submitted", lambda t: time_field(t.value.created), "CREATED"),
        ViewField("after", "the task that it follows up; null: none", lambda t: identifier(t.value.after)),
        ViewField("retried", "when a person let it wait again, after it had ended", lambda t: time_field(t.value.retried)),
        ViewField("due", "not done before", lambda t: time_field(t.value.due), "DUE"),
        ViewField("finished", "when it ended", lambda t: time_field(t.value.finished), "FINISHED"),
        ViewField("error", "why the last attempt ended, unless it succeeded", lambda t: t.value.error or None),
        ViewField("outcome", "what came out, by kind of task", lambda t: t.value.outcome),
        ViewField(
            "followUp",
            "the task that is submitted when this one has succeeded",
            lambda t: _follow_up(t.value.follow_up),
            inside={".kind": "its kind", ".realm": "its realm", ".subject": "its subject"},
        ),
        ViewField(
            "attempts",
            "the last attempts, oldest first",
            lambda t: [_attempt(attempt) for attempt in t.value.attempts],
            inside={
                "[].number": "1 for the first",
                "[].owner": "who made it",
                "[].started": "when it began",
                "[].ended": "when it ended; null: it goes on",
                "[].outcome": "RUNNING, SUCCEEDED, FAILED, LOST, HANDED_BACK, PUT_OFF or CANCELLED",
                "[].seconds": "how long it took; null: it goes on",
                "[].progress": "how far it was at its end; null: no progress was reported",
                "[].error": "why it ended, unless it succeeded",
            },
        ),
    ),
)


def next_step(seen: Versioned[Task], now: Micros | None = None) -> str:
    """Returns one sentence on what happens next to a task.

    now           the time at which the sentence is read; None: it must hold at any time
    """
    task = seen.value
    left = task.max_attempts - task.failures
    match task.state:
        case TaskState.WAITING:
            begins = f"attempt {task.attempt + 1} begins when a worker is free" + _when_due(task, now)
            return f"{begins}; {_times(left)} may fail before the task is given up"
        case TaskState.RUNNING if task.stop_requested:
            return "its worker stops it at the next check, and then it is CANCELLED"
        case TaskState.RUNNING:
            return f"{task.owner} goes on; were it to fall silent, another worker takes over" + (
                "" if left > 1 else ", or the task is given up: it is its last attempt"
            )
        case TaskState.SUCCEEDED if task.follow_up is not None:
            return f"{task.follow_up.kind} of realm {task.follow_up.realm!r} follows, unless it was asked for already"
        case TaskState.SUCCEEDED:
            return "nothing: it is done"
    return f"nothing, until `headwater task retry {id_text(seen.id)}`"


def story(page: TaskPage) -> list[dict[str, Any]]:
    """Returns the known history of a task, oldest first, and what happens next."""
    return [event for event in _events(page) if event]


def figure_rows(figures: TaskFigures) -> list[FiguresRow]:
    """One row a kind, by name."""
    kinds = {kind for kind, _ in figures.active} | set(figures.dead_letters) | set(figures.seconds) | set(figures.unreadable)
    return [FiguresRow(kind, figures) for kind in sorted(kinds)]


def _when_due(task: Task, now: Micros | None) -> str:
    if now is None or task.due > now:
        return f", not before {time_field(task.due)}"
    waited = (now - task.due) / 1_000_000
    if waited < UNTOUCHED_SECONDS:
        return ""
    return f": it is due for {duration_field(round(waited))}, so look whether a worker is there (`headwater worker`)"


def _times(count: int) -> str:
    return "1 attempt" if count == 1 else f"{count} attempts"


def _events(page: TaskPage) -> Iterator[dict[str, Any]]:
    task = page.seen.value
    follows = f"follows up {id_text(task.after)}" if task.after is not None else None
    yield _event(task.created, "submitted", why=follows)
    free = task.created
    attempts = task.attempts
    retried = task.retried
    if attempts and attempts[0].number > 1 and attempts[0].outcome is not AttemptEnd.PUT_OFF:
        yield _event(None, f"{_times(attempts[0].number - 1)} before these, no longer kept")
    for attempt in attempts:
        if retried is not None and retried <= attempt.started:
            yield _event(retried, "let wait again by a person")
            free, retried = max(free, retried), None
        yield _attempt_event(attempt, waited=attempt.started - free, page=page)
        free = attempt.ended or page.now
    if retried is not None:
        yield _event(retried, "let wait again by a person")
    yield _ending(task)
    yield _event(None, "next", why=next_step(page.seen, page.now))


def _attempt_event(attempt: TaskAttempt, *, waited: int, page: TaskPage) -> dict[str, Any]:
    goes_on = attempt.outcome is AttemptEnd.RUNNING
    took = ((page.now if goes_on else attempt.ended or attempt.started) - attempt.started) / 1_000_000
    progress = page.seen.value.progress if goes_on else attempt.progress
    return _event(
        attempt.started,
        f"attempt {attempt.number} " + _SAID[attempt.outcome],
        waited=_short(max(waited, 0) / 1_000_000),
        took=_short(max(took, 0)),
        who=attempt.owner,
        progress=_progress_text(progress),
        why=attempt.error or None,
    )


def _ending(task: Task) -> dict[str, Any]:
    match task.state:
        case TaskState.FAILED if task.failures < task.max_attempts:
            return _event(task.finished, "given up: trying again would not have helped")
        case TaskState.FAILED:
            return _event(task.finished, f"given up after {_times(task.failures)} that failed or were lost")
        case TaskState.CANCELLED:
            return _event(task.finished, "cancelled")
    return {}


def _event(at: Micros | None, what: str, **more: Any) -> dict[str, Any]:
    return {"time": time_field(at), "what": what} | {name: more.get(name) for name in _COLUMNS}


def _short(seconds: float) -> str | None:
    """A duration for people: milliseconds below ten seconds, seconds above."""
    return duration_field(round(seconds, 3) if seconds < 10 else round(seconds))


def _progress_text(progress: TaskProgress | None) -> str | None:
    if progress is None:
        return None
    of = "" if progress.total is None else f" of {progress.total}"
    return f"{progress.done}{of} {progress.unit}".rstrip()


_COLUMNS = ("waited", "took", "who", "progress", "why")
_SAID = {
    AttemptEnd.RUNNING: "runs",
    AttemptEnd.SUCCEEDED: "succeeded",
    AttemptEnd.FAILED: "failed",
    AttemptEnd.LOST: "was lost",
    AttemptEnd.HANDED_BACK: "was handed back",
    AttemptEnd.PUT_OFF: "was put off",
    AttemptEnd.CANCELLED: "was cancelled",
}


def _on_page(field: ViewField[Versioned[Task]]) -> ViewField[TaskPage]:
    return ViewField(field.name, field.about, lambda page: field.value(page.seen))


_IN_THE_STORY = ("next", "attempts", "error", "owner", "created", "finished", "after", "retried")

TASK_LINES: ResultView[Versioned[Task]] = ResultView(
    "task",
    "tasks",
    tuple(
        replace(field, value=lambda seen: _progress_text(seen.value.progress)) if field.name == "progress" else field
        for field in TASK.fields
    ),
)
"""The progress as text, for tables."""

TASK_PAGE: ResultView[TaskPage] = ResultView(
    "task page",
    "task pages",
    (
        *(_on_page(field) for field in TASK.fields if field.name not in _IN_THE_STORY),
        ViewField("story", "all that happened, oldest first", story),
    ),
)
"""The view of one task for people: its history replaces the fields that it includes."""

TASK_FIGURES: ResultView[FiguresRow] = ResultView(
    "task figures",
    "task figures",
    (
        ViewField("kind", "of these tasks", lambda r: r.kind, "KIND"),
        ViewField("waiting", "active, and nobody does them now", lambda r: _active(r, TaskState.WAITING), "WAITING"),
        ViewField("running", "being done", lambda r: _active(r, TaskState.RUNNING), "RUNNING"),
        ViewField("due", "waiting though they are due", lambda r: r.figures.due.get(r.kind, 0), "DUE"),
        ViewField(
            "oldestDueSeconds",
            "how long the one has waited that is due longest; null: none is due",
            lambda r: _rounded(r.figures.oldest_due_seconds.get(r.kind)),
            "OLDEST DUE",
        ),
        ViewField(
            "unreadable",
            "tasks that are listed and cannot be read",
            lambda r: r.figures.unreadable.get(r.kind, 0),
            "UNREADABLE",
        ),
        ViewField("retries", "failed or lost attempts of active tasks", lambda r: r.figures.retries.get(r.kind, 0), "RETRIES"),
        ViewField(
            "deadLetters",
            "given up, and nothing has followed them",
            lambda r: r.figures.dead_letters.get(r.kind, 0),
            "DEAD LETTERS",
        ),
        ViewField(
            "meanSeconds",
            "mean duration of the last that succeeded, one a subject; null: none did",
            lambda r: _rounded(r.figures.seconds.get(r.kind)),
            "MEAN SECONDS",
        ),
        ViewField(
            "longestSeconds",
            "the longest of these durations",
            lambda r: _rounded(r.figures.longest_seconds.get(r.kind)),
            "LONGEST",
        ),
    ),
)


def _active(row: FiguresRow, state: TaskState) -> int:
    return row.figures.active.get((row.kind, state), 0)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
