"""The commits that a branch or tag pointed to last, and whether each is there and can be read.

A row keeps the twenty pointers that it left last. After the loss of a part of a database, such as a fail-over to a replica that lagged,
the newest of them that is sound is where work can go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from headwater.catalogs.content_operations import CONTENT
from headwater.catalogs.history.commit_meta import LogEntry, log_entry
from headwater.catalogs.registry import NamedRef
from headwater.commits import Commit, Head, LogRange, read_log
from headwater.errors import CorruptionError, ExpiredError
from headwater.settings import check_count
from headwater.store import ObjectId, RealmReader, Reference, StoredObject

SCANNED = 1_000
"""The most commits of a log that are checked."""
_CONTENTS = 1_000
"""The most contents of a commit that are looked for."""
_SCANNED_CONTENTS = 10_000
"""The most contents of a scanned log that are looked for; of older commits only themselves."""


class PointerState(StrEnum):
    """What the check of a commit showed, from best to worst."""

    NOT_CHECKED = "NOT_CHECKED"
    COMMIT_CONSISTENT = "COMMIT_CONSISTENT"
    COMMIT_CONTENT_INCONSISTENT = "COMMIT_CONTENT_INCONSISTENT"
    """The commit is there; its index, or a content that it put, is not."""
    COMMIT_INCONSISTENT = "COMMIT_INCONSISTENT"
    """The commit is not there, or cannot be read."""


@dataclass(frozen=True, slots=True)
class RecentPointer:
    """A commit that a reference points to, or pointed to. ``entry`` is None where it cannot be read."""

    commit_id: ObjectId
    state: PointerState
    entry: LogEntry | None


@dataclass(frozen=True, slots=True)
class RecentPointers:
    """The commits that a reference pointed to last.

    current       None: nothing was committed yet
    previous      newest first
    log           the worst of what the check of its log showed
    """

    ref: NamedRef
    current: RecentPointer | None
    previous: tuple[RecentPointer, ...]
    log: PointerState


def check_pointers(rows: RealmReader, ref: NamedRef, row: Reference, *, scan: int) -> RecentPointers:
    """Check the pointer of a row, and those that it left.

    scan          check so many commits of the log, too; more than ``SCANNED`` are not
    raises        RefusedError for a scan below 0
    """
    check_count(scan + 1, "commits of a log to be checked, and one")
    ids = [*(() if row.pointer is None else (row.pointer,)), *row.recent]
    checked = _checked(rows, ids)
    current = checked[0] if row.pointer is not None else None
    previous = tuple(checked[1:] if row.pointer is not None else checked)
    return RecentPointers(ref, current, previous, _log_state(rows, current, min(scan, SCANNED)))


def _checked(rows: RealmReader, ids: Sequence[ObjectId]) -> list[RecentPointer]:
    pointers = []
    for commit_id, commit in zip(ids, rows.read_each(ids, Commit), strict=True):
        if isinstance(commit, Commit):
            head = Head(commit_id, commit, rows)
            pointers.append(RecentPointer(commit_id, _content_state(head), log_entry(head)))
        else:
            pointers.append(RecentPointer(commit_id, PointerState.COMMIT_INCONSISTENT, None))
    return pointers


def _content_state(head: Head, *, most: int = _CONTENTS) -> PointerState:
    """Look for what a commit put: each key in its index, and each object."""
    puts = list(islice((put for put in head.commit.operations if put.index == CONTENT and not put.removed), most))
    objects = [put.object_id for put in puts if put.object_id is not None]
    try:
        held = head.index(CONTENT).get_many([put.key for put in puts])
        are_there = all(isinstance(stored, StoredObject) for stored in head.rows.read_each(objects, StoredObject))
    except (CorruptionError, ExpiredError):
        return PointerState.COMMIT_CONTENT_INCONSISTENT
    is_sound = are_there and all(held.get(put.key) == put.value for put in puts)
    return PointerState.COMMIT_CONSISTENT if is_sound else PointerState.COMMIT_CONTENT_INCONSISTENT


def _log_state(rows: RealmReader, current: RecentPointer | None, scan: int) -> PointerState:
    if scan == 0 or current is None:
        return PointerState.NOT_CHECKED
    if current.entry is None:
        return current.state
    try:
        return _worst(_log_states(read_log(rows, current.commit_id, stretch=LogRange(within=scan))))
    except (CorruptionError, ExpiredError):
        return PointerState.COMMIT_INCONSISTENT


def _log_states(log: Iterable[Head]) -> Iterator[PointerState]:
    left = _SCANNED_CONTENTS
    for head in log:
        yield _content_state(head, most=min(left, _CONTENTS))
        left -= min(left, _CONTENTS, sum(put.index == CONTENT for put in head.commit.operations))


def _worst(states: Iterable[PointerState]) -> PointerState:
    return max(states, key=list(PointerState).index)
