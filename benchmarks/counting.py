"""A backend that counts what goes through it, in runs that nobody times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headwater.clock import Clock
from headwater.store import Backend, ObjectId, ObjectRow, RealmKey, ReferenceRow, Store

__all__ = ["Counted", "CountingBackend", "counting_store"]


class Counted(NamedTuple):
    """Rows of objects and the bytes of their values."""

    rows: int = 0
    bytes: int = 0

    def and_of(self, rows: Sequence[ObjectRow]) -> Counted:
        return Counted(self.rows + len(rows), self.bytes + sum(len(row.value) for row in rows))


class CountingBackend:
    """Hands every call on to a backend that others keep using, and will not close it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.capabilities = backend.capabilities
        self.written = self.read = Counted()
        self.each_written: list[Counted] = []
        """By call, that is by commit."""

    def take_written(self) -> list[Counted]:
        """What was written since this was asked last, call by call."""
        taken, self.each_written = self.each_written, []
        return taken

    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        self._backend.write_objects(rows, are_new=are_new)
        self._count(rows)

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        self._backend.write_and_swap(rows, seen, new)
        self._count(rows)

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        found = self._backend.read_objects(realm, keys)
        self.read = self.read.and_of([row for row in found if row is not None])
        return found

    def close(self) -> None:
        """Nothing: it belongs to another store."""

    def _count(self, rows: Sequence[ObjectRow]) -> None:
        self.written = self.written.and_of(rows)
        self.each_written.append(Counted().and_of(rows))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def counting_store(store: Store, clock: Clock | None = None) -> tuple[Store, CountingBackend]:
    """Another store on the database of this one, with nothing in its cache, and what counts what it does."""
    backend = CountingBackend(store.backend)
    return Store(backend, url=store.url, settings=store.settings, clock=clock or store.clock), backend
