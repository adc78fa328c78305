"""Objects written ahead of their commit: who may point to them, and for how long."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.commits import CommitResult, StagedObjects, Transaction, commit_change, read_head
from headwater.errors import RefusedError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore, StoredObject, object_type


@object_type("test-staged")
class Crate(StoredObject, frozen=True, kw_only=True):
    text: str = ""


@pytest.fixture
def staged(rows: RealmStore) -> StagedObjects:
    return StagedObjects(rows)


def point_to(rows: RealmStore, crate: ObjectId, staged: StagedObjects | None) -> CommitResult[bool]:
    def change(tx: Transaction) -> bool:
        is_taken = staged is not None and tx.take_staged(staged)
        tx.index("things").put(b"k", IndexValue(crate))
        return is_taken

    return commit_change(rows, "main", change)


def test_commit_adds_what_was_staged(rows: RealmStore, staged: StagedObjects) -> None:
    crate = staged.add_object(Crate(text="a"))
    staged.write_batch()
    assert point_to(rows, crate, staged).result
    head = read_head(rows, "main")

    assert head is not None
    assert head.index("things").get(b"k") == IndexValue(crate)
    assert rows.read_object(crate, Crate) == Crate(text="a")


def test_commit_that_did_not_take_them_may_not_point_to_them(rows: RealmStore, staged: StagedObjects) -> None:
    crate = staged.add_object(Crate())
    staged.write_batch()

    with pytest.raises(RefusedError, match="neither added by this commit"):
        point_to(rows, crate, None)


def test_object_that_waits_for_its_batch_is_not_staged(rows: RealmStore, staged: StagedObjects) -> None:
    crate = staged.add_object(Crate())

    with pytest.raises(RefusedError, match="neither added by this commit"):
        point_to(rows, crate, staged)


@pytest.mark.parametrize(("share", "is_young"), [(0.24, True), (0.26, False)])
def test_staged_objects_age(rows: RealmStore, staged: StagedObjects, clock: FakeClock, share: float, is_young: bool) -> None:
    """Half of the writer's grace is left by clocks that differ, and half of that is kept for pauses."""
    staged.add_object(Crate(text="first"))
    staged.write_batch()
    clock.advance(share * rows.settings.writer_grace_seconds)
    staged.add_object(Crate(text="second"))
    staged.write_batch()

    assert staged.are_young() is is_young


def test_objects_that_are_too_old_are_not_taken(rows: RealmStore, staged: StagedObjects, clock: FakeClock) -> None:
    crate = staged.add_object(Crate())
    staged.write_batch()
    clock.advance(rows.settings.writer_grace_seconds)

    with pytest.raises(RefusedError, match="neither added by this commit"):
        point_to(rows, crate, staged)
