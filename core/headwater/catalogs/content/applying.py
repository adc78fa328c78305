"""Operations on a branch: planned against its head within a change, and edited into it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

from headwater.catalogs.content.indexes import ContentEditor, metadata_of
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.operations import Conflict, ConflictKind, Delete, Operation, Plan, Put
from headwater.catalogs.content.planning import plan_commit
from headwater.catalogs.content.types import Content, ContentType, ContentValue, content_digest, content_type_of, without_id
from headwater.catalogs.iceberg.parts import Parts
from headwater.catalogs.metadata import store_metadata
from headwater.commits import Transaction
from headwater.errors import ConflictError
from headwater.index import Index

__all__ = ["apply", "put_content", "put_copy", "survivor", "view_of"]


def apply(
    tx: Transaction,
    operations: Sequence[Operation],
    expected: Index | None,
    ids: dict[ContentKey, UUID],
    *,
    is_head_seen: bool = False,
) -> dict[ContentKey, UUID]:
    """Plan against the head and edit; returns the ids of the keys that were created.

    expected      the content that the operations were made from; None: their author named none
    is_head_seen  it is the head's
    ids           ids for keys to be created, as far as they are known; filled with those that are given here
    raises        what ``plan_commit`` raises · ConflictError where a known id stands under another key already
    """
    content = ContentEditor(tx)
    head_view = _head_view(content.index, operations)
    seen = head_view if is_head_seen else None
    if expected is not None and not is_head_seen:
        seen = view_of(expected, (operation.key for operation in operations))
    plan = plan_commit(seen, head_view, operations)
    known = {value.content_id: value for value in head_view.values() if value.has_metadata}
    stored = {content_id: metadata_of(content.ids, content_id) for content_id in known}
    created = {}
    content.ids.get_many(
        head_view[key].content_id.bytes for key in plan.removals
    )  # together, what removing looks up one by one
    for key in plan.removals:
        content.remove(key)
    _check_free(content.ids, plan, ids)
    for write in plan.writes:
        content_id = write.content_id
        if content_id is None:
            content_id = created[write.key] = ids[write.key] = ids.get(write.key) or uuid4()
        metadata = None
        if write.metadata is not None:
            metadata = store_metadata(tx, write.metadata, before=stored.get(content_id))
        elif content_id in known and known[content_id].digest == write.digest:  # renamed, and as it was
            metadata = stored[content_id]
        object_id = tx.add_object(without_id(write.content)) if write.object_id is None else write.object_id
        kind = content_type_of(write.content)
        content.put(write.key, ContentValue(kind, content_id, write.digest, object_id, metadata is not None), metadata)
    return created


def _check_free(held: Index, plan: Plan, ids: Mapping[ContentKey, UUID]) -> None:
    """An id that the caller has reserved for a new key stands under no other key.

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


def put_copy(tx: Transaction, key: ContentKey, source: Content, value: ContentValue, metadata: Parts | None) -> None:
    """Put a content of another commit, with all its objects added anew, but for what the present version of it shares with them.

    source, value what the other commit holds, as object and in its index
    metadata      its Iceberg metadata, where that is stored there
    """
    _put(tx, key, replace(value, object_id=tx.add_object(without_id(source))), metadata)


def put_content(tx: Transaction, key: ContentKey, content: Content, content_id: UUID, metadata: Parts | None) -> None:
    """Put a content under an id that is known, whatever the key holds. Its metadata shares what the present version of it has."""
    object_id = tx.add_object(without_id(content))
    _put(tx, key, ContentValue(content_type_of(content), content_id, content_digest(content), object_id), metadata)


def _put(tx: Transaction, key: ContentKey, value: ContentValue, metadata: Parts | None) -> None:
    editor, held = ContentEditor(tx), None
    if metadata is not None:
        held = store_metadata(tx, metadata, before=metadata_of(editor.ids, value.content_id))
    editor.put(key, replace(value, has_metadata=held is not None), held)


def survivor(content: Index, key: ContentKey, removed: Collection[bytes]) -> tuple[ContentKey, ContentValue] | None:
    """The first key below another that is not among the removed index keys."""
    below = content.prefix(key.below())
    found = next(((at, value) for at, value in below if at not in removed), None)
    return None if found is None else (ContentKey.from_index(found[0]), ContentValue.decode(found[1]))


def view_of(content: Index, keys: Iterable[ContentKey]) -> dict[ContentKey, ContentValue]:
    """What an index of content holds under those of the keys that are there."""
    by_index_key = {key.to_index(): key for key in keys}
    found = content.get_many(by_index_key)
    return {by_index_key[key]: ContentValue.decode(value) for key, value in found.items()}


def _head_view(content: Index, operations: Sequence[Operation]) -> dict[ContentKey, ContentValue]:
    """The touched keys, the namespaces above what is put, and one surviving key below each deleted namespace."""
    keys = {operation.key for operation in operations}
    keys.update(ancestor for operation in operations if isinstance(operation, Put) for ancestor in operation.key.ancestors())
    going = {operation.key for operation in operations if isinstance(operation, Delete)}
    deleted = {key.to_index() for key in going}
    view = view_of(content, keys)
    for key in [key for key in going & view.keys() if view[key].type == ContentType.NAMESPACE]:
        found = survivor(content, key, deleted)
        if found is not None:
            view[found[0]] = found[1]
    return view
