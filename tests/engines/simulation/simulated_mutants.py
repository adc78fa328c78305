"""Databases that do one thing wrong which only shows in a world: what its promises must notice."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.store import ObjectKey, ReferenceRow
from headwater.store.backends.memory import MemoryBackend

__all__ = ["SIMULATED"]


class Careless(MemoryBackend):
    """Moves a reference wherever it is by now."""

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        found = self.read_references(seen.realm, [seen.name])[0]
        super().swap_reference(found or seen, new)


class Greedy(MemoryBackend):
    """Deletes the head of a realm's list of catalogs with the garbage."""

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        found = self.read_references(keys[0].realm, ["catalogs"])[0]
        pointer = None if found is None else found.pointer
        taken = [] if pointer is None else [key for key in self.scan_objects_of(keys[0]) if key.id == pointer]
        return super().delete_objects([*keys, *taken])

    def scan_objects_of(self, near: ObjectKey) -> list[ObjectKey]:
        split = self.split_objects(near.realm, 1)[0]
        return self.scan_objects(split, None, 100_000)


SIMULATED = (Careless, Greedy)
