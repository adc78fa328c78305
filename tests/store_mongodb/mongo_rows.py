"""Rows to store, and short ways to read them back, also from a server that does not answer yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from headwater.clock import Micros
from headwater.errors import UnavailableError
from headwater.store import Backend, ObjectId, ObjectKey, ObjectRow, RealmKey, ReferenceRow, ScanSplit

__all__ = ["REALM", "eventually", "find", "find_reference", "in_parts", "key", "reference", "row", "scan", "state"]

REALM = RealmKey(10)
T = TypeVar("T")


def reference(name: str = "main", *, realm: int = REALM, pointer: int | None = 7, version: int = 5) -> ReferenceRow:
    return ReferenceRow(
        realm=RealmKey(realm),
        name=name,
        pointer=None if pointer is None else ObjectId(pointer),
        version=version,
        created=Micros(3),
    )


def row(
    number: int, part: int = 0, *, realm: int = REALM, value: bytes = b"value", token: str | None = None, parts: int = 1
) -> ObjectRow:
    return ObjectRow(
        realm=RealmKey(realm),
        id=ObjectId(number),
        part=part,
        type="note",
        value=value,
        created=Micros(50),
        token=token,
        parts=parts,
    )


def in_parts(number: int, count: int) -> list[ObjectRow]:
    return [row(number, part, value=b"%d" % part, parts=count) for part in range(count)]


def key(of: ObjectRow) -> ObjectKey:
    return ObjectKey(of.realm, of.id, of.part, of.type, of.created, of.token, of.parts, len(of.value))


def find(backend: Backend, number: int, part: int = 0) -> ObjectRow | None:
    return backend.read_objects(REALM, [(ObjectId(number), part)])[0]


def find_reference(backend: Backend, name: str = "main") -> ReferenceRow | None:
    return backend.read_references(REALM, [name])[0]


def scan(backend: Backend) -> list[ObjectKey]:
    return backend.scan_objects(ScanSplit(), None, 1000)


def state(backend: Backend) -> object:
    return backend.scan_references(ScanSplit(), None, 99), scan(backend), find(backend, 1)


def eventually(read: Callable[[], T]) -> T:
    until = time.monotonic() + 60
    while True:
        try:
            return read()
        except UnavailableError:
            assert time.monotonic() < until, "it did not come back"
            time.sleep(0.05)
