"""The details of errors in the JSON of Nessie's API, which its clients turn into exceptions of their own."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from headwater.catalogs import Conflict, ConflictKind, ContentKey
from headwater_server.nessie.content_bodies import ContentKeyBody


class ConflictBody(Struct, frozen=True, rename="camel"):
    """One contradiction between a request and the head of a branch; ``key`` is null where it concerns the branch or tag itself."""

    conflict_type: ConflictKind
    key: ContentKeyBody | None
    message: str

    @classmethod
    def of_conflict(cls, conflict: Conflict) -> ConflictBody:
        if conflict.key is None:
            return cls(conflict.kind, None, conflict.message)
        return cls(conflict.kind, ContentKeyBody.of_key(conflict.key), f"{conflict.key}: {conflict.message}")


class ReferenceConflictsBody(Struct, frozen=True, tag_field="type", tag="REFERENCE_CONFLICTS"):
    """All conflicts of a commit, a merge, or a change of a reference."""

    conflicts: list[ConflictBody]


class ContentKeyDetailsBody(Struct, frozen=True, rename="camel", tag_field="type", tag="CONTENT_KEY"):
    """The key that has no content."""

    content_key: ContentKeyBody


ErrorDetailsBody = ReferenceConflictsBody | ContentKeyDetailsBody


def conflicts_body(details: Iterable[object]) -> ReferenceConflictsBody | None:
    """The conflicts among the details of an error; None where there are none."""
    conflicts = [ConflictBody.of_conflict(detail) for detail in details if isinstance(detail, Conflict)]
    return ReferenceConflictsBody(conflicts) if conflicts else None


def content_key_details(key: ContentKey) -> ContentKeyDetailsBody:
    return ContentKeyDetailsBody(ContentKeyBody.of_key(key))
