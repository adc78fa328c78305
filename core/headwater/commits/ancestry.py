"""From a reference to its head, and from a commit back to its ancestors."""

from __future__ import annotations

from headwater.commits.objects import Commit, Head
from headwater.errors import ExpiredError, UnknownOutcomeError, UnreadableError
from headwater.store import ObjectId, RealmStore, Reference, id_text

__all__ = ["descends", "load_head"]


def load_head(rows: RealmStore, reference: Reference) -> Head | None:
    """The commit that a reference points to; None when it has none yet.

    raises        UnreadableError when it points to a commit that is not there: never to be taken for "no commit yet" ·
                  ExpiredError when it points elsewhere by now, or was deleted: read it again. Between the read of the row and this
                  one its process was stopped for longer than the reader's grace, or the row came from a cache
    """
    if reference.pointer is None:
        return None
    found = rows.find(reference.pointer, Commit)
    if found is None:
        now = rows.find_row(reference.name)
        if now is None or now.pointer != reference.pointer or now.deleted is not None:
            raise ExpiredError(
                f"reference {reference.name!r} of realm {rows.realm!r} has left commit {id_text(reference.pointer)}, which was collected"
                " since: read it again"
            )
        raise UnreadableError(
            f"reference {reference.name!r} of realm {rows.realm!r} points to commit {id_text(reference.pointer)}, which is not there;"
            f" recent pointers: {', '.join(id_text(i) for i in reference.recent[:3]) or 'none'}. Nothing was changed: run `headwater fsck`"
        )
    return Head(reference.pointer, found, rows)


def descends(rows: RealmStore, start: ObjectId, wanted: ObjectId, seq: int) -> bool:
    """Whether ``wanted``, whose seq is known, is ``start`` or one of its ancestors. Reads one commit in twenty.

    raises        UnknownOutcomeError when history was cut before the answer was found
    """
    while True:
        found = rows.find(start, Commit)
        if found is None:
            raise UnknownOutcomeError(f"commit {id_text(start)} of realm {rows.realm!r} is not there any more")
        distance = found.seq - seq
        if distance <= 0:
            return start == wanted
        if distance <= len(found.tail):
            return found.tail[distance - 1] == wanted
        if not found.tail:
            return False
        start = found.tail[-1]
