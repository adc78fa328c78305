"""References: versions that only grow, tombstones, recent pointers, recorded moves."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from fake_clock import FakeClock
from headwater.clock import Micros
from headwater.errors import NotFoundError, RefusedError, SwapConflictError
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, Reference, ReferenceMove, Store
from headwater.store.realm_refs import (
    CROWDED_MOVES,
    MOVES_LIMIT,
    advanced_row,
    is_note,
    moved_row,
    raised_row,
    recreated_row,
    tombstone_row,
    with_move,
)

NEW = ObjectId(200)


def test_new_reference_starts_at_the_creating_id(rows: RealmStore) -> None:
    before, made, after = rows.new_id(), rows.create_reference("branch"), rows.new_id()

    assert before < made.version < after
    assert (made.pointer, made.recent, made.moves, made.deleted) == (None, (), (), None)


def test_name_that_is_alive_cannot_be_created_again(rows: RealmStore, reference: Reference) -> None:
    with pytest.raises(SwapConflictError, match="'branch'"):
        rows.create_reference("branch")

    assert rows.find_row("branch") == reference


def test_commit_on_top_is_no_recorded_move(rows: RealmStore, reference: Reference) -> None:
    new = rows.advance_reference(reference, NEW)

    assert (new.pointer, new.version, new.recent, new.moves) == (NEW, reference.version + 1, (100,), ())
    assert rows.find_row("branch") == new


def test_beaten_change_leaves_the_reference_alone(rows: RealmStore, reference: Reference) -> None:
    new = rows.raise_version(reference)
    for change in (
        lambda: rows.advance_reference(reference, NEW),
        lambda: rows.move_reference(reference, NEW),
        lambda: rows.record_move(reference, NEW),
        lambda: rows.raise_version(reference),
        lambda: rows.delete_reference(reference),
    ):
        with pytest.raises(SwapConflictError):
            change()

    assert rows.find_row("branch") == new


def test_move_records_what_it_left_and_when(rows: RealmStore, reference: Reference, clock: FakeClock) -> None:
    new = rows.move_reference(reference, NEW)

    assert (new.pointer, new.moves) == (NEW, (ReferenceMove(ObjectId(100), clock.now()),))


def test_raised_version_keeps_everything_else(rows: RealmStore, reference: Reference) -> None:
    assert rows.raise_version(reference) == dataclasses.replace(reference, version=reference.version + 1)


def test_recorded_move_keeps_the_pointer(rows: RealmStore, reference: Reference, clock: FakeClock) -> None:
    new = rows.record_move(reference, ObjectId(50))

    assert (new.pointer, new.recent, new.moves) == (100, (), (ReferenceMove(ObjectId(50), Micros(clock.now() | 1)),))


def test_note_of_a_late_commit_is_told_from_a_move(rows: RealmStore, reference: Reference) -> None:
    moved = rows.move_reference(reference, ObjectId(60))
    noted = rows.record_move(moved, ObjectId(50))

    assert [is_note(move) for move in noted.moves] == [True, False]


def test_deleted_reference_is_absent_but_its_row_stays(rows: RealmStore, tombstone: Reference, clock: FakeClock) -> None:
    assert rows.find_reference("branch") is None
    with pytest.raises(NotFoundError, match="'branch' is not in realm 'acme'"):
        rows.read_reference("branch", fresh=True)
    assert rows.find_row("branch") == tombstone
    assert (tombstone.pointer, tombstone.deleted) == (100, clock.now())


def test_creating_over_a_tombstone_goes_on_with_version_and_moves(
    rows: RealmStore, tombstone: Reference, clock: FakeClock
) -> None:
    clock.advance(10)
    again = rows.create_reference("branch", NEW)

    assert (again.version, again.created) == (tombstone.version + 1, tombstone.created)
    assert (again.pointer, again.deleted, again.recent) == (NEW, None, (100,))
    assert again.moves == (ReferenceMove(ObjectId(100), tombstone.deleted),)


def test_tombstone_can_be_removed_and_a_living_reference_not(rows: RealmStore, tombstone: Reference) -> None:
    alive = rows.create_reference("other")
    rows.remove_tombstone(tombstone)
    with pytest.raises(RefusedError, match=r"'other'.*alive"):
        rows.remove_tombstone(alive)

    assert [row.name for row in rows.scan_references()] == [alive.name]


def test_tombstone_that_came_alive_is_not_removed(rows: RealmStore, tombstone: Reference) -> None:
    again = rows.create_reference("branch")
    with pytest.raises(SwapConflictError):
        rows.remove_tombstone(tombstone)

    assert rows.find_row("branch") == again


def test_versions_go_on_after_a_tombstone_was_removed(rows: RealmStore, tombstone: Reference, clock: FakeClock) -> None:
    rows.remove_tombstone(tombstone)
    clock.advance(0.001)

    assert rows.create_reference("branch").version > tombstone.version


def test_listed_name_without_a_row_can_be_buried_once(rows: RealmStore) -> None:
    buried_row = rows.bury_reference("ghost")
    with pytest.raises(SwapConflictError):
        rows.bury_reference("ghost")

    assert buried_row.deleted is not None
    assert rows.find_reference("ghost") is None


def test_creation_seen_as_absent_does_not_swap_a_tombstone(rows: RealmStore) -> None:
    buried_row = rows.bury_reference("branch")
    with pytest.raises(SwapConflictError):
        rows.create_reference_as_seen("branch", None, NEW)

    assert rows.find_row("branch") == buried_row


def test_last_twenty_pointers_are_remembered(rows: RealmStore, reference: Reference) -> None:
    for pointer in range(101, 141):
        reference = rows.advance_reference(reference, ObjectId(pointer))

    assert reference.recent == tuple(range(139, 119, -1))


def test_moves_are_forgotten_after_the_grace_and_not_before(rows: RealmStore, reference: Reference, clock: FakeClock) -> None:
    settings, ids = rows.settings, []
    for seconds in (0, settings.reader_grace_seconds + settings.clock_bound_seconds, settings.commit_timeout_seconds + 1, 0):
        clock.advance(seconds)
        ids.append(rows.store.new_id())
        reference = rows.move_reference(reference, ids[-1])
        if len(ids) == 2:
            assert [move.pointer for move in reference.moves] == [ids[0], 100]

    assert [move.pointer for move in reference.moves] == [ids[2], ids[1], ids[0]]


def crowded(count: int, clock: FakeClock, *, pointers: int = 1 << 40) -> Reference:
    """A row that left so many pointers, a microsecond apart, in turn."""
    moves = tuple(ReferenceMove(ObjectId(10 + number % pointers), Micros(clock.now() - 2 * number)) for number in range(count))
    return Reference(realm=1, name="branch", pointer=ObjectId(5), version=1, created=Micros(0), moves=moves)


def test_move_that_would_overfill_the_row_is_refused(clock: FakeClock) -> None:
    since = Micros(clock.now() - 60_000_000)
    with pytest.raises(RefusedError, match=r"3999 times .* from 2026-\S+Z on"):
        moved_row(crowded(MOVES_LIMIT - 1, clock), NEW, now=clock.now(), since=since)

    clock.advance(61)
    later = moved_row(crowded(MOVES_LIMIT - 1, clock), NEW, now=clock.now(), since=Micros(clock.now() - 1))
    assert len(later.moves) == 2


def test_what_can_be_deleted_can_be_created_again(clock: FakeClock) -> None:
    since = Micros(clock.now() - 60_000_000)
    full = recreated_row(tombstone_row(crowded(MOVES_LIMIT - 1, clock), now=clock.now(), since=since), NEW, since=since)
    assert len(full.moves) == MOVES_LIMIT
    with pytest.raises(RefusedError, match="4000 times"):
        tombstone_row(full, now=clock.now(), since=since)

    assert tombstone_row(full, now=clock.now()).deleted == clock.now()  # for good


def test_full_row_keeps_the_last_move_of_each_pointer(clock: FakeClock) -> None:
    """A name that is created and deleted all day on a few commits never fills up."""
    row, since = crowded(MOVES_LIMIT, clock, pointers=7), Micros(clock.now() - 60_000_000)
    thinned = recreated_row(tombstone_row(row, now=clock.now(), since=since), NEW, since=since)

    assert thinned.moves[1:] == row.moves[:CROWDED_MOVES]
    assert {move.pointer for move in thinned.moves[1:]} == {move.pointer for move in row.moves}


def test_pointer_that_only_old_moves_name_stays(clock: FakeClock) -> None:
    row, since = crowded(MOVES_LIMIT - 1, clock, pointers=7), Micros(clock.now() - 60_000_000)
    oldest = ReferenceMove(ObjectId(3), Micros(clock.now() - 50_000_000))
    full = dataclasses.replace(row, moves=(*row.moves, oldest))

    assert moved_row(full, NEW, now=clock.now(), since=since).moves[-1] == oldest


def test_crowded_row_is_warned_of(rows: RealmStore, reference: Reference, clock: FakeClock) -> None:
    moves = crowded(CROWDED_MOVES + 98, clock).moves
    row = rows.swap(reference, dataclasses.replace(reference, version=reference.version + 1, moves=moves))
    with capture_logs() as logs:
        for _ in range(3):
            row = rows.move_reference(row, rows.store.new_id())

    assert [(log["reference"], log["moves"]) for log in logs] == [(reference.name, CROWDED_MOVES + 100)]


changes = st.lists(st.sampled_from(["advance", "move", "note", "raise", "bury or create"]), max_size=60)


@given(changes)
def test_change_raises_the_version_and_loses_no_pointer(steps: list[str]) -> None:
    row = Reference(realm=1, name="branch", pointer=ObjectId(1), version=1, created=Micros(0))
    left, since = [], Micros(0)
    for number, step in enumerate(steps, start=2):
        before, now, pointer = row, Micros(number), ObjectId(number)
        if row.deleted is not None:
            row = recreated_row(row, pointer, since=since)
            left.append(before.pointer)
        elif step == "bury or create":
            row = tombstone_row(row, now=now)
        elif step == "move":
            row = moved_row(row, pointer, now=now, since=since)
            left.append(before.pointer)
        else:
            row = {
                "advance": advanced_row(row, pointer),
                "note": with_move(row, pointer, now=now, since=since),
                "raise": raised_row(row, now=now, credible=Micros(2**62)),
            }[step]
        assert row.version == before.version + 1

    assert set(left) <= {move.pointer for move in row.moves}


def test_remembered_tombstone_hides_no_reference_made_again(
    store: Store, rows: RealmStore, tombstone: Reference, settings: Settings, clock: FakeClock
) -> None:
    other = Store(store.backend, url="memory://", settings=settings, clock=clock).rows(rows.realm, rows.key)
    other.create_reference("branch")

    assert rows.find_reference("branch") is not None
