"""The indexes of a branch's commits that hold content. They are edited together, and only here.

``content`` is by key: content key -> ``ContentValue``. ``ids`` is the way back: 16 bytes content id -> the content key's bytes, and the
``IcebergMetadata`` of a table or view whose metadata is stored. So a rename changes both, and a new version without stored metadata
only the first.
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.types import ContentValue
from headwater.index import Index, IndexEditor, Value
from headwater.store import ObjectId

__all__ = ["CONTENT", "IDS", "ContentEditor", "Edited", "key_of", "metadata_of"]

CONTENT = "content"
IDS = "ids"


class Edited(Protocol):
    """What is edited: a transaction, or something that only shows what would come of it."""

    def index(self, name: str) -> IndexEditor:
        """An index as it will be."""


class ContentEditor:
    """Edits what a branch holds. ``index`` and ``ids`` read what it will hold."""

    def __init__(self, tx: Edited) -> None:
        self.index = tx.index(CONTENT)
        self.ids = tx.index(IDS)

    def put(self, key: ContentKey, value: ContentValue, metadata: ObjectId | None = None) -> None:
        """Set a key. ``metadata`` is there when, and only when, the value says so."""
        index_key = key.to_index()
        before = self._find(index_key)
        self.index.put(index_key, value.encode())
        is_same = before is not None and before.content_id == value.content_id
        if is_same and before is not None and not (before.has_metadata or value.has_metadata):
            return
        if before is not None and not is_same:
            self._forget(before.content_id, index_key)
        self.ids.put(value.content_id.bytes, Value(metadata, index_key))

    def remove(self, key: ContentKey) -> None:
        index_key = key.to_index()
        before = self._find(index_key)
        if before is not None:
            self.index.remove(index_key)
            self._forget(before.content_id, index_key)

    def _find(self, index_key: bytes) -> ContentValue | None:
        found = self.index.get(index_key)
        return None if found is None else ContentValue.decode(found)

    def _forget(self, content_id: UUID, index_key: bytes) -> None:
        """Unless the content stands under another key by now."""
        there = self.ids.get(content_id.bytes)
        if there is not None and bytes(there.data) == index_key:
            self.ids.remove(content_id.bytes)


def key_of(ids: Index, content_id: UUID) -> ContentKey | None:
    """The key under which a content stands in a commit, given the commit's index ``ids``."""
    value = ids.get(content_id.bytes)
    return None if value is None else ContentKey.from_index(bytes(value.data))


def metadata_of(ids: Index, content_id: UUID) -> ObjectId | None:
    """The ``IcebergMetadata`` of a content in a commit, where that is stored."""
    value = ids.get(content_id.bytes)
    return None if value is None else value.object_id
