"""What must stay as long as something else does: a walk over what objects say that they point to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headwater.errors import UnreadableError
from headwater.store import ObjectId, RealmStore, StoredObject, UnknownObject, id_text

__all__ = ["reach"]

_BATCH = 100


def reach(rows: RealmStore, roots: Iterable[ObjectId], mark: Callable[[ObjectId, ObjectId | None], bool]) -> None:
    """Mark the roots and everything that they lead to.

    mark          remembers an id and what pointed to it (None: a root); True when it was new. Nothing is read twice.
    raises        UnreadableError when something on the way is missing or cannot be walked: then nothing may be deleted
    """
    waiting = [root for root in roots if mark(root, None)]
    while waiting:
        batch, waiting = waiting[-_BATCH:], waiting[:-_BATCH]
        for object_id, found in zip(batch, rows.read_many(batch, StoredObject), strict=True):
            if found is None:
                raise UnreadableError(f"object {id_text(object_id)} of realm {rows.realm!r} is referred to, but not there")
            if isinstance(found, UnknownObject):
                raise UnreadableError(
                    f"object {id_text(object_id)} of realm {rows.realm!r} has the type {found.name!r}, which this release does not know:"
                    " what it points to cannot be told"
                )
            waiting += [target for target in found.points_to() if mark(target, object_id)]
