"""A collector in a few lines: it believes what objects say that they point to."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.commits import mark_reachable
from headwater.store import ObjectId, RealmStore

__all__ = ["collect_all_but"]


def collect_all_but(rows: RealmStore, kept: Iterable[ObjectId]) -> None:
    """Delete every object that these commits do not lead to."""
    marked: set[ObjectId] = set()

    def mark(object_id: ObjectId, parent: ObjectId | None) -> bool:
        is_new = object_id not in marked
        marked.add(object_id)
        return is_new

    mark_reachable(rows.without_cache(), kept, mark)
    for batch in list(rows.scan_objects()):
        rows.delete_unchanged([key for key in batch if key.id not in marked])
