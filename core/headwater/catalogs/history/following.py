"""The history of one content, followed through its renames by its content id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from headwater.catalogs.content.indexes import CONTENT, IDS
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.types import ContentValue
from headwater.catalogs.history.log import LogEntry, check_within, log_entry, parent_of, value_at
from headwater.commits import Commit, Head, LogEnd, LogRange, Operation, read_log
from headwater.errors import ExpiredError
from headwater.store import ObjectId

__all__ = ["KeyAction", "KeyChange", "KeyHistory", "follow_key"]


class KeyAction(StrEnum):
    """What happened to a content."""

    CREATED = "CREATED"
    CHANGED = "CHANGED"
    RENAMED = "RENAMED"
    DELETED = "DELETED"
    PUT = "PUT"
    """Created, changed or renamed: the commit before was collected, so that it cannot be told which."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One commit that changed a content.

    key           where it stood afterwards; of a deleted one, where it stood before
    renamed_from  where it stood before, if that was elsewhere
    value         what it was afterwards; None for a deleted one
    """

    entry: LogEntry
    action: KeyAction
    key: ContentKey
    renamed_from: ContentKey | None = None
    value: ContentValue | None = None


class KeyHistory(Iterator[KeyChange]):
    """The changes of one content, newest first.

    key           where the content stood before the oldest commit that was looked at
    end           why there are no more, once they have ended. ``BEGINNING``: it was created there, or history begins
    last          the oldest commit that was looked at
    """

    def __init__(self, head: Head | None, key: ContentKey, within: int | None) -> None:
        self.key = key
        self.end: LogEnd | None = None
        self.last: ObjectId | None = None
        self._changes = self._followed(head, within)

    def __next__(self) -> KeyChange:
        return next(self._changes)

    def _followed(self, head: Head | None, within: int | None) -> Iterator[KeyChange]:
        if head is None:
            self.end = LogEnd.BEGINNING
            return
        down = read_log(head.rows, head.id, stretch=LogRange(within=within))
        for found in down:
            self.last = found.id
            operation = _operation_on(found.commit, self.key.to_index())
            if operation is None:
                continue
            change = _change(found, operation)
            self.key = change.renamed_from or change.key
            yield change
            if change.action is KeyAction.CREATED:
                self.end = LogEnd.BEGINNING
                return
        self.end = down.end


def follow_key(head: Head | None, key: ContentKey, *, within: int | None = None) -> KeyHistory:
    """The changes of what stands under a key at a commit, or of what stood there last, back to its creation.

    within        look at so many commits at most
    raises        RefusedError for a bound below 1
    """
    check_within(within)
    return KeyHistory(head, key, within)


def _operation_on(commit: Commit, key: bytes) -> Operation | None:
    return next((one for one in commit.operations if one.key == key and one.index == CONTENT), None)


def _change(found: Head, operation: Operation) -> KeyChange:
    """What a commit did to the content that it put under a key, or removed from there."""
    entry, key = log_entry(found), ContentKey.from_index(operation.key)
    parent = parent_of(found)
    if operation.value is None:
        return _departure(found, parent, entry, key)
    value = ContentValue.decode(operation.value)
    if not found.commit.tail:
        return KeyChange(entry, KeyAction.CREATED, key, value=value)
    try:
        before = None if parent is None else _key_at(parent, value)
    except ExpiredError:
        parent = before = None
    if parent is None:
        return KeyChange(entry, KeyAction.PUT, key, value=value)
    if before is None:
        return KeyChange(entry, KeyAction.CREATED, key, value=value)
    if before == key:
        return KeyChange(entry, KeyAction.CHANGED, key, value=value)
    return KeyChange(entry, KeyAction.RENAMED, key, before, value)


def _departure(found: Head, parent: Head | None, entry: LogEntry, key: ContentKey) -> KeyChange:
    """A key that was removed: the content stands elsewhere since, or nowhere. Above a cut that cannot be told."""
    try:
        gone = None if parent is None else value_at(parent, CONTENT, key.to_index())
        moved_to = None if gone is None else _key_at(found, ContentValue.decode(gone))
        there = None if moved_to is None else value_at(found, CONTENT, moved_to.to_index())
    except ExpiredError:
        moved_to = there = None
    if moved_to is None:
        return KeyChange(entry, KeyAction.DELETED, key)
    return KeyChange(entry, KeyAction.RENAMED, moved_to, key, None if there is None else ContentValue.decode(there))


def _key_at(head: Head, value: ContentValue) -> ContentKey | None:
    """Where a content stood at a commit."""
    found = value_at(head, IDS, value.content_id.bytes)
    return None if found is None else ContentKey.from_index(bytes(found.data))
