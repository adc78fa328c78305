"""Ids: what they are made of, and that they only grow, one at a time and millions at once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from id_parts import StuckClock, lease_of, leased_nodes, millis_now, millis_of, node_of

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.clock import SystemClock
from headwater.errors import RefusedError, UnavailableError
from headwater.settings import Settings
from headwater.store import NodeLease, ObjectId, RealmStore, Store, fixed_id, id_of, id_text, id_time, is_fixed, open_store
from headwater.store import id_generator as ids
from headwater.store.backends.memory import MemoryBackend
from headwater.store.id_generator import AHEAD_SECONDS, MOST_IDS
from headwater.store.ids import EPOCH_MILLIS, compose_id

SECOND_OF_IDS = 1000 * 4096


@pytest.fixture
def hasty() -> Settings:
    """Leases of a second, renewed after half of it."""
    return Settings(node_lease_seconds=1.0, node_renew_seconds=0.5)


def test_id_is_time_node_and_sequence(store: Store) -> None:
    first, second = store.new_id(), store.new_id()

    assert id_time(first) == store.clock.now() // 1000 * 1000
    assert second == first + 1
    assert 0 < second < 1 << 63


@given(st.integers(0, (1 << 41) - 1), st.integers(0, 1023), st.integers(0, 4095))
def test_text_of_an_id_sorts_like_it_and_reads_back(millis: int, node: int, sequence: int) -> None:
    object_id = compose_id(millis, node, sequence)

    assert id_of(id_text(object_id)) == object_id
    assert len(id_text(object_id)) == 16


@pytest.mark.parametrize("text", ["", "123", "0123456789ABCDEF", "8000000000000000", "g" * 16, " 123456789abcdef", "0" * 17])
def test_text_that_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="16 lower-case hex"):
        id_of(text)


def test_fixed_ids_are_told_from_made_ones(store: Store) -> None:
    assert is_fixed(fixed_id(0, 1023))
    assert is_fixed(fixed_id(999))
    assert not is_fixed(compose_id(1000, 0, 0))
    assert not is_fixed(store.new_id())


def test_reading_leases_no_node(store: Store) -> None:
    store.system.find_reference("realms")
    store.system.find_versioned(fixed_id(5), NodeLease)

    assert store.system.is_empty()


def test_ids_only_grow_while_the_clock_stands_still(store: Store) -> None:
    before = store.clock.now()
    made = [store.new_id() for _ in range(10_000)]

    assert made == sorted(set(made))
    assert store.clock.now() == before


def test_sequence_numbers_have_no_gap_while_the_clock_stands(store: Store) -> None:
    made = [store.new_id() for _ in range(5000)]

    assert made[4095] == made[0] + 4095
    assert (millis_of(made[4096]), made[4096] & 0xFFF) == (millis_of(made[0]) + 1, 0)


# many at once


def test_million_ids_at_once_only_grow(store: Store) -> None:
    before, made, after = store.new_id(), store.new_ids(1_000_000), store.new_id()

    assert len(made) == 1_000_000
    assert all(one < two for one, two in itertools.pairwise([before, *made, after]))
    assert {node_of(one) for one in made} == {node_of(before)}


@pytest.mark.parametrize("n", [1, 2, 4094, 4095, 4096, 4097, 8192, 10_000])
def test_ids_at_once_are_as_many_as_asked_for(store: Store, n: int) -> None:
    store.new_id()
    made = [*store.new_ids(n), store.new_id(), *store.new_ids(n)]

    assert len(made) == 2 * n + 1
    assert made == sorted(set(made))
    assert millis_of(made[-1]) - millis_of(made[0]) <= 2 * n // 4096 + 1


def test_realms_ids_come_from_its_store(store: Store, rows: RealmStore) -> None:
    first, more, last = store.new_id(), rows.new_ids(3), rows.new_id()

    assert [first, *more, last] == list(range(first, first + 5))


def test_no_ids_at_once_lease_no_node(store: Store) -> None:
    assert store.new_ids(0) == []
    assert store.system.is_empty()


@pytest.mark.parametrize("n", [-1, MOST_IDS + 1, 1_000_000_000])
def test_number_of_ids_that_makes_no_sense_is_refused(store: Store, n: int) -> None:
    with pytest.raises(RefusedError, match=f"{n} ids cannot be made"):
        store.new_ids(n)
    assert store.system.is_empty()


@pytest.mark.long
def test_ids_at_once_beyond_a_leases_end_are_inside_one(hasty: Settings, clock: FakeClock) -> None:
    with open_store("memory://", settings=hasty, clock=clock) as store:
        first = store.new_id()
        ended = lease_of(store, first)
        made = store.new_ids(SECOND_OF_IDS + 5000)
        lease = lease_of(store, made[-1])

    assert all(one < two for one, two in itertools.pairwise([first, *made]))
    assert len(made) == SECOND_OF_IDS + 5000
    for one in made:
        window = ended if node_of(one) == node_of(first) else lease
        assert window.start <= millis_of(one) < window.end
    assert ended.end <= lease.start


def test_ids_at_once_are_none_when_no_lease_follows(hasty: Settings, clock: FakeClock) -> None:
    backend = FaultyBackend(MemoryBackend())
    with Store(backend, url="memory://", settings=hasty, clock=clock) as store:
        last = store.new_id()
        backend.fail("read_objects")
        with pytest.raises(UnavailableError, match="injected"):
            store.new_ids(SECOND_OF_IDS + 5000)

        assert store.new_id() > last


@pytest.mark.long
def test_threads_get_different_ids_that_grow(store: Store) -> None:
    made: list[list[ObjectId]] = [[] for _ in range(8)]

    def work(number: int) -> None:
        for round_ in range(300):
            made[number] += store.new_ids(round_ * 7) if number % 2 else [store.new_id() for _ in range(200)]

    run_threads(8, work)

    assert len({one for own in made for one in own}) == sum(map(len, made)) > 1_000_000
    assert all(own == sorted(own) for own in made)


@pytest.mark.long
@pytest.mark.parametrize(("is_locked", "count"), [(True, 100_000), (False, 20_000)])
def test_threads_make_hundreds_of_thousands_of_different_ids(
    monkeypatch: pytest.MonkeyPatch, is_locked: bool, count: int
) -> None:
    monkeypatch.setattr(ids, "_IS_LOCKED", is_locked)  # as in a Python without its global lock
    made: list[list[ObjectId]] = [[] for _ in range(4)]
    with open_store("memory://") as store:
        run_threads(4, lambda number: made[number].extend(store.new_id() for _ in range(count)))

    assert len({one for own in made for one in own}) == 4 * count
    assert all(own == sorted(own) for own in made)


def test_id_is_greater_than_all_before_its_call() -> None:
    highest, late = [ObjectId(0)], []
    with open_store("memory://") as store:

        def work(_: int) -> None:
            for _ in range(30_000):
                before = highest[0]
                made = store.new_id()
                if made <= before:
                    late.append((before, made))
                highest[0] = made  # perhaps less than another thread's: then less is asked of the next

        run_threads(4, work)

    assert not late


def run_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# clocks


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([-7200.0, -50.0, -0.001, 0.0, 0.001, 60.0, 2400.0, 3599.0, 3600.0, 9000.0]),
            st.sampled_from([1, 3, 4095, 5000]),
        ),
        max_size=25,
    )
)
def test_ids_grow_within_their_lease_however_the_clock_jumps(steps: list[tuple[float, int]]) -> None:
    clock, made = FakeClock(), []
    with open_store("memory://", clock=clock) as store:
        for step, count in steps:
            clock.advance(step)
            for batch in ([store.new_id() for _ in range(3)], store.new_ids(count)):
                made += batch
                lease = lease_of(store, batch[-1])
                assert lease.start <= millis_of(batch[-1]) < lease.end

    assert made == sorted(set(made))


def test_ids_go_on_after_a_jump_ahead_and_back(store: Store, clock: FakeClock) -> None:
    clock.advance(3600)
    ahead = store.new_id()
    clock.advance(-3600)

    assert store.new_id() == ahead + 1
    assert leased_nodes(store) == 1


@pytest.mark.long
def test_ids_run_ahead_of_a_stuck_clock_to_a_bound(settings: Settings) -> None:
    clock = StuckClock()
    with open_store("memory://", settings=settings, clock=clock) as store:
        made = [store.new_ids(MOST_IDS // 40)[at] for at in [0, *[-1] * 39]]
        with pytest.raises(
            UnavailableError, match="ids are 10 seconds ahead of the clock, whose highest reading is 2026-05-28T"
        ):
            store.new_id()
        clock.advance(0.001)

        assert store.new_id() > made[-1]
    assert millis_of(made[-1]) - millis_of(made[0]) == AHEAD_SECONDS * 1000 - 1
    assert 0 < sum(clock.naps) < 1


@pytest.mark.long
def test_ids_in_greater_number_than_fit_wait_for_the_clock(settings: Settings, clock: FakeClock) -> None:
    before = clock.now()
    with open_store("memory://", settings=settings, clock=clock) as store:
        for _ in range(44):
            made = store.new_ids(MOST_IDS // 40)

        assert clock.now() - before >= 1_000_000
        assert millis_of(made[-1]) - millis_now(store) <= AHEAD_SECONDS * 1000


@pytest.mark.parametrize(
    ("millis", "told"),
    [(-1, "2025-02-28T23:59:59Z"), (999, "2025-03-01T00:00:00Z"), (-EPOCH_MILLIS, "1970-01-01"), (1 << 41, "2094-11-05")],
)
def test_clock_outside_the_ids_time_is_told_so(settings: Settings, millis: int, told: str) -> None:
    clock = FakeClock((EPOCH_MILLIS + millis) * 1000)
    with open_store("memory://", settings=settings, clock=clock) as store:
        with pytest.raises(RefusedError, match=f"this machine's clock says {told}.*set the clock right"):
            store.new_id()

        assert store.system.is_empty()


def test_last_lease_of_all_ends_with_the_time_of_ids(settings: Settings) -> None:
    clock = FakeClock((EPOCH_MILLIS + (1 << 41) - 1) * 1000)
    with open_store("memory://", settings=settings, clock=clock) as store:
        made = store.new_ids(4096)

        assert made[-1] >> 12 == (1 << 51) - 1024 + node_of(made[0])
        assert lease_of(store, made[0]).end == 1 << 41
        with pytest.raises(RefusedError, match="ids end at 2094-11-05"):
            store.new_id()


def test_lease_survives_a_clock_that_falls_to_before_all_ids(store: Store, clock: FakeClock) -> None:
    first = store.new_id()
    clock.advance(-10 * 365 * 86400)

    assert store.new_id() == first + 1


def test_systems_clock_steps_back_for_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    walls = itertools.cycle([5_000_000, 9_000_000, 7_000_000, 1_000, 8_000_000])
    steps = itertools.count(0, 1000)
    monkeypatch.setattr("headwater.clock.time.time_ns", lambda: next(walls) + next(steps))
    clock, highest, late = SystemClock(), [0], []

    def work(_: int) -> None:
        for _ in range(20_000):
            before = highest[0]
            now = clock.now()
            if now < before:
                late.append((before, now))
            highest[0] = now

    run_threads(4, work)

    assert not late


def test_wall_time_of_the_systems_clock_may_step_back(monkeypatch: pytest.MonkeyPatch) -> None:
    walls = iter([9_000_000, 9_000_000, 5_000_000, 5_000_000])
    monkeypatch.setattr("headwater.clock.time.time_ns", lambda: next(walls))
    clock = SystemClock()

    assert [clock.now(), clock.wall(), clock.now(), clock.wall()] == [9000, 9000, 9000, 5000]
