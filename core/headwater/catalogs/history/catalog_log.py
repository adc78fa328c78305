"""Searching the log of a branch: by filters, and the history of one content, followed by its content id through its renames, and through
deletions that a restoration or a merge made good.

Every search says at its end why there are no more commits: history begins, it was cut, or a limit was reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from headwater.catalogs.content import ContentKey, ContentType, ContentValue
from headwater.catalogs.content_operations import CONTENT, IDS
from headwater.catalogs.history.commit_meta import (
    LogEntry,
    check_within,
    is_in_history,
    log_entry,
    merged_heads,
    parent_of,
    restored_state,
    value_at,
)
from headwater.catalogs.history.log_expression import LogExpression
from headwater.catalogs.history.revspec import commit_at
from headwater.clock import Micros
from headwater.commits import Commit, Head, LogEnd, LogRange, Operation, read_commit, read_log, sound_times
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.settings import check_count
from headwater.store import ObjectId, id_text

LogAction = Literal["PUT", "DELETE"]
_READ_TOGETHER = 100


@dataclass(frozen=True, kw_only=True)
class LogFilter:
    """A filter of commits: a commit passes if it meets every condition that is given.

    author        one of its authors, exactly
    since, until  the time of the commit, both inclusive
    message       a regular expression that its message matches somewhere
    key, prefix   it changed this key, or one below this namespace
    action        what it did to a key
    content_type  of the content that it put or deleted
    expression    what else has to be true of it and its operations, in CEL

    One and the same operation has to meet the four from ``key`` to
    ``content_type``. The type of a deleted content stands in the commit before: where that
    was collected, the deletion passes.

    raises        RefusedError for a malformed regular expression, and for an unknown action
    """

    author: str | None = None
    since: Micros | None = None
    until: Micros | None = None
    message: str | None = None
    key: ContentKey | None = None
    prefix: ContentKey | None = None
    action: LogAction | None = None
    content_type: ContentType | None = None
    expression: LogExpression | None = None

    def __post_init__(self) -> None:
        try:
            re.compile(self.message or "")
        except (re.error, OverflowError, RecursionError) as fault:
            raise RefusedError(f"{self.message!r} is no regular expression: {fault}") from fault
        if self.action is not None and self.action not in get_args(LogAction):
            raise RefusedError(f"a commit does {' or '.join(get_args(LogAction))} to a key, not {self.action!r}")

    @property
    def takes_all(self) -> bool:
        """True if the filter checks nothing but the time."""
        return self.author is None and self.message is None and self.expression is None and not self._asks_operations

    @property
    def _asks_operations(self) -> bool:
        return any(condition is not None for condition in (self.key, self.prefix, self.action, self.content_type))

    def chooses(self, head: Head) -> bool:
        """True if a commit meets all conditions other than the time."""
        commit = head.commit
        if self.author is not None and self.author not in commit.properties.get("authors", ()):
            return False
        if self.message is not None and not self._pattern.search(commit.message):
            return False
        if self._asks_operations and not any(self._is_wanted(head, operation) for operation in commit.operations):
            return False
        return self.expression is None or self.expression.chooses(log_entry(head))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.message or "")

    @cached_property
    def _key(self) -> bytes | None:
        return None if self.key is None else self.key.to_index()

    @cached_property
    def _below(self) -> bytes:
        return b"" if self.prefix is None else self.prefix.child_prefix()

    def _is_wanted(self, head: Head, operation: Operation) -> bool:
        if operation.index != CONTENT or not operation.key.startswith(self._below):
            return False
        if self._key is not None and operation.key != self._key:
            return False
        if self.action is not None and operation.removed != (self.action == "DELETE"):
            return False
        return self.content_type is None or _type_of(head, operation) in (self.content_type, None)


EVERY_COMMIT = LogFilter()


def _type_of(head: Head, operation: Operation) -> ContentType | int | None:
    """The type of the content that was put or deleted; None if it is no longer known."""
    if operation.value is not None:
        return ContentValue.from_value(operation.value).type
    try:
        before = parent_of(head)
        value = None if before is None else value_at(before, CONTENT, operation.key)
    except ExpiredError:
        return None
    return None if value is None else ContentValue.from_value(value).type


class CatalogLog(Iterator[LogEntry]):
    """An iterator over the commits that a search found.

    end           why there are no more, set at the end of the iteration (oldest first: from the beginning). ``UNTIL``: older commits
                  were made before the requested time, or lie below the requested oldest one
    last          the oldest commit that was looked at: a bounded search continues before it
    """

    def __init__(self) -> None:
        self.end: LogEnd | None = None
        self.last: ObjectId | None = None
        self._entries: Iterator[LogEntry] = iter(())

    def __next__(self) -> LogEntry:
        return next(self._entries)


def search_log(
    head: Head | None,
    where: LogFilter,
    *,
    oldest_first: bool = False,
    limit: int | None = None,
    within: int | None = None,
    oldest: Head | None = None,
) -> CatalogLog:
    """Search a history for the commits that pass a filter, newest first by default.

    head          the commit to start from; None: there is no history
    limit         return so many commits at most
    within        look at so many commits at most, whether they pass or not; commits later than ``where.until`` at the start are not
                  counted
    oldest        the last commit to look at
    raises        RefusedError for a limit or bound below 1, and for a time that cannot be resolved; NotFoundError for an oldest commit
                  that is not in the history, ExpiredError where that is not known any more
    """
    check_count(limit, "commits of a log")
    check_within(within)
    if oldest is not None and (head is None or not is_in_history(head.rows, head.id, head.commit, oldest)):
        raise NotFoundError(f"commit {id_text(oldest.id)}, which is to be the oldest of the log, is not in its history")
    log = CatalogLog()
    newest_first = _search_down(log, head, where, None if oldest_first else limit, LogRange(within=within), oldest)
    if oldest_first and head is not None:
        ids = [commit.id for commit in newest_first]
        if limit is not None and len(ids) > limit:
            log.end, ids = LogEnd.LIMIT, ids[-limit:]
        log._entries = map(log_entry, _climbed(head, ids))
    else:
        log._entries = map(log_entry, newest_first)
    return log


def _search_down(
    into: CatalogLog, head: Head | None, where: LogFilter, limit: int | None, stretch: LogRange, oldest: Head | None
) -> Iterator[Head]:
    try:
        start = head if head is None or where.until is None else commit_at(head, where.until)
    except NotFoundError as fault:
        into.end = LogEnd.CUT if isinstance(fault, ExpiredError) else LogEnd.BEGINNING
        return
    if start is None:
        into.end = LogEnd.BEGINNING
        return
    if oldest is not None:
        stretch = replace(stretch, until=oldest.id)
        if start.commit.seq < oldest.commit.seq:
            into.end = LogEnd.UNTIL
            return
    given = 0
    down = read_log(start.rows, start.id, stretch=stretch, limit=limit if where.takes_all else None)
    for commit, time in sound_times(down):
        if where.since is not None and time < where.since:
            into.end = LogEnd.UNTIL
            return
        into.last = commit.id
        if where.chooses(commit):
            yield commit
            given += 1
            if given == limit:
                into.end = LogEnd.LIMIT if commit.commit.tail else LogEnd.BEGINNING
                return
    into.end = down.end


def _climbed(head: Head, newest_first: list[ObjectId]) -> Iterator[Head]:
    """Read a history again, oldest first: only the commit ids are remembered on the way down."""
    for end in range(len(newest_first), 0, -_READ_TOGETHER):
        block = newest_first[max(end - _READ_TOGETHER, 0) : end][::-1]
        for commit_id, commit in zip(block, head.rows.read_many(block, Commit), strict=True):
            if commit is not None:
                yield Head(commit_id, commit, head.rows)


class KeyAction(StrEnum):
    """What happened to a content."""

    CREATED = "CREATED"
    RESTORED = "RESTORED"
    """A restoration brought it back."""
    CHANGED = "CHANGED"
    RENAMED = "RENAMED"
    DELETED = "DELETED"
    PUT = "PUT"
    """Created, changed or renamed: the commit before was collected, so which of these is unknown."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One commit that changed a content.

    key           its key afterwards; the key before for a deleted content
    renamed_from  its key before, if that was another
    value         its value afterwards; None for a deleted content
    """

    entry: LogEntry
    action: KeyAction
    key: ContentKey
    renamed_from: ContentKey | None = None
    value: ContentValue | None = None


class KeyHistory(Iterator[KeyChange]):
    """The changes of one content, or of a key, newest first.

    key           its key before the oldest commit that was looked at; None: it stands nowhere there, and is followed by its id
    end           why there are no more, set at the end of the iteration. ``BEGINNING``: it was created there, or history begins
    last          the oldest commit that was looked at
    """

    def __init__(self, head: Head | None, key: ContentKey | None, away: UUID | None = None) -> None:
        self.key = key
        self._away = away
        """The content that is followed, where it stands nowhere: from what brought it back down to its deletion."""
        self.end: LogEnd | None = None
        self.last: ObjectId | None = None
        self._head = head
        self._changes: Iterator[KeyChange] = iter(())

    def __next__(self) -> KeyChange:
        return next(self._changes)

    def _followed(self, within: int | None) -> Iterator[KeyChange]:
        if (head := self._head) is None:
            self.end = LogEnd.BEGINNING
            return
        down = read_log(head.rows, head.id, stretch=LogRange(within=within))
        for commit in down:
            self.last = commit.id
            change = self._change_by(commit)
            if change is None:
                continue
            self.key = change.renamed_from or change.key
            if change.action in (KeyAction.CREATED, KeyAction.RESTORED) and change.value is not None:
                if not _may_bring_back(commit.commit):
                    self.end = LogEnd.BEGINNING
                    yield change
                    return
                self.key, self._away = None, change.value.content_id
            yield change
        self.end = down.end

    @property
    def _index_key(self) -> bytes:
        assert self.key is not None, "a content that stands nowhere is followed by its id"
        return self.key.to_index()

    def _change_by(self, head: Head) -> KeyChange | None:
        """What a commit did to the content; None: nothing."""
        if self._away is not None:
            if not _removes_content(head.commit, self._away):
                return None
            key, self._away = _key_before(head, self._away) or _removed_key(head.commit), None
            return KeyChange(log_entry(head), KeyAction.DELETED, key)
        operation = _operation_on(head.commit, self._index_key)
        return None if operation is None else _key_change(head, operation)

    def _recent(self, since: Micros, within: int) -> Iterator[KeyChange]:
        """The changes since a time, also below a creation; passes over stretches at whose two ends the key has one value."""
        current, sound, looked = self._head, None, 0
        while current is not None:
            sound = current.commit.time if sound is None else min(sound, current.commit.time)
            looked += 1
            if sound < since or looked > within:
                self.end = LogEnd.UNTIL if sound < since else LogEnd.BOUND
                return
            self.last = current.id
            operation = _operation_on(current.commit, self._index_key)
            if operation is not None:
                change = _key_change(current, operation)
                self.key = change.renamed_from or change.key
                yield change
            try:
                current = self._next_below(current)
            except ExpiredError:
                self.end = LogEnd.CUT
                return
        self.end = LogEnd.BEGINNING

    def _next_below(self, head: Head) -> Head | None:
        """The next commit to look at: none between it and this one has left another value at the key. Raises ExpiredError."""
        tail, key = head.commit.tail, self._index_key
        if not tail:
            return None
        parent = read_commit(head.rows, tail[0])
        if len(tail) == 1 or _operation_on(parent.commit, key) is not None:
            return parent
        oldest = read_commit(head.rows, tail[-1])
        if value_at(oldest, CONTENT, key) == value_at(parent, CONTENT, key):
            return oldest
        below = (read_commit(head.rows, commit_id) for commit_id in tail[1:])
        return next(commit for commit in below if commit.id == oldest.id or _operation_on(commit.commit, key) is not None)


def follow_key(head: Head | None, key: ContentKey, *, within: int | None = None) -> KeyHistory:
    """Follow the content that stands under a key at a commit, or that stood there last, back to its creation.

    Where a restoration or a merge brought it back, it is followed by its id to its deletion, and on from there.

    within        look at so many commits at most
    raises        RefusedError for a bound below 1
    """
    check_within(within)
    history = KeyHistory(head, key)
    history._changes = history._followed(within)
    return history


def follow_content(head: Head | None, content_id: UUID, *, within: int | None = None) -> KeyHistory:
    """Follow a content back to its creation, also from a commit at which it stands nowhere. Raises as ``follow_key`` does."""
    check_within(within)
    value = None if head is None else value_at(head, IDS, content_id.bytes)
    key = None if value is None else ContentKey.from_index(bytes(value.data))
    history = KeyHistory(head, key, content_id if value is None else None)
    history._changes = history._followed(within)
    return history


def recent_key_changes(head: Head | None, key: ContentKey, *, since: Micros, within: int) -> KeyHistory:
    """Follow a key down to a time, through its renames, and also below a creation to what stood there before.

    It reads few of the commits that leave the key alone, and so it may leave out what was put and, within twenty commits, put back.

    within        look at so many commits at most; then ``end`` is ``BOUND``
    raises        RefusedError for a bound below 1
    """
    check_within(within)
    history = KeyHistory(head, key)
    history._changes = history._recent(since, within)
    return history


def _may_bring_back(commit: Commit) -> bool:
    """True if what a commit creates may have stood on the branch before."""
    return restored_state(commit) is not None or bool(merged_heads(commit))


def _removes_content(commit: Commit, content_id: UUID) -> bool:
    wanted = content_id.bytes
    return any(each.index == IDS and each.removed and each.key == wanted for each in commit.operations)


def _removed_key(commit: Commit) -> ContentKey:
    """The key that a commit removed a content from, where the state before is not known any more."""
    touched = [each for each in commit.operations if each.index == CONTENT]
    return ContentKey.from_index(next((each for each in touched if each.removed), touched[0]).key)


def _key_before(head: Head, content_id: UUID) -> ContentKey | None:
    """The key of a content at the commit before; None where that is not known any more."""
    try:
        parent = parent_of(head)
        value = None if parent is None else value_at(parent, IDS, content_id.bytes)
    except ExpiredError:
        return None
    return None if value is None else ContentKey.from_index(bytes(value.data))


def _operation_on(commit: Commit, key: bytes) -> Operation | None:
    return next((operation for operation in commit.operations if operation.key == key and operation.index == CONTENT), None)


def _key_change(head: Head, operation: Operation) -> KeyChange:
    return KeyChange(log_entry(head), *key_step(head, operation))


class KeyStep(NamedTuple):
    """What one commit did to a content, as in a ``KeyChange``, without the commit."""

    action: KeyAction
    key: ContentKey
    renamed_from: ContentKey | None = None
    value: ContentValue | None = None


def key_step(head: Head, operation: Operation) -> KeyStep:
    """Describe what a commit did to the content that it put under a key, or removed from there."""
    key, parent = ContentKey.from_index(operation.key), parent_of(head)
    if operation.value is None:
        return _departure(head, parent, key)
    value = ContentValue.from_value(operation.value)
    if not head.commit.tail:
        return KeyStep(KeyAction.CREATED, key, value=value)
    try:
        before = None if parent is None else _key_at(parent, value)
    except ExpiredError:
        parent = before = None
    if parent is None:
        return KeyStep(KeyAction.PUT, key, value=value)
    if before is None:
        is_back = restored_state(head.commit) is not None
        return KeyStep(KeyAction.RESTORED if is_back else KeyAction.CREATED, key, value=value)
    if before == key:
        return KeyStep(KeyAction.CHANGED, key, value=value)
    return KeyStep(KeyAction.RENAMED, key, before, value)


def _departure(head: Head, parent: Head | None, key: ContentKey) -> KeyStep:
    """Describe the removal of a key: the content was renamed or deleted. Right above a cut of the history that is unknown."""
    try:
        gone = None if parent is None else value_at(parent, CONTENT, key.to_index())
        moved_to = None if gone is None else _key_at(head, ContentValue.from_value(gone))
        value = None if moved_to is None else value_at(head, CONTENT, moved_to.to_index())
    except ExpiredError:
        moved_to = value = None
    if moved_to is None:
        return KeyStep(KeyAction.DELETED, key)
    return KeyStep(KeyAction.RENAMED, moved_to, key, None if value is None else ContentValue.from_value(value))


def _key_at(head: Head, value: ContentValue) -> ContentKey | None:
    """The key of a content at a commit."""
    entry = value_at(head, IDS, value.content_id.bytes)
    return None if entry is None else ContentKey.from_index(bytes(entry.data))
