"""The two indexes of content in a branch's commits. They are edited together, and only here.

``content`` is by key: content key -> ``ContentValue``. ``ids`` is the way back: 16 bytes content id -> the content key's bytes,
and the ``IcebergMetadata`` of a table or view whose metadata is stored. So a rename changes both, and a new version without
stored metadata only the first.

``apply_operations`` plans the operations of a commit against the head within a change, and edits the indexes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol
from uuid import UUID, uuid4

from headwater.catalogs.content.content_keys import ContentKey
from headwater.catalogs.content.content_operations import (
    CommitPlan,
    Conflict,
    ConflictKind,
    ContentOperation,
    Delete,
    Put,
    plan_commit,
)
from headwater.catalogs.content.content_types import (
    Content,
    ContentType,
    ContentValue,
    content_digest,
    content_type_of,
    without_id,
)
from headwater.catalogs.stored_metadata import store_metadata
from headwater.commits import Transaction
from headwater.errors import ConflictError
from headwater.iceberg.metadata_json import MetadataParts
from headwater.index import Index, IndexEditor, IndexValue
from headwater.store import ObjectId

CONTENT = "content"
IDS = "ids"


class EditableIndexes(Protocol):
    """Indexes that can be edited: those of a transaction, or of a preview that only shows the result."""

    def index(self, name: str) -> IndexEditor:
        """Read an index with its edits."""


class ContentEditor:
    """Edits the content of a branch. ``index`` and ``ids`` read the edited state."""

    def __init__(self, tx: EditableIndexes) -> None:
        self.index = tx.index(CONTENT)
        self.ids = tx.index(IDS)

    def put_key(self, key: ContentKey, value: ContentValue, metadata: ObjectId | None = None) -> None:
        """Set a key. ``metadata`` is given if and only if the value says that it is stored."""
        index_key = key.to_index()
        before = self._find(index_key)
        self.index.put(index_key, value.to_value())
        is_same = before is not None and before.content_id == value.content_id
        if is_same and before is not None and not (before.has_metadata or value.has_metadata):
            return
        if before is not None and not is_same:
            self._forget(before.content_id, index_key)
        self.ids.put(value.content_id.bytes, IndexValue(metadata, index_key))

    def remove_key(self, key: ContentKey) -> None:
        index_key = key.to_index()
        before = self._find(index_key)
        if before is not None:
            self.index.remove(index_key)
            self._forget(before.content_id, index_key)

    def _find(self, index_key: bytes) -> ContentValue | None:
        found = self.index.get(index_key)
        return None if found is None else ContentValue.from_value(found)

    def _forget(self, content_id: UUID, index_key: bytes) -> None:
        """Remove a content's entry from ``ids``, unless the content stands under another key by now."""
        there = self.ids.get(content_id.bytes)
        if there is not None and bytes(there.data) == index_key:
            self.ids.remove(content_id.bytes)


def find_content_key(ids: Index, content_id: UUID) -> ContentKey | None:
    """Find the key of a content in a commit, given the commit's index ``ids``."""
    value = ids.get(content_id.bytes)
    return None if value is None else ContentKey.from_index(bytes(value.data))


def stored_metadata_of(ids: Index, content_id: UUID) -> ObjectId | None:
    """The stored ``IcebergMetadata`` of a content in a commit, if there is one."""
    value = ids.get(content_id.bytes)
    return None if value is None else value.object_id


def apply_operations(
    tx: Transaction,
    operations: Sequence[ContentOperation],
    expected: Index | None,
    ids: dict[ContentKey, UUID],
    *,
    is_head_seen: bool = False,
) -> dict[ContentKey, UUID]:
    """Plan operations against the head and edit the indexes; returns the ids of the keys that were created.

    expected      the content that the operations were made from; None: their author named no commit
    is_head_seen  ``expected`` is the head's content
    ids           ids for keys to be created, as far as they are known; new ids are added
    raises        what ``plan_commit`` raises · ConflictError where a known id stands under another key already
    """
    content = ContentEditor(tx)
    head_view = _head_view(content.index, operations)
    seen = head_view if is_head_seen else None
    if expected is not None and not is_head_seen:
        seen = content_view(expected, (operation.key for operation in operations))
    plan = plan_commit(seen, head_view, operations)
    known = {value.content_id: value for value in head_view.values() if value.has_metadata}
    stored = {content_id: stored_metadata_of(content.ids, content_id) for content_id in known}
    created = {}
    content.ids.get_many(
        head_view[key].content_id.bytes for key in plan.removals
    )  # one bulk read instead of one for each removal
    for key in plan.removals:
        content.remove_key(key)
    _check_free(content.ids, plan, ids)
    for write in plan.writes:
        content_id = write.content_id
        if content_id is None:
            content_id = created[write.key] = ids[write.key] = ids.get(write.key) or uuid4()
        metadata = None
        if write.metadata is not None:
            metadata = store_metadata(tx, write.metadata, before=stored.get(content_id))
        elif content_id in known and known[content_id].digest == write.digest:  # renamed, with an equal value
            metadata = stored[content_id]
        object_id = tx.add_object(without_id(write.content)) if write.object_id is None else write.object_id
        kind = content_type_of(write.content)
        content.put_key(write.key, ContentValue(kind, content_id, write.digest, object_id, metadata is not None), metadata)
    return created


def _check_free(held: Index, plan: CommitPlan, ids: Mapping[ContentKey, UUID]) -> None:
    """Check that an id reserved for a new key stands under no other key.

    raises        ConflictError with a KEY_CONFLICT for each
    """
    given = {ids[write.key].bytes: write.key for write in plan.writes if write.content_id is None and write.key in ids}
    if not given:
        return
    conflicts = tuple(
        Conflict(
            ConflictKind.KEY_CONFLICT,
            given[content_id],
            f"would hold content {UUID(bytes=content_id)}, which stands at {ContentKey.from_index(bytes(value.data))}",
        )
        for content_id, value in held.get_many(given).items()
    )
    if conflicts:
        raise ConflictError(
            f"{len(conflicts)} reserved content ids are taken: " + "; ".join(map(str, conflicts)), details=conflicts
        )


def put_copy(tx: Transaction, key: ContentKey, source: Content, value: ContentValue, metadata: MetadataParts | None) -> None:
    """Put a content of another commit with copies of all its objects, except those that it shares with the key's present version.

    source, value the content in the other commit, as an object and in its index
    metadata      its Iceberg metadata, where the other commit stores it
    """
    _put(tx, key, replace(value, object_id=tx.add_object(without_id(source))), metadata)


def put_content(tx: Transaction, key: ContentKey, content: Content, content_id: UUID, metadata: MetadataParts | None) -> None:
    """Put a content under a known id, whatever the key holds. Its metadata shares pieces with the present version of the content."""
    object_id = tx.add_object(without_id(content))
    _put(tx, key, ContentValue(content_type_of(content), content_id, content_digest(content), object_id), metadata)


def _put(tx: Transaction, key: ContentKey, value: ContentValue, metadata: MetadataParts | None) -> None:
    editor, held = ContentEditor(tx), None
    if metadata is not None:
        held = store_metadata(tx, metadata, before=stored_metadata_of(editor.ids, value.content_id))
    editor.put_key(key, replace(value, has_metadata=held is not None), held)


def surviving_key_below(content: Index, key: ContentKey, removed: Collection[bytes]) -> tuple[ContentKey, ContentValue] | None:
    """Find the first key below another that is not among the removed index keys."""
    below = content.prefix(key.child_prefix())
    found = next(((at, value) for at, value in below if at not in removed), None)
    return None if found is None else (ContentKey.from_index(found[0]), ContentValue.from_value(found[1]))


def content_view(content: Index, keys: Iterable[ContentKey]) -> dict[ContentKey, ContentValue]:
    """The values of those keys that an index of content holds."""
    by_index_key = {key.to_index(): key for key in keys}
    found = content.get_many(by_index_key)
    return {by_index_key[key]: ContentValue.from_value(value) for key, value in found.items()}


def _head_view(content: Index, operations: Sequence[ContentOperation]) -> dict[ContentKey, ContentValue]:
    """Read the touched keys, the namespaces above what is put, and one surviving key below each deleted namespace."""
    keys = {operation.key for operation in operations}
    keys.update(ancestor for operation in operations if isinstance(operation, Put) for ancestor in operation.key.ancestors())
    going = {operation.key for operation in operations if isinstance(operation, Delete)}
    deleted = {key.to_index() for key in going}
    view = content_view(content, keys)
    for key in [key for key in going & view.keys() if view[key].type == ContentType.NAMESPACE]:
        found = surviving_key_below(content, key, deleted)
        if found is not None:
            view[found[0]] = found[1]
    return view
