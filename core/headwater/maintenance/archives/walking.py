"""Every object that references lead to, once, in its envelope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headwater.errors import UnreadableError
from headwater.maintenance.archives.records import Sealed
from headwater.maintenance.garbage.marks import Marks
from headwater.maintenance.garbage.retention import Why
from headwater.store import ObjectId, RealmStore, StoredObject, id_text, why_untold
from headwater.store.codec import decode
from headwater.store.object_rows import load

__all__ = ["opened", "walk"]

_BATCH = 100
_EXACT_BYTES = 1 << 40
"""A set without an upper bound, at nine bytes an object: a filter would leave objects out."""


def walk(rows: RealmStore, roots: Iterable[ObjectId]) -> Iterator[Sealed]:
    """The roots and all that they lead to, each once, read from the database now. Children come soon after what points to them.

    raises        UnreadableError when one is missing, damaged, or of a type that this release cannot walk
    """
    seen = Marks(_EXACT_BYTES)
    waiting = [root for root in roots if seen.add(root, Why.HEAD)]
    while waiting:
        batch = waiting[-_BATCH:]
        del waiting[-_BATCH:]
        found = {
            row.id: Sealed(row.id, row.type, row.token is not None, envelope)
            for row, envelope in load(rows.store.backend, rows.realm, rows.key, batch)
        }
        for object_id in batch:
            sealed = found.pop(object_id, None)
            if sealed is None:
                raise UnreadableError(
                    f"object {id_text(object_id)} of realm {rows.realm!r} is referred to, but not there: run `headwater fsck`"
                )
            waiting += [target for target in opened(sealed, rows.realm).points_to() if seen.add(target, Why.HEAD)]
            yield sealed


def opened(sealed: Sealed, realm: str) -> StoredObject:
    """The object in its envelope, whose checksum must fit.

    raises        UnreadableError, also for a type that this release does not know: what it leads to would be left out
    """
    token = "" if sealed.is_updateable else None
    value = decode(sealed.id, sealed.type, sealed.envelope, StoredObject, realm=realm, token=token)
    if why := why_untold(value):
        raise UnreadableError(
            f"object {id_text(sealed.id)} of realm {realm!r} {why}: what it points to cannot be told; use the release that wrote it"
        )
    return value
