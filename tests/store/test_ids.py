"""Ids: unique everywhere, and never made outside the lease of their node."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forking import run_forked
from headwater.clock import FakeClock
from headwater.errors import BeatenError, RefusedError, UnavailableError
from headwater.settings import Settings
from headwater.store import (
    FaultyBackend,
    NodeLease,
    ObjectId,
    Store,
    fixed_id,
    id_of,
    id_text,
    id_time,
    is_fixed,
    node_lease_id,
    open_store,
)
from headwater.store.backends.memory import MemoryBackend
from headwater.store.identity import EPOCH_MILLIS, NODES, compose_id

HOUR = 3600.0


def node_of(object_id: ObjectId) -> int:
    return object_id >> 12 & 0x3FF


def millis_of(object_id: ObjectId) -> int:
    return object_id >> 22


def lease_of(store: Store, object_id: ObjectId) -> NodeLease:
    return store.system.read_versioned(node_lease_id(node_of(object_id)), NodeLease).value


def leased_nodes(store: Store) -> int:
    found = store.system.read_many_versioned([node_lease_id(node) for node in range(NODES)], NodeLease)
    return sum(lease is not None for lease in found)


@pytest.fixture
def backend() -> FaultyBackend:
    return FaultyBackend(MemoryBackend())


@pytest.fixture
def process(backend: FaultyBackend, clock: FakeClock) -> Callable[..., Store]:
    """Another process on the same database: a store of its own, with its own clock if need be."""

    def start(own_clock: FakeClock = clock) -> Store:
        return Store(backend, url="memory://", settings=Settings(), clock=own_clock)

    return start


@pytest.fixture
def full(process: Callable[..., Store], clock: FakeClock) -> Store:
    """A store whose nodes are all leased for a second but number 77, which nobody ever had."""
    store, now = process(), clock.now() // 1000 - EPOCH_MILLIS
    other = NodeLease(start=now - 1, end=now + 1000, owner="other")
    store.system.write([(node_lease_id(node), other) for node in range(NODES) if node != 77])
    return store


def test_an_id_is_time_node_and_sequence(store: Store) -> None:
    first, second = store.new_id(), store.new_id()

    assert id_time(first) == store.clock.now() // 1000 * 1000
    assert second == first + 1
    assert 0 < second < 1 << 63


@given(st.integers(0, (1 << 41) - 1), st.integers(0, 1023), st.integers(0, 4095))
def test_the_text_of_an_id_sorts_like_it_and_reads_back(millis: int, node: int, sequence: int) -> None:
    object_id = compose_id(millis, node, sequence)

    assert id_of(id_text(object_id)) == object_id
    assert len(id_text(object_id)) == 16


@pytest.mark.parametrize("text", ["", "123", "0123456789ABCDEF", "8000000000000000", "g" * 16, " 123456789abcdef", "0" * 17])
def test_a_text_that_is_no_id_is_refused(text: str) -> None:
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
    ids = [store.new_id() for _ in range(10_000)]

    assert ids == sorted(set(ids))
    assert store.clock.now() == before


@settings(max_examples=20)
@given(st.lists(st.sampled_from([-7200.0, -50.0, -0.001, 0.0, 0.001, 60.0, 2400.0, 3599.0, 3600.0, 9000.0]), max_size=25))
def test_ids_only_grow_and_stay_in_their_lease_however_the_clock_jumps(steps: list[float]) -> None:
    clock = FakeClock()
    with open_store("memory://", clock=clock) as store:
        ids = []
        for step in steps:
            clock.advance(step)
            for _ in range(3):
                ids.append(store.new_id())
                lease = lease_of(store, ids[-1])
                assert lease.start <= millis_of(ids[-1]) < lease.end

    assert ids == sorted(set(ids))


def test_a_lease_is_renewed_before_its_end_on_the_same_node(store: Store, clock: FakeClock) -> None:
    first = store.new_id()
    clock.advance(HOUR - 900)
    second = store.new_id()

    assert node_of(first) == node_of(second)
    assert lease_of(store, second).end == millis_of(second) + 3_600_000
    assert leased_nodes(store) == 1


def test_a_clock_that_jumps_beyond_the_end_leases_anew(store: Store, clock: FakeClock) -> None:
    old = lease_of(store, store.new_id())
    clock.advance(HOUR)
    late = store.new_id()

    assert millis_of(late) == old.end
    assert lease_of(store, late).end == old.end + 3_600_000


def test_a_process_that_slept_across_its_lease_makes_no_id_in_it(process: Callable[..., Store], clock: FakeClock) -> None:
    sleeper, others = process(), process()
    old = sleeper.new_id()
    clock.advance(2 * HOUR)
    taken = steal(others, node_of(old))

    assert millis_of(sleeper.new_id()) >= taken.start >= lease_end(old)


def lease_end(first: ObjectId) -> int:
    return millis_of(first) + 3_600_000


def steal(store: Store, node: int) -> NodeLease:
    """What another process does that finds this node's lease ended."""
    now = store.clock.now() // 1000 - EPOCH_MILLIS
    seen = store.system.read_versioned(node_lease_id(node), NodeLease)
    return store.system.update(seen, NodeLease(start=now, end=now + 3_600_000, owner="thief")).value


def test_a_renewal_that_finds_the_node_taken_goes_to_another(store: Store, clock: FakeClock) -> None:
    first = store.new_id()
    clock.advance(HOUR - 1)
    steal(store, node_of(first))
    second = store.new_id()

    assert node_of(second) != node_of(first)
    assert second > first


def test_a_renewal_without_an_answer_keeps_the_lease_to_its_end(
    process: Callable[..., Store], backend: FaultyBackend, clock: FakeClock
) -> None:
    store = process()
    first = store.new_id()
    clock.advance(HOUR - 1)
    backend.fail("update_object")

    assert node_of(store.new_id()) == node_of(first)


def test_a_node_change_in_the_same_millisecond_still_grows(process: Callable[..., Store], clock: FakeClock) -> None:
    store, ids = process(), []
    for _ in range(40):
        ids.append(store.new_id())
        lease = store.system.read_versioned(node_lease_id(node_of(ids[-1])), NodeLease)
        store.system.update(lease, NodeLease(start=lease.value.start, end=lease.value.end, owner="thief"))
        clock.advance(HOUR - 1)
        ids.append(store.new_id())

    assert ids == sorted(set(ids))
    assert len({node_of(made) for made in ids}) > 1


def test_a_taken_node_whose_answer_was_lost_is_used(process: Callable[..., Store], backend: FaultyBackend) -> None:
    store = process()
    backend.fail("insert_object", before=False)
    made = store.new_id()

    assert leased_nodes(store) == 1
    assert lease_of(store, made).start == millis_of(made)


def test_a_database_that_is_away_makes_no_id(process: Callable[..., Store], backend: FaultyBackend) -> None:
    store = process()
    backend.fail("read_objects")
    with pytest.raises(UnavailableError, match="injected"):
        store.new_id()

    assert store.new_id() > 0


def test_when_all_nodes_are_leased_no_id_is_made(full: Store) -> None:
    full.system.insert(node_lease_id(77), NodeLease(start=0, end=1 << 40, owner="other"))
    with pytest.raises(UnavailableError, match="all 1024 nodes are leased"):
        full.new_id()


def test_the_one_free_node_is_found(full: Store) -> None:
    assert node_of(full.new_id()) == 77


def test_a_node_is_taken_over_when_its_lease_has_ended(full: Store, clock: FakeClock) -> None:
    full.system.insert(node_lease_id(77), NodeLease(start=0, end=1 << 40, owner="other"))
    clock.advance(0.999)
    with pytest.raises(UnavailableError):
        full.new_id()
    clock.advance(0.001)

    assert node_of(full.new_id()) != 77


def test_a_released_node_is_free_after_the_millisecond_of_its_last_id(
    full: Store, process: Callable[..., Store], clock: FakeClock
) -> None:
    with process() as first:
        last = first.new_id()
    with pytest.raises(UnavailableError):
        full.new_id()
    clock.advance(0.001)
    again = full.new_id()

    assert (node_of(again), millis_of(again)) == (77, millis_of(last) + 1)


def test_a_release_that_fails_is_no_error(process: Callable[..., Store], backend: FaultyBackend) -> None:
    store = process()
    store.new_id()
    backend.fail("update_object")

    store.close()


@pytest.mark.parametrize("seed", range(5))
def test_windows_of_two_owners_never_overlap_under_clocks_that_differ(process: Callable[..., Store], seed: int) -> None:
    """A model: processes whose clocks differ by up to an hour make ids on three nodes, and release them or vanish."""
    chance, made = random.Random(seed), []
    taken = NodeLease(start=0, end=1 << 40, owner="other")
    process().system.write([(node_lease_id(node), taken) for node in range(3, NODES)])
    for owner in range(60):
        clock = FakeClock(FakeClock().now() + (owner * 700 + chance.randrange(-3600, 3600)) * 1_000_000)
        store = process(clock)
        with contextlib.suppress(UnavailableError):
            for _ in range(chance.randrange(1, 4)):
                made.append((store.new_id(), owner))
                clock.advance(chance.choice([0.0, 0.5, 3000.0]))
        if chance.random() < 0.5:
            store.close()

    assert len({object_id for object_id, _ in made}) == len(made) > 20, f"seed {seed}"
    assert not overlapping([(node_of(object_id), owner, millis_of(object_id)) for object_id, owner in made]), f"seed {seed}"


def overlapping(uses: list[tuple[int, int, int]]) -> list[int]:
    """The nodes on which one owner's (node, owner, millisecond) lie between another's."""
    spans: dict[tuple[int, int], list[int]] = {}
    for node, owner, millis in uses:
        spans.setdefault((node, owner), []).append(millis)
    ordered = sorted((node, min(times), max(times)) for (node, _), times in spans.items())
    return [one[0] for one, two in itertools.pairwise(ordered) if one[0] == two[0] and one[2] >= two[1]]


def test_threads_make_different_ids(store: Store) -> None:
    made: list[list[ObjectId]] = [[] for _ in range(8)]

    def work(own: list[ObjectId]) -> None:
        own += [store.new_id() for _ in range(1000)]

    threads = [threading.Thread(target=work, args=(own,)) for own in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({object_id for own in made for object_id in own}) == 8000
    assert all(own == sorted(own) for own in made)


def test_forked_children_make_different_ids_than_each_other_and_their_parent(tmp_path: object) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        before = [store.new_id() for _ in range(100)]
        children = run_forked(4, lambda _: [store.new_id() for _ in range(100)])
        after = [store.new_id() for _ in range(100)]

    made = [before, after, *children]
    assert len({object_id for own in made for object_id in own}) == 600
    assert all(min(child) > max(before) for child in children)
    assert len({node_of(child[0]) for child in children} | {node_of(before[0])}) == 5


def test_separate_processes_make_different_ids(tmp_path: object) -> None:
    def work(_: int) -> list[ObjectId]:
        with open_store(f"sqlite:///{tmp_path}/store.db") as store:
            return [store.new_id() for _ in range(200)]

    made = run_forked(6, work)

    assert len({object_id for own in made for object_id in own}) == 1200


def test_a_beaten_candidate_is_passed_over(process: Callable[..., Store], backend: FaultyBackend) -> None:
    store = process()
    backend.fail("insert_object", fault=BeatenError("another was faster"), times=3)

    assert leased_nodes(store) == 0
    assert lease_of(store, store.new_id()).owner != ""
