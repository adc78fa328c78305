"""Marks in the realm itself, in rows that are garbage once the sweep is over: so that a sweep outlives its process."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.commits import MarkChunk
from headwater.errors import UnreadableError
from headwater.maintenance.garbage.marks import Marks
from headwater.maintenance.garbage.pacing import Watch
from headwater.store import ObjectId, RealmStore, id_text

__all__ = ["load_marks", "save_marks"]


def save_marks(rows: RealmStore, marks: Marks, watch: Watch) -> tuple[ObjectId, ...]:
    """Write the marks, a row at a time; returns the rows' ids in their order."""
    written = []
    for chunk in marks.chunks():
        watch.check()
        written.append(rows.new_id())
        rows.write([(written[-1], MarkChunk(data=chunk))], are_new=True)
    return tuple(written)


def load_marks(rows: RealmStore, chunks: Sequence[ObjectId]) -> Marks:
    """What ``save_marks`` wrote. UnreadableError when something of it is not there or damaged: then mark anew."""
    fresh = rows.without_cache()

    def read(object_id: ObjectId) -> bytes:
        found = fresh.find(object_id, MarkChunk)
        if found is None:
            raise UnreadableError(f"marks {id_text(object_id)} of realm {rows.realm!r} are not there")
        return found.data

    return Marks.from_chunks(map(read, chunks))
