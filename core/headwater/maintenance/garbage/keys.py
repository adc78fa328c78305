"""Which realm keys have rows, whatever realm they belong to."""

from __future__ import annotations

from collections.abc import Callable, Collection

from headwater.store import RealmId, RealmKey, Split, Store

__all__ = ["keys_in_use", "keys_with_rows"]

_SCAN_ROWS = 1000


def keys_with_rows(store: Store, keys: Collection[RealmKey], fence: Callable[[], None]) -> list[RealmKey]:
    """Those of the keys that some row carries: each looked up where keys are ordered, else all in one scan."""
    if not keys or store.backend.capabilities.ordered_keys:
        return [key for key in keys if not store.rows(RealmId("any"), key).is_empty()]
    return sorted(keys_in_use(store, fence).intersection(keys))


def keys_in_use(store: Store, fence: Callable[[], None] = lambda: None) -> set[RealmKey]:
    """All realm keys that some row carries."""
    found: set[RealmKey] = set()
    after = None
    while batch := store.backend.scan_objects(Split(), after, _SCAN_ROWS):
        fence()
        found.update(key.realm for key in batch)
        after = batch[-1].position
    name = None
    while rows := store.backend.scan_references(Split(), name, _SCAN_ROWS):
        fence()
        found.update(row.realm for row in rows)
        name = rows[-1].position
    return found
