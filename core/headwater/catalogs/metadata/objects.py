"""One version of a table's or view's metadata, and what is too large to lie in it."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.index import IndexContainer
from headwater.store import ObjectId, StoredObject, object_type

__all__ = ["IcebergMetadata", "IcebergPiece"]


@object_type("iceberg-metadata")
class IcebergMetadata(StoredObject, frozen=True, kw_only=True):
    """The pieces of a metadata document, in an index of its own (see ``layout`` for its keys)."""

    pieces: IndexContainer

    def points_to(self) -> Iterable[ObjectId]:
        return self.pieces.points_to()


@object_type("iceberg-piece")
class IcebergPiece(StoredObject, frozen=True, kw_only=True):
    """A piece that versions share by pointing to it: JSON text, beyond what an entry of an index holds."""

    text: bytes
