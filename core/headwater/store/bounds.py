"""What one realm's rows may be called and may hold. Whatever is out of bounds is refused before a database sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from headwater.errors import RefusedError, UnreadableError
from headwater.store.backend import ROW_BYTES, ObjectKey, ReferenceRow, Split
from headwater.store.identity import ObjectId, RealmId, RealmKey

__all__ = ["NAME_BYTES", "Bounds"]

NAME_BYTES = 500
"""The most bytes of UTF-8 that a reference's name may have."""
_MOST = (1 << 63) - 1
_POINTER_BYTES, _MOVE_BYTES = 8, 16
_realm_of, _id_of, _row_of = attrgetter("realm"), attrgetter("id"), attrgetter("id", "part")


class Bounds:
    """The bounds of one realm: no row, key or split of another realm passes."""

    def __init__(self, realm: RealmId, key: RealmKey) -> None:
        self._realm = realm
        self._key = key

    def check_ids(self, object_ids: Sequence[ObjectId]) -> None:
        """0 is none of them: in an index it says that there is no object."""
        if object_ids and not (min(object_ids) >= 1 and max(object_ids) <= _MOST):
            wrong = next(object_id for object_id in object_ids if not 1 <= object_id <= _MOST)
            raise RefusedError(f"{wrong} is no id of an object in realm {self._realm!r}: an id is a number from 1 to 2^63-1")

    def check_once(self, object_ids: Sequence[ObjectId]) -> None:
        """Ids of a bulk write, each of them once."""
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
        """Raise UnreadableError for a row in the database that no handle would have written."""
        if row.version < 1 or (row.pointer is not None and row.pointer < 1):
            raise UnreadableError(
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

    def check_split(self, split: Split[Any], *, is_ordered: bool) -> None:
        """A split of this realm; where keys are not ordered, of all, because there is no other."""
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
