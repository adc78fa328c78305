"""Commits of a catalog as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from headwater.catalogs.content.indexes import CONTENT
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.types import ContentType, ContentValue
from headwater.catalogs.history.meta import CommitMeta
from headwater.clock import Micros
from headwater.commits import Commit, Head, Operation, descends
from headwater.errors import ExpiredError, UnknownOutcomeError, UnreadableError
from headwater.index import Value
from headwater.quantities import check_count
from headwater.store import ObjectId, RealmReader, id_text

__all__ = ["CommittedOperation", "LogEntry", "check_within", "is_in_history", "log_entry", "parent_of", "value_at"]


@dataclass(frozen=True, slots=True)
class CommittedOperation:
    """What a commit did to one key."""

    action: Literal["PUT", "DELETE"]
    key: ContentKey
    type: ContentType | int | None = None
    content_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit of a branch or tag. Its parent is None where history begins."""

    id: ObjectId
    seq: int
    time: Micros
    meta: CommitMeta
    parent: ObjectId | None
    operations: tuple[CommittedOperation, ...]

    @property
    def hash(self) -> str:
        return id_text(self.id)

    @property
    def message(self) -> str:
        return self.meta.message


def log_entry(head: Head) -> LogEntry:
    commit = head.commit
    return LogEntry(
        id=head.id,
        seq=commit.seq,
        time=commit.time,
        meta=CommitMeta.of(commit),
        parent=commit.tail[0] if commit.tail else None,
        operations=tuple(_operation(operation) for operation in commit.operations if operation.index == CONTENT),
    )


def check_within(within: int | None) -> None:
    """Pass if a search may be bounded like that.

    raises        RefusedError for less than one commit
    """
    check_count(within, "commits that a search looks at")


def is_in_history(rows: RealmReader, head_id: ObjectId, head: Commit, wanted: Head) -> bool:
    """Whether ``wanted`` is the head or one of its ancestors. The head itself may be one that is not written yet.

    raises        ExpiredError when the history between them was cut
    """
    distance = head.seq - wanted.commit.seq
    if distance <= 0:
        return head_id == wanted.id
    if distance <= len(head.tail):
        return head.tail[distance - 1] == wanted.id
    try:
        return bool(head.tail) and descends(rows, head.tail[-1], wanted.id, wanted.commit.seq)
    except UnknownOutcomeError as cut:
        raise ExpiredError(
            f"whether commit {id_text(wanted.id)} of realm {rows.realm!r} is in this history cannot be told any more: {cut}"
        ) from cut


def parent_of(found: Head) -> Head | None:
    """The commit before; None where history begins, or was cut."""
    if not found.commit.tail:
        return None
    commit = found.rows.find(found.commit.tail[0], Commit)
    return None if commit is None else Head(found.commit.tail[0], commit, found.rows)


def value_at(head: Head, index: str, key: bytes) -> Value | None:
    """What a key of an index held at a commit of the past.

    raises        ExpiredError when the commit was collected since it was read
    """
    try:
        return head.index(index).get(key)
    except UnreadableError as fault:
        if head.is_collected():
            raise ExpiredError(f"commit {id_text(head.id)} of realm {head.rows.realm!r} was collected just now") from fault
        raise


def _operation(operation: Operation) -> CommittedOperation:
    key = ContentKey.from_index(operation.key)
    if operation.removed:
        return CommittedOperation("DELETE", key)
    value = ContentValue.decode(Value(operation.object_id, operation.data))
    return CommittedOperation("PUT", key, value.type, value.content_id)
