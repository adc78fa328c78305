"""The operations of a commit in the JSON of Nessie's API: those that a client asks for, and those that a log tells of.

An operation's ``metadata`` and ``documentation`` are ignored, as Nessie does. The content that a put of version 1 expects is honored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from headwater.catalogs import CommittedOperation, Content, ContentKey, ContentOperation, Delete, LogEntry, Put, Unmodified
from headwater_server.nessie.commit_meta_bodies import (
    CommitMetaBody,
    CommitMetaBodyV1,
    CommitMetaRequest,
    commit_meta_body,
    commit_meta_body_v1,
)
from headwater_server.nessie.content_bodies import ApiVersion, ContentBody, ContentKeyBody, content_body
from headwater_server.nessie.reference_paths import hash_text


class PutBody(Struct, frozen=True, rename="camel", tag_field="type", tag="PUT", omit_defaults=True):
    """Create a content (it has no id), change it (it has its id) or, with a DELETE of its old key, rename it (it has its id)."""

    key: ContentKeyBody
    content: ContentBody
    expected_content: ContentBody | None = None

    def to_operation(self) -> Put:
        key = self.key.to_key()
        expected = None if self.expected_content is None else self.expected_content.to_content(key)
        return Put(key, self.content.to_content(key), expected_content=expected)


class DeleteBody(Struct, frozen=True, tag_field="type", tag="DELETE"):
    """Delete a key."""

    key: ContentKeyBody

    def to_operation(self) -> Delete:
        return Delete(self.key.to_key())


class UnchangedBody(Struct, frozen=True, tag_field="type", tag="UNCHANGED"):
    """Require that a key is as it was at the expected commit."""

    key: ContentKeyBody

    def to_operation(self) -> Unmodified:
        return Unmodified(self.key.to_key())


OperationBody = PutBody | DeleteBody | UnchangedBody


class CommitRequest(Struct, frozen=True, rename="camel"):
    """A commit to be made."""

    commit_meta: CommitMetaRequest
    operations: list[OperationBody]

    def to_operations(self) -> list[ContentOperation]:
        """The operations, in their order. Contents that are put or expected lack what only their documents say, such as a table's uuid.

        raises        RefusedError for elements that make no key, and a namespace that names another key than its own
        """
        return [operation.to_operation() for operation in self.operations]


class AddedContentBody(Struct, frozen=True, rename="camel"):
    """A content that a commit created, with its new id."""

    key: ContentKeyBody
    content_id: UUID


class LogEntryBody(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A commit of a log, in version 2."""

    commit_meta: CommitMetaBody
    parent_commit_hash: str | None = None
    operations: list[OperationBody] | None = None


class LogEntryBodyV1(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A commit of a log, in version 1."""

    commit_meta: CommitMetaBodyV1
    parent_commit_hash: str | None = None
    operations: list[OperationBody] | None = None


def added_content_bodies(created: Mapping[ContentKey, UUID]) -> list[AddedContentBody]:
    return [AddedContentBody(ContentKeyBody.of_key(key), content_id) for key, content_id in created.items()]


def log_entry_body(entry: LogEntry, contents: Mapping[ContentKey, Content] | None = None) -> LogEntryBody:
    """Write a commit of a log as version 2 does.

    contents      at that commit, of the keys that it put; None: parent and operations are left out, as nobody asked for them
    """
    if contents is None:
        return LogEntryBody(commit_meta_body(entry))
    operations = committed_operation_bodies(entry.operations, contents)
    return LogEntryBody(commit_meta_body(entry), hash_text(entry.parent), operations or None)


def log_entry_body_v1(entry: LogEntry, contents: Mapping[ContentKey, Content] | None = None) -> LogEntryBodyV1:
    """Write a commit of a log as version 1 does.

    contents      at that commit, of the keys that it put; None: parent and operations are left out, as nobody asked for them
    """
    if contents is None:
        return LogEntryBodyV1(commit_meta_body_v1(entry))
    operations = committed_operation_bodies(entry.operations, contents, version=1)
    return LogEntryBodyV1(commit_meta_body_v1(entry), hash_text(entry.parent), operations or None)


def committed_operation_bodies(
    operations: Sequence[CommittedOperation], contents: Mapping[ContentKey, Content], *, version: ApiVersion = 2
) -> list[OperationBody]:
    """Write what a commit did. A put whose content is not given is left out: it is of a type that only a newer release knows."""
    bodies = (_committed_body(operation, contents.get(operation.key), version) for operation in operations)
    return [body for body in bodies if body is not None]


def _committed_body(operation: CommittedOperation, content: Content | None, version: ApiVersion) -> OperationBody | None:
    key = ContentKeyBody.of_key(operation.key)
    if operation.action == "DELETE":
        return DeleteBody(key)
    return None if content is None else PutBody(key, content_body(operation.key, content, version=version))
