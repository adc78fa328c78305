"""What one commit may cost the others that wait with it: members, bytes, and the time of a change."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from lineup import behind, has_queue, lined_up, waiting

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import CommitResult, Transaction, commit_change, read_log
from headwater.errors import CommitTimeoutError
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import RealmStore, StoredObject, object_type

Put = Callable[..., CommitResult[None]]
Increment = Callable[[RealmStore], CommitResult[int]]
Count = Callable[[RealmStore], int]


@object_type("test-load")
class Load(StoredObject, frozen=True, kw_only=True):
    data: bytes


@pytest.fixture
def settings() -> Settings:
    return Settings(commit_group_members=3, commit_group_bytes=100_000)


def group_sizes(rows: RealmStore) -> list[int]:
    """Oldest first."""
    sizes, size = [], 0
    for found in read_log(rows, "main", oldest_first=True):
        size += 1
        if not found.commit.depth:
            sizes.append(size)
            size = 0
    return sizes


def loading(rows: RealmStore, key: bytes, size: int) -> Callable[[], CommitResult[Any]]:
    return lambda: commit_change(
        rows,
        "main",
        lambda tx: tx.index("loads").put(key, IndexValue(tx.add_object(Load(data=random.Random(0).randbytes(size))))),
    )


class Slow:
    """A change that counts, and does not return from its first runs before others have committed."""

    def __init__(self, meanwhile: Callable[[], Any], *, runs: int) -> None:
        self.runs = 0
        self._meanwhile = meanwhile
        self._slow = runs

    def __call__(self, tx: Transaction) -> int:
        self.runs += 1
        seen = tx.index("counters").get(b"n")
        if self.runs <= self._slow:
            self._meanwhile()
        number = 1 + (int(seen.data) if seen else 0)
        tx.index("counters").put(b"n", IndexValue(None, str(number).encode()))
        return number


@pytest.fixture
def overtake(faulty: RealmStore, clock: FakeClock, increment: Increment) -> Callable[[], int]:
    """Commits on another thread while a change of this one takes longer than a group waits for it."""

    def act() -> int:
        with behind(faulty, partial(increment, faulty)) as other:
            clock.advance(0.051)
        return other.result().result

    return act


def test_group_has_so_many_members_at_most(faulty: RealmStore, faults: FaultyBackend, increment: Increment) -> None:
    with lined_up(faulty, faults, [partial(increment, faulty)] * 7) as line:
        pass

    assert [done.result().result for done in line.commits] == [1, 2, 3, 4, 5, 6, 7]
    assert group_sizes(faulty) == [3, 3, 1]


def test_member_whose_objects_do_not_fit_begins_a_group(faulty: RealmStore, faults: FaultyBackend) -> None:
    works = [loading(faulty, key, size) for key, size in ((b"a", 1), (b"b", 60_000), (b"c", 60_000), (b"d", 1))]
    with lined_up(faulty, faults, works) as line:
        pass

    assert [done.result().attempts for done in line.commits] == [1, 1, 2, 1]
    assert group_sizes(faulty) == [2, 2]


def test_commit_larger_than_a_group_is_one_alone(faulty: RealmStore, faults: FaultyBackend) -> None:
    with lined_up(
        faulty, faults, [loading(faulty, key, size) for key, size in ((b"a", 1), (b"b", 300_000), (b"c", 1))]
    ) as line:
        pass

    assert all(done.result().changed for done in line.commits)
    assert group_sizes(faulty) == [1, 1, 1]


def test_change_too_slow_is_left_out_and_starts_over(faulty: RealmStore, overtake: Callable[[], int], count: Count) -> None:
    slow = Slow(overtake, runs=1)
    done = commit_change(faulty, "main", slow)

    assert (done.result, done.attempts, slow.runs, count(faulty)) == (2, 2, 2, 2)


def test_members_before_a_slow_change_are_published_without_it(
    faulty: RealmStore, faults: FaultyBackend, clock: FakeClock, increment: Increment
) -> None:
    entered, go = threading.Event(), threading.Event()
    slow = Slow(lambda: (entered.set(), go.wait(30)), runs=1)
    works = [partial(increment, faulty), lambda: commit_change(faulty, "main", slow), partial(increment, faulty)]
    with lined_up(faulty, faults, works) as line:
        line.go()
        entered.wait(30)
        clock.advance(0.051)
        others = [line.commits[at].result(timeout=30).result for at in (0, 2)]
        go.set()

    assert (others, line.commits[1].result().result) == ([1, 2], 3)


def test_error_of_a_change_left_out_is_not_told(faulty: RealmStore, overtake: Callable[[], int]) -> None:
    def fail() -> None:
        overtake()
        raise ZeroDivisionError

    assert commit_change(faulty, "main", Slow(fail, runs=1)).result == 2


def test_change_left_out_twice_commits_outside_of_the_queue(
    faulty: RealmStore, clock: FakeClock, overtake: Callable[[], int], increment: Increment
) -> None:
    def meanwhile() -> None:
        if slow.runs <= 2:
            overtake()
        else:
            with behind(faulty, partial(increment, faulty)) as other:
                assert other.result(timeout=30).attempts == 1  # without that any time has passed
            clock.advance(1)

    slow = Slow(meanwhile, runs=3)
    done = commit_change(faulty, "main", slow)

    assert (done.result, done.attempts) == (4, 4)


def test_change_left_out_twice_returns_once_it_is_quick(
    faulty: RealmStore, faults: FaultyBackend, overtake: Callable[[], int], increment: Increment, elsewhere: RealmStore
) -> None:
    def meanwhile() -> None:
        places.append(has_queue(faulty))
        if slow.runs <= 2:
            overtake()

    places: list[bool] = []
    slow = Slow(meanwhile, runs=4)
    faults.intervene("swap_reference", lambda: increment(elsewhere), at=3)
    done = commit_change(faulty, "main", slow)

    assert (done.result, done.attempts) == (4, 4)
    assert places == [True, True, False, True]


def test_members_are_left_out_only_where_somebody_waits(faulty: RealmStore, clock: FakeClock) -> None:
    done = commit_change(faulty, "main", Slow(lambda: clock.advance(5), runs=9))

    assert done.attempts == 1


def test_memoised_work_is_done_once_for_all_runs(faulty: RealmStore, overtake: Callable[[], int]) -> None:
    made: list[str] = []

    def change(tx: Transaction) -> None:
        for name, of in (("same", 1), ("head", tx.head_id)):
            tx.memoize(name, of, lambda name=name: made.append(name))  # type: ignore[misc]
        slow(tx)

    slow = Slow(overtake, runs=2)
    commit_change(faulty, "main", change)

    assert made == ["same", "head", "head", "head"]


def test_commit_whose_time_is_over_leaves_the_queue(
    faulty: RealmStore, faults: FaultyBackend, clock: FakeClock, increment: Increment, count: Count
) -> None:
    with lined_up(faulty, faults, [partial(increment, faulty)]):
        with behind(faulty, partial(increment, faulty)) as late:
            clock.advance(15)
        assert waiting(faulty) == 0

    with pytest.raises(CommitTimeoutError, match=r"'main'.*'acme'.*15\.0 s, waiting for its turn behind") as fault:
        late.result()
    assert (fault.value.attempts, fault.value.elapsed_seconds) == (0, 15)


def test_commit_being_published_waits_beyond_its_time(
    faulty: RealmStore, faults: FaultyBackend, clock: FakeClock, increment: Increment
) -> None:
    swap = faults.hang("swap_reference")
    with lined_up(faulty, faults, [partial(increment, faulty)] * 2) as line:
        line.go()
        swap.reached()
        clock.advance(20)
        swap.release()

    assert [done.result().result for done in line.commits] == [1, 2]


def test_group_that_was_prepared_too_long_ago_is_prepared_again(
    faulty: RealmStore, faults: FaultyBackend, clock: FakeClock, increment: Increment
) -> None:
    def late(tx: Transaction) -> None:
        if tx.head is not None and not clock.monotonic():
            clock.advance(15.5)
        tx.index("things").put(b"k", IndexValue(None))

    with lined_up(faulty, faults, [partial(increment, faulty), lambda: commit_change(faulty, "main", late)]) as line:
        pass

    for done in line.commits:
        with pytest.raises(CommitTimeoutError):
            done.result()
    assert "write_objects" not in faults.calls
