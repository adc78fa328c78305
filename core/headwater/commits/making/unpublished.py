"""Reading what the members of a group have added, before it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from headwater.clock import Micros
from headwater.errors import UnreadableError
from headwater.store import ObjectId, RealmStore, StoredObject, Versioned, id_text

__all__ = ["Unpublished", "UnpublishedRows"]

T = TypeVar("T", bound=StoredObject)


class Unpublished(NamedTuple):
    """An object that will be written together with its group, and what its row will say. ``token``: of an updateable one."""

    value: StoredObject
    token: str | None
    created: Micros


class UnpublishedRows(RealmStore):
    """A handle that also finds what the earlier members of a group have added.

    A change reads through it. Its head may be a commit that no database holds yet, and so may be the objects that its
    indexes point to.
    """

    def __init__(self, rows: RealmStore, unpublished: Mapping[ObjectId, Unpublished]) -> None:
        super().__init__(rows.store, rows.realm, rows.key, rows._gate, rows._cache)
        self._unpublished = unpublished

    def find(self, object_id: ObjectId, cls: type[T]) -> T | None:
        found = self._unpublished.get(object_id)
        return super().find(object_id, cls) if found is None else self._as(object_id, found.value, cls)

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[T | None]:
        ahead = {object_id: self.find(object_id, cls) for object_id in object_ids if object_id in self._unpublished}
        if not ahead:
            return super().read_many(object_ids, cls)
        others = [object_id for object_id in object_ids if object_id not in ahead]
        found = ahead | dict(zip(others, super().read_many(others, cls), strict=True))
        return [found[object_id] for object_id in object_ids]

    def read_many_versioned(self, object_ids: Sequence[ObjectId], cls: type[T]) -> list[Versioned[T] | None]:
        others = [object_id for object_id in object_ids if object_id not in self._unpublished]
        found = dict(zip(others, super().read_many_versioned(others, cls), strict=True))
        return [found[object_id] if object_id in found else self._versioned(object_id, cls) for object_id in object_ids]

    def _versioned(self, object_id: ObjectId, cls: type[T]) -> Versioned[T]:
        value, token, created = self._unpublished[object_id]
        typed = self._as(object_id, value, cls)
        if typed is None or token is None:
            raise UnreadableError(f"object {id_text(object_id)} in realm {self.realm!r} has no version token")
        return Versioned(object_id, typed, token, created)
