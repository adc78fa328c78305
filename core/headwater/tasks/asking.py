"""What is asked of many tasks at once. The indexes say which to read; the objects decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypedDict

from headwater.clock import Micros
from headwater.commits import Head
from headwater.errors import UnreadableError
from headwater.store import ObjectId, ReadableRows, RealmStore, UnreadableRow, Versioned, id_text
from headwater.tasks.entries import DUE, FINISHED, TaskPlace, active_entries, ended_entries, of_realm, places_of, time_key
from headwater.tasks.figures import TaskFigures, figures_of
from headwater.tasks.task import Task, TaskState

__all__ = ["READ_AT_ONCE", "Asked", "figures", "last_of_realm", "matching", "named", "unreadable_task"]

SeenTask = tuple[ObjectId, Versioned[Task] | UnreadableError]
"""A task's id, with the task or what is wrong with it."""
READ_AT_ONCE = 200
READ_FOR_FIGURES = 2000


class Asked(TypedDict, total=False):
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


def matching(rows: RealmStore, at: Head, asked: Asked) -> Iterator[SeenTask]:
    """The active tasks as they are due, then the others, those that ended last first; with those that cannot be read, and may match."""
    state = asked.get("state")
    # also for what has ended: whoever ended it may have died before its entries followed
    yield from _matching(_read_each(rows, _active(at, asked)), asked)
    if state is None or not state.is_active:
        yield from _matching(_read_each(rows, _finished(at, asked.get("since"))), asked)


def last_of_realm(rows: RealmStore, at: Head, realm: str) -> ReadableRows[Versioned[Task]]:
    """The active tasks; then, of each kind and subject, the one that ended last, the newest first."""
    found = named(at, _read_each(rows, of_realm(at, realm)))
    found.sort(key=lambda one: (not one.value.is_active, -(one.value.finished or one.value.created)))
    return found


def named(at: Head, found: Iterable[SeenTask]) -> ReadableRows[Versioned[Task]]:
    """Those that can be read, and the others by what the indexes tell of them."""
    readable: list[Versioned[Task]] = []
    faults: dict[ObjectId, UnreadableError] = {}
    for task_id, seen in found:
        if isinstance(seen, UnreadableError):
            faults[task_id] = seen
        else:
            readable.append(seen)
    places = places_of(at, faults) if faults else {}
    return ReadableRows(
        readable, (unreadable_task(task_id, str(fault), places.get(task_id)) for task_id, fault in faults.items())
    )


def unreadable_task(task_id: ObjectId, fault: str, place: TaskPlace | None) -> UnreadableRow:
    name = id_text(task_id) if place is None else str(place)
    return UnreadableRow(what="task", id=task_id, name=name, realm="" if place is None else place.realm, fault=fault)


def figures(rows: RealmStore, at: Head, *, now: Micros, soon: Micros) -> TaskFigures:
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
    return figures_of(active, ended, read, now=now, unreadable={task_id for task_id in found if task_id not in read})


def _matching(found: Iterable[SeenTask], asked: Asked) -> Iterator[SeenTask]:
    since, before = asked.get("since"), asked.get("before")
    plain = {name: asked.get(name) for name in ("state", "kind", "realm", "subject") if asked.get(name) is not None}
    for task_id, seen in found:
        if isinstance(seen, UnreadableError):
            yield task_id, seen
            continue
        task = seen.value
        is_in_time = (since is None or task.created >= since) and (before is None or task.created < before)
        if is_in_time and all(getattr(task, name) == value for name, value in plain.items()):
            yield task_id, seen


def _active(at: Head, asked: Asked) -> Iterator[ObjectId]:
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
