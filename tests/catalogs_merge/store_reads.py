"""The reads of objects that reach a database, counted."""

from __future__ import annotations

from typing import Any

from faulty_backend import FaultyBackend
from headwater.store import RealmStore, Store

__all__ = ["ReadCounts", "counted_rows"]


class ReadCounts(FaultyBackend):
    """How often objects were asked for, and how many."""

    reads = 0
    objects = 0

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        if name == "read_objects":
            self.reads += 1
            self.objects += len(arguments[1])
        return super()._call(name, *arguments, **named)


def counted_rows(rows: RealmStore) -> tuple[RealmStore, ReadCounts]:
    """The same realm through a store of its own, with an empty cache and counted reads."""
    counts = ReadCounts(rows.store.backend)
    store = Store(counts, url=rows.store.url, settings=rows.settings, clock=rows.clock)
    return store.rows(rows.realm, rows.key), counts
