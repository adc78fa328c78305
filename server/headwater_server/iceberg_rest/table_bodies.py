"""The encoded answers to loads of tables, kept within a bound, so that a table which is loaded often is read and encoded once a version."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from headwater.iceberg_catalog import VersionMark
from headwater.store import ObjectId, RealmKey
from headwater_server.call import ServedStore

BodyKey = tuple[tuple[RealmKey, ObjectId, ObjectId], str]
_ENTRY_BYTES: Final = 500
"""What an entry takes beside its body, about: many small ones are bounded, too."""


class TableBodies:
    """Bodies by the objects that hold a version and by the tag of the answer, which covers all else that a body depends on. Thread-safe.

    A body goes when others are used more. It is never wrong: a version's objects are never written again, and which version is
    present is looked up for each load.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._bodies: OrderedDict[BodyKey, bytes] = OrderedDict()
        self._taken_bytes = 0

    @property
    def taken_bytes(self) -> int:
        return self._taken_bytes

    def find(self, mark: VersionMark, tag: str) -> bytes | None:
        if mark.objects is None:
            return None
        key = (mark.objects, tag)
        with self._lock:
            body = self._bodies.get(key)
            if body is not None:
                self._bodies.move_to_end(key)
        return body

    def keep(self, mark: VersionMark, tag: str, body: bytes) -> None:
        """Keep a body, unless its document lies in a file, which somebody could replace, or it alone takes an eighth of the bound."""
        if mark.objects is None or _cost_of(body) > self._limit_bytes // 8:
            return
        key = (mark.objects, tag)
        with self._lock:
            before = self._bodies.pop(key, None)
            self._bodies[key] = body
            self._taken_bytes += _cost_of(body) - (0 if before is None else _cost_of(before))
            while self._taken_bytes > self._limit_bytes:
                _, oldest = self._bodies.popitem(last=False)
                self._taken_bytes -= _cost_of(oldest)


def table_bodies(served: ServedStore) -> TableBodies:
    """The bodies that all calls of a process share."""
    return TableBodies(served.store.settings.server_answers_bytes)


def _cost_of(body: bytes) -> int:
    return _ENTRY_BYTES + len(body)
