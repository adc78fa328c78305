"""What a content commit is made of, and what can stand against it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.types import Content
from headwater.catalogs.iceberg.parts import Parts
from headwater.store import ObjectId

__all__ = ["Conflict", "ConflictKind", "Delete", "Operation", "Plan", "Put", "Unmodified", "Write"]


@dataclass(frozen=True, slots=True)
class Put:
    """Create (content without id), change (with the id that it has) or, beside a Delete of the old key, rename (with its id).

    expected_content    what the key has to hold at HEAD; its id counts if it has one
    metadata            the document behind ``metadata_location`` of an Iceberg table or view, to be stored with it
    """

    key: ContentKey
    content: Content
    expected_content: Content | None = None
    metadata: Parts | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the key. With a Put of the same key without id: a new content of the same type in its place."""

    key: ContentKey


@dataclass(frozen=True, slots=True)
class Unmodified:
    """The key is there and as it was at the expected commit; nothing is written."""

    key: ContentKey


Operation = Put | Delete | Unmodified


class ConflictKind(StrEnum):
    KEY_EXISTS = "KEY_EXISTS"
    KEY_DOES_NOT_EXIST = "KEY_DOES_NOT_EXIST"
    PAYLOAD_DIFFERS = "PAYLOAD_DIFFERS"
    CONTENT_ID_DIFFERS = "CONTENT_ID_DIFFERS"
    VALUE_DIFFERS = "VALUE_DIFFERS"
    NAMESPACE_ABSENT = "NAMESPACE_ABSENT"
    NOT_A_NAMESPACE = "NOT_A_NAMESPACE"
    NAMESPACE_NOT_EMPTY = "NAMESPACE_NOT_EMPTY"
    KEY_CONFLICT = "KEY_CONFLICT"
    """A content would stand under two keys."""
    UNEXPECTED_HASH = "UNEXPECTED_HASH"
    """A branch or tag is at another commit than the caller saw; no key is to blame."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One contradiction between what was asked and HEAD. ``key`` None: it is about the branch or tag itself."""

    kind: ConflictKind
    key: ContentKey | None
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.key is None else f"{self.kind} {self.key}: {self.message}"


@dataclass(frozen=True, slots=True)
class Write:
    """One key to be set. ``content_id`` None asks for a new id; the object of an ``object_id`` holds this very content already."""

    key: ContentKey
    content: Content
    digest: bytes
    content_id: UUID | None
    object_id: ObjectId | None = None
    metadata: Parts | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is left to do. Operations that change nothing are in neither list."""

    removals: tuple[ContentKey, ...]
    writes: tuple[Write, ...]
