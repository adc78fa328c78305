"""Backends that do one thing wrong even when they are asked alone: what the model must notice."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import msgspec

from headwater.errors import SwapConflictError
from headwater.store import (
    Backend,
    ObjectId,
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

__all__ = ["WRONG"]


class ComparesVersionsAlone(MemoryBackend):
    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        found = self.read_references(seen.realm, [seen.name])[0]
        super().swap_reference(found if found is not None and found.version == seen.version else seen, new)


class ComparesWholeRows(MemoryBackend):
    def remove_reference(self, seen: ReferenceRow) -> None:
        if self.read_references(seen.realm, [seen.name])[0] != seen:
            raise SwapConflictError("not as seen")
        super().remove_reference(seen)


class KeepsCreationTimes(MemoryBackend):
    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        found = self.read_references(seen.realm, [seen.name])[0]
        super().swap_reference(seen, new if found is None else dataclasses.replace(new, created=found.created))


class CreatesAllOrNone(MemoryBackend):
    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        if any(self.read_references(row.realm, [row.name])[0] for row in rows):
            return [False] * len(rows)
        return super().create_references(rows)


class FoldsCase(MemoryBackend):
    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        known = {key.name.casefold(): key.name for key in self.scan_references(ScanSplit(realm), None, 1000)}
        return super().read_references(realm, [known.get(name.casefold(), name) for name in names])


class OrdersLikeUtf16(MemoryBackend):
    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        found = super().scan_references(split, after, limit)
        return sorted(found, key=lambda key: (key.realm, key.name.encode("utf-16-be")))


class LosesPrecision(MemoryBackend):
    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        found = super().read_objects(realm, keys)
        return [row and msgspec.structs.replace(row, created=type(row.created)(float(row.created))) for row in found]


class LeavesParts(MemoryBackend):
    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        for row in rows:
            super().write_objects([msgspec.structs.replace(row, part=row.part + 1, parts=1)])
            held = super().read_objects(row.realm, [(row.id, row.part + 1)])[0]
            assert held is not None
            super().delete_objects([_key(held)])
            super().write_objects([row], are_new=are_new)


class AnswersOnce(MemoryBackend):
    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        found = dict(zip(keys, super().read_objects(realm, keys), strict=True))
        return list(found.values())


class TakesNoTokenForAny(MemoryBackend):
    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        rows = [super(TakesNoTokenForAny, self).read_objects(key.realm, [(key.id, key.part)])[0] for key in keys]
        return super().delete_objects(
            [key if row is None or key.token else key._replace(token=row.token) for key, row in zip(keys, rows, strict=True)]
        )


class BeginsAgainWithTheLast(MemoryBackend):
    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        if after is not None and after[2]:
            after = (after[0], after[1], after[2] - 1)
        return super().scan_objects(split, after, limit)


class SplitsOnlyWhatIsThere(MemoryBackend):
    def split_objects(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ObjectPosition]]:
        splits = super().split_objects(realm, count)
        there = self.scan_objects(ScanSplit(realm), None, 10_000)
        return [*splits[:-1], splits[-1]._replace(until=there[-1].position)] if there else splits


class DeletesNeighbours(MemoryBackend):
    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        return super().delete_realm(realm, limit) or super().delete_realm(RealmKey(realm + 1), limit)


class WritesObjectsOfTheBeaten(MemoryBackend):
    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        self.write_objects(rows)
        self.swap_reference(seen, new)


class DeletesMoreThanAsked(MemoryBackend):
    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        return super().delete_realm(realm, limit + 1)


def _key(row: ObjectRow) -> ObjectKey:
    return ObjectKey(row.realm, row.id, row.part, row.type, row.created, row.token, row.parts, len(row.value))


WRONG: dict[str, Callable[[], Backend]] = {
    kind.__name__: kind
    for kind in (
        ComparesVersionsAlone,
        ComparesWholeRows,
        KeepsCreationTimes,
        CreatesAllOrNone,
        FoldsCase,
        OrdersLikeUtf16,
        LosesPrecision,
        LeavesParts,
        AnswersOnce,
        TakesNoTokenForAny,
        BeginsAgainWithTheLast,
        SplitsOnlyWhatIsThere,
        DeletesNeighbours,
        DeletesMoreThanAsked,
        WritesObjectsOfTheBeaten,
    )
}
