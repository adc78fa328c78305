"""The tasks of a store as numbers, for whoever watches over them.

What is asked of many tasks at once. The indexes say which to read; the objects decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypedDict

from headwater.clock import Micros
from headwater.commits import Head
from headwater.errors import CorruptionError
from headwater.store import ObjectId, ReadableRows, RealmStore, UnreadableRow, Versioned, id_text
from headwater.tasks.task import Task, TaskState
from headwater.tasks.task_index import (
    DUE,
    FINISHED,
    ActiveEntry,
    EndedEntry,
    TaskPlace,
    active_entries,
    ended_entries,
    entries_of_realm,
    task_places_of,
    time_key,
)


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


def task_figures_of(
    active: Iterable[ActiveEntry],
    ended: Iterable[EndedEntry],
    read: Mapping[ObjectId, Task],
    *,
    now: Micros,
    unreadable: Container[ObjectId] = (),
) -> TaskFigures:
    """Count entries.

    read          the tasks of those entries that do not tell enough; other active ones count as waiting
    """
    active, ended = list(active), list(ended)
    entries: list[ActiveEntry | EndedEntry] = [*active, *ended]
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


def _standings(active: Iterable[ActiveEntry], read: Mapping[ObjectId, Task]) -> Iterator[_Standing]:
    for entry in active:
        task = read.get(entry.id)
        if task is None:
            yield _Standing(entry.kind, TaskState.WAITING, entry.due, 0)
        elif task.is_active:  # or else it has ended, and its entries follow
            yield _Standing(task.kind, task.state, task.due, task.failures)


def _endings(ended: Iterable[EndedEntry], read: Mapping[ObjectId, Task]) -> Iterator[tuple[str, TaskState, float]]:
    for entry in ended:
        task = read.get(entry.id)
        if entry.state is not None and entry.seconds is not None:
            yield entry.kind, entry.state, entry.seconds
        elif task is not None and not task.is_active:
            last = task.attempts[-1] if task.attempts else None
            took = (last.ended or last.started) - last.started if last is not None else 0
            yield task.kind, task.state, took / 1_000_000


SeenTask = tuple[ObjectId, Versioned[Task] | CorruptionError]
"""A task's id, with the task or what is wrong with it."""
READ_AT_ONCE = 200
READ_FOR_FIGURES = 2000


class TaskQuery(TypedDict, total=False):
    """What a task must be to be listed; None, or nothing said: whatever it is.

    since         submitted at this time or later
    before        submitted before this time
    """

    state: TaskState | None
    kind: str | None
    realm: str | None
    subject: str | None
    since: Micros | None
    before: Micros | None


def matching_tasks(rows: RealmStore, at: Head, asked: TaskQuery) -> Iterator[SeenTask]:
    """The active tasks as they are due, then the others, those that ended last first; with those that cannot be read, and may match."""
    state = asked.get("state")
    # also for what has ended: whoever ended it may have died before its entries followed
    yield from _matching(_read_each(rows, _active(at, asked)), asked)
    if state is None or not state.is_active:
        yield from _matching(_read_each(rows, _finished(at, asked.get("since"))), asked)


def last_tasks_of_realm(rows: RealmStore, at: Head, realm: str) -> ReadableRows[Versioned[Task]]:
    """The active tasks; then, of each kind and subject, the one that ended last, the newest first."""
    found = tasks_named(at, _read_each(rows, entries_of_realm(at, realm)))
    found.sort(key=lambda one: (not one.value.is_active, -(one.value.finished or one.value.created)))
    return found


def tasks_named(at: Head, found: Iterable[SeenTask]) -> ReadableRows[Versioned[Task]]:
    """Those that can be read, and the others by what the indexes tell of them."""
    readable: list[Versioned[Task]] = []
    faults: dict[ObjectId, CorruptionError] = {}
    for task_id, seen in found:
        if isinstance(seen, CorruptionError):
            faults[task_id] = seen
        else:
            readable.append(seen)
    places = task_places_of(at, faults) if faults else {}
    return ReadableRows(
        readable, (unreadable_task(task_id, str(fault), places.get(task_id)) for task_id, fault in faults.items())
    )


def unreadable_task(task_id: ObjectId, fault: str, place: TaskPlace | None) -> UnreadableRow:
    name = id_text(task_id) if place is None else str(place)
    return UnreadableRow(what="task", id=task_id, name=name, realm="" if place is None else place.realm, fault=fault)


def read_task_figures(rows: RealmStore, at: Head, *, now: Micros, soon: Micros) -> TaskFigures:
    """The active tasks, and of each kind, realm and subject the one that ended last, as numbers.

    Costs two walks through indexes, and reads only tasks that can be anything but waiting for the first time: those due until
    ``soon``, of which the 2000 that are due longest; the others of a longer queue count as waiting.

    soon          now, and the longest wait between two attempts
    """
    active = sorted(active_entries(at))
    ids = [entry.id for entry in active if entry.due <= soon][:READ_FOR_FIGURES]
    retried = {entry.id for entry in active}
    ended = [entry for entry in ended_entries(at) if entry.id not in retried]
    ids += [entry.id for entry in ended if entry.state is None][:READ_FOR_FIGURES]
    found = dict(_read_each(rows, ids))
    read = {task_id: seen.value for task_id, seen in found.items() if isinstance(seen, Versioned)}
    return task_figures_of(active, ended, read, now=now, unreadable={task_id for task_id in found if task_id not in read})


def _matching(found: Iterable[SeenTask], asked: TaskQuery) -> Iterator[SeenTask]:
    since, before = asked.get("since"), asked.get("before")
    plain = {name: asked.get(name) for name in ("state", "kind", "realm", "subject") if asked.get(name) is not None}
    for task_id, seen in found:
        if isinstance(seen, CorruptionError):
            yield task_id, seen
            continue
        task = seen.value
        is_in_time = (since is None or task.created >= since) and (before is None or task.created < before)
        if is_in_time and all(getattr(task, name) == value for name, value in plain.items()):
            yield task_id, seen


def _active(at: Head, asked: TaskQuery) -> Iterator[ObjectId]:
    realm, kind, subject = asked.get("realm"), asked.get("kind"), asked.get("subject")
    if realm is None and kind is None and subject is None:
        return (value.object_id for _, value in at.index(DUE).range() if value.object_id is not None)
    entries = active_entries(at, realm)
    chosen = (entry for entry in entries if kind in (None, entry.kind) and subject in (None, entry.subject))
    return (entry.id for entry in sorted(chosen))


def _finished(at: Head, since: Micros | None) -> Iterator[ObjectId]:
    """What ended before a time was submitted before it, too."""
    entries = at.index(FINISHED).range(start=None if since is None else time_key(since), reverse=True)
    return (value.object_id for _, value in entries if value.object_id is not None)


def _read_each(rows: RealmStore, ids: Iterable[ObjectId]) -> Iterator[SeenTask]:
    rest = iter(ids)
    while block := list(islice(rest, READ_AT_ONCE)):
        for task_id, seen in zip(block, rows.read_each_versioned(block, Task), strict=True):
            if seen is not None:
                yield task_id, seen
