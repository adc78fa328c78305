"""What must stay as long as something else does: a walk over what objects say that they point to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from headwater.errors import UnreadableError
from headwater.store import ObjectId, Pointing, RealmStore, StoredObject, UnknownObject, id_text

__all__ = ["Seen", "Walk", "reach"]

_BATCH = 100
_FEW, _MANY = 32, 500
_BATCH_BYTES = 4 * 1024 * 1024
_ENTRIES = "stripe"
"""The type whose targets are what indexes hold, small as a rule; what others point to may be stripes."""


def reach(rows: RealmStore, roots: Iterable[ObjectId], mark: Callable[[ObjectId, ObjectId | None], bool]) -> None:
    """Mark the roots and everything that they lead to.

    mark          remembers an id and what pointed to it (None: a root); True when it was new. Nothing is read twice.
    raises        UnreadableError when something on the way is missing or cannot be walked: then nothing may be deleted
    """
    waiting = [root for root in roots if mark(root, None)]
    while waiting:
        batch, waiting = waiting[-_BATCH:], waiting[:-_BATCH]
        for object_id, found in zip(batch, rows.read_many(batch, StoredObject), strict=True):
            if found is None:
                raise _missing(rows, object_id)
            if isinstance(found, UnknownObject):
                raise _unknown(rows, object_id, found.name)
            waiting += [target for target in found.points_to() if mark(target, object_id)]


class Seen(Protocol):
    """What a walk has met: it decides what is read at all."""

    def unseen(self, object_ids: Sequence[ObjectId]) -> list[ObjectId]:
        """Those that were not settled, each once."""
        ...

    def settle(self, object_ids: Sequence[ObjectId], *, are_leaves: bool) -> None:
        """These were read; what they point to comes next."""
        ...

    def note(self, targets: Sequence[ObjectId], parent: ObjectId | None) -> None:
        """These were met for the first time, below ``parent`` (None: nothing that was walked)."""
        ...


class Walk:
    """As ``reach``, for very many objects: leaves are not decoded, nothing is remembered, and what is read at once is bounded.

    What waits is held as ids: of as much as a few stripes point to.
    """

    def __init__(self, rows: RealmStore, seen: Seen) -> None:
        self._rows = rows
        self._seen = seen
        self._entries: list[ObjectId] = []
        self._others: list[ObjectId] = []
        self._entry_bytes = _BATCH_BYTES / _FEW / 2

    def push(self, targets: Iterable[ObjectId], parent: ObjectId | None, *, are_entries: bool = False) -> None:
        """Have what something points to looked at by ``run``."""
        unseen = self._seen.unseen(list(targets))
        if unseen:
            self._seen.note(unseen, parent)
            (self._entries if are_entries else self._others).extend(unseen)

    @property
    def waiting(self) -> int:
        return len(self._entries) + len(self._others)

    def run(self) -> None:
        """Look at all that waits, and at what that leads to. Raises UnreadableError as ``reach`` does."""
        while self._entries or self._others:
            if self._entries:
                batch = self._last(self._entries, min(max(int(_BATCH_BYTES / self._entry_bytes), _FEW), _MANY))
                if batch:
                    self._entry_bytes = max(self._look(batch) / len(batch), 1.0)
            else:
                self._look(self._last(self._others, _FEW))

    def _last(self, waiting: list[ObjectId], count: int) -> list[ObjectId]:
        """Of what waits, so many that were not settled meanwhile."""
        batch = waiting[-count:]
        del waiting[-count:]
        return self._seen.unseen(batch)

    def _look(self, batch: list[ObjectId]) -> int:
        """Returns how many bytes were read."""
        leaves: list[ObjectId] = []
        inner: list[tuple[ObjectId, Pointing]] = []
        read = 0
        for object_id, found in zip(batch, self._rows.read_pointing(batch), strict=True):
            if found is None:
                raise _missing(self._rows, object_id)
            if found.targets is None:
                raise _unknown(self._rows, object_id, found.type)
            read += found.bytes
            if found.is_leaf:
                leaves.append(object_id)
            else:
                inner.append((object_id, found))
        self._seen.settle(leaves, are_leaves=True)
        self._seen.settle([object_id for object_id, _ in inner], are_leaves=False)
        for object_id, found in inner:
            self.push(found.targets or (), object_id, are_entries=found.type == _ENTRIES)
        return read


def _missing(rows: RealmStore, object_id: ObjectId) -> UnreadableError:
    return UnreadableError(f"object {id_text(object_id)} of realm {rows.realm!r} is referred to, but not there")


def _unknown(rows: RealmStore, object_id: ObjectId, name: str) -> UnreadableError:
    return UnreadableError(
        f"object {id_text(object_id)} of realm {rows.realm!r} has the type {name!r}, which this release does not know:"
        " what it points to cannot be told"
    )
