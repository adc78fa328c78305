"""One version of a table's or view's metadata."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.index import IndexContainer
from headwater.store import ObjectId, StoredObject, object_type

__all__ = ["IcebergMetadata"]


@object_type("iceberg-metadata")
class IcebergMetadata(StoredObject, frozen=True, kw_only=True):
    """The pieces of a metadata document, by an index of its own.

    lists         names of the lists of the document's top level, also of empty ones
    """

    lists: tuple[str, ...] = ()
    pieces: IndexContainer

    def points_to(self) -> Iterable[ObjectId]:
        return self.pieces.points_to()
