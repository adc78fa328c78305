"""Rows to try backends with, and ways to try them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from headwater.clock import Micros
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

REALM, OTHER = RealmKey(10), RealmKey(1 << 60)
LARGEST = (1 << 63) - 1
_PAGES = 100_000


def reference(name: str = "main", *, realm: int = REALM, pointer: int | None = 7, version: int = 5) -> ReferenceRow:
    return ReferenceRow(
        realm=RealmKey(realm),
        name=name,
        pointer=None if pointer is None else ObjectId(pointer),
        version=version,
        created=Micros(3),
    )


def row(
    object_id: int, part: int = 0, *, realm: int = REALM, value: bytes = b"value", token: str | None = None, parts: int = 1
) -> ObjectRow:
    return ObjectRow(
        realm=RealmKey(realm),
        id=ObjectId(object_id),
        part=part,
        type="note",
        value=value,
        created=Micros(50),
        token=token,
        parts=parts,
    )


def in_parts(object_id: int, *values: bytes, realm: int = REALM) -> list[ObjectRow]:
    return [row(object_id, part, realm=realm, value=value, parts=len(values)) for part, value in enumerate(values)]


def key(of: ObjectRow) -> ObjectKey:
    return ObjectKey(of.realm, of.id, of.part, of.type, of.created, of.token, of.parts, len(of.value))


def reference_key(of: ReferenceRow) -> ReferenceKey:
    return ReferenceKey(of.realm, of.name, of.pointer, of.version, of.created, of.deleted)


def read(backend: Backend, name: str = "main", realm: int = REALM) -> ReferenceRow | None:
    return backend.read_references(RealmKey(realm), [name])[0]


def read_object(backend: Backend, object_id: int, part: int = 0, realm: int = REALM) -> ObjectRow | None:
    return backend.read_objects(RealmKey(realm), [(ObjectId(object_id), part)])[0]


def read_back(backend: Backend, rows: Iterable[ObjectRow], realm: int = REALM) -> list[ObjectRow | None]:
    """What stands under the keys of some rows of a realm."""
    return backend.read_objects(RealmKey(realm), [(one.id, one.part) for one in rows])


def scan(backend: Backend, split: ScanSplit[ObjectPosition] | None = None, *, limit: int = 1000) -> list[ObjectKey]:
    """All object rows of a split, page by page; of the whole store unless told."""
    return _scan(backend.scan_objects, split or ScanSplit(), limit)


def scan_names(backend: Backend, split: ScanSplit[ReferencePosition] | None = None, *, limit: int = 1000) -> list[ReferenceKey]:
    """The same for references."""
    return _scan(backend.scan_references, split or ScanSplit(), limit)


def _scan(scan_page: Callable[..., list[Any]], split: ScanSplit[Any], limit: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(_PAGES):
        page = scan_page(split, found[-1].position if found else None, limit)
        assert len(page) <= limit
        if not page:
            return found
        found += page
    raise AssertionError(f"the scan of {split} does not end")


def race(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What ``work(number)`` returned in threads that begin together; SwapConflictError, the class, for those that were beaten."""
    answers: list[Any] = [None] * count
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            answers[number] = work(number)
        except SwapConflictError:
            answers[number] = SwapConflictError
        except Exception as fault:  # noqa: BLE001  raised in the test's own thread
            answers[number] = fault

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
