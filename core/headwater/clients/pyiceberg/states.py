"""What one commit of a catalog holds, as a client looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from headwater.catalogs import CONTENT, IDS, Catalog, Content, ContentKey, ContentType, ContentValue, key_of, metadata_of
from headwater.catalogs.iceberg.parts import put_together
from headwater.catalogs.metadata import read_metadata
from headwater.commits import Head
from headwater.index import after_prefix
from headwater.store import RealmStore, id_text

__all__ = ["State"]


@dataclass(frozen=True, slots=True)
class State:
    """A commit of a catalog; ``head`` None: nothing was committed yet."""

    catalog: Catalog
    rows: RealmStore
    head: Head | None

    def find(self, key: ContentKey) -> Content | None:
        return None if self.head is None else self.catalog.get(id_text(self.head.id), key)

    def find_many(self, keys: list[ContentKey]) -> dict[ContentKey, Content]:
        return {} if self.head is None else self.catalog.get_many(id_text(self.head.id), keys)

    def type_of(self, key: ContentKey) -> ContentType | int | None:
        """The type of what stands there; reads no content."""
        found = None if self.head is None else self.head.index(CONTENT).get(key.to_index())
        return None if found is None else ContentValue.decode(found).type

    def is_namespace(self, key: ContentKey) -> bool:
        return self.type_of(key) is ContentType.NAMESPACE

    def find_metadata(self, content_id: UUID) -> bytes | None:
        """The metadata document of a table or view as JSON text, where it is stored with it."""
        found = None if self.head is None else metadata_of(self.head.index(IDS), content_id)
        return None if found is None else put_together(read_metadata(self.rows, found))

    def key_of(self, content_id: UUID) -> ContentKey | None:
        return None if self.head is None else key_of(self.head.index(IDS), content_id)

    def children(self, parent: ContentKey | None) -> Iterator[tuple[ContentKey, ContentType | int]]:
        """The keys directly below a namespace, or at the top, with their types. What lies below them is stepped over, unread."""
        if self.head is None:
            return
        index = self.head.index(CONTENT)
        start = b"" if parent is None else parent.below()
        end = None if parent is None else after_prefix(start)
        is_over = False
        while not is_over:
            is_over = True
            for index_key, value in index.range(start, end):
                kind = ContentValue.decode(value).type
                yield ContentKey.from_index(index_key), kind
                if kind is ContentType.NAMESPACE:
                    start, is_over = index_key + b"\x01", False  # beyond all that begins with this key and 0x00
                    break
