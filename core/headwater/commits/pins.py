"""Pins: commits that are kept whole while a task works with them, whatever happens to the references that led there.

A realm's reference ``pins`` carries the index ``pins``: key 8 bytes owner (a task's id) and 8 bytes commit, value an object of the
type ``pin``, which points to the commit. So the commit is reachable, with all that it reads from; its history is not. Taking a pin
is pointing at an existing commit, and goes through the same handshake with the collector as a move: the reference is read first (by
the committer), then the flag, and a sweep that begins in between beats the swap.

A released pin is kept for the readers' grace, like everything that was HEAD: a task that has copied what it needs into a commit may
release its pins at once.

A pin may be held until a time: then it stays until then, after its task has ended, so that what an archive names stays in the lake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from headwater.clock import Micros
from headwater.commits.commit import Transaction, read_head
from headwater.commits.committer import commit_change
from headwater.commits.ref_updates import check_targets
from headwater.errors import NotFoundError, RefusedError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmReader, RealmStore, StoredObject, id_text, object_type

PINS = "pins"
_INDEX = "pins"

Fence = Callable[[], None]


@object_type("pin")
class CommitPin(StoredObject, frozen=True, kw_only=True):
    """A commit that ``owner`` works with, since ``time``.

    held_until    it stays until then, whatever becomes of its owner; 0: no longer than the owner needs it
    """

    owner: ObjectId
    commit: ObjectId
    time: Micros = Micros(0)
    held_until: Micros = Micros(0)

    def points_to(self) -> Iterable[ObjectId]:
        return (self.commit,)


def pin_commits(
    rows: RealmStore, owner: ObjectId, targets: Mapping[ObjectId, Sequence[str]], *, fence: Fence | None = None
) -> None:
    """Pin commits, all in one commit of the reference ``pins``; commits that the owner has pinned already change nothing.

    owner         the task that needs them; the next collection releases a pin without an active task
    targets       the commits, each with the names of references in whose kept history it may be
    raises        ExpiredError: no such commit (any more) · RefusedError: one is garbage already ·
                  UnavailableError: a sweep is on, and one is no HEAD
    """
    if odd := [target for target in targets if not 1 <= target < 1 << 63]:
        raise RefusedError(
            f"{odd[0] if abs(odd[0]) < 1 << 64 else 'a larger number'} is not a commit id (realm {rows.realm!r})"
        )
    rows.ensure_reference(PINS)

    def change(tx: Transaction) -> None:
        index = tx.index(_INDEX)
        missing = {target: among for target, among in targets.items() if _key(owner, target) not in index}
        # Inside the change: the committer has read the reference before, so a sweep that begins after this look beats the swap.
        check_targets(tx.reader, missing)
        for target in missing:
            made = tx.add_object(CommitPin(owner=owner, commit=target, time=tx.time))
            index.put(_key(owner, target), IndexValue(made))

    commit_change(rows, PINS, change, message=f"pin {len(targets)} commits for task {id_text(owner)}", fence=fence)


def hold_pins(rows: RealmStore, owner: ObjectId, until: Micros, *, fence: Fence | None = None) -> int:
    """Hold all pins of an owner until a time, longer or shorter than before; returns how many there are."""

    def change(tx: Transaction) -> int:
        index = tx.index(_INDEX)
        held = [(key, value.object_id) for key, value in index.prefix(owner.to_bytes(8, "big")) if value.object_id is not None]
        for key, pin_id in held:
            pin = tx.reader.read_object(pin_id, CommitPin)
            index.put(key, IndexValue(tx.add_object(msgspec.structs.replace(pin, held_until=until))))
        return len(held)

    return commit_change(rows, PINS, change, message=f"hold the pins of task {id_text(owner)}", fence=fence).result


def unpin_commits(rows: RealmStore, owner: ObjectId, *, held_past: Micros | None = None, fence: Fence | None = None) -> int:
    """Release all pins of an owner; returns how many there were.

    held_past     but those that are held beyond this time: their task may have ended a moment ago
    """

    def is_held(tx: Transaction, pin_id: ObjectId | None) -> bool:
        return held_past is not None and pin_id is not None and tx.reader.read_object(pin_id, CommitPin).held_until > held_past

    def change(tx: Transaction) -> int:
        index = tx.index(_INDEX)
        pins = list(index.prefix(owner.to_bytes(8, "big")))
        return sum(index.remove(key) for key, value in pins if not is_held(tx, value.object_id))

    try:
        return commit_change(rows, PINS, change, message=f"unpin the commits of task {id_text(owner)}", fence=fence).result
    except NotFoundError:
        return 0  # nothing was ever pinned here


def read_pins(rows: RealmReader) -> list[CommitPin]:
    """All pins of a realm, read now."""
    try:
        head = read_head(rows, PINS, fresh=True)
    except NotFoundError:
        return []
    ids = [] if head is None else [value.object_id for _, value in head.index(_INDEX).range() if value.object_id is not None]
    return [pin for pin in rows.read_many(ids, CommitPin) if pin is not None]


def _key(owner: ObjectId, target: ObjectId) -> bytes:
    return owner.to_bytes(8, "big") + target.to_bytes(8, "big")
