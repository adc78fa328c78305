"""A change of a reference whose answer was lost happens exactly once, or its caller is told that nobody knows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.store import Backend, ObjectId, RealmStore, Reference

NEW = ObjectId(200)
CHANGES: dict[str, Callable[[RealmStore, Reference], Reference]] = {
    "move": lambda rows, seen: rows.move_reference(seen, NEW),
    "record a move": lambda rows, seen: rows.record_move(seen, NEW),
    "raise the version": lambda rows, seen: rows.raise_version(seen),
    "delete": lambda rows, seen: rows.delete_reference(seen),
    "create again": lambda rows, seen: rows.create_reference("dead", NEW),
}
LOST_ON_ITS_WAY = {"before": True, "fault": UnknownOutcomeError("lost on its way")}
ANSWER_LOST = {"before": False}
both_ways = pytest.mark.parametrize("fault", [LOST_ON_ITS_WAY, ANSWER_LOST], ids=["not applied", "applied"])
every_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@pytest.fixture
def faults(backend: Backend) -> FaultyBackend:
    """Every backend can fail."""
    return FaultyBackend(backend)


@pytest.fixture
def seen(faulty: RealmStore) -> Reference:
    """A living reference; beside it a deleted one, ``dead``."""
    faulty.delete_reference(faulty.create_reference("dead", ObjectId(50)))
    return faulty.create_reference("branch", ObjectId(100))


def versions(rows: RealmStore) -> int:
    return sum(row.version for row in rows.scan_references())


@both_ways
@every_change
def test_unclear_change_happens_exactly_once(
    faulty: RealmStore, faults: FaultyBackend, seen: Reference, change: Callable[..., Reference], fault: dict[str, object]
) -> None:
    before = versions(faulty)
    faults.fail("swap_reference", **fault)
    changed = change(faulty, seen)

    assert faulty.find_row(changed.name) == changed
    assert versions(faulty) == before + (2 if fault is ANSWER_LOST else 1)  # what a read has found is confirmed by a write


@every_change
def test_change_overtaken_after_its_answer_was_lost_is_unknown(
    faulty: RealmStore, faults: FaultyBackend, seen: Reference, change: Callable[..., Reference]
) -> None:
    faults.fail("swap_reference", before=False)
    faults.intervene("swap_reference", lambda: overtake(faulty), at=2)

    with pytest.raises(UnknownOutcomeError):
        change(faulty, seen)


def overtake(rows: RealmStore) -> None:
    for row in rows.find_rows([key.name for key in rows.scan_references()]):
        rows.swap(row, rows_later(row))


def rows_later(row: Reference) -> Reference:
    return Reference(
        realm=row.realm, name=row.name, pointer=ObjectId(999), version=row.version + 1, created=row.created, deleted=row.deleted
    )


@every_change
def test_change_lost_on_its_way_and_overtaken_is_beaten(
    faulty: RealmStore, faults: FaultyBackend, seen: Reference, change: Callable[..., Reference]
) -> None:
    faults.fail("swap_reference", **LOST_ON_ITS_WAY)
    faults.intervene("swap_reference", lambda: overtake(faulty), at=2)
    with pytest.raises(SwapConflictError):
        change(faulty, seen)

    assert faulty.find_row("branch").pointer == 999


@both_ways
@every_change
def test_outage_does_not_make_an_unclear_change_undone(
    faulty: RealmStore, faults: FaultyBackend, seen: Reference, change: Callable[..., Reference], fault: dict[str, object]
) -> None:
    faults.fail("swap_reference", **fault)
    faults.fail("swap_reference", at=2, times=100, fault=UnavailableError("away"))

    with pytest.raises(UnknownOutcomeError):
        change(faulty, seen)


@both_ways
def test_unclear_creation_happens_once(faulty: RealmStore, faults: FaultyBackend, fault: dict[str, object]) -> None:
    faults.fail("create_reference", **fault)
    made = faulty.create_reference("new", NEW)

    assert faulty.find_rows([key.name for key in faulty.scan_references()]) == [made]


def test_unclear_creation_that_another_won_is_beaten(faulty: RealmStore, faults: FaultyBackend, clock: object) -> None:
    faults.fail("create_reference", **LOST_ON_ITS_WAY)
    faults.intervene("create_reference", lambda: create_later(faulty, clock), at=2)
    with pytest.raises(SwapConflictError):
        faulty.create_reference("new", NEW)

    assert faulty.read_reference("new").pointer == 999


def create_later(rows: RealmStore, clock: object) -> None:
    clock.advance(0.001)
    rows.create_reference("new", ObjectId(999))


def test_unclear_creation_that_was_changed_since_is_unknown(faulty: RealmStore, faults: FaultyBackend) -> None:
    faults.fail("create_reference", before=False)
    faults.intervene("create_reference", lambda: faulty.raise_version(faulty.find_row("new")), at=2)

    with pytest.raises(UnknownOutcomeError):
        faulty.create_reference("new", NEW)


def test_unclear_creation_stays_unclear_when_the_database_goes_away(faulty: RealmStore, faults: FaultyBackend) -> None:
    faults.fail("create_reference", before=False)
    faults.fail("create_reference", at=2)

    with pytest.raises(UnknownOutcomeError):
        faulty.create_reference("new", NEW)


def test_change_that_certainly_failed_is_not_repeated(faulty: RealmStore, faults: FaultyBackend, seen: Reference) -> None:
    faults.fail("swap_reference")
    with pytest.raises(UnavailableError):
        faulty.delete_reference(seen)

    assert faulty.find_row("branch") == seen


def test_late_move_is_noted_within_the_commit_time_out(
    faulty: RealmStore, faults: FaultyBackend, seen: Reference, clock: FakeClock
) -> None:
    def time_out() -> None:
        clock.advance(10)
        raise UnavailableError("injected")

    faults.intervene("swap_reference", lambda: clock.advance(16))
    for at in range(2, 30):
        faults.intervene("swap_reference", time_out, at=at)
    started = clock.monotonic()
    moved = faulty.move_reference(seen, NEW)

    assert moved.pointer == NEW
    assert clock.monotonic() - started < 16 + 15 + 2 * 10
