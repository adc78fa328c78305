"""Objects as rows: cut into parts and put together again."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import UnreadableError
from headwater.store.backend import Backend, ObjectRow
from headwater.store.codec import MOST_PARTS
from headwater.store.identity import ObjectId, RealmId, RealmKey, id_text

__all__ = ["Loaded", "load"]

_LOOKS = 3


Loaded = tuple[ObjectRow, bytes]
"""Part 0 of an object, and the bytes of all its parts."""


def load(backend: Backend, realm: RealmId, key: RealmKey, object_ids: Sequence[ObjectId]) -> list[Loaded]:
    """Those objects that are there, in no order; one round trip, and another one if some have several parts.

    Between the two, somebody may write an object anew or delete it::

        reader                    writer
        part 0 of 3
                                  the same object, 2 parts
        parts 1 and 2: 1 is new, 2 is missing

    So what does not fit together is looked at again.

    raises        UnreadableError when a part stays missing, or a row's number of parts cannot be ours. Whether parts belong
                  together is then told by the checksum
    """
    loaded: list[Loaded] = []
    wanted: Sequence[ObjectId] = object_ids
    for look in range(1, _LOOKS + 1):
        several: list[ObjectRow] = []
        for row in backend.read_objects(key, [(object_id, 0) for object_id in wanted]):
            if row is not None:
                if row.parts == 1:
                    loaded.append((row, row.value))
                else:
                    several.append(row)
        if not several:
            break
        torn = _put_together(backend, realm, key, several, loaded, is_last=look == _LOOKS)
        if not torn:
            break
        wanted = torn
    return loaded


def _put_together(
    backend: Backend, realm: RealmId, key: RealmKey, rows: Sequence[ObjectRow], loaded: list[Loaded], *, is_last: bool
) -> list[ObjectId]:
    """Add the other parts. Returns the ids of objects to be looked at again."""
    for row in rows:
        if not 1 < row.parts <= MOST_PARTS:
            raise UnreadableError(f"{_where(row, realm)}: it cannot have {row.parts} parts, the row was altered")
    others = [(row.id, part) for row in rows for part in range(1, row.parts)]
    found = dict(zip(others, backend.read_objects(key, others), strict=True))
    torn = []
    for row in rows:
        pieces = [found[row.id, part] for part in range(1, row.parts)]
        there = [piece for piece in pieces if piece is not None]
        is_whole = len(there) == len(pieces)
        if is_last and not is_whole:
            raise UnreadableError(f"{_where(row, realm)}: one of its {row.parts} parts is missing")
        if is_last or (is_whole and all(piece.created == row.created for piece in there)):
            loaded.append((row, b"".join((row.value, *(piece.value for piece in there)))))
        else:
            torn.append(row.id)
    return torn


def _where(row: ObjectRow, realm: RealmId) -> str:
    return f"object {id_text(row.id)} of type {row.type!r} in realm {realm!r}"
