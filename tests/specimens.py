"""Rows to try backends with, and ways to try them, also on a server that does not answer yet."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from headwater.clock import Micros
from headwater.errors import SwapConflictError, UnavailableError
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
T = TypeVar("T")
WRITES: dict[str, Callable[[Backend], object]] = {
    "create_reference": lambda backend: backend.create_reference(reference("new")),
    "create_references": lambda backend: backend.create_references([reference("new")]),
    "swap_reference": lambda backend: backend.swap_reference(reference(), reference(version=6)),
    "write_and_swap": lambda backend: backend.write_and_swap([row(2)], reference(), reference(version=6)),
    "remove_reference": lambda backend: backend.remove_reference(reference()),
    "write_objects": lambda backend: backend.write_objects([row(2)]),
    "insert_object": lambda backend: backend.insert_object(row(2, token="a")),
    "update_object": lambda backend: backend.update_object(row(1, token="b"), "a"),
    "delete_objects": lambda backend: backend.delete_objects([key(row(1, token="a"))]),
}
"""Every call that writes, where there are ``reference()`` and ``row(1, token="a")``; each changes something."""
READS: dict[str, Callable[[Backend], object]] = {
    "read_references": lambda backend: backend.read_references(REALM, ["main"]),
    "read_objects": lambda backend: read_object(backend, 1),
    "scan_references": lambda backend: backend.scan_references(ScanSplit(), None, 5),
    "scan_objects": lambda backend: backend.scan_objects(ScanSplit(), None, 5),
    "split_references": lambda backend: backend.split_references(None, 2),
    "split_objects": lambda backend: backend.split_objects(None, 2),
}


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


LARGE = [row(number, value=os.urandom(1000)) for number in range(100, 300)]
"""Some hundred kilobytes, of which nothing can be compressed."""


def in_parts(object_id: int, *values: bytes, realm: int = REALM) -> list[ObjectRow]:
    return [row(object_id, part, realm=realm, value=value, parts=len(values)) for part, value in enumerate(values)]


def key(of: ObjectRow) -> ObjectKey:
    return ObjectKey(of.realm, of.id, of.part, of.type, of.created, of.token, of.parts, len(of.value))


def reference_key(of: ReferenceRow) -> ReferenceKey:
    return ReferenceKey(of.realm, of.name, of.pointer, of.version, of.created, of.deleted)


def find_reference(backend: Backend, name: str = "main", realm: int = REALM) -> ReferenceRow | None:
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


def state(backend: Backend) -> object:
    """What a write of ``WRITES`` changes."""
    return scan_names(backend), scan(backend), read_object(backend, 1)


def eventually(read: Callable[[], T]) -> T:
    until = time.monotonic() + 60
    while True:
        try:
            return read()
        except UnavailableError:
            assert time.monotonic() < until, "it did not come back"
            time.sleep(0.05)


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
