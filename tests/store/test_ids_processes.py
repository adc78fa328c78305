"""Ids of real processes: forked, started apart, racing, killed, and stopped across the end of their lease."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from id_makers import IdMaker
from id_parts import fill, lease_on, leased_nodes, millis_of, node_of

from backend_fixtures import STORES
from forked_children import run_forked
from headwater.errors import UnavailableError
from headwater.settings import Settings
from headwater.store import NodeLease, ObjectId, Store, node_lease_id, open_store
from tiers import long_but_for

pytestmark = pytest.mark.long

SHORT = Settings(node_lease_seconds=1.0, node_renew_seconds=0.25)


# Where all depends on what happens within a second. MongoDB's test server needs about as long to read all leases.
_quick_databases = ["sqlite", "postgresql", *(["mongodb"] if "HEADWATER_TEST_MONGODB" in os.environ else [])]
within_a_second = pytest.mark.parametrize("url", long_but_for({"sqlite"}, _quick_databases), indirect=True)


@pytest.fixture(params=long_but_for({"sqlite"}, [name for name in STORES if name != "memory"]))
def url(request: pytest.FixtureRequest) -> str:
    """Every database that several processes can open."""
    return STORES[request.param](request)


@pytest.fixture
def shared(url: str) -> Iterator[Store]:
    """This process' store on it, under the real clock, with leases of a second."""
    with open_store(url, settings=SHORT) as opened:
        yield opened


@pytest.fixture
def make_maker(url: str, tmp_path: Path) -> Iterator[Callable[..., IdMaker]]:
    made: list[IdMaker] = []

    def make(*, lease_seconds: float = 3600.0) -> IdMaker:
        made.append(IdMaker(url, lease_seconds=lease_seconds, file=tmp_path / f"ids-{len(made)}"))
        return made[-1]

    yield make
    for maker in made:
        maker.kill()


def test_forked_children_and_their_parent_make_different_ids(shared: Store) -> None:
    before = shared.new_ids(50_000)

    def work(_: int) -> list[ObjectId]:
        return [shared.new_id() for _ in range(50_000)] + shared.new_ids(50_000)

    during: list[ObjectId] = []
    children = run_forked(4, work, meanwhile=lambda: during.extend(shared.new_id() for _ in range(50_000)))

    made = [before + during, *children]
    assert len({one for own in made for one in own}) == 500_000
    assert all(own == sorted(own) for own in made)
    assert all(child[0] > before[-1] for child in children)


def test_child_leases_its_own_node_and_leaves_the_parents(shared: Store) -> None:
    first = shared.new_id()
    lease = lease_on(shared, node_of(first))

    def work(_: int) -> int:
        node = node_of(shared.new_id())
        shared.close()
        return node

    nodes = run_forked(3, work)

    assert node_of(first) not in nodes
    assert lease_on(shared, node_of(first)).owner == lease.owner
    assert lease_on(shared, nodes[0]).owner == ""


def test_child_of_a_child_makes_ids_of_its_own(shared: Store) -> None:
    def work(_: int) -> list[ObjectId]:
        own = [shared.new_id() for _ in range(100)]
        return own + run_forked(1, lambda _: [shared.new_id() for _ in range(100)])[0]

    made = [shared.new_id() for _ in range(100)] + run_forked(1, work)[0]

    assert len(set(made)) == 300
    assert len({node_of(one) for one in made}) == 3


def test_children_make_ids_though_threads_made_some_at_the_fork(shared: Store) -> None:
    made: list[list[ObjectId]] = [[], []]
    is_over = threading.Event()

    def work(number: int) -> None:
        while not is_over.is_set():
            made[number] += [shared.new_id() for _ in range(100)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        children = [run_forked(1, lambda _: [shared.new_id() for _ in range(500)])[0] for _ in range(10)]
    finally:
        is_over.set()
        for thread in threads:
            thread.join()

    everything = [*made, *children]
    assert len({one for own in everything for one in own}) == sum(map(len, everything))
    assert not {node_of(child[0]) for child in children} & {node_of(one) for own in made for one in own}


def test_separate_processes_make_hundreds_of_thousands_of_different_ids(make_maker: Callable[..., IdMaker]) -> None:
    makers = [make_maker() for _ in range(3)]
    for _ in range(2):
        for maker in makers:
            maker.tell("many 60000")
        assert [maker.answer() for maker in makers] == ["60000"] * 3
    made = [maker.ids() for maker in makers]

    assert len({one for own in made for one in own}) == 360_000
    assert all(own == sorted(own) for own in made)


@within_a_second
def test_ids_of_processes_with_leases_of_a_moment_differ(make_maker: Callable[..., IdMaker], shared: Store) -> None:
    """Three processes on three nodes, which change hands all the time."""
    fill(shared, but=[1, 2, 3])
    makers = [make_maker(lease_seconds=0.05) for _ in range(3)]
    for maker in makers:
        assert maker.ask("ever 1.5") == "begun"
    for maker in makers:
        maker.answer()
    made = [maker.ids() for maker in makers]

    assert len({one for own in made for one in own}) == sum(map(len, made)) > 100
    assert {node_of(one) for own in made for one in own} <= {1, 2, 3}
    assert all(own == sorted(own) for own in made)


def test_last_node_goes_to_one_of_two_racing_processes(make_maker: Callable[..., IdMaker], shared: Store) -> None:
    fill(shared, but=[77])
    makers = [make_maker(), make_maker()]
    start = time.time() + 0.1
    for maker in makers:
        maker.tell(f"one {start}")
    made, told = sorted((maker.answer() for maker in makers), key=len)

    assert node_of(ObjectId(int(made))) == 77
    assert told.startswith("unavailable: all 1024 nodes are leased: the next one ends at ")


@pytest.mark.parametrize("round_", long_but_for({0}, range(3)))
def test_node_goes_to_one_of_many_racing_processes(url: str, shared: Store, round_: int) -> None:
    node = 300 + round_
    fill(shared, but=[node])
    start = time.time() + 0.3
    all_answered = multiprocessing.get_context("fork").Barrier(6)

    def work(_: int) -> str:
        answer = race()
        all_answered.wait(60)  # the node of a process that has ended would be free for the slowest
        return answer

    def race() -> str:
        store = open_store(url)  # not closed: a node that is given back would be free, too
        store.system.is_empty()  # connected
        time.sleep(max(0.0, start - time.time()))
        try:
            return str(node_of(store.new_id()))
        except UnavailableError as fault:
            return str(fault)

    answers = run_forked(6, work)

    assert answers.count(str(node)) == 1
    assert sum("all 1024 nodes are leased" in answer for answer in answers) == 5


def test_processes_that_start_together_get_their_own_nodes(url: str, shared: Store) -> None:
    start = time.time() + 0.3

    def work(_: int) -> int:
        store = open_store(url)
        time.sleep(max(0.0, start - time.time()))
        return node_of(store.new_id())

    nodes = run_forked(8, work)

    assert len(set(nodes)) == 8
    assert leased_nodes(shared) == 8


def test_node_of_a_killed_local_process_is_free_when_needed(make_maker: Callable[..., IdMaker], url: str) -> None:
    maker = make_maker()
    maker.ask("many 100000")
    last = maker.ids()[-1]
    with open_store(url) as other:
        fill(other, but=[node_of(last)])
        with pytest.raises(UnavailableError, match="all 1024 nodes are leased"):
            other.new_id()
        maker.kill()
        made = other.new_ids(10_000)

    assert node_of(made[0]) == node_of(last)
    assert millis_of(made[0]) >= millis_of(last) + 10_000
    assert len({*maker.ids(), *made}) == 110_000


def test_node_of_a_killed_process_is_not_awaited_beside_others(make_maker: Callable[..., IdMaker], url: str) -> None:
    maker = make_maker()
    last = ObjectId(int(maker.ask("one")))
    maker.kill()
    with open_store(url) as other:
        fill(other, but=[77, node_of(last)])

        assert node_of(other.new_id()) == 77


@within_a_second
def test_node_of_a_killed_remote_process_is_free_after_its_window(make_maker: Callable[..., IdMaker], shared: Store) -> None:
    fill(shared, but=[77])
    maker = make_maker(lease_seconds=1.0)
    last = ObjectId(int(maker.ask("one")))
    maker.kill()
    seen = shared.system.read_versioned(node_lease_id(77), NodeLease)
    lease = shared.system.update_object(seen, msgspec.structs.replace(seen.value, owner="elsewhere:1")).value
    taken = first_id(shared)

    assert lease.owner != ""
    assert (node_of(taken), node_of(last)) == (77, 77)
    assert millis_of(taken) >= lease.end > millis_of(last)


@within_a_second
def test_process_that_ends_well_frees_its_node_at_once(make_maker: Callable[..., IdMaker], shared: Store) -> None:
    fill(shared, but=[77])
    maker = make_maker()
    last = ObjectId(int(maker.ask("one")))
    maker.close()
    taken = shared.new_id()

    assert node_of(taken) == node_of(last) == 77
    assert taken > last


@within_a_second
def test_process_stopped_across_its_lease_makes_no_id_outside(make_maker: Callable[..., IdMaker], shared: Store) -> None:
    """the other                          stopped process
                                       leases node 77, makes ids without a pause
                                       SIGSTOP
    its window ends
    leases node 77, makes ids
                                       SIGCONT: goes on with the very next id
    """
    fill(shared, but=[77])
    maker = make_maker(lease_seconds=1.0)
    assert maker.ask("ever 60") == "begun"
    wait_for(lambda: leased_nodes(shared) == 1024)
    time.sleep(0.6)
    end = stop_between_calls(maker, shared)
    taken = first_id(shared)
    made = [taken]
    maker.go_on()
    for _ in range(100):
        made += shared.new_ids(1000)
        time.sleep(0.01)
    maker.tell("")
    tries = int(maker.answer())
    stopped = maker.ids()

    assert tries > 0  # it did go on, and asked for ids
    assert {node_of(one) for one in made} == {node_of(one) for one in stopped} == {77}
    assert millis_of(max(stopped)) < end <= millis_of(taken)
    assert not set(stopped) & set(made)
    assert len(stopped) == len(set(stopped)) > 100
    assert stopped == sorted(stopped)


def stop_between_calls(maker: IdMaker, store: Store) -> int:
    """Stop the process while it holds no lock of the database; returns the end of its window."""
    for _ in range(20):
        maker.stop()
        try:
            seen = store.system.read_versioned(node_lease_id(77), NodeLease)
            return store.system.update_object(seen, seen.value).value.end
        except UnavailableError:
            maker.go_on()
            time.sleep(0.05)
    raise AssertionError("it holds a lock each time")


def first_id(store: Store) -> ObjectId:
    """The first, as soon as there is one: a slow machine may ask for it only then, so what counts is the window that it is of."""
    for _ in range(1000):
        try:
            return store.new_id()
        except UnavailableError:
            time.sleep(0.02)
    raise AssertionError("no node became free")


def wait_for(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it never came to be so")
