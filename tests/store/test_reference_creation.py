"""Many references created at once: all of them are there afterwards, whoever made them, and nothing that lives is touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faulty_backend import FaultyBackend
from headwater.errors import RefusedError, UnavailableError, UnknownOutcomeError
from headwater.store import ObjectId, RealmStore

NAMES = ["one", "two", "three"]
LOST_ON_ITS_WAY = {"before": True, "fault": UnknownOutcomeError("lost on its way")}
ANSWER_LOST = {"before": False}
both_ways = pytest.mark.parametrize("fault", [LOST_ON_ITS_WAY, ANSWER_LOST], ids=["not applied", "applied"])


def test_many_references_are_created_in_one_round_trip(faulty: RealmStore, faults: FaultyBackend) -> None:
    faulty.new_id()
    faults.calls.clear()
    made = faulty.create_references(NAMES)

    assert faults.calls == ["create_references"]
    assert [row.name for row in made] == NAMES
    assert faulty.find_rows(NAMES) == made


def test_each_has_a_version_of_its_own_and_is_remembered(faulty: RealmStore, faults: FaultyBackend) -> None:
    made = faulty.create_references(NAMES)
    faults.calls.clear()

    assert len({row.version for row in made}) == 3
    assert [faulty.find_reference(name) for name in NAMES] == made
    assert faults.calls == []


def test_none_is_no_call_at_all(faulty: RealmStore, faults: FaultyBackend) -> None:
    faults.calls.clear()

    assert faulty.create_references([]) == []
    assert faults.calls == []


def test_living_references_are_left_alone(rows: RealmStore) -> None:
    alive = rows.create_reference("two", ObjectId(100))
    made = rows.create_references(NAMES)

    assert made[1] == alive
    assert rows.find_rows(NAMES) == made


def test_deleted_references_are_created_again(rows: RealmStore) -> None:
    tombstone = rows.delete_reference(rows.create_reference("two", ObjectId(100)))
    made = rows.create_references(NAMES)

    assert (made[1].version, made[1].pointer, made[1].deleted) == (tombstone.version + 1, None, None)
    assert [move.pointer for move in made[1].moves] == [100]
    assert rows.find_rows(NAMES) == made


@both_ways
def test_unclear_creation_happens_once(faulty: RealmStore, faults: FaultyBackend, fault: dict[str, object]) -> None:
    faults.fail("create_references", **fault)  # type: ignore[arg-type]
    made = faulty.create_references(NAMES)

    assert faulty.find_rows(NAMES) == made
    assert len(list(faulty.scan_references())) == 3


@both_ways
def test_unclear_creation_over_a_tombstone_happens_once(
    faulty: RealmStore, faults: FaultyBackend, fault: dict[str, object]
) -> None:
    tombstone = faulty.delete_reference(faulty.create_reference("two"))
    faults.fail("swap_reference", **fault)  # type: ignore[arg-type]
    made = faulty.create_references(NAMES)

    # what a read has found is confirmed by a write
    assert made[1].version == tombstone.version + (2 if fault == ANSWER_LOST else 1)
    assert faulty.find_rows(NAMES) == made


@both_ways
@pytest.mark.parametrize("method", ["create_references", "read_references"])
def test_database_that_goes_away_leaves_an_unclear_creation_unclear(
    faulty: RealmStore, faults: FaultyBackend, method: str, fault: dict[str, object]
) -> None:
    faulty.create_reference("two")
    faults.fail("create_references", **fault)  # type: ignore[arg-type]
    faults.fail(method, at=2 if method == "create_references" else 1, times=100, fault=UnavailableError("away"))

    with pytest.raises(UnknownOutcomeError):
        faulty.create_references(NAMES)


def test_answers_that_are_always_lost_leave_it_unclear(faulty: RealmStore, faults: FaultyBackend) -> None:
    faults.fail("create_references", times=1000, **LOST_ON_ITS_WAY)  # type: ignore[arg-type]
    with pytest.raises(UnknownOutcomeError):
        faulty.create_references(NAMES)


def test_creation_that_certainly_failed_is_not_repeated(faulty: RealmStore, faults: FaultyBackend) -> None:
    faults.fail("create_references")
    with pytest.raises(UnavailableError):
        faulty.create_references(NAMES)

    assert faulty.is_empty()


RACES: dict[str, Callable[[RealmStore], object]] = {
    "created again": lambda rows: rows.create_reference("two"),
    "removed": lambda rows: rows.remove_tombstone(rows.find_row("two")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("race", RACES.values(), ids=RACES)
def test_tombstone_that_changes_meanwhile_is_looked_at_again(
    faulty: RealmStore, faults: FaultyBackend, race: Callable[[RealmStore], object]
) -> None:
    faulty.delete_reference(faulty.create_reference("two"))
    faults.intervene("swap_reference", lambda: race(faulty))
    made = faulty.create_references(NAMES)

    assert faulty.find_rows(NAMES) == made
    assert all(row.deleted is None for row in made)


class Closed:
    def check_write(self) -> None:
        raise RefusedError("closed")


def test_closed_gate_refuses_it(rows: RealmStore) -> None:
    with pytest.raises(RefusedError, match="closed"):
        rows.store.rows(rows.realm, rows.key, Closed()).create_references(NAMES)

    assert rows.is_empty()
