"""Storing a metadata document as objects on top of the version before, and reading it back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from headwater.catalogs.iceberg.parts import Parts
from headwater.catalogs.metadata.layout import collected, laid_out
from headwater.catalogs.metadata.objects import IcebergMetadata, IcebergPiece
from headwater.commits import Transaction
from headwater.errors import UnreadableError
from headwater.index import Index, IndexEditor, Limits, Value
from headwater.store import ObjectId, RealmStore, id_text

__all__ = ["read_metadata", "store_metadata"]

_LIMITS = Limits(embedded_bytes=32 * 1024, stripe_bytes=32 * 1024)
_LARGE_BYTES = 2048
"""Beyond which a piece is an object of its own. A snapshot with a full summary has about 1000 bytes; a schema of forty columns is large."""
_AT_ONCE = 200


def store_metadata(tx: Transaction, parts: Parts, *, before: ObjectId | None) -> ObjectId:
    """Add the objects of a metadata document to a commit; returns the id of its ``IcebergMetadata``.

    before        the version that the commit's parent holds of this table, on top of which only what changed is written; None: none
    raises        UnreadableError when the version before cannot be read
    """
    base = Index() if before is None else Index(tx.rows.read(before, IcebergMetadata).pieces, tx.rows)
    held = dict(base.range())
    shared = {value.data: value.object_id for value in held.values() if value.object_id is not None}
    tokens = {piece: _token(piece) for piece in _all(parts) if len(piece) > _LARGE_BYTES}
    pieces = laid_out(parts, {key: value.data for key, value in held.items()}, tokens)
    editor = IndexEditor(base)
    for key in held.keys() - pieces.keys():
        editor.remove(key)
    for key, piece in pieces.items():
        is_large = len(piece) > _LARGE_BYTES
        data = (tokens.get(piece) or _token(piece)) if is_large else piece
        there = held.get(key)
        if there is None or there.data != data:
            if is_large and data not in shared:
                shared[data] = tx.add(IcebergPiece(text=piece))
            editor.put(key, Value(shared[data] if is_large else None, data))
    return tx.add(IcebergMetadata(pieces=tx.add_index(editor, _LIMITS)))


def read_metadata(rows: RealmStore, metadata_id: ObjectId) -> Parts:
    """The pieces of a stored metadata document.

    raises        MissingError when there is no such object; UnreadableError when a part of it is missing or damaged
    """
    entries = list(Index(rows.read(metadata_id, IcebergMetadata).pieces, rows).range())
    wanted = list(dict.fromkeys(value.object_id for _, value in entries if value.object_id is not None))
    texts = _texts(rows, wanted, metadata_id)
    return collected((key, value.data if value.object_id is None else texts[value.object_id]) for key, value in entries)


def _all(parts: Parts) -> list[bytes]:
    found = list(parts.fields.values())
    for elements in parts.lists.values():
        found += elements
    for members in parts.maps.values():
        found += members.values()
    return found


def _token(piece: bytes) -> bytes:
    """What stands for a piece that is an object of its own: no JSON text begins like that."""
    return b"\0" + hashlib.blake2b(piece, digest_size=16).digest()


def _texts(rows: RealmStore, ids: Sequence[ObjectId], metadata_id: ObjectId) -> dict[ObjectId, bytes]:
    texts: dict[ObjectId, bytes] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        for object_id, found in zip(some, rows.read_many(some, IcebergPiece), strict=True):
            if found is None:
                raise UnreadableError(
                    f"object {id_text(object_id)} of realm {rows.realm!r}, a piece of the metadata {id_text(metadata_id)},"
                    " is not there. Run `headwater fsck`"
                )
            texts[object_id] = found.text
    return texts
