"""Scans of one realm, and its deletion where the database cannot do it: whatever order a database keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Protocol, TypeVar

from headwater.errors import BeatenError
from headwater.store.backend import (
    Backend,
    ObjectKey,
    ObjectPosition,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    Split,
)
from headwater.store.bounds import Bounds
from headwater.store.identity import RealmId, RealmKey

__all__ = ["Scans"]

_SCAN_ROWS = 600
"""Rows of one round trip: of 100 to 20 000, on SQLite and PostgreSQL none was quicker (0.76 of the driver's own cursor)."""
_ROUNDS = 10


class _Key(Protocol):
    @property
    def realm(self) -> RealmKey: ...
    @property
    def position(self) -> Any: ...


K = TypeVar("K", bound=_Key)


class Scans:
    """The rows of one realm in batches. Where keys are not ordered, all realms are read, and the others left out."""

    def __init__(self, backend: Backend, realm: RealmId, key: RealmKey) -> None:
        self._backend = backend
        self._key = key
        self._bounds = Bounds(realm, key)
        self._deleted_to: tuple[ReferencePosition | None, ObjectPosition | None] = (None, None)

    def objects(self, split: Split[ObjectPosition] | None, rows: int = _SCAN_ROWS) -> Iterator[list[ObjectKey]]:
        return self._batches(self._backend.scan_objects, split, rows)

    def references(self, split: Split[ReferencePosition] | None, rows: int = _SCAN_ROWS) -> Iterator[list[ReferenceKey]]:
        return self._batches(self._backend.scan_references, split, rows)

    def split_objects(self, count: int) -> list[Split[ObjectPosition]]:
        return self._backend.split_objects(self._key if self._is_ordered else None, count)

    def split_references(self, count: int) -> list[Split[ReferencePosition]]:
        return self._backend.split_references(self._key if self._is_ordered else None, count)

    def is_empty(self) -> bool:
        rows = 1 if self._is_ordered else _SCAN_ROWS
        return not (any(self.references(None, rows)) or any(self.objects(None, rows)))

    def delete(self, limit: int) -> int:
        """Delete up to ``limit`` rows as they are found; returns how many went, 0 when none is left.

        Each call goes on where the last one stopped, and says 0 only after a look from the start.
        """
        for _ in range(_ROUNDS):
            is_whole = self._deleted_to == (None, None)
            found, deleted = self._delete_from(*self._deleted_to, limit)
            if deleted or (is_whole and not found):
                return deleted
        return 0  # others change everything that is found; whoever purges looks whether it is empty

    def _delete_from(self, reference: ReferencePosition | None, position: ObjectPosition | None, limit: int) -> tuple[int, int]:
        realm = self._key if self._is_ordered else None
        names = list(islice((key for batch in self.references(Split(realm, reference)) for key in batch), limit))
        rest = limit - len(names)
        keys = list(islice((key for batch in self.objects(Split(realm, position)) for key in batch), rest))
        is_end = len(names) + len(keys) < limit
        self._deleted_to = (
            (None, None) if is_end else (names[-1].position if names else reference, keys[-1].position if keys else position)
        )
        deleted = sum(self._remove(key) for key in names)
        return len(names) + len(keys), deleted + (self._backend.delete_objects(keys) if keys else 0)

    def _remove(self, key: ReferenceKey) -> bool:
        try:
            self._backend.remove_reference(
                ReferenceRow(
                    realm=key.realm,
                    name=key.name,
                    pointer=key.pointer,
                    version=key.version,
                    created=key.created,
                    deleted=key.deleted,
                )
            )
        except BeatenError:
            return False
        return True

    @property
    def _is_ordered(self) -> bool:
        return self._backend.capabilities.ordered_keys

    def _batches(
        self, read: Callable[[Split[Any], Any, int], list[K]], split: Split[Any] | None, rows: int
    ) -> Iterator[list[K]]:
        is_ordered = self._is_ordered
        within = Split(self._key if is_ordered else None) if split is None else split
        self._bounds.check_split(within, is_ordered=is_ordered)
        return self._read(read, within, rows, is_ordered)

    def _read(
        self, read: Callable[[Split[Any], Any, int], list[K]], split: Split[Any], rows: int, is_ordered: bool
    ) -> Iterator[list[K]]:
        after = None
        while batch := read(split, after, rows):
            after = batch[-1].position
            if not is_ordered:
                batch = [key for key in batch if key.realm == self._key]
            if batch:
                yield batch
