"""What every handle on one realm's rows shares: its store, its realm, whether it may write, its cache, limits, and scans.

Names and sizes out of bounds are refused before they reach a database. Scans and the deletion of a realm work with any key order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from headwater.clock import Clock
from headwater.errors import CorruptionError, RefusedError, SwapConflictError
from headwater.settings import Settings
from headwater.store.backend import (
    ROW_BYTES,
    Backend,
    ObjectKey,
    ObjectPosition,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
)
from headwater.store.cache import Cache
from headwater.store.ids import ObjectId, RealmId, RealmKey

NAME_BYTES = 500
"""The most bytes of UTF-8 that a reference's name may have."""
_MOST = (1 << 63) - 1
_POINTER_BYTES, _MOVE_BYTES = 8, 16
_realm_of, _id_of, _row_of = attrgetter("realm"), attrgetter("id"), attrgetter("id", "part")


class RealmBounds:
    """Checks of one realm's names, ids and rows: no row, key or split of another realm passes."""

    def __init__(self, realm: RealmId, key: RealmKey) -> None:
        self._realm = realm
        self._key = key

    def check_ids(self, object_ids: Sequence[ObjectId]) -> None:
        """Check object ids. 0 is not an id: in an index it means that there is no object."""
        if object_ids and not (min(object_ids) >= 1 and max(object_ids) <= _MOST):
            wrong = next(object_id for object_id in object_ids if not 1 <= object_id <= _MOST)
            raise RefusedError(
                f"{wrong} is not a valid id of an object in realm {self._realm!r}: an id is a number from 1 to 2^63-1"
            )

    def check_once(self, object_ids: Sequence[ObjectId]) -> None:
        """Check the ids of a bulk write: each must appear once."""
        self.check_ids(object_ids)
        self._check_once(object_ids, "object")

    def check_names(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                size = len(name.encode())
            except UnicodeEncodeError:  # a lone surrogate
                size = 0
            if not 1 <= size <= NAME_BYTES or "\0" in name:
                shown = repr(name) if len(name) <= 80 else f"{name[:80]!r}..."
                raise RefusedError(
                    f"{shown} is no name of a reference in realm {self._realm!r}:"
                    f" a name is 1 to {NAME_BYTES} bytes of UTF-8 without NUL and surrogates"
                )

    def check_names_once(self, names: Sequence[str]) -> None:
        self.check_names(names)
        self._check_once(names, "reference")

    def check_row(self, row: ReferenceRow) -> None:
        if row.realm != self._key:
            raise self._foreign(f"reference {row.name!r}", row.realm)
        self.check_names([row.name])
        if not 1 <= row.version <= _MOST:
            raise RefusedError(
                f"reference {row.name!r} of realm {self._realm!r} cannot have version {row.version}: versions are 1 to 2^63-1"
            )
        if row.pointer is not None:
            self.check_ids((row.pointer,))
        size = _POINTER_BYTES * len(row.recent) + _MOVE_BYTES * len(row.moves)
        if size > ROW_BYTES:
            raise RefusedError(
                f"reference {row.name!r} of realm {self._realm!r} would have {size} bytes of pointers; a row may have {ROW_BYTES}"
            )

    def check_found(self, row: ReferenceRow) -> None:
        """Raise CorruptionError for a row in the database that no handle would have written."""
        if row.version < 1 or (row.pointer is not None and row.pointer < 1):
            raise CorruptionError(
                f"reference {row.name!r} of realm {self._realm!r} is at version {row.version} and object {row.pointer}:"
                " both are 1 to 2^63-1, the row was altered"
            )

    def check_swap(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        self.check_row(seen)
        self.check_row(new)
        if seen.name != new.name or new.version <= seen.version:
            raise RefusedError(
                f"reference {seen.name!r} of realm {self._realm!r} at version {seen.version} cannot become {new.name!r} at version"
                f" {new.version}: a swap keeps the name and raises the version"
            )

    def check_keys(self, keys: Sequence[ObjectKey]) -> None:
        if not set(map(_realm_of, keys)) <= {self._key}:
            foreign = next(key for key in keys if key.realm != self._key)
            raise self._foreign(f"object {foreign.id}", foreign.realm)
        self.check_ids(list(map(_id_of, keys)))
        self._check_once(list(map(_row_of, keys)), "row (id, part)")

    def check_split(self, split: ScanSplit[Any], *, is_ordered: bool) -> None:
        """Check that a split is one of this realm, or of all realms where keys are not ordered, because no other splits exist."""
        if not is_ordered:
            if split.realm is not None:
                raise self._split_refused("this store cuts only the scan of all realms")
            return
        named = (split.realm, *(position[0] for position in (split.after, split.until) if position is not None))
        if any(realm != self._key for realm in named):
            raise self._split_refused("it is not one of this realm's")

    def _split_refused(self, why: str) -> RefusedError:
        return RefusedError(
            f"the handle on realm {self._realm!r} does not scan that split: {why};"
            " take one that its split_objects or split_references cut"
        )

    def _check_once(self, named: Sequence[Any], what: str) -> None:
        if len(set(named)) != len(named):
            seen: set[Any] = set()
            twice = next(name for name in named if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise RefusedError(f"{what} {twice!r} of realm {self._realm!r} stands in one call twice: name each of them once")

    def _foreign(self, what: str, realm: RealmKey) -> RefusedError:
        return RefusedError(
            f"{what} belongs to realm key {realm}: the handle on realm {self._realm!r} (key {self._key}) changes no other realm's rows"
        )


class WriteGuard(Protocol):
    """Decides whether a handle may write now."""

    def check_write(self) -> None:
        """Raise RefusedError when the handle may not write now."""
        ...


class StoreContext(Protocol):
    """The part of a store that its handles use."""

    @property
    def backend(self) -> Backend: ...
    @property
    def cache(self) -> Cache: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...
    def new_id(self) -> ObjectId: ...
    def new_ids(self, n: int) -> list[ObjectId]: ...
    def leave_node(self, node: int) -> None: ...


class RealmHandle:
    """The base of a handle on one realm. As thread-safe and fork-safe as its store."""

    def __init__(
        self, store: StoreContext, realm: RealmId, key: RealmKey, gate: WriteGuard | None, cache: Cache | None = None
    ) -> None:
        self.store = store
        self.realm = realm
        self.key = key
        self._gate = gate
        self._backend = store.backend
        self._shared = store.cache
        self._cache = store.cache if cache is None else cache
        self._bounds = RealmBounds(realm, key)

    @property
    def settings(self) -> Settings:
        return self.store.settings

    @property
    def clock(self) -> Clock:
        return self.store.clock

    def new_id(self) -> ObjectId:
        """Make one new id; see ``Store.new_id``."""
        return self.store.new_id()

    def new_ids(self, n: int) -> list[ObjectId]:
        """Make ``n`` new ids; see ``Store.new_ids``."""
        return self.store.new_ids(n)

    def check_write(self) -> None:
        """Raise RefusedError when this handle may not write now."""
        if self._gate is not None:
            self._gate.check_write()


_SCAN_ROWS = 600
"""Rows of one round trip: of 100 to 20 000, on SQLite and PostgreSQL none was quicker (0.76 of the driver's own cursor)."""
_ROUNDS = 10


class _Key(Protocol):
    @property
    def realm(self) -> RealmKey: ...
    @property
    def position(self) -> Any: ...


K = TypeVar("K", bound=_Key)


class RealmScans:
    """Scans the rows of one realm in batches. Where keys are not ordered, reads all realms and filters."""

    def __init__(self, backend: Backend, realm: RealmId, key: RealmKey) -> None:
        self._backend = backend
        self._key = key
        self._bounds = RealmBounds(realm, key)
        self._deleted_to: tuple[ReferencePosition | None, ObjectPosition | None] = (None, None)

    def objects(self, split: ScanSplit[ObjectPosition] | None, rows: int = _SCAN_ROWS) -> Iterator[list[ObjectKey]]:
        return self._batches(self._backend.scan_objects, split, rows)

    def references(self, split: ScanSplit[ReferencePosition] | None, rows: int = _SCAN_ROWS) -> Iterator[list[ReferenceKey]]:
        return self._batches(self._backend.scan_references, split, rows)

    def split_objects(self, count: int) -> list[ScanSplit[ObjectPosition]]:
        return self._backend.split_objects(self._key if self._is_ordered else None, count)

    def split_references(self, count: int) -> list[ScanSplit[ReferencePosition]]:
        return self._backend.split_references(self._key if self._is_ordered else None, count)

    def is_empty(self) -> bool:
        rows = 1 if self._is_ordered else _SCAN_ROWS
        return not (any(self.references(None, rows)) or any(self.objects(None, rows)))

    def delete_realm(self, limit: int) -> int:
        """Scan for rows and delete up to ``limit`` of them. Returns how many were deleted, 0 when none is left.

        Each call continues where the last one stopped, and returns 0 only after a scan from the start.
        """
        for _ in range(_ROUNDS):
            is_whole = self._deleted_to == (None, None)
            found, deleted = self._delete_from(*self._deleted_to, limit)
            if deleted or (is_whole and not found):
                return deleted
        return 0  # others change everything that is found; whoever purges looks whether it is empty

    def _delete_from(self, reference: ReferencePosition | None, position: ObjectPosition | None, limit: int) -> tuple[int, int]:
        realm = self._key if self._is_ordered else None
        names = list(islice((key for batch in self.references(ScanSplit(realm, reference)) for key in batch), limit))
        rest = limit - len(names)
        keys = list(islice((key for batch in self.objects(ScanSplit(realm, position)) for key in batch), rest))
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
        except SwapConflictError:
            return False
        return True

    @property
    def _is_ordered(self) -> bool:
        return self._backend.capabilities.ordered_keys

    def _batches(
        self, read: Callable[[ScanSplit[Any], Any, int], list[K]], split: ScanSplit[Any] | None, rows: int
    ) -> Iterator[list[K]]:
        is_ordered = self._is_ordered
        within = ScanSplit(self._key if is_ordered else None) if split is None else split
        self._bounds.check_split(within, is_ordered=is_ordered)
        return self._read(read, within, rows, is_ordered)

    def _read(
        self, read: Callable[[ScanSplit[Any], Any, int], list[K]], split: ScanSplit[Any], rows: int, is_ordered: bool
    ) -> Iterator[list[K]]:
        after = None
        while batch := read(split, after, rows):
            after = batch[-1].position
            if not is_ordered:
                batch = [key for key in batch if key.realm == self._key]
            if batch:
                yield batch
