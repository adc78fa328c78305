"""A backend that can do the minimum and declares nothing more: what stands above must work on it, if more slowly."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, TypeVar

from headwater.errors import RefusedError
from headwater.store import (
    Capabilities,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    RealmKey,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
)
from headwater.store.backends.memory import MemoryBackend

K = TypeVar("K", ReferenceKey, ObjectKey)
P = TypeVar("P", bound=tuple[Any, ...])


class UnorderedBackend(MemoryBackend):
    """Rows in memory as a hashing database has them: scanned in the order of their keys' hashes, over all realms at once."""

    capabilities = Capabilities(ordered_keys=False, bulk_realm_deletion=False)

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        self.write_objects(rows, are_new=True)
        self.swap_reference(seen, new)

    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        _refuse_one_realm(split.realm)
        return _page(super().scan_references(ScanSplit(), None, sys.maxsize), split, after, limit)

    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        _refuse_one_realm(split.realm)
        return _page(super().scan_objects(ScanSplit(), None, sys.maxsize), split, after, limit)

    def split_references(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ReferencePosition]]:
        _refuse_one_realm(realm)
        return _cut([key.position for key in super().scan_references(ScanSplit(), None, sys.maxsize)], count)

    def split_objects(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ObjectPosition]]:
        _refuse_one_realm(realm)
        return _cut([key.position for key in super().scan_objects(ScanSplit(), None, sys.maxsize)], count)

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        raise RefusedError(f"this store deletes no realm at once, not that of key {realm} either: scan it and delete its rows")


def _refuse_one_realm(realm: RealmKey | None) -> None:
    if realm is not None:
        raise RefusedError(f"this store keeps no order of realms: scan all of them instead of the one of key {realm}")


def _rank(position: tuple[Any, ...]) -> bytes:
    return blake2b(repr(tuple(position)).encode(), digest_size=16).digest()


def _page(keys: list[K], split: ScanSplit[Any], after: tuple[Any, ...] | None, limit: int) -> list[K]:
    start = max((_rank(position) for position in (split.after, after) if position is not None), default=b"")
    ranked = ((_rank(key.position), key) for key in keys)
    within = (pair for pair in ranked if pair[0] > start and (split.until is None or pair[0] <= _rank(split.until)))
    return [key for _, key in sorted(within)][:limit]


def _cut(positions: list[P], count: int) -> list[ScanSplit[P]]:
    size = max(1, -(-len(positions) // count))
    ends = sorted(positions, key=_rank)[size - 1 : -1 : size]
    starts: list[P | None] = [None, *ends]
    return [ScanSplit(None, after, until) for after, until in zip(starts, [*ends, None], strict=True)]
