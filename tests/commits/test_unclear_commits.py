"""The outcome of a commit is known: found out after an unclear answer, or said to be unknown."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import CommitResult, Transaction, assign_reference, commit_change, read_log
from headwater.errors import HeadwaterError, RefusedError, UnavailableError, UnknownOutcomeError
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Reference, Store, StoredObject, object_type
from headwater.store.backends.memory import MemoryBackend

Increment = Callable[[RealmStore], CommitResult[int]]
Count = Callable[[RealmStore], int]
LOST_ON_ITS_WAY = {"before": True, "fault": UnknownOutcomeError("lost on its way")}
ANSWER_LOST = {"before": False}
both_ways = pytest.mark.parametrize("fault", [LOST_ON_ITS_WAY, ANSWER_LOST], ids=["not applied", "applied"])


def rebuild(rows: RealmStore) -> Callable[[], None]:
    """What the collector's end and a new start do: the reference goes with its tombstone, and comes anew."""

    def act() -> None:
        rows.remove_tombstone(rows.delete_reference(rows.find_row("main")))
        rows.clock.sleep(0.001)
        rows.create_reference("main")

    return act


@both_ways
def test_unclear_commit_happens_exactly_once(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count, fault: dict[str, object]
) -> None:
    increment(faulty)
    faults.fail("swap_reference", **fault)

    assert increment(faulty).result == 2
    assert count(faulty) == 2
    assert len(list(read_log(faulty, "main"))) == 2


@both_ways
def test_unclear_commit_is_found_under_two_hundred_of_others(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count, fault: dict[str, object]
) -> None:
    faults.fail("swap_reference", **fault)
    faults.intervene("swap_reference", lambda: [increment(faulty) for _ in range(200)], at=2)
    done = increment(faulty)

    assert done.result == (1 if fault is ANSWER_LOST else 201)
    assert count(faulty) == 201


@both_ways
def test_unclear_commit_is_found_in_what_a_moved_reference_left(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, fault: dict[str, object]
) -> None:
    first = increment(faulty).commit_id

    def move_away() -> None:
        increment(faulty)
        seen = faulty.find_row("main").pointer
        assign_reference(faulty, "main", first, expected=seen, among=[])

    faults.fail("swap_reference", **fault)
    faults.intervene("swap_reference", move_away, at=2)

    assert increment(faulty).attempts == (1 if fault is ANSWER_LOST else 2)


@both_ways
def test_unclear_commit_to_a_deleted_reference_is_still_found_out(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, fault: dict[str, object]
) -> None:
    increment(faulty)
    faults.fail("swap_reference", **fault)
    faults.intervene("swap_reference", lambda: faulty.delete_reference(faulty.find_row("main")), at=2)
    if fault is ANSWER_LOST:
        assert increment(faulty).result == 2
    else:
        with pytest.raises(HeadwaterError, match="'main' is not in realm"):
            increment(faulty)


def test_reference_removed_and_made_anew_leaves_the_outcome_unknown(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    increment(faulty)
    faults.fail("swap_reference", before=False)
    faults.intervene("swap_reference", rebuild(faulty), at=2)

    with pytest.raises(UnknownOutcomeError, match="was removed since"):
        increment(faulty)


def test_commit_that_a_read_found_is_confirmed_by_a_write(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    increment(faulty)
    before = faulty.find_row("main").version
    faults.fail("swap_reference", before=False)

    assert increment(faulty).attempts == 1
    assert faulty.find_row("main").version == before + 2


def test_commit_that_only_a_read_has_found_is_unknown(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count
) -> None:
    increment(faulty)
    faults.fail("swap_reference", before=False)
    for at in range(3, 3000, 2):  # the repeated swap is beaten, and the write that confirms finds the server away
        faults.fail("swap_reference", at=at)
    with pytest.raises(UnknownOutcomeError, match="may have happened"):
        increment(faulty)

    assert count(faulty) == 2


@both_ways
def test_outage_until_the_time_out_leaves_the_outcome_unknown(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count, clock: FakeClock, fault: dict[str, object]
) -> None:
    increment(faulty)
    faults.fail("swap_reference", **fault)
    faults.fail("swap_reference", at=2, times=100_000, fault=UnavailableError("away"))
    with pytest.raises(UnknownOutcomeError, match=r"may have happened.*away.*log"):
        increment(faulty)
    faults.heal()

    assert clock.monotonic() >= 15
    assert "delete_objects" not in faults.calls
    assert count(faulty) == (2 if fault is ANSWER_LOST else 1)


def test_outage_of_reads_does_not_make_a_commit_undone(faulty: RealmStore, faults: FaultyBackend, increment: Increment) -> None:
    faults.fail("swap_reference", before=False)
    faults.fail("read_references", at=2, times=3)

    assert increment(faulty).attempts == 1


class ClosingGate:
    """Lets so many writes through, as a realm that becomes inactive in between."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def check_write(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise RefusedError("the realm is INACTIVE")


@both_ways
def test_gate_closed_before_the_outcome_is_confirmed_leaves_it_unknown(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count, fault: dict[str, object]
) -> None:
    gated = faulty.store.rows(faulty.realm, faulty.key, ClosingGate(writes=2))  # the objects and the first swap
    faults.fail("swap_reference", **fault)
    with pytest.raises(UnknownOutcomeError, match="INACTIVE"):
        increment(gated)

    assert count(faulty) == (1 if fault is ANSWER_LOST else 0)


@object_type("test-turn", updateable=True)
class Turn(StoredObject, frozen=True, kw_only=True):
    """Something that is changed in place."""

    whose: str = ""


@pytest.mark.parametrize("is_atomic", [False, True], ids=["two calls", "one call"])
def test_finding_out_undoes_no_update_of_what_the_commit_added(settings: Settings, clock: FakeClock, is_atomic: bool) -> None:
    faults = FaultyBackend(MemoryBackend(), is_atomic=is_atomic)
    with Store(faults, url="memory://", settings=settings, clock=clock) as store:
        rows = store.rows(RealmId("acme"), RealmKey(7))
        rows.ensure_reference("main")
        added: list[ObjectId] = []
        call = "write_and_swap" if is_atomic else "swap_reference"
        faults.fail(call, before=False)
        at = "write_and_swap" if is_atomic else "write_objects"
        faults.intervene(at, lambda: rows.update_object(rows.read_versioned(added[0], Turn), Turn(whose="theirs")), at=2)

        def change(tx: Transaction) -> None:
            added[:] = [tx.add_object(Turn(whose="ours"))]
            tx.index("turns").put(b"t", IndexValue(added[0]))

        assert commit_change(rows, "main", change).changed
        assert rows.read_versioned(added[0], Turn).value.whose == "theirs"


def test_late_arrival_of_a_lost_swap_changes_nothing(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count
) -> None:
    increment(faulty)
    before: Reference = faulty.find_row("main")
    faults.fail("swap_reference", **LOST_ON_ITS_WAY)
    done = increment(faulty)
    late = faulty.find_row("main")
    with pytest.raises(HeadwaterError):
        faults.swap_reference(before, late)

    assert (count(faulty), faulty.find_row("main").pointer) == (2, done.commit_id)


@pytest.mark.parametrize("seed", range(8))
def test_counter_is_the_number_of_acknowledged_commits_whatever_fails(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, count: Count, seed: int
) -> None:
    chance, acknowledged, unknown = random.Random(seed), 0, 0
    for _ in range(40):
        faults.heal()
        for _ in range(chance.randrange(4)):
            method = chance.choice(["swap_reference", "swap_reference", "write_objects", "read_references", "delete_objects"])
            kind = chance.choice([LOST_ON_ITS_WAY, ANSWER_LOST, {"before": True}])
            if method != "read_references":
                faults.fail(method, at=chance.randrange(1, 4), **kind)
            else:
                faults.fail(method, at=chance.randrange(1, 4))
        if chance.random() < 0.05:
            faults.fail("swap_reference", at=2, times=100_000)
        try:
            increment(faulty)
            acknowledged += 1
        except UnknownOutcomeError:
            unknown += 1
        except UnavailableError:
            pass
    faults.heal()

    assert acknowledged <= count(faulty) <= acknowledged + unknown, f"seed {seed}"
    assert acknowledged > 20, f"seed {seed}"
