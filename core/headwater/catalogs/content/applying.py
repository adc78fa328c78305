"""Operations on a branch: planned against its head within a change, and edited into it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID, uuid4

import msgspec

from headwater.catalogs.content.indexes import ContentEditor
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.operations import Delete, Operation, Put, Write
from headwater.catalogs.content.planning import plan_commit
from headwater.catalogs.content.types import Content, ContentValue, IcebergTable, IcebergView, content_type_of, without_id
from headwater.catalogs.metadata import read_metadata, store_metadata
from headwater.commits import Transaction
from headwater.index import Index
from headwater.store import ObjectId, StoredObject

__all__ = ["apply", "copied", "view_of"]


def apply(
    tx: Transaction, operations: Sequence[Operation], expected: Index | None, ids: dict[ContentKey, UUID]
) -> dict[ContentKey, UUID]:
    """Plan against the head and edit; returns the ids of the keys that were created.

    expected      the content that the operations were made from; None: the head's
    ids           ids for keys to be created, as far as they are known; filled with those that are given here
    raises        what ``plan_commit`` raises
    """
    content = ContentEditor(tx)
    head_view = _head_view(content.index, operations)
    expected_view = head_view if expected is None else view_of(expected, (operation.key for operation in operations))
    plan = plan_commit(expected_view, head_view, operations)
    before = {value.content_id: value for value in head_view.values()}
    created = {}
    for key in plan.removals:
        content.remove(key)
    for write in plan.writes:
        content_id = write.content_id
        if content_id is None:
            content_id = created[write.key] = ids.setdefault(write.key, uuid4())
        object_id = _object(tx, write, before.get(content_id)) if write.object_id is None else write.object_id
        content.put(write.key, ContentValue(content_type_of(write.content), content_id, write.digest, object_id))
    return created


def copied(tx: Transaction, source: Content, value: ContentValue, *, over: ContentValue | None) -> ContentValue:
    """A content of another commit as this commit may hold it: its objects are added anew, but for what ``over`` shares with them.

    source        as it was read; its metadata is read through the transaction
    over          what the commit's parent holds of the same content, if anything
    raises        MissingError when the metadata was collected
    """
    metadata = source.metadata if isinstance(source, IcebergTable | IcebergView) else None
    content: Content = without_id(source)
    if metadata is not None:
        parts = read_metadata(tx.rows, metadata)
        content = _with_metadata(content, store_metadata(tx, parts, before=_metadata_of(tx, over)))
    return ContentValue(value.type, value.content_id, value.digest, tx.add(content))


def view_of(content: Index, keys: Iterable[ContentKey]) -> dict[ContentKey, ContentValue]:
    """What an index of content holds under those of the keys that are there."""
    by_index_key = {key.to_index(): key for key in keys}
    found = content.get_many(by_index_key)
    return {by_index_key[key]: ContentValue.decode(value) for key, value in found.items()}


def _object(tx: Transaction, write: Write, before: ContentValue | None) -> ObjectId:
    content: Content = without_id(write.content)
    if isinstance(content, IcebergTable | IcebergView):
        held = _metadata_of(tx, before) if write.metadata is not None or content.metadata is not None else None
        if write.metadata is not None:
            content = _with_metadata(content, store_metadata(tx, write.metadata, before=held))
        elif content.metadata != held:  # it was read elsewhere, and may be garbage tomorrow
            content = _with_metadata(content, None)
    return tx.add(content)


def _metadata_of(tx: Transaction, value: ContentValue | None) -> ObjectId | None:
    """The stored metadata of a content that the commit's parent holds."""
    found = None if value is None else tx.rows.find(value.object_id, StoredObject)
    return found.metadata if isinstance(found, IcebergTable | IcebergView) else None


def _with_metadata(content: Content, metadata: ObjectId | None) -> Content:
    return msgspec.structs.replace(content, metadata=metadata)


def _head_view(content: Index, operations: Sequence[Operation]) -> dict[ContentKey, ContentValue]:
    """The touched keys, the namespaces above what is put, and one surviving key below each deleted one."""
    keys = {operation.key for operation in operations}
    keys.update(ancestor for operation in operations if isinstance(operation, Put) for ancestor in operation.key.ancestors())
    deleted = {operation.key.to_index() for operation in operations if isinstance(operation, Delete)}
    view = view_of(content, keys)
    for operation in operations:
        if isinstance(operation, Delete):
            below = content.prefix(operation.key.below())
            survivor = next(((key, value) for key, value in below if key not in deleted), None)
            if survivor is not None:
                view[ContentKey.from_index(survivor[0])] = ContentValue.decode(survivor[1])
    return view
