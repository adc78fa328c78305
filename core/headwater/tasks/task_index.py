"""The four indexes of the reference `tasks`, the queries and figures read from them, and how they follow the task objects.

    due       8 bytes due time, 8 bytes task id     every active task
    unique    realm NUL kind NUL subject            every active task; its data: 8 bytes due time under which `due` lists it,
                                                  then for a retry the token of the finished task that it was decided on
    finished  8 bytes end time, 8 bytes task id     every other task, until its history ends
    last      realm NUL kind NUL subject            the task that ended last, until its history ends; its data: the first letter of
                                                  its state, then 8 bytes for how long its last attempt took, in microseconds

`due` and `unique` change in the same commit, so an entry in one leads to that in the other, whatever the object says by now. The
indexes say which tasks to read; the objects decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypedDict

from headwater.clock import Micros
from headwater.commits import Head, Transaction
from headwater.errors import ConflictError, CorruptionError, RefusedError
from headwater.index import IndexValue
from headwater.store import ObjectId, ReadableRows, RealmStore, UnreadableRow, Versioned, id_text
from headwater.tasks.task import FollowUpTask, Task, TaskState

REFERENCE = "tasks"
DUE, UNIQUE, FINISHED, LAST = "due", "unique", "finished", "last"


_STATES = {state.value[:1].encode(): state for state in TaskState if not state.is_active}


def time_key(time: int, task_id: ObjectId | int = 0) -> bytes:
    return _eight_bytes(time) + _eight_bytes(task_id)


def due_of_key(key: bytes) -> Micros:
    return Micros(int.from_bytes(key[:8], "big"))


def unique_key(kind: str, realm: str, subject: str) -> bytes:
    return b"\0".join(part.encode() for part in (realm, kind, subject))


class ActiveEntry(NamedTuple):
    """An entry of `unique`."""

    due: Micros
    id: ObjectId
    realm: str
    kind: str
    subject: str


class EndedEntry(NamedTuple):
    """An entry of `last`. ``state`` and ``seconds`` are None where a release before this one wrote it."""

    id: ObjectId
    kind: str
    state: TaskState | None
    seconds: float | None


def active_entries(at: Head, realm: str | None = None) -> Iterator[ActiveEntry]:
    """All active tasks, or those of a realm, by realm, kind and subject: without a look at the objects, which decide."""
    index = at.index(UNIQUE)
    for key, value in index.range() if realm is None else index.prefix(realm.encode() + b"\0"):
        place = _place_of(key)
        if value.object_id is not None and place is not None:
            yield ActiveEntry(due_of_key(value.data), value.object_id, *place)


def ended_entries(at: Head) -> Iterator[EndedEntry]:
    """The task that ended last, for each realm, kind and subject."""
    for key, value in at.index(LAST).range():
        place, data = _place_of(key), value.data
        if value.object_id is not None and place is not None:
            seconds = int.from_bytes(data[1:9], "big") / 1_000_000 if data else None
            yield EndedEntry(value.object_id, place.kind, _STATES.get(data[:1]), seconds)


class TaskPlace(NamedTuple):
    """A task's realm, kind and subject, as a key of `unique` or `last` has them."""

    realm: str
    kind: str
    subject: str

    def __str__(self) -> str:
        return f"{self.kind} of realm {self.realm!r}" + (f" ({self.subject})" if self.subject else "")


def task_places_of(at: Head, task_ids: Container[ObjectId]) -> dict[ObjectId, TaskPlace]:
    """The places of tasks that cannot be read themselves. The indexes have none of a task that ended, and not last."""
    places = {}
    for name in (LAST, UNIQUE):
        for key, value in at.index(name).range():
            place = _place_of(key)
            if value.object_id is not None and value.object_id in task_ids and place is not None:
                places[value.object_id] = place
    return places


def _place_of(key: bytes) -> TaskPlace | None:
    """Read a key. None for a damaged one, which fsck reports: it must not keep callers from reading the others."""
    parts = [part.decode(errors="replace") for part in key.split(b"\0", 2)]
    return TaskPlace(*parts) if len(parts) == len(TaskPlace._fields) else None


def entries_of_realm(at: Head, realm: str) -> list[ObjectId]:
    """The active tasks of a realm, and the task that ended last for each kind and subject."""
    prefix = realm.encode() + b"\0"
    entries = (*at.index(UNIQUE).prefix(prefix), *at.index(LAST).prefix(prefix))
    return list(dict.fromkeys(value.object_id for _, value in entries if value.object_id is not None))


def add_task(tx: Transaction, task: Task) -> ObjectId:
    """Add a new task with its entries. Nothing active may hold its unique key."""
    task_id = tx.add_object(task)
    _list_active(tx, task_id, task)
    return task_id


def list_for_retry(tx: Transaction, seen: Versioned[Task], *, due: Micros) -> None:
    """List a finished task among the active ones again. The entry has the token that the task had then.

    This decides the retry. The first process that sees it changes the object, and only once: a token that has passed never comes back.

    raises        RefusedError when its history has ended: what no index holds may be collected
    """
    task = seen.value
    assert task.finished is not None
    if not tx.index(FINISHED).get(time_key(task.finished, seen.id)):
        raise _forgotten(seen)
    tx.index(FINISHED).remove(time_key(task.finished, seen.id))
    tx.index(DUE).put(time_key(due, seen.id), IndexValue(seen.id, b""))
    tx.index(UNIQUE).put(
        unique_key(task.kind, task.realm, task.subject), IndexValue(seen.id, _eight_bytes(due) + seen.token.encode())
    )


def check_retry(rows: RealmStore, at: Head | None, seen: Versioned[Task]) -> None:
    """Pass if a finished task can be listed again, as far as the indexes tell now.

    raises        ConflictError when another one is active in its place; RefusedError when its history has ended
    """
    task = seen.value
    held = None if at is None else at.index(UNIQUE).get(unique_key(task.kind, task.realm, task.subject))
    if held is not None and held.object_id == seen.id:
        return  # its entries have not followed it yet
    if held is not None and held.object_id is not None:
        holder = rows.find_versioned(held.object_id, Task)
        if holder is not None and (holder.value.is_active or _is_retry(held, holder)):
            raise place_taken(seen, holder.id)
    if at is None or task.finished is None or at.index(FINISHED).get(time_key(task.finished, seen.id)) is None:
        raise _forgotten(seen)


def place_taken(seen: Versioned[Task], holder: ObjectId) -> ConflictError:
    """The error for a task that cannot be retried because another one is active in its place."""
    return ConflictError(
        f"task {id_text(seen.id)} ({seen.value}) cannot be retried: task {id_text(holder)} is active in its place"
    )


def _forgotten(seen: Versioned[Task]) -> RefusedError:
    return RefusedError(f"task {id_text(seen.id)} ({seen.value}) is no longer in the history: submit a new one")


def due_of_retry(at: Head, seen: Versioned[Task]) -> Micros | None:
    """The due time of a retry that was decided, and that the object does not show yet; None if there is none."""
    held = at.index(UNIQUE).get(unique_key(seen.value.kind, seen.value.realm, seen.value.subject))
    return due_of_key(held.data) if held is not None and _is_retry(held, seen) else None


def settle_task_entry(tx: Transaction, seen: Versioned[Task]) -> None:
    """Make the entries of one task agree with its object, as just read. Edits nothing if they do.

    A finished task's follow-up is added by the commit that takes the task out of `due`: there is exactly one such commit.
    Settle one task a commit: a task that this commit adds cannot be read yet.
    """
    task = seen.value
    key = unique_key(task.kind, task.realm, task.subject)
    held = tx.index(UNIQUE).get(key)
    if held is None or held.object_id != seen.id or _is_retry(held, seen):
        return
    listed = time_key(due_of_key(held.data), seen.id)
    if task.is_active:
        if listed != time_key(task.due, seen.id):
            tx.index(DUE).remove(listed)
            _list_active(tx, seen.id, task)
        return
    assert task.finished is not None
    tx.index(DUE).remove(listed)
    tx.index(UNIQUE).remove(key)
    tx.index(FINISHED).put(time_key(task.finished, seen.id), IndexValue(seen.id, b""))
    tx.index(LAST).put(key, IndexValue(seen.id, _ending(task)))
    if task.follow_up is not None:
        _add_follow_up(tx, task.follow_up, seen)


def forget_task_entry(tx: Transaction, *, end: bytes, limit: int) -> int:
    """Take finished tasks that ended before a time off the indexes; returns how many: at most ``limit``."""
    listed = [(key, value.object_id) for key, value in tx.index(FINISHED).range(end=end, limit=limit)]
    tasks = tx.reader.read_each([task_id for _, task_id in listed if task_id is not None], Task)
    for key, _ in listed:
        tx.index(FINISHED).remove(key)
    ended = {unique_key(task.kind, task.realm, task.subject) for task in tasks if isinstance(task, Task)}
    if any(isinstance(task, CorruptionError) for task in tasks):  # their keys are not known
        ended |= {key for key, _ in tx.index(LAST).range()}
    gone = {task_id for _, task_id in listed}
    for key in ended:
        last = tx.index(LAST).get(key)
        if last is not None and last.object_id in gone:
            tx.index(LAST).remove(key)
    return len(listed)


def active_holder(tx: Transaction, key: bytes) -> ObjectId | None:
    """The active task that holds a unique key. A finished one that still stands there is settled on the way.

    raises        CorruptionError when the entry names a task that is not there
    """
    held = tx.index(UNIQUE).get(key)
    if held is None or held.object_id is None:
        return None
    seen = tx.reader.find_versioned(held.object_id, Task)
    if seen is None:
        raise CorruptionError(
            f"reference {REFERENCE!r} names task {id_text(held.object_id)}, which is not there: run `headwater fsck`"
        )
    if seen.value.is_active or _is_retry(held, seen):
        return held.object_id
    settle_task_entry(tx, seen)
    renewed = tx.index(UNIQUE).get(key)
    return renewed.object_id if renewed else None


def _list_active(tx: Transaction, task_id: ObjectId, task: Task) -> None:
    tx.index(DUE).put(time_key(task.due, task_id), IndexValue(task_id, b""))
    tx.index(UNIQUE).put(unique_key(task.kind, task.realm, task.subject), IndexValue(task_id, _eight_bytes(task.due)))


def _is_retry(held: IndexValue, seen: Versioned[Task]) -> bool:
    return held.object_id == seen.id and not seen.value.is_active and held.data[8:] == seen.token.encode()


def _eight_bytes(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _ending(task: Task) -> bytes:
    last = task.attempts[-1] if task.attempts else None
    took = last.ended - last.started if last is not None and last.ended is not None else 0
    return task.state.value[:1].encode() + _eight_bytes(took)


def _add_follow_up(tx: Transaction, follow_up: FollowUpTask, seen: Versioned[Task]) -> None:
    before = seen.value
    assert before.finished is not None
    if active_holder(tx, unique_key(follow_up.kind, follow_up.realm, follow_up.subject)) is not None:
        return
    task = Task(
        kind=follow_up.kind,
        realm=follow_up.realm,
        realm_key=follow_up.realm_key,
        subject=follow_up.subject,
        arguments=follow_up.arguments,
        created=before.finished,
        due=Micros(before.finished + round(follow_up.delay_seconds * 1_000_000)),
        max_attempts=follow_up.max_attempts or before.max_attempts,
        after=seen.id,
    )
    add_task(tx, task)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """The tasks of a store as numbers, for monitoring.

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
    for standing in _standings(active, read):
        states[standing.kind, standing.state] += 1
        retries[standing.kind] += standing.failures
        if standing.state is TaskState.WAITING and standing.due <= now:
            ages.setdefault(standing.kind, []).append((now - standing.due) / 1_000_000)
    endings = list(_endings(ended, read))
    dead = Counter(kind for kind, state, _ in endings if state is TaskState.FAILED)
    seconds: dict[str, list[float]] = {}
    for kind, state, took in endings:
        if state is TaskState.SUCCEEDED:
            seconds.setdefault(kind, []).append(took)
    return TaskFigures(
        active=dict(states),
        due={kind: len(waits) for kind, waits in ages.items()},
        oldest_due_seconds={kind: max(waits) for kind, waits in ages.items()},
        dead_letters=dict(dead),
        retries={kind: count for kind, count in retries.items() if count},
        seconds={kind: sum(taken) / len(taken) for kind, taken in seconds.items()},
        longest_seconds={kind: max(taken) for kind, taken in seconds.items()},
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
    """The conditions on a listed task; None or a missing one: no condition.

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
    """The active tasks in due order, then the others, the last ended first; with those that cannot be read, and may match."""
    state = asked.get("state")
    # The active entries are read for ended tasks, too: the worker may have died before the entries followed its task.
    yield from _matching(_read_each(rows, _active(at, asked)), asked)
    if state is None or not state.is_active:
        yield from _matching(_read_each(rows, _finished(at, asked.get("since"))), asked)


def last_tasks_of_realm(rows: RealmStore, at: Head, realm: str) -> ReadableRows[Versioned[Task]]:
    """The active tasks, then the task that ended last for each kind and subject, the newest first."""
    tasks = tasks_named(at, _read_each(rows, entries_of_realm(at, realm)))
    tasks.sort(key=lambda task: (not task.value.is_active, -(task.value.finished or task.value.created)))
    return tasks


def tasks_named(at: Head, tasks: Iterable[SeenTask]) -> ReadableRows[Versioned[Task]]:
    """The tasks that can be read, and the places of those that cannot."""
    readable: list[Versioned[Task]] = []
    faults: dict[ObjectId, CorruptionError] = {}
    for task_id, seen in tasks:
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
    """Figures of the active tasks, and of the task that ended last for each kind, realm and subject.

    Costs two walks through indexes, and reads only tasks that can be anything but waiting for the first time: those due until
    ``soon``, of which the 2000 that are due longest; the others of a longer queue count as waiting.

    soon          now, and the longest wait between two attempts
    """
    active = sorted(active_entries(at))
    ids = [entry.id for entry in active if entry.due <= soon][:READ_FOR_FIGURES]
    retried = {entry.id for entry in active}
    ended = [entry for entry in ended_entries(at) if entry.id not in retried]
    ids += [entry.id for entry in ended if entry.state is None][:READ_FOR_FIGURES]
    task_of = dict(_read_each(rows, ids))
    read = {task_id: seen.value for task_id, seen in task_of.items() if isinstance(seen, Versioned)}
    return task_figures_of(active, ended, read, now=now, unreadable={task_id for task_id in task_of if task_id not in read})


def _matching(tasks: Iterable[SeenTask], asked: TaskQuery) -> Iterator[SeenTask]:
    since, before = asked.get("since"), asked.get("before")
    plain = {name: asked.get(name) for name in ("state", "kind", "realm", "subject") if asked.get(name) is not None}
    for task_id, seen in tasks:
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
    """The ended tasks, the last ended first. A task that ended before ``since`` was submitted before it, too."""
    entries = at.index(FINISHED).range(start=None if since is None else time_key(since), reverse=True)
    return (value.object_id for _, value in entries if value.object_id is not None)


def _read_each(rows: RealmStore, ids: Iterable[ObjectId]) -> Iterator[SeenTask]:
    rest = iter(ids)
    while block := list(islice(rest, READ_AT_ONCE)):
        for task_id, seen in zip(block, rows.read_each_versioned(block, Task), strict=True):
            if seen is not None:
                yield task_id, seen
