"""Rows to store, and short ways to look at them."""

from __future__ import annotations

from headwater.clock import Micros
from headwater.store import Backend, ObjectId, ObjectKey, ObjectRow, RealmKey, ReferenceRow

REALM, OTHER = RealmKey(10), RealmKey(1 << 60)


def reference(name: str = "main", *, pointer: int | None = 7, version: int = 5) -> ReferenceRow:
    return ReferenceRow(
        realm=REALM, name=name, pointer=None if pointer is None else ObjectId(pointer), version=version, created=Micros(3)
    )


def row(
    object_id: int, part: int = 0, *, realm: RealmKey = REALM, value: bytes = b"value", token: str | None = None, parts: int = 1
) -> ObjectRow:
    return ObjectRow(
        realm=realm, id=ObjectId(object_id), part=part, type="note", value=value, created=Micros(50), token=token, parts=parts
    )


def key(of: ObjectRow) -> ObjectKey:
    return ObjectKey(of.realm, of.id, of.part, of.type, of.created, of.token, of.parts, len(of.value))


def find(backend: Backend, object_id: int, part: int = 0) -> ObjectRow | None:
    return backend.read_objects(REALM, [(ObjectId(object_id), part)])[0]


def find_reference(backend: Backend, name: str = "main") -> ReferenceRow | None:
    return backend.read_references(REALM, [name])[0]
