"""Backends that break one promise each, as real ones have been seen to: what the tests here must notice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from headwater.errors import SwapConflictError, UnavailableError
from headwater.store import Backend, ObjectId, ObjectRow, RealmKey, ReferenceRow
from headwater.store.backends.memory import MemoryBackend

__all__ = ["BROKEN"]

_MOMENT_SECONDS = 0.0005


class _Wrapper:
    def __init__(self) -> None:
        self.backend = MemoryBackend()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)


class ReadThenWrite(_Wrapper):
    """Swaps by reading, comparing and writing, without a condition on the write."""

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        found = self.backend.read_references(seen.realm, [seen.name])[0]
        if found is None or (found.pointer, found.version) != (seen.pointer, seen.version):
            raise SwapConflictError("not as seen")
        time.sleep(_MOMENT_SECONDS)
        now = self.backend.read_references(seen.realm, [seen.name])[0]
        if now is not None:
            self.backend.swap_reference(now, new)


class StaleReads(_Wrapper):
    """Answers reads from what it remembers of a few milliseconds ago."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Any, tuple[float, Any]] = {}

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        place = (realm, *names)
        if place not in self._known or self._known[place][0] < time.monotonic():
            self._known[place] = (time.monotonic() + 0.005, self.backend.read_references(realm, names))
        return self._known[place][1]


class Overwriting(_Wrapper):
    """Inserts objects whether they are there or not."""

    def insert_object(self, row: ObjectRow) -> None:
        self.backend.write_objects([row])


class WorkingLate(_Wrapper):
    """Acknowledges updates before it makes them."""

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        stored = self.backend.read_objects(row.realm, [(row.id, row.part)])[0]
        if stored is None or stored.token != seen_token:
            raise SwapConflictError("not as seen")
        threading.Timer(2 * _MOMENT_SECONDS, self.backend.write_objects, [[row]]).start()


class Forgetful(_Wrapper):
    """Acknowledges every twentieth update, and forgets it."""

    def __init__(self) -> None:
        super().__init__()
        self._updates = 0

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        self._updates += 1
        if self._updates % 20:
            self.backend.update_object(row, seen_token)


class Repeating(_Wrapper):
    """A driver that repeats a write by itself after a lost answer, and reports what the second attempt found."""

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        self.backend.swap_reference(seen, new)
        if new.version % 20 == 0:
            self.backend.swap_reference(seen, new)


class Deceiving(_Wrapper):
    """Says of some deletions that they did not happen, which did."""

    def __init__(self) -> None:
        super().__init__()
        self._deletions = 0

    def delete_objects(self, keys: Sequence[Any]) -> int:
        deleted = self.backend.delete_objects(keys)
        self._deletions += deleted
        if deleted and self._deletions % 5 == 0:
            raise UnavailableError("did not happen")
        return deleted


class TornReads(_Wrapper):
    """Reads an object's value and its token apart."""

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        first = self.backend.read_objects(realm, keys)
        time.sleep(_MOMENT_SECONDS)
        second = self.backend.read_objects(realm, keys)
        return [
            ObjectRow(
                realm=a.realm, id=a.id, part=a.part, type=a.type, value=b.value, created=a.created, token=a.token, parts=a.parts
            )
            if a is not None and b is not None
            else b
            for a, b in zip(first, second, strict=True)
        ]


BROKEN: dict[str, Callable[[], Backend]] = {
    "swaps that read and then write": ReadThenWrite,
    "stale reads": StaleReads,
    "inserts over rows": Overwriting,
    "updates after their answer": WorkingLate,
    "lost updates": Forgetful,
    "writes repeated by the driver": Repeating,
    "deletions that were said not to happen": Deceiving,
    "torn reads": TornReads,
}
