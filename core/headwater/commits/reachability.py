"""Reachability: a walk over the objects that roots lead to, each asked what it points to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from headwater.errors import CorruptionError
from headwater.store import ObjectId, Pointers, RealmReader, RealmStore, StoredObject, id_text, unknown_pointers_reason

_BATCH = 100
_FEW, _MANY = 32, 500
_BATCH_BYTES = 4 * 1024 * 1024
_Block = tuple[ObjectId | None, list[ObjectId]]
"""Targets, and the object that points to them."""
_ENTRIES = "stripe"
"""The type whose targets are entries of indexes, small as a rule; targets of other types may be stripes."""


def mark_reachable(rows: RealmReader, roots: Iterable[ObjectId], mark: Callable[[ObjectId, ObjectId | None], bool]) -> None:
    """Mark the roots and everything that they lead to.

    mark          remembers an id and what pointed to it (None: a root); True when it was new. Nothing is read twice.
    raises        CorruptionError when something on the way is missing or cannot be walked: then nothing may be deleted
    """
    waiting = [root for root in roots if mark(root, None)]
    while waiting:
        # From the end, depth first: what waits stays as small as what a few objects point to.
        batch, waiting = waiting[-_BATCH:], waiting[:-_BATCH]
        for object_id, value in zip(batch, rows.read_many(batch, StoredObject), strict=True):
            if value is None:
                raise _missing(rows, object_id)
            if why := unknown_pointers_reason(value):
                raise _untold(rows, object_id, why)
            waiting += [target for target in value.points_to() if mark(target, object_id)]


class VisitedObjects(Protocol):
    """The objects that a walk has met; decides which objects are read at all."""

    def unseen(self, object_ids: Sequence[ObjectId]) -> list[ObjectId]:
        """Returns the ids that were not settled, each once."""
        ...

    def settle(self, object_ids: Sequence[ObjectId], *, are_leaves: bool) -> None:
        """Note that these were read; the walk goes on with what they point to."""
        ...

    def note(self, targets: Sequence[ObjectId], parent: ObjectId | None) -> None:
        """Note that these were met for the first time, below ``parent`` (None: a root)."""
        ...


class ReachabilityWalk:
    """A walk like ``mark_reachable`` for very many objects: it decodes no leaves, remembers nothing, and reads a bounded amount at once.

    Waiting objects are held as ids, about as many as a few stripes point to.
    """

    def __init__(self, rows: RealmStore, seen: VisitedObjects) -> None:
        self._rows = rows
        self._seen = seen
        self._entries = _Waiting()
        self._others = _Waiting()
        self._entry_bytes = _BATCH_BYTES / _FEW / 2

    def push(self, targets: Iterable[ObjectId], parent: ObjectId | None, *, are_entries: bool = False) -> None:
        """Queue the targets of an object for ``run``."""
        unseen = self._seen.unseen(list(targets))
        if unseen:
            self._seen.note(unseen, parent)
            (self._entries if are_entries else self._others).add(unseen, parent)

    @property
    def waiting(self) -> int:
        return self._entries.count + self._others.count

    def run(self) -> None:
        """Walk everything that waits and all that it leads to. Raises CorruptionError as ``mark_reachable`` does."""
        while self.waiting:
            if self._entries.count:
                wanted = self._entries.take(min(max(int(_BATCH_BYTES / self._entry_bytes), _FEW), _MANY))
                read, looked = self._look(wanted)
                self._entry_bytes = max(read / looked, 1.0) if looked else self._entry_bytes
            else:
                self._look(self._others.take(_FEW))

    def _look(self, wanted: list[_Block]) -> tuple[int, int]:
        """Read the targets that were not settled meanwhile. Returns how many bytes were read, and of how many objects."""
        batch = self._seen.unseen([object_id for _, targets in wanted for object_id in targets])
        leaves: list[ObjectId] = []
        inner: list[tuple[ObjectId, Pointers]] = []
        read = 0
        for object_id, pointers in zip(batch, self._rows.read_pointing(batch), strict=True):
            if pointers is None:
                raise _missing(self._rows, object_id, _parent(wanted, object_id))
            if pointers.targets is None:
                raise _untold(self._rows, object_id, pointers.why, _parent(wanted, object_id))
            read += pointers.bytes
            if pointers.is_leaf:
                leaves.append(object_id)
            else:
                inner.append((object_id, pointers))
        # Settled before their targets are pushed: an object that points back to one of these must not queue it again.
        self._seen.settle(leaves, are_leaves=True)
        self._seen.settle([object_id for object_id, _ in inner], are_leaves=False)
        for object_id, pointers in inner:
            self.push(pointers.targets or (), object_id, are_entries=pointers.type == _ENTRIES)
        return read, len(batch)


class _Waiting:
    """A stack of targets that wait: depth first, so that it stays as small as what a few objects point to."""

    def __init__(self) -> None:
        # Invariant: the sum of the lengths of all blocks.
        self.count = 0
        self._blocks: list[_Block] = []

    def add(self, targets: list[ObjectId], parent: ObjectId | None) -> None:
        self._blocks.append((parent, targets))
        self.count += len(targets)

    def take(self, most: int) -> list[_Block]:
        """Take out at most ``most`` targets, the newest first."""
        taken: list[_Block] = []
        while most > 0 and self._blocks:
            parent, targets = self._blocks[-1]
            taken.append((parent, targets[-most:]))
            if len(targets) <= most:
                self._blocks.pop()
            del targets[-most:]
            most -= len(taken[-1][1])
            self.count -= len(taken[-1][1])
        return taken


def _parent(wanted: list[_Block], object_id: ObjectId) -> ObjectId | None:
    return next((parent for parent, targets in wanted if object_id in targets), None)


def _below(parent: ObjectId | None) -> str:
    return "" if parent is None else f" by object {id_text(parent)}"


def _missing(rows: RealmReader, object_id: ObjectId, parent: ObjectId | None = None) -> CorruptionError:
    return CorruptionError(f"object {id_text(object_id)} of realm {rows.realm!r} is referred to{_below(parent)}, but not there")


def _untold(rows: RealmReader, object_id: ObjectId, why: str, parent: ObjectId | None = None) -> CorruptionError:
    by = f" (referred to{_below(parent)})" if parent else ""
    return CorruptionError(
        f"object {id_text(object_id)} of realm {rows.realm!r}{by} {why}: this release cannot tell what it points to; use the release that"
        " wrote it"
    )
