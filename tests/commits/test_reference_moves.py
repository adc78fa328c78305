"""Pointing a reference at a commit that exists, beside a collector that deletes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.clock import Micros
from headwater.commits import (
    COLLECTION_ID,
    CollectionRecord,
    CommitResult,
    HistoryCut,
    HistoryCuts,
    assign_reference,
    create_reference_at,
    read_commit,
)
from headwater.errors import ConflictError, ExpiredError, RefusedError, SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.store import ObjectId, RealmStore

Put = Callable[..., CommitResult[None]]


@pytest.fixture
def ids(rows: RealmStore, put: Put, clock: FakeClock) -> list[ObjectId]:
    """Five commits on ``main``, oldest first, a second apart."""
    return five(rows, put, clock)


def five(rows: RealmStore, put: Put, clock: FakeClock) -> list[ObjectId]:
    made = []
    for _ in range(5):
        made.append(put(rows).commit_id)
        clock.advance(1)
    return made


def publish(rows: RealmStore, *, sweeping: bool, lines: dict[str, HistoryCut] | None = None, reader_cutoff: int = 0) -> None:
    """What a collector writes down for those who move references."""
    cuts = None
    if lines is not None:
        cuts = rows.new_id()
        rows.write_objects([(cuts, HistoryCuts(lines=lines))])
    rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=sweeping, reader_cutoff=Micros(reader_cutoff), cuts=cuts))


def cut_before(rows: RealmStore, ids: list[ObjectId], oldest: int) -> dict[str, HistoryCut]:
    newest = read_commit(rows, ids[-1])
    return {"main": HistoryCut(read_commit(rows, ids[oldest]).commit.time, newest.id, newest.commit.seq)}


def test_assigning_records_what_was_left(rows: RealmStore, ids: list[ObjectId], clock: FakeClock) -> None:
    moved = assign_reference(rows, "main", ids[1], expected=ids[4], among=[])

    assert (moved.pointer, moved.moves) == (ids[1], ((ids[4], clock.now()),))
    assert rows.read_reference("main", fresh=True) == moved


def test_assigning_from_elsewhere_than_expected_is_a_conflict(rows: RealmStore, ids: list[ObjectId]) -> None:
    for expected in (ids[3], None):
        with pytest.raises(ConflictError, match="look again"):
            assign_reference(rows, "main", ids[1], expected=expected, among=[])

    assert rows.read_reference("main", fresh=True).pointer == ids[4]


def test_assigning_where_it_is_changes_nothing(rows: RealmStore, ids: list[ObjectId]) -> None:
    before = rows.read_reference("main", fresh=True)

    assert assign_reference(rows, "main", ids[4], expected=ids[4], among=[]) == before


def test_commit_that_is_not_there_has_expired(rows: RealmStore, ids: list[ObjectId]) -> None:
    with pytest.raises(ExpiredError):
        assign_reference(rows, "main", ObjectId(5), expected=ids[4], among=[])
    with pytest.raises(ExpiredError):
        create_reference_at(rows, "other", ObjectId(5), among=["main"])


def test_reference_is_created_in_the_history_of_another(rows: RealmStore, ids: list[ObjectId]) -> None:
    assert create_reference_at(rows, "other", ids[0], among=["main"]).pointer == ids[0]
    with pytest.raises(SwapConflictError, match="there already"):
        create_reference_at(rows, "other", ids[1], among=["main"])


def test_commit_of_no_named_reference_is_no_legal_target(rows: RealmStore, ids: list[ObjectId]) -> None:
    rows.ensure_reference("other")
    with pytest.raises(RefusedError, match="not in the kept history"):
        assign_reference(rows, "other", ids[1], expected=None, among=[])

    assert assign_reference(rows, "other", ids[1], expected=None, among=["main"]).pointer == ids[1]


def test_living_head_alone_is_a_target_during_a_sweep(rows: RealmStore, ids: list[ObjectId]) -> None:
    publish(rows, sweeping=True)
    with pytest.raises(UnavailableError, match="collection is sweeping"):
        assign_reference(rows, "main", ids[3], expected=ids[4], among=[])
    with pytest.raises(UnavailableError, match="collection is sweeping"):
        create_reference_at(rows, "other", ids[3], among=["main"])

    assert create_reference_at(rows, "other", ids[4], among=["main"]).pointer == ids[4]


def test_head_of_a_tombstone_is_no_target_during_a_sweep(rows: RealmStore, ids: list[ObjectId]) -> None:
    create_reference_at(rows, "other", ids[2], among=["main"])
    rows.delete_reference(rows.find_row("other"))
    publish(rows, sweeping=True)
    with pytest.raises(UnavailableError, match="sweeping"):
        create_reference_at(rows, "third", ids[2], among=["other"])


def test_kept_commits_are_targets_after_the_sweep_and_older_never(rows: RealmStore, ids: list[ObjectId]) -> None:
    publish(rows, sweeping=False, lines=cut_before(rows, ids, 2))
    with pytest.raises(RefusedError, match="not in the kept history"):
        create_reference_at(rows, "other", ids[1], among=["main"])

    assert create_reference_at(rows, "other", ids[2], among=["main"]).pointer == ids[2]


def test_reference_made_after_the_cut_brings_nothing_older_back(rows: RealmStore, ids: list[ObjectId]) -> None:
    publish(rows, sweeping=False, lines=cut_before(rows, ids, 2))
    create_reference_at(rows, "other", ids[3], among=["main"])
    with pytest.raises(RefusedError):
        assign_reference(rows, "other", ids[1], expected=ids[3], among=[])

    assert assign_reference(rows, "other", ids[2], expected=ids[3], among=[]).pointer == ids[2]


def test_commit_a_reference_left_is_a_target_until_the_cut_off(rows: RealmStore, ids: list[ObjectId], clock: FakeClock) -> None:
    assign_reference(rows, "main", ids[1], expected=ids[4], among=[])
    left = clock.now()
    publish(rows, sweeping=False, lines=cut_before(rows, ids, 1), reader_cutoff=left - 1)
    assert create_reference_at(rows, "undo", ids[4], among=["main"]).pointer == ids[4]
    seen = rows.read_versioned(COLLECTION_ID, CollectionRecord)
    rows.update_object(seen, CollectionRecord(reader_cutoff=left, cuts=seen.value.cuts))
    with pytest.raises(RefusedError):
        create_reference_at(rows, "late", ids[4], among=["main"])


def test_deleted_reference_can_be_made_again_until_the_cut_off(rows: RealmStore, ids: list[ObjectId], clock: FakeClock) -> None:
    rows.delete_reference(rows.find_row("main"))
    publish(rows, sweeping=False, reader_cutoff=clock.now() - 1)

    assert create_reference_at(rows, "main", ids[4], among=[]).pointer == ids[4]


def test_deleted_reference_protects_nothing_after_the_cut_off(rows: RealmStore, ids: list[ObjectId], clock: FakeClock) -> None:
    rows.delete_reference(rows.find_row("main"))
    publish(rows, sweeping=False, reader_cutoff=clock.now())
    with pytest.raises(RefusedError):
        create_reference_at(rows, "main", ids[4], among=[])


def test_sweep_begun_after_the_flag_was_read_beats_the_assignment(
    faulty: RealmStore, faults: FaultyBackend, put: Put, clock: FakeClock
) -> None:
    ids = five(faulty, put, clock)

    def begin_sweep() -> None:
        publish(faulty, sweeping=True)
        faulty.raise_version(faulty.find_row("main"))

    faults.intervene("swap_reference", begin_sweep)
    with pytest.raises(UnavailableError, match="sweeping"):
        assign_reference(faulty, "main", ids[1], expected=ids[4], among=[])

    assert faulty.read_reference("main", fresh=True).pointer == ids[4]


@pytest.mark.parametrize("at", [2, 3])
def test_sweep_that_buries_the_name_beats_the_creation(
    faulty: RealmStore, faults: FaultyBackend, put: Put, clock: FakeClock, at: int
) -> None:
    ids = five(faulty, put, clock)

    def begin_sweep() -> None:
        publish(faulty, sweeping=True)
        faulty.bury_reference("other")

    method, nth = ("read_references", 2) if at == 2 else ("create_reference", 1)
    faults.intervene(method, begin_sweep, at=nth)
    with pytest.raises(UnavailableError, match="sweeping"):
        create_reference_at(faulty, "other", ids[1], among=["main"])

    assert faulty.find_reference("other", fresh=True) is None


def test_unclear_assignment_happens_once(faulty: RealmStore, faults: FaultyBackend, put: Put, clock: FakeClock) -> None:
    ids = five(faulty, put, clock)
    faults.fail("swap_reference", before=False)
    moved = assign_reference(faulty, "main", ids[1], expected=ids[4], among=[])

    assert [move.pointer for move in moved.moves] == [ids[4]]
    assert faulty.find_row("main") == moved


def test_assignment_without_a_clear_answer_says_so(
    faulty: RealmStore, faults: FaultyBackend, put: Put, clock: FakeClock
) -> None:
    ids = five(faulty, put, clock)
    faults.fail("swap_reference", before=False)
    faults.fail("swap_reference", at=2)
    with pytest.raises(UnknownOutcomeError):
        assign_reference(faulty, "main", ids[1], expected=ids[4], among=[])
