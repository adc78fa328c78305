"""Check the indexes of tasks against the task objects, and repair them.

A process that meets a stale entry repairs it, so this is mostly for entries that nobody meets: of tasks that are not due for long,
and of tasks that do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from headwater.commits import Head, Transaction, commit_change, read_head
from headwater.errors import CorruptionError, NotFoundError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore, UnreadableRow, Versioned, id_text
from headwater.tasks.task import Task
from headwater.tasks.task_index import (
    DUE,
    FINISHED,
    LAST,
    REFERENCE,
    UNIQUE,
    due_of_key,
    settle_task_entry,
    task_places_of,
    time_key,
    unique_key,
    unreadable_task,
)

_INDEXES = (DUE, UNIQUE, FINISHED, LAST)
_AT_ONCE = 200
_Entry = tuple[bytes, IndexValue]


@dataclass(frozen=True, slots=True)
class EntryFault:
    """An entry that contradicts its task; ``is_missing``: the task itself is not there; ``is_unreadable``: it cannot be read."""

    index: str
    key: bytes
    task: ObjectId
    text: str
    is_missing: bool
    is_unreadable: bool = False


def entry_faults(rows: RealmStore) -> Iterator[EntryFault]:
    """Every entry of the reference `tasks` that names a task which is not there, or says something else than the task.

    raises        CorruptionError when the reference cannot be read
    """
    try:
        at = read_head(rows, REFERENCE, fresh=True)
    except NotFoundError:
        return
    if at is None:
        return
    for index in _INDEXES:
        entries = at.index(index).range()
        while block := list(islice(entries, _AT_ONCE)):
            yield from _faults(rows, at, index, block)


def unreadable_tasks(rows: RealmStore) -> list[UnreadableRow]:
    """The tasks that an index names and that cannot be read, each with its place in the indexes."""
    faults = {fault.task: fault for fault in entry_faults(rows) if fault.is_unreadable}
    at = read_head(rows, REFERENCE, fresh=True) if faults else None
    places = {} if at is None else task_places_of(at, faults)
    return [unreadable_task(task_id, fault.text, places.get(task_id)) for task_id, fault in faults.items()]


def mend_entries(rows: RealmStore, *, fence: Callable[[], None] | None = None) -> int:
    """Remove the entries of tasks that are not there, and settle the others; returns how many tasks that touched."""
    faults = list(entry_faults(rows))
    lost = [fault for fault in faults if fault.is_missing]
    if lost:
        commit_change(rows, REFERENCE, lambda tx: _remove(tx, lost), message=f"take {len(lost)} lost tasks off", fence=fence)
    stale: dict[ObjectId, list[tuple[str, bytes]]] = {}
    for fault in faults:
        if not fault.is_missing and not fault.is_unreadable:
            stale.setdefault(fault.task, []).append((fault.index, fault.key))
    for task_id, keys in stale.items():
        commit_change(
            rows,
            REFERENCE,
            partial(_settle, task_id=task_id, keys=keys),
            message=f"settle task {id_text(task_id)}",
            fence=fence,
        )
    return len({fault.task for fault in lost}) + len(stale)


def _faults(rows: RealmStore, at: Head, index: str, block: list[_Entry]) -> Iterator[EntryFault]:
    ids = [value.object_id or ObjectId(0) for _, value in block]
    wanted = [task_id for task_id in ids if task_id]
    task_of = dict(zip(wanted, rows.read_each_versioned(wanted, Task), strict=True))
    for (key, value), task_id in zip(block, ids, strict=True):
        seen = task_of.get(task_id)
        if seen is None:
            yield EntryFault(index, key, task_id, f"index {index!r} names task {id_text(task_id)}, which is not there", True)
        elif isinstance(seen, CorruptionError):
            yield EntryFault(index, key, task_id, f"index {index!r} names task {id_text(task_id)}: {seen}", False, True)
        elif text := _contradiction(at, index, key, value, seen):
            yield EntryFault(index, key, task_id, f"index {index!r} lists task {id_text(task_id)} ({seen.value}) {text}", False)


def _contradiction(at: Head, index: str, key: bytes, value: IndexValue, seen: Versioned[Task]) -> str:
    task = seen.value
    unique = unique_key(task.kind, task.realm, task.subject)
    if index == DUE:
        held = at.index(UNIQUE).get(unique)
        if held is None or held.object_id != seen.id or due_of_key(held.data) != due_of_key(key):
            return "without its other entry"
        return (
            ""
            if task.is_active and task.due == due_of_key(key)
            else f"as due at another time than it is, or though it is {task.state}"
        )
    if index == UNIQUE:
        if key != unique:
            return "under the name of another"
        return "" if at.index(DUE).get(time_key(due_of_key(value.data), seen.id)) is not None else "without its other entry"
    if index == FINISHED:
        return "as ended, which it is not" if task.is_active or task.finished != due_of_key(key) else ""
    return "" if key == unique else "under the name of another"


def _remove(tx: Transaction, lost: list[EntryFault]) -> None:
    """Remove those entries that still name a task which is not there."""
    gone = {fault.task for fault in lost if not fault.task or tx.reader.find_versioned(fault.task, Task) is None}
    for fault in lost:
        held = tx.index(fault.index).get(fault.key)
        if held is not None and (held.object_id or ObjectId(0)) in gone:
            tx.index(fault.index).remove(fault.key)


def _settle(tx: Transaction, task_id: ObjectId, keys: list[tuple[str, bytes]]) -> None:
    """Remove what is wrong beyond settling, list what lost its other entry, and settle the task."""
    seen = tx.reader.find_versioned(task_id, Task)
    if seen is None:
        return
    task, unique = seen.value, unique_key(seen.value.kind, seen.value.realm, seen.value.subject)
    held = tx.index(UNIQUE).get(unique)
    due = time_key(due_of_key(held.data), task_id) if held is not None and held.object_id == task_id else b""
    for index, key in keys:
        value = tx.index(index).get(key)
        if value is not None and value.object_id == task_id and not _belongs(task, index, key, unique, due):
            tx.index(index).remove(key)
    if held is None and task.is_active:
        due = time_key(task.due, task_id)
        tx.index(UNIQUE).put(unique, IndexValue(task_id, due[:8]))
    if due and tx.index(DUE).get(due) is None:
        tx.index(DUE).put(due, IndexValue(task_id, b""))
    settle_task_entry(tx, seen)


def _belongs(task: Task, index: str, key: bytes, unique: bytes, due: bytes) -> bool:
    """Whether an entry is where the task's entry in that index is; what it says there is for ``settle_task_entry`` to judge."""
    if index == FINISHED:
        return not task.is_active and task.finished == due_of_key(key)
    return key == (due if index == DUE else unique)
