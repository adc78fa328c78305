"""How a change becomes the truth."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import Commit, CommitResult, Operation, Transaction, commit_change, read_head, read_log
from headwater.errors import CommitTimeoutError, CorruptionError, FencedError, NotFoundError, RefusedError, UnavailableError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore, StoredObject, object_type

Put = Callable[..., CommitResult[None]]


@object_type("test-thing")
class Thing(StoredObject, frozen=True, kw_only=True):
    text: str = ""


def everything(rows: RealmStore) -> list[object]:
    return [[key for batch in rows.scan_objects() for key in batch], list(rows.scan_references())]


def add_thing(tx: Transaction) -> ObjectId:
    thing = tx.add_object(Thing(text="hello"))
    tx.index("things").put(b"k", IndexValue(thing))
    return thing


def test_commit_tells_what_it_changed_and_what_holds_now(rows: RealmStore, put: Put) -> None:
    put(rows, b"a", b"1")
    put(rows, b"b", b"2")

    def change(tx: Transaction) -> str:
        tx.index("things").remove(b"a")
        tx.index("others").put(b"c", IndexValue(None, b"3"))
        return "done"

    done = commit_change(rows, "main", change, message="third", properties={"by": "me"})
    newest = read_head(rows, "main")
    assert (done.result, done.changed, done.attempts, done.commit_id) == ("done", True, 1, newest.id)
    assert newest.commit.operations == (Operation("others", b"c", data=b"3"), Operation("things", b"a", removed=True))
    assert [dict(newest.index(name).range()) for name in ("things", "others", "none")] == [
        {b"b": IndexValue(None, b"2")},
        {b"c": IndexValue(None, b"3")},
        {},
    ]
    assert (newest.commit.seq, newest.commit.message, newest.commit.properties) == (3, "third", {"by": "me"})


def test_added_objects_are_written_with_the_commit(rows: RealmStore) -> None:
    done = commit_change(rows, "main", add_thing)

    assert rows.read_object(done.result, Thing) == Thing(text="hello")
    assert read_head(rows, "main").index("things").get(b"k") == IndexValue(done.result)


def test_change_may_set_message_and_properties(rows: RealmStore) -> None:
    def change(tx: Transaction) -> None:
        add_thing(tx)
        tx.set_message("mine")
        tx.set_property("n", 1 << 70)

    commit_change(rows, "main", change, message="yours", properties={"n": 1, "m": 2})

    assert (read_head(rows, "main").commit.message, read_head(rows, "main").commit.properties) == (
        "mine",
        {"n": 1 << 70, "m": 2},
    )


def test_commit_keeps_its_properties_when_its_caller_changes_them(rows: RealmStore) -> None:
    properties = {"n": 1}
    commit_change(rows, "main", add_thing, properties=properties)
    properties["n"] = 2

    assert read_head(rows, "main").commit.properties == {"n": 1}


def test_change_sees_its_own_edits_and_the_head(rows: RealmStore, put: Put) -> None:
    first = put(rows, b"a", b"1")

    def change(tx: Transaction) -> None:
        tx.index("things").put(b"b", IndexValue(None, b"2"))
        assert [key for key, _ in tx.index("things").range()] == [b"a", b"b"]
        assert (tx.head_id, tx.head.seq) == (first.commit_id, 1)

    commit_change(rows, "main", change)


def test_raising_change_writes_nothing_and_its_error_is_passed_on(rows: RealmStore, put: Put) -> None:
    put(rows)
    before = everything(rows)

    def change(tx: Transaction) -> None:
        add_thing(tx)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        commit_change(rows, "main", change)
    assert everything(rows) == before


@pytest.mark.parametrize("with_commit", [True, False])
def test_unchanged_commit_writes_nothing_and_tells_the_head(rows: RealmStore, put: Put, with_commit: bool) -> None:
    commit_id = put(rows, b"k", b"1").commit_id if with_commit else None
    before = everything(rows)

    def change(tx: Transaction) -> int:
        tx.index("things").put(b"new", IndexValue(None))
        tx.index("things").remove(b"new")
        tx.set_message("nothing to say")
        return 7

    assert commit_change(rows, "main", change) == CommitResult(7, False, commit_id, 1)
    assert everything(rows) == before


def test_reference_without_a_commit_has_no_head(rows: RealmStore) -> None:
    assert read_head(rows, "main") is None
    with pytest.raises(NotFoundError):
        read_head(rows, "absent")
    with pytest.raises(NotFoundError):
        commit_change(rows, "absent", add_thing)


def test_missing_head_object_is_an_error_and_nothing_is_changed(rows: RealmStore, put: Put) -> None:
    put(rows)
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.type == "commit"])
    before = everything(rows)
    for look in (lambda: put(rows), lambda: read_head(rows, "main"), lambda: list(read_log(rows, "main"))):
        with pytest.raises(CorruptionError, match=r"not there; .*headwater fsck"):
            look()

    assert everything(rows) == before


def test_cached_reference_whose_head_was_collected_is_looked_up_again(rows: RealmStore, put: Put) -> None:
    put(rows)
    old = rows.find_row("main")
    new = put(rows).commit_id
    rows.store.cache.clear()
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id == old.pointer])
    rows.store.cache.put_reference(old, rows.store.cache.ticket())

    assert read_head(rows, "main").id == new


@pytest.mark.parametrize("step", [-3600.0, -0.000001, 0.0, 60.0])
def test_commit_is_always_later_than_its_parent(rows: RealmStore, put: Put, clock: FakeClock, step: float) -> None:
    for _ in range(3):
        put(rows)
        clock.advance(step)
    times = [found.commit.time for found in read_log(rows, "main", oldest_first=True)]

    assert times == sorted(set(times))


def test_commit_names_its_twenty_nearest_ancestors(rows: RealmStore, put: Put) -> None:
    ids = [put(rows).commit_id for _ in range(25)]
    newest = read_head(rows, "main").commit

    assert newest.tail == tuple(ids[23:3:-1])
    assert newest.seq == 25


def test_commit_may_not_point_to_what_it_does_not_hold(rows: RealmStore) -> None:
    thing = commit_change(rows, "main", add_thing).result
    commit_change(rows, "main", lambda tx: tx.index("things").remove(b"k"))
    with pytest.raises(RefusedError, match="neither added by this commit nor held by its parent"):
        commit_change(rows, "main", lambda tx: tx.index("things").put(b"k", IndexValue(thing)))

    assert read_head(rows, "main").commit.seq == 2


def test_commit_may_move_its_parents_objects_between_indexes(rows: RealmStore) -> None:
    thing = commit_change(rows, "main", add_thing).result

    def rename(tx: Transaction) -> None:
        held = tx.index("things").get(b"k")
        tx.index("things").remove(b"k")
        tx.index("others").put(b"renamed", held)

    commit_change(rows, "main", rename)
    assert read_head(rows, "main").index("others").get(b"renamed") == IndexValue(thing)


def test_fence_is_asked_before_every_run_and_stops_the_commit(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    asked, runs = [], []

    def fence() -> None:
        asked.append(len(runs))
        if len(asked) == 2:
            raise FencedError("taken over")

    def change(tx: Transaction) -> None:
        runs.append(tx.head_id)
        add_thing(tx)

    faults.intervene("swap_reference", lambda: put(faulty))
    with pytest.raises(FencedError):
        commit_change(faulty, "main", change, fence=fence)
    assert (asked, len(runs), read_head(faulty, "main", fresh=True).commit.seq) == ([0, 1], 1, 1)


def test_commit_that_was_beaten_runs_again_and_leaves_nothing(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    faults.intervene("swap_reference", lambda: put(faulty, b"theirs"))
    done = commit_change(faulty, "main", add_thing)

    assert done.attempts == 2
    assert [key for key, _ in read_head(faulty, "main").index("things").range()] == [b"k", b"theirs"]
    assert sum(len(batch) for batch in faulty.scan_objects()) == 3


def test_clean_up_that_fails_does_not_fail_the_commit(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    faults.intervene("swap_reference", lambda: put(faulty))
    faults.fail("delete_objects", times=10)

    assert commit_change(faulty, "main", add_thing).attempts == 2


def test_uncontended_commit_does_not_sleep(faulty: RealmStore, put: Put, clock: FakeClock) -> None:
    before = clock.monotonic()
    put(faulty)

    assert clock.monotonic() == before


@pytest.mark.parametrize("method", ["read_references", "write_objects", "swap_reference"])
def test_database_that_is_away_for_a_moment_costs_an_attempt(
    faulty: RealmStore, faults: FaultyBackend, put: Put, method: str
) -> None:
    faults.fail(method)

    assert put(faulty).attempts == 2
    assert read_head(faulty, "main").commit.seq == 1


def test_database_that_stays_away_ends_in_a_time_out(
    faulty: RealmStore, faults: FaultyBackend, put: Put, clock: FakeClock
) -> None:
    faults.fail("write_objects", times=100_000)
    with pytest.raises(CommitTimeoutError, match=r"'main'.*'acme'.*injected") as timed_out:
        put(faulty)

    assert 15 <= timed_out.value.elapsed_seconds == clock.monotonic() < 16
    assert isinstance(timed_out.value, UnavailableError)


def test_commit_prepared_a_time_out_ago_is_not_written(faulty: RealmStore, faults: FaultyBackend, clock: FakeClock) -> None:
    def change(tx: Transaction) -> None:
        add_thing(tx)
        clock.advance(16)

    with pytest.raises(CommitTimeoutError, match="longer than the time-out"):
        commit_change(faulty, "main", change)

    assert "write_objects" not in faults.calls


def test_swap_that_ended_late_records_what_it_left(
    faulty: RealmStore, faults: FaultyBackend, put: Put, clock: FakeClock
) -> None:
    first = put(faulty).commit_id
    faults.intervene("swap_reference", lambda: clock.advance(16))
    second = put(faulty).commit_id
    row = faulty.read_reference("main", fresh=True)

    assert (row.pointer, row.moves) == (second, ((first, clock.now() | 1),))  # odd: a note, and no move


def test_swap_in_time_records_nothing(faulty: RealmStore, faults: FaultyBackend, put: Put, clock: FakeClock) -> None:
    put(faulty)
    faults.intervene("swap_reference", lambda: clock.advance(14))
    put(faulty)

    assert faulty.read_reference("main", fresh=True).moves == ()


def test_ensuring_a_reference_twice_is_ensuring_it_once(rows: RealmStore, put: Put) -> None:
    made = rows.ensure_reference("other")
    put(rows, reference="other")

    assert rows.ensure_reference("other").created == made.created
    assert rows.ensure_reference("other").pointer is not None


def test_commit_points_to_what_its_indexes_hold(rows: RealmStore) -> None:
    thing = commit_change(rows, "main", add_thing).result
    done = commit_change(rows, "main", lambda tx: tx.index("other").put(b"k", IndexValue(None, b"no object")))

    assert list(rows.read_object(done.commit_id, Commit).points_to()) == [thing]
