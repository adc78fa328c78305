"""Storing a metadata document as objects on top of the version before, and reading it back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headwater.catalogs.iceberg.parts import Parts, put_together
from headwater.catalogs.metadata.layout import collected, laid_out, prefixes_of
from headwater.catalogs.metadata.objects import IcebergMetadata, IcebergPiece
from headwater.commits import Transaction
from headwater.errors import UnreadableError
from headwater.index import Entry, Index, IndexEditor, Limits, NewIndex, Value
from headwater.store import ObjectId, RealmReader, id_text

__all__ = ["read_fields", "read_metadata", "store_metadata"]

_LIMITS = Limits(embedded_bytes=32 * 1024, stripe_bytes=32 * 1024)
_LARGE_BYTES = 2048
"""Beyond which a piece is an object of its own. A snapshot with a full summary has about 1000 bytes; a schema of forty columns is large."""
_AT_ONCE = 200


class _Edits(NamedTuple):
    """What makes the pieces of one version those of the next.

    put           key, piece, and what an entry holds: the piece itself, or what stands for one that is an object of its own
    shared        the objects of large pieces that are there, by what stands for them
    """

    removed: list[bytes]
    put: list[tuple[bytes, bytes, bytes]]
    shared: dict[bytes, ObjectId]


def store_metadata(tx: Transaction, parts: Parts, *, before: ObjectId | None) -> ObjectId:
    """Add the objects of a metadata document to a commit; returns the id of its ``IcebergMetadata``.

    before        the version that the commit's parent holds of this table, on top of which only what changed is written; None: none
    raises        UnreadableError when the version before cannot be read
    """
    pieces = _first(tx, parts) if before is None else _next(tx, parts, before)
    return tx.add_object(IcebergMetadata(pieces=tx.add_index(pieces, _LIMITS)))


def _first(tx: Transaction, parts: Parts) -> NewIndex:
    data = laid_out(parts, {}, {})
    objects: dict[bytes, ObjectId] = {}
    shared: dict[bytes, ObjectId] = {}
    for key in [key for key, piece in data.items() if len(piece) > _LARGE_BYTES]:
        token = _token(data[key])
        if token not in shared:
            shared[token] = tx.add_object(IcebergPiece(text=data[key]))
        data[key], objects[key] = token, shared[token]
    return NewIndex(data, objects)


def _next(tx: Transaction, parts: Parts, before: ObjectId) -> IndexEditor:
    base = Index(tx.reader.read(before, IcebergMetadata).pieces, tx.reader)
    # comparing a document with ten thousand snapshots takes longer than a group of commits waits: once is enough
    edits = tx.memoize(f"metadata on top of {id_text(before)}", (before, parts), lambda: _edits(base, parts))
    editor, shared = IndexEditor(base), dict(edits.shared)
    for key in edits.removed:
        editor.remove(key)
    for key, piece, data in edits.put:
        is_large = data is not piece
        if is_large and data not in shared:
            shared[data] = tx.add_object(IcebergPiece(text=piece))
        editor.put(key, Value(shared[data] if is_large else None, data))
    return editor


def read_metadata(rows: RealmReader, metadata_id: ObjectId) -> Parts:
    """The pieces of a stored metadata document.

    raises        MissingError when there is no such object; UnreadableError when a part of it is missing or damaged
    """
    entries = list(Index(rows.read(metadata_id, IcebergMetadata).pieces, rows).range())
    wanted = list(dict.fromkeys(value.object_id for _, value in entries if value.object_id is not None))
    return _put_back(entries, _texts(rows, dict.fromkeys(wanted, metadata_id)))


def read_fields(rows: RealmReader, metadata_ids: Sequence[ObjectId], names: Sequence[str]) -> dict[ObjectId, dict[str, bytes]]:
    """Some fields of stored metadata documents, as JSON text by name; without those that a document does not have.

    All documents are read in one go, and so are their large pieces. Of a document that has spilled, so are the stripes it takes.

    names         of fields that are no lists
    raises        as ``read_metadata`` does
    """
    wanted = list(dict.fromkeys(metadata_ids))
    prefixes = dict.fromkeys(prefix for name in names for prefix in prefixes_of(name))
    entries: dict[ObjectId, list[Entry]] = {}
    for metadata_id, found in zip(wanted, rows.read_many(wanted, IcebergMetadata), strict=True):
        document = rows.read(metadata_id, IcebergMetadata) if found is None else found  # which says what is missing
        index = Index(document.pieces, rows)
        entries[metadata_id] = [entry for prefix in prefixes for entry in index.prefix(prefix)]
    owners = {value.object_id: owner for owner, held in entries.items() for _, value in held if value.object_id is not None}
    texts = _texts(rows, owners)
    return {metadata_id: _fields(_put_back(held, texts), names) for metadata_id, held in entries.items()}


def _fields(parts: Parts, names: Sequence[str]) -> dict[str, bytes]:
    maps = {name: put_together(Parts(parts.maps[name], {})) for name in names if name in parts.maps}
    return maps | {name: parts.fields[name] for name in names if name in parts.fields}


def _put_back(entries: Iterable[Entry], texts: Mapping[ObjectId, bytes]) -> Parts:
    return collected((key, value.data if value.object_id is None else texts[value.object_id]) for key, value in entries)


def _edits(base: Index, parts: Parts) -> _Edits:
    held = dict(base.range())
    tokens = {piece: _token(piece) for piece in _all(parts) if len(piece) > _LARGE_BYTES}
    pieces = laid_out(parts, {key: value.data for key, value in held.items()}, tokens)
    put = []
    for key, piece in pieces.items():
        data = (tokens.get(piece) or _token(piece)) if len(piece) > _LARGE_BYTES else piece
        there = held.get(key)
        if there is None or there.data != data:
            put.append((key, piece, data))
    shared = {value.data: value.object_id for value in held.values() if value.object_id is not None}
    return _Edits([key for key in held if key not in pieces], put, shared)


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


def _texts(rows: RealmReader, owners: Mapping[ObjectId, ObjectId]) -> dict[ObjectId, bytes]:
    """The texts of large pieces, by their ids; ``owners`` says of which document each is."""
    texts: dict[ObjectId, bytes] = {}
    ids = list(owners)
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        for object_id, found in zip(some, rows.read_many(some, IcebergPiece), strict=True):
            if found is None:
                raise UnreadableError(
                    f"object {id_text(object_id)} of realm {rows.realm!r}, a piece of the metadata {id_text(owners[object_id])},"
                    " is not there. Run `headwater fsck`"
                )
            texts[object_id] = found.text
    return texts
