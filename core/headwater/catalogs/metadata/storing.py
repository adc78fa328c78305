"""Storing a metadata document as objects on top of the version before, and reading it back."""

from __future__ import annotations

from headwater.catalogs.iceberg.parts import Parts
from headwater.catalogs.metadata.objects import IcebergMetadata
from headwater.commits import Transaction
from headwater.index import Index, IndexEditor, Limits, Value
from headwater.store import ObjectId, RealmStore

__all__ = ["read_metadata", "store_metadata"]

_LIMITS = Limits(embedded_bytes=8 * 1024, stripe_bytes=32 * 1024)


def store_metadata(tx: Transaction, parts: Parts, *, before: ObjectId | None) -> ObjectId:
    """Add the objects of a metadata document to a commit; returns the id of its ``IcebergMetadata``.

    before        the version that the commit's parent holds of this table, on top of which only what changed is written; None: none
    """
    base = Index() if before is None else Index(tx.rows.read(before, IcebergMetadata).pieces, tx.rows)
    editor = IndexEditor(base)
    wanted = {b"f" + name.encode(): piece for name, piece in parts.fields.items()}
    for name, elements in parts.lists.items():
        for at, element in enumerate(elements):
            wanted[b"l" + name.encode() + b"\0" + at.to_bytes(8, "big")] = element
    for key in [key for key, _ in base.range() if key not in wanted]:
        editor.remove(key)
    for key, piece in wanted.items():
        if editor.get(key) != Value(None, piece):
            editor.put(key, Value(None, piece))
    return tx.add(IcebergMetadata(lists=tuple(parts.lists), pieces=tx.add_index(editor, _LIMITS)))


def read_metadata(rows: RealmStore, metadata_id: ObjectId) -> Parts:
    """The pieces of a stored metadata document.

    raises        MissingError · UnreadableError
    """
    found = rows.read(metadata_id, IcebergMetadata)
    fields: dict[str, bytes] = {}
    lists: dict[str, list[bytes]] = {name: [] for name in found.lists}
    for key, value in Index(found.pieces, rows).range():
        name, _, _ = key[1:].partition(b"\0")
        if key[:1] == b"f":
            fields[name.decode()] = bytes(value.data)
        else:
            lists[name.decode()].append(bytes(value.data))
    return Parts(fields, {name: tuple(elements) for name, elements in lists.items()})
