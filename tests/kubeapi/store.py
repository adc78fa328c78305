"""All objects in memory: one counter of versions, and for each resource a log of its latest changes, from which watches are fed."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

__all__ = ["Change", "Key", "Record", "Shelf", "Store", "copied", "in_order"]

Key = tuple[str, str]
"""Namespace ("" for what has none) and name."""
Body = dict[str, Any]

_decode = msgspec.json.decode
_encode = msgspec.json.encode


def copied(body: Body) -> Body:
    """A copy that shares nothing."""
    copy: Body = _decode(_encode(body))
    return copy


def in_order(key: Key) -> Key:
    """By what keys are sorted: as one path, so that ``a-b/x`` comes before ``a/x``, as in etcd."""
    return key[0] + "/", key[1]


@dataclass(frozen=True, slots=True)
class Record:
    """An object at one version, as the bytes that are sent. Whoever wants to change it gets a copy of its own.

    kept      as it was written last, where the definition of its kind has changed since, and it is read otherwise
    """

    key: Key
    version: int
    raw: bytes
    labels: dict[str, str]
    uid: str
    owners: tuple[str, ...]
    kept: bytes | None = None

    def load(self) -> Body:
        body: Body = _decode(self.raw)
        return body

    @classmethod
    def of(cls, key: Key, version: int, body: Body) -> Record:
        metadata = body["metadata"]
        owners = tuple(str(owner.get("uid")) for owner in metadata.get("ownerReferences") or ())
        return cls(key, version, _encode(body), dict(metadata.get("labels") or {}), metadata["uid"], owners)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one object. ``before`` and ``after`` are None where there was nothing."""

    version: int
    key: Key
    before: Record | None
    after: Record | None
    last: Record | None = None
    """How an object that is gone looked last, with the version at which it went."""


@dataclass(eq=False)
class Shelf:
    """All objects of one resource.

    oldest     changes up to this version are forgotten
    watchers   are told of each change at once
    """

    name: str
    oldest: int
    records: dict[Key, Record] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)
    log: deque[Change] = field(default_factory=deque)
    watchers: set[Callable[[Change], None]] = field(default_factory=set)

    def find(self, key: Key) -> Record | None:
        return self.records.get(key)

    def scan(self, namespace: str | None = None, after: Key | None = None) -> Iterator[Record]:
        """Records in the order of their keys, of one namespace or of all."""
        first = (namespace or "", "") if after is None else (after[0], after[1] + "\0")
        start = 0 if namespace is None and after is None else bisect_left(self.keys, in_order(first), key=in_order)
        for number in range(start, len(self.keys)):
            key = self.keys[number]
            if namespace is not None and key[0] != namespace:
                return
            yield self.records[key]

    def changes_after(self, version: int) -> list[Change]:
        found = []
        for change in reversed(self.log):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def as_of(self, version: int) -> dict[Key, Record]:
        """What was there at a version that is not forgotten yet."""
        records = dict(self.records)
        for change in reversed(self.changes_after(version)):
            if change.before is None:
                records.pop(change.key, None)
            else:
                records[change.key] = change.before
        return records


class Store:
    """Shelves by resource. Every write gets the next version, whatever resource it is of.

    kept_changes   how many changes of each resource are remembered for watches
    """

    def __init__(self, *, kept_changes: int = 5000, first_version: int = 1) -> None:
        self.version = first_version
        self._kept = kept_changes
        self._shelves: dict[str, Shelf] = {}
        self._listeners: list[Callable[[Shelf, Change], None]] = []

    def shelf(self, name: str) -> Shelf:
        found = self._shelves.get(name)
        if found is None:
            found = self._shelves[name] = Shelf(name, self.version)
        return found

    def shelves(self) -> list[Shelf]:
        return list(self._shelves.values())

    def drop(self, name: str) -> None:
        self._shelves.pop(name, None)

    def listen(self, listener: Callable[[Shelf, Change], None]) -> None:
        """Be told of every change, after the watches of its resource."""
        self._listeners.append(listener)

    def put(self, shelf: Shelf, key: Key, body: Body) -> Record:
        before = shelf.records.get(key)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        record = Record.of(key, self.version, body)
        if before is None:
            insort(shelf.keys, key, key=in_order)
        shelf.records[key] = record
        self._tell(shelf, Change(self.version, key, before, record))
        return record

    def remove(self, shelf: Shelf, key: Key, body: Body | None = None) -> Record:
        """``body``: how the object looks at its end, where that differs from how it is kept."""
        before = shelf.records.pop(key)
        del shelf.keys[bisect_left(shelf.keys, in_order(key), key=in_order)]
        self.version += 1
        body = before.load() if body is None else body
        body["metadata"]["resourceVersion"] = str(self.version)
        last = Record.of(key, self.version, body)
        self._tell(shelf, Change(self.version, key, before, None, last))
        return last

    def reread(self, name: str, view: Callable[[Body], None]) -> bool:
        """Read all objects of a resource by a changed definition: ``view`` prunes and completes. Returns whether that changed any.

        What it takes away is still kept, and back with the former definition, unless the object is written meanwhile.
        """
        shelf, is_changed = self.shelf(name), False
        for key, record in shelf.records.items():
            kept = record.raw if record.kept is None else record.kept
            body: Body = _decode(kept)
            view(body)
            raw = _encode(body)
            is_changed = is_changed or raw != record.raw
            shelf.records[key] = replace(record, raw=raw, kept=kept)
        return is_changed

    def compact(self) -> None:
        """Forget all changes: whoever asks for an older version hears that it is too old."""
        self.version += 1
        for shelf in self._shelves.values():
            shelf.log.clear()
            shelf.oldest = self.version

    def _tell(self, shelf: Shelf, change: Change) -> None:
        shelf.log.append(change)
        if len(shelf.log) > self._kept:
            shelf.oldest = shelf.log.popleft().version
        for watcher in list(shelf.watchers):
            watcher(change)
        for listener in self._listeners:
            listener(shelf, change)
