"""The plain loop that combined commits are held against: read the reference, run the change, write, swap, back off when beaten.

It does the same work as ``headwater.commits.commit_change`` for one change, with the same index and the same objects, and none of the rest:
nobody waits for anybody, nothing is combined. What a lost attempt wrote is left to the collector, which makes the loop faster.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from benchmarks.tables import limits_of

from headwater.clock import Micros
from headwater.commits import Commit, Operation, load_head
from headwater.errors import CommitTimeoutError, SwapConflictError
from headwater.index import Index, IndexEditor, IndexValue
from headwater.store import ObjectId, RealmStore, Reference, StoredObject

__all__ = ["Change", "plain_commit"]

TAIL = 20
Change = Callable[[IndexEditor, Callable[[StoredObject], ObjectId]], None]
"""Edits an index; the second argument adds an object."""


def plain_commit(rows: RealmStore, reference: str, index: str, change: Change) -> int:
    """Commit one change; returns how many attempts it took.

    raises        CommitTimeoutError after the same time-out as ours
    """
    settings, started = rows.settings, time.monotonic()
    longest, attempts = settings.commit_backoff_seconds * 5, 0
    while time.monotonic() - started < settings.commit_timeout_seconds:
        attempts += 1
        if _attempt(rows, reference, index, change):
            return attempts
        time.sleep(random.uniform(settings.commit_backoff_seconds, longest))
        longest = min(longest * 2, settings.commit_backoff_limit_seconds)
    elapsed = time.monotonic() - started
    raise CommitTimeoutError(f"beaten {attempts} times in {elapsed:.1f} s", attempts=attempts, elapsed_seconds=elapsed)


def _attempt(rows: RealmStore, reference: str, index: str, change: Change) -> bool:
    seen = rows.read_reference(reference, fresh=True)
    objects, commit_id = _prepared(rows, seen, index, change)
    rows.write_objects(objects)
    try:
        rows.advance_reference(seen, commit_id)
    except SwapConflictError:
        return False
    return True


def _prepared(
    rows: RealmStore, seen: Reference, index: str, change: Change
) -> tuple[list[tuple[ObjectId, StoredObject]], ObjectId]:
    head = load_head(rows, seen)
    editor = IndexEditor(Index() if head is None else head.index(index))
    added: list[tuple[ObjectId, StoredObject]] = []

    def add(value: StoredObject) -> ObjectId:
        added.append((rows.new_id(), value))
        return added[-1][0]

    change(editor, add)
    stored = editor.stored(rows.new_ids, limits_of(rows))
    parent = None if head is None else head.commit
    new = Commit(
        seq=1 if parent is None else parent.seq + 1,
        tail=() if head is None else (head.id, *head.commit.tail)[:TAIL],
        time=Micros(max(rows.clock.now(), 0 if parent is None else parent.time + 1)),
        operations=tuple(_operation(index, key, value) for key, value in editor.changes()),
        indexes=(dict(parent.indexes) if parent else {}) | {index: stored.container},
    )
    commit_id = rows.new_id()
    return [*added, *stored.objects, (commit_id, new)], commit_id


def _operation(index: str, key: bytes, value: IndexValue | None) -> Operation:
    if value is None:
        return Operation(index, key, removed=True)
    return Operation(index, key, object_id=value.object_id, data=value.data)
