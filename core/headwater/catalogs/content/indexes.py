"""The indexes of a branch's commits that hold content. They are edited together, and only here.

``content`` is by key: content key -> ``ContentValue``. ``ids`` is the way back: 16 bytes content id -> the content key's bytes, without
an object. So a rename changes both, and a new version of a table only the first.
"""

from __future__ import annotations

from uuid import UUID

from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.types import ContentValue
from headwater.commits import Transaction
from headwater.index import Index, Value

__all__ = ["CONTENT", "IDS", "ContentEditor", "key_of"]

CONTENT = "content"
IDS = "ids"


class ContentEditor:
    """Edits what a branch holds, within a change. ``index`` reads what it will hold."""

    def __init__(self, tx: Transaction) -> None:
        self.index = tx.index(CONTENT)
        self._ids = tx.index(IDS)

    def put(self, key: ContentKey, value: ContentValue) -> None:
        index_key = key.to_index()
        before = self.index.get(index_key)
        held = None if before is None else ContentValue.decode(before).content_id
        self.index.put(index_key, value.encode())
        if held == value.content_id:
            return
        if held is not None:
            self._forget(held, index_key)
        self._ids.put(value.content_id.bytes, Value(None, index_key))

    def remove(self, key: ContentKey) -> None:
        index_key = key.to_index()
        before = self.index.get(index_key)
        if before is not None:
            self.index.remove(index_key)
            self._forget(ContentValue.decode(before).content_id, index_key)

    def _forget(self, content_id: UUID, index_key: bytes) -> None:
        """Unless the content stands under another key by now."""
        there = self._ids.get(content_id.bytes)
        if there is not None and bytes(there.data) == index_key:
            self._ids.remove(content_id.bytes)


def key_of(ids: Index, content_id: UUID) -> ContentKey | None:
    """The key under which a content stands in a commit, given the commit's index ``ids``."""
    value = ids.get(content_id.bytes)
    return None if value is None else ContentKey.from_index(bytes(value.data))
