"""Filters of marked files: what commits ask whether a file that they name is marked. Stored beside the table that they belong to.

A filter never denies a marked file, and claims one that is not marked in about one of a hundred thousand cases: that one is taken up for
nothing, and begins anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from uuid import UUID

from headwater.catalogs.file_marks import DIGEST_BYTES, find_marked
from headwater.commits import Transaction
from headwater.errors import CorruptionError
from headwater.gc.bloom_filter import BloomFilter
from headwater.index import IndexValue
from headwater.lake_files.path_keys import loose_key
from headwater.store import ObjectId, RealmStore, StoredObject, id_text, object_type

FPP = 1e-5
_PIECE_BYTES = 300 * 1024
"""With its envelope it fits one row."""


@object_type("mark-filter-piece", compressed=False)
class MarkFilterPiece(StoredObject, frozen=True, kw_only=True):
    """A part of a filter's bytes."""

    data: bytes


@object_type("mark-filter")
class MarkFilter(StoredObject, frozen=True, kw_only=True):
    """The filter of one table's marked files.

    marks         how many files it was sized for
    """

    pieces: tuple[ObjectId, ...]
    marks: int

    def points_to(self) -> Iterable[ObjectId]:
        return self.pieces


def file_digest(path: str) -> bytes:
    """Eight bytes for a file, equal for all paths that some reader would take for it."""
    return hashlib.blake2b(loose_key(path).encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest()


def store_filter(tx: Transaction, bloom: BloomFilter, *, marks: int) -> IndexValue:
    """Add a filter of ``digest_number``s to a commit; returns the entry that points to it.

    marks         how many it was sized for
    """
    pieces = tuple(tx.add_object(MarkFilterPiece(data=piece)) for piece in bloom.pieces(_PIECE_BYTES))
    return IndexValue(tx.add_object(MarkFilter(pieces=pieces, marks=marks)))


class MarkedFiles:
    """What commits to one catalog ask: which of some tables have marks, and which of the files that they name may be marked."""

    def __init__(self, rows: RealmStore, catalog_id: str) -> None:
        self._rows = rows
        self._catalog_id = catalog_id

    def find_tables(self, content_ids: Iterable[UUID]) -> dict[UUID, ObjectId]:
        """Those of some tables that have marks, each with its filter's object."""
        found = find_marked(self._rows, self._catalog_id, content_ids)
        return {content_id: value.object_id for content_id, value in found.items() if value.object_id is not None}

    def marked_digests(self, filter_id: ObjectId, paths: Iterable[str]) -> Iterator[bytes]:
        """The digests of those files that may be marked.

        raises        CorruptionError when the filter cannot be read
        """
        bloom = self._bloom(filter_id)
        for path in paths:
            digest = file_digest(path)
            if digest_number(digest) in bloom:
                yield digest

    def _bloom(self, filter_id: ObjectId) -> BloomFilter:
        bloom = self._rows.find_derived(filter_id, BloomFilter)
        if bloom is None:
            stored = self._rows.read_object(filter_id, MarkFilter)
            pieces = self._rows.read_many(stored.pieces, MarkFilterPiece)
            if None in pieces:
                raise CorruptionError(
                    f"filter {id_text(filter_id)} of realm {self._rows.realm!r} has lost a part: run `headwater fsck`"
                )
            bloom = BloomFilter.joined(stored.marks, 0, [piece.data for piece in pieces if piece is not None])
            self._rows.keep_derived(filter_id, bloom, weight_bytes=bloom.size_bytes)
        return bloom


def digest_number(digest: bytes) -> int:
    """A digest as a filter takes it: 63 bits."""
    return int.from_bytes(digest, "big") >> 1
