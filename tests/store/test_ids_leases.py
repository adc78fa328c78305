"""The leases of nodes: taken, renewed, given back and taken over, so that the windows of two owners never overlap."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from id_parts import FOREVER, HOUR, SharedBackend, fill, lease_of, lease_on, leased_nodes, millis_now, millis_of, node_of, steal

from fake_clock import FakeClock
from headwater.clock import Micros
from headwater.errors import UnavailableError
from headwater.settings import Settings
from headwater.store import Backend, NodeLease, ObjectId, ObjectRow, Store, node_lease_id, open_store
from headwater.store.backends.memory import MemoryBackend
from headwater.store.ids import NODES
from tiers import long_but_for


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Leases of an hour, renewed in its last quarter."""
    return replace(settings, node_lease_seconds=HOUR, node_renew_seconds=HOUR / 4)


@pytest.fixture
def others(store: Store) -> Store:
    """The store, whose nodes others have for a second, all but number 77, which nobody ever had."""
    fill(store, but=[77], end=millis_now(store) + 1000)
    return store


@pytest.fixture
def process(store: Store, store_url: str, clock: FakeClock) -> Iterator[Callable[..., Store]]:
    """Another process on the same database: a store of its own, with its own clock if need be."""
    started: list[Store] = []

    def start(own_clock: FakeClock = clock) -> Store:
        if store.url == "memory://":
            backend = SharedBackend(store.backend)
            started.append(Store(backend, url=store.url, settings=store.settings, clock=own_clock))
        else:
            started.append(open_store(store_url, settings=store.settings, clock=own_clock))
        return started[-1]

    yield start
    for one in started:
        one.close()


# renewal


def test_lease_is_renewed_before_its_end_on_the_same_node(store: Store, clock: FakeClock) -> None:
    first = store.new_id()
    clock.advance(HOUR - 900)
    second = store.new_id()

    assert node_of(first) == node_of(second)
    assert lease_of(store, second).end == millis_of(second) + 3_600_000
    assert leased_nodes(store) == 1


def test_lease_is_not_renewed_before_its_time(store: Store, clock: FakeClock) -> None:
    lease = lease_of(store, store.new_id())
    clock.advance(HOUR - 900.001)

    assert lease_of(store, store.new_id()) == lease


def test_many_ids_at_once_renew_as_well(store: Store, clock: FakeClock) -> None:
    first = store.new_id()
    clock.advance(HOUR - 900)
    made = store.new_ids(10_000)

    assert lease_of(store, first).end == millis_of(made[0]) + 3_600_000


def test_one_lease_lasts_as_long_as_it_is_used(store: Store, clock: FakeClock) -> None:
    made = []
    for _ in range(50):
        made.append(store.new_id())
        clock.advance(HOUR - 600)

    assert len({node_of(one) for one in made}) == 1


def test_clock_that_jumps_beyond_the_end_leases_anew(store: Store, clock: FakeClock) -> None:
    old = lease_of(store, store.new_id())
    clock.advance(HOUR)
    late = store.new_id()

    assert millis_of(late) == old.end
    assert lease_of(store, late).end == old.end + 3_600_000


def test_renewal_that_finds_the_node_taken_goes_to_another(store: Store, clock: FakeClock) -> None:
    first = store.new_id()
    clock.advance(HOUR - 1)
    steal(store, node_of(first))
    second = store.new_id()

    assert node_of(second) != node_of(first)
    assert second > first


def test_node_change_in_the_same_millisecond_still_grows(store: Store, clock: FakeClock) -> None:
    made = []
    for _ in range(30):
        made.append(store.new_id())
        steal(store, node_of(made[-1]))
        clock.advance(HOUR - 1)
        made.append(store.new_id())

    assert made == sorted(set(made))
    assert len({node_of(one) for one in made}) > 1


# the end


def test_released_node_is_not_leased_within_its_last_millisecond(
    others: Store, process: Callable[..., Store], clock: FakeClock
) -> None:
    with process() as first:
        last = first.new_id()
    with pytest.raises(UnavailableError):
        others.new_id()
    clock.advance(0.001)
    again = others.new_id()

    assert (node_of(again), millis_of(again)) == (77, millis_of(last) + 1)


def test_released_node_is_not_leased_before_ids_that_ran_ahead(
    others: Store, process: Callable[..., Store], clock: FakeClock
) -> None:
    with process() as first:
        last = first.new_ids(100_000)[-1]
    clock.advance(0.024)
    with pytest.raises(UnavailableError):
        others.new_id()
    clock.advance(0.001)
    again = others.new_id()

    assert (node_of(again), millis_of(again)) == (77, millis_of(last) + 1)


def test_released_lease_names_no_owner(store: Store, process: Callable[..., Store]) -> None:
    with process() as first:
        made = first.new_id()
        owner = lease_of(store, made).owner

    assert owner
    assert lease_of(store, made).owner == ""


def test_two_leases_of_one_process_differ_in_their_owner(store: Store, clock: FakeClock) -> None:
    first = lease_of(store, store.new_id())
    clock.advance(2 * HOUR)
    second = lease_of(store, store.new_id())

    assert first.owner != second.owner
    assert first.owner.rsplit(":", 1)[0] == second.owner.rsplit(":", 1)[0]


def test_store_that_made_no_ids_leaves_no_lease(store: Store, process: Callable[..., Store]) -> None:
    process().close()

    assert leased_nodes(store) == 0


def test_process_that_slept_across_its_lease_makes_no_id(store: Store, process: Callable[..., Store], clock: FakeClock) -> None:
    sleeper = process()
    old = sleeper.new_id()
    clock.advance(2 * HOUR)
    taken = steal(store, node_of(old))

    assert millis_of(sleeper.new_id()) >= taken.start >= millis_of(old) + 3_600_000


class SleepyClock(FakeClock):
    """Two hours pass just before one of its readings, and what others do in that time."""

    def __init__(self, at: int, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self._left = at
        self._meanwhile = meanwhile

    def wall(self) -> Micros:
        self._left -= 1
        if self._left == 0:
            self.advance(2 * HOUR)
            self._meanwhile()
        return super().wall()


@pytest.mark.parametrize("at", range(1, 20))
def test_sleeper_before_any_reading_makes_no_id_outside_its_lease(settings: Settings, at: int) -> None:
    backend, taken = SharedBackend(), list[ObjectId]()
    later = FakeClock()
    later.advance(2 * HOUR)
    other = Store(backend, url="memory://", settings=settings, clock=later)
    sleeper = Store(backend, url="memory://", settings=settings, clock=SleepyClock(at, lambda: taken.append(other.new_id())))
    fill(other, but=[77])
    made: list[ObjectId] = []
    with contextlib.suppress(UnavailableError):
        while not taken:
            made += [sleeper.new_id(), *sleeper.new_ids(4095)]
        made.append(sleeper.new_id())

    assert {node_of(one) for one in made + taken} == {77}
    assert all(one < taken[0] for one in made)


# all taken


def test_ids_are_not_made_when_all_nodes_are_leased(store: Store, process: Callable[..., Store]) -> None:
    fill(store)
    with pytest.raises(UnavailableError, match=r"all 1024 nodes are leased: the next one ends at 2060-.*; stop processes"):
        process().new_id()


def test_error_tells_when_the_next_node_is_free(others: Store, process: Callable[..., Store], clock: FakeClock) -> None:
    fill(others)
    others.system.write_objects([(node_lease_id(5), NodeLease(start=0, end=millis_now(others) + 90_000, owner="other"))])
    with pytest.raises(UnavailableError, match="the next one ends at 2026-05-28T20:28:10Z"):
        process().new_id()
    clock.advance(90)

    assert node_of(process().new_id()) == 5


def test_full_store_is_seen_to_be_full_in_two_looks(settings: Settings, clock: FakeClock) -> None:
    backend = Counting()
    with Store(backend, url="memory://", settings=settings, clock=clock) as store:
        fill(store)
        with pytest.raises(UnavailableError):
            store.new_id()

    assert backend.looks == 2


class Counting(MemoryBackend):
    looks = 0

    def read_objects(self, *arguments: object) -> list[ObjectRow | None]:
        self.looks += 1
        return super().read_objects(*arguments)


def test_one_free_node_is_found(others: Store) -> None:
    assert node_of(others.new_id()) == 77


@pytest.mark.parametrize("node", [0, 1023])
def test_first_and_the_last_node_are_leased_too(store: Store, node: int) -> None:
    fill(store, but=[node])

    assert node_of(store.new_id()) == node


@pytest.mark.long
def test_ids_are_made_by_as_many_processes_as_nodes(settings: Settings, clock: FakeClock) -> None:
    backend: Backend = MemoryBackend()
    stores = [Store(backend, url="memory://", settings=settings, clock=clock) for _ in range(NODES + 1)]
    nodes = {node_of(store.new_id()) for store in stores[:NODES]}
    with pytest.raises(UnavailableError):
        stores[NODES].new_id()

    assert nodes == set(range(NODES))


def test_node_is_taken_over_when_its_lease_has_ended(others: Store, clock: FakeClock) -> None:
    others.system.insert_object(node_lease_id(77), NodeLease(start=0, end=FOREVER, owner="other"))
    clock.advance(0.999)
    with pytest.raises(UnavailableError):
        others.new_id()
    clock.advance(0.001)

    assert node_of(others.new_id()) != 77


def test_lease_that_cannot_be_read_is_left_alone(store: Store, clock: FakeClock) -> None:
    fill(store, but=[5])
    fill(store, but=set(range(NODES)) - {7, 8, 300})
    for node in (7, 8, 300):
        row = store.backend.read_objects(store.system.key, [(node_lease_id(node), 0)])[0]
        assert row is not None
        damaged = ObjectRow(**{name: getattr(row, name) for name in row.__slots__} | {"value": row.value[:-3]})
        store.backend.write_objects([damaged])

    assert node_of(store.new_id()) == 5


def test_lease_of_a_clock_far_ahead_keeps_its_node_alone(store: Store, process: Callable[..., Store]) -> None:
    far = FakeClock(FakeClock().now() + 365 * 86_400_000_000)
    ahead = process(far)
    lost = node_of(ahead.new_id())
    fill(store, but=[lost, 600])

    assert node_of(store.new_id()) == 600
    assert lease_on(store, lost).owner != ""


@pytest.mark.long
@pytest.mark.parametrize("seed", long_but_for({0}, range(5)))
def test_windows_of_two_owners_never_overlap_under_clocks_that_differ(settings: Settings, seed: int) -> None:
    """A model: processes whose clocks differ by up to an hour make ids on three nodes, and release them or vanish."""
    backend, chance, made = SharedBackend(), random.Random(seed), []
    fill(Store(backend, url="memory://", settings=settings, clock=FakeClock()), but=range(3))
    for owner in range(60):
        clock = FakeClock(FakeClock().now() + (owner * 700 + chance.randrange(-3600, 3600)) * 1_000_000)
        store = Store(backend, url="memory://", settings=settings, clock=clock)
        with contextlib.suppress(UnavailableError):
            for _ in range(chance.randrange(1, 4)):
                made += [(one, owner) for one in (store.new_id(), *store.new_ids(chance.choice([0, 1, 9000])))]
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
