"""The output of `up`: each change of a task as one line, and at its end the state of the store and what was done, as plain data and
text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from headwater.catalogs import Catalogs, ContentType
from headwater.clock import Micros, as_text
from headwater.console import ResultView, ViewField, count_text
from headwater.outcome_text import outcome_lines
from headwater.realms import RealmRegistry, RealmState
from headwater.reconcile import Notice, ReconcileOutcome, WaitUntil
from headwater.store import ObjectId, Store, Versioned, id_text
from headwater.tasks import AttemptEnd, Task, TaskQueue, TaskState
from headwater.terminal import progress_words

RECENT = 1000
"""The number of tasks that are read: all active ones, and the most recently finished ones."""


class TaskWatcher:
    """Remembers what was printed of each task, and prints what is new.

    tell          prints one line
    """

    def __init__(self, tasks: TaskQueue, tell: Callable[[str], None]) -> None:
        self._tasks = tasks
        self._tell = tell
        self._known = {task.id: task.value for task in tasks.list_tasks(limit=RECENT) if not task.value.is_active}
        self._mine: dict[ObjectId, Versioned[Task]] = {}

    def poll(self) -> list[Versioned[Task]]:
        """Print what changed since the last call; returns the active tasks."""
        tasks = self._tasks.list_tasks(limit=RECENT)
        if len(tasks) == RECENT and tasks[-1].value.is_active:
            tasks = self._tasks.list_tasks()  # there may be more active ones
        for task in tasks:
            before = self._known.get(task.id)
            if before == task.value:
                continue
            for line in task_changes(task.id, before, task.value):
                self._tell(line)
            self._known[task.id] = task.value
            self._mine[task.id] = task
        return [task for task in tasks if task.value.is_active]

    @property
    def seen(self) -> Sequence[Versioned[Task]]:
        """Every task that was active since the start, in its last known state."""
        return list(self._mine.values())


def task_changes(task_id: ObjectId, before: Task | None, now: Task) -> list[str]:
    """A line for each change of a task that a person wants to see."""
    name = f"task {id_text(task_id)} {now}"
    begun = before is None or now.attempt > before.attempt
    lines = _lost(name, before, now)
    if now.state is TaskState.RUNNING and begun:
        lines.append(f"{name}: started" + (f", attempt {now.attempt}" if now.attempt > 1 else ""))
    if now.state is TaskState.RUNNING and now.progress is not None and (before is None or now.progress != before.progress):
        lines.append(f"{name}: {progress_words(now.progress.done, now.progress.total, now.progress.unit)}")
    if now.state is not TaskState.RUNNING and (begun or (before is not None and now.state is not before.state)):
        lines += _left(name, now)
    return lines


def spent_seconds(task: Task) -> float:
    """The total duration of its attempts."""
    return sum((attempt.ended - attempt.started) / 1e6 for attempt in task.attempts if attempt.ended is not None)


def duration_words(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


def _lost(name: str, before: Task | None, now: Task) -> list[str]:
    """The attempts that were lost since, where the task continues."""
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
    return [f"{name}: {told} after {count_text(now.attempt, 'attempt')}, {duration_words(spent_seconds(now))}{why}"]


def is_due(task: Task, *, until: Micros) -> bool:
    """Whether an active task becomes due before a time."""
    return task.state is TaskState.RUNNING or task.due <= until


GONE, UNREADABLE = "GONE", "UNREADABLE"
TABLES = (ContentType.ICEBERG_TABLE, ContentType.DELTA_LAKE_TABLE)


SUMMARY: ResultView[Mapping[str, Any]] = ResultView(
    "summary",
    "summaries",
    (
        ViewField(
            "realms",
            "all realms, and those that went meanwhile",
            inside={
                "[].id": "what users call the realm",
                "[].state": "where it stands in its life, or GONE",
                "[].catalogs[].name": "a catalog of a realm that is ACTIVE or INACTIVE",
                "[].catalogs[].tables": "how many tables are on its default branch",
            },
        ),
        ViewField(
            "tasks",
            "what was done or seen meanwhile, and what waits",
            inside={
                "[].id": "the task's id",
                "[].kind": "gc, file-gc, purge, purge-table, import, export, load or restore",
                "[].realm": "the realm's id",
                "[].subject": "what within the realm, such as a catalog",
                "[].state": "as in a [task](#task)",
                "[].attempts": "how many there were",
                "[].seconds": "how long they took together",
                "[].due": "not done before",
                "[].error": "what the last attempt failed of",
                "[].outcome": "what came out, by kind of task",
            },
        ),
        ViewField(
            "waiting",
            "what does not match the manifests, or is not done yet",
            inside={
                "[].subject": "a manifest or a task",
                "[].reason": "one word for programs",
                "[].message": "a sentence for people",
                "[].until": "then it can be done; null when it is not a matter of time alone",
            },
        ),
    ),
)


def summary(
    store: Store, tasks: Sequence[Versioned[Task]], outcomes: Sequence[ReconcileOutcome], *, realms_before: Collection[str] = ()
) -> dict[str, Any]:
    """Realms with their catalogs, the tasks given, and what waits, as plain data.

    realms_before  those that no longer exist are listed as GONE
    """
    realms = RealmRegistry(store)
    now = realms.list_realms()
    unreadable = [row.realm for row in now.unreadable]
    gone = sorted(set(realms_before) - {realm.id for realm in now} - set(unreadable))
    return {
        "realms": [
            {
                "id": realm.id,
                "state": str(realm.state),
                "catalogs": _catalogs(realms, realm.id) if _is_served(realm.state) else [],
            }
            for realm in now
        ]
        + [{"id": realm_id, "state": UNREADABLE, "catalogs": []} for realm_id in unreadable]
        + [{"id": realm_id, "state": GONE, "catalogs": []} for realm_id in gone],
        "tasks": [_task(task) for task in sorted(tasks, key=lambda task: task.value.created)],
        "waiting": [*_waiting(tasks), *_notices(outcomes)],
    }


def _is_served(state: RealmState) -> bool:
    return state in (RealmState.ACTIVE, RealmState.INACTIVE)


def _catalogs(realms: RealmRegistry, realm_id: str) -> list[dict[str, Any]]:
    catalogs = Catalogs(realms.open_realm(realm_id))
    opened = [catalogs.open_catalog(definition.name) for definition in catalogs.list_catalogs()]
    counted = [(catalog.definition.name, catalog.counts()) for catalog in opened]
    return [{"name": name, "tables": sum(counts.get(kind, 0) for kind in TABLES)} for name, counts in counted]


def _task(listed: Versioned[Task]) -> dict[str, Any]:
    task = listed.value
    return {
        "id": id_text(listed.id),
        "kind": task.kind,
        "realm": task.realm,
        "subject": task.subject,
        "state": str(task.state),
        "attempts": task.attempt,
        "seconds": round(spent_seconds(task), 3),
        "due": as_text(task.due),
        "error": task.error or None,
        "outcome": task.outcome,
    }


def _waiting(tasks: Sequence[Versioned[Task]]) -> list[dict[str, Any]]:
    waiting = [listed.value for listed in tasks if listed.value.state is TaskState.WAITING]
    return [
        {
            "subject": str(task),
            "reason": "NotDue",
            "message": f"attempt {task.attempt + 1} is due later" if task.attempt else "is due later",
            "until": as_text(task.due),
        }
        for task in waiting
    ]


def _notices(outcomes: Sequence[ReconcileOutcome]) -> list[dict[str, Any]]:
    return [notice for outcome in outcomes for notice in _notices_of(outcome)]


def _notices_of(outcome: ReconcileOutcome) -> list[dict[str, Any]]:
    notices: list[Notice] = [*outcome.waits, *outcome.refused, *outcome.reports]
    told = [_notice(outcome, one.reason, one.message, one.until if isinstance(one, WaitUntil) else None) for one in notices]
    return told + [_notice(outcome, type(error).__name__, str(error)) for error in outcome.errors]


def _notice(outcome: ReconcileOutcome, reason: str, message: str, until: Micros | None = None) -> dict[str, Any]:
    return {"subject": outcome.subject, "reason": reason, "message": message, "until": as_text(until) if until else None}


def summary_text(data: Mapping[str, Any]) -> str:
    """The summary as text for people."""
    lines = ["", "Realms"]
    for realm in data["realms"]:
        lines.append(f"  {realm['id']}   {realm['state']}")
        lines += [f"    catalog {catalog['name']}: {count_text(catalog['tables'], 'table')}" for catalog in realm["catalogs"]]
    lines += [] if data["realms"] else ["  none"]
    done = [task for task in data["tasks"] if task["state"] != TaskState.WAITING]
    lines += ["Tasks"] + [line for task in done for line in _task_lines(task)] + ([] if done else ["  none was done"])
    if data["waiting"]:
        lines.append("Waiting")
        lines += [_waiting_line(item) for item in data["waiting"]]
    return "\n".join(lines)


def _task_lines(task: Mapping[str, Any]) -> list[str]:
    what = " ".join(word for word in (task["kind"], task["realm"], task["subject"]) if word)
    told = f"{count_text(task['attempts'], 'attempt')}, {duration_words(task['seconds'])}"
    lines = [f"  {what}   {task['state']}   {told}"]
    if task["error"] and task["state"] != TaskState.SUCCEEDED:
        lines.append(f"    {task['error']}")
    return lines + [f"    {line}" for line in outcome_lines(task["kind"], task["outcome"] or {})]


def _waiting_line(item: Mapping[str, Any]) -> str:
    until = f" (until {item['until']})" if item["until"] else ""
    return f"  {item['subject']}: {item['message']}{until}"
