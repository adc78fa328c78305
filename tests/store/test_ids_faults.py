"""Ids while the database fails, hangs or loses answers, and while the store is closed."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from id_parts import HOUR, SharedBackend, fill, lease_of, lease_on, leased_nodes, leases, millis_of, node_of

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import HeadwaterError, RefusedError, SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.settings import Settings
from headwater.store import NodeLease, ObjectId, Store, node_lease_id
from headwater.store.ids import NODES

LOST_ON_ITS_WAY = {"fault": UnknownOutcomeError("lost on its way")}
ANSWER_LOST = {"before": False}
PATIENCE = 20.0
"""Seconds that no test comes near to unless something hangs."""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Leases of an hour, renewed in its last quarter."""
    return replace(settings, node_lease_seconds=HOUR, node_renew_seconds=HOUR / 4)


@pytest.fixture
def backend() -> FaultyBackend:
    return FaultyBackend(SharedBackend())


@pytest.fixture
def process(backend: FaultyBackend, clock: FakeClock, settings: Settings) -> Callable[..., Store]:
    return lambda: Store(backend, url="memory://", settings=settings, clock=clock)


@pytest.fixture
def faulty(process: Callable[..., Store]) -> Store:
    return process()


@pytest.fixture
def due(faulty: Store, clock: FakeClock) -> tuple[Store, ObjectId]:
    """A store that made an id, and renews its lease with the next one."""
    first = faulty.new_id()
    clock.advance(HOUR - 900)
    return faulty, first


class Hanging:
    """Holds a call up until it is told to go on."""

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self.goes_on = threading.Event()

    def __call__(self) -> None:
        self.is_reached.set()
        assert self.goes_on.wait(PATIENCE)

    def fail(self) -> None:
        self()
        raise UnavailableError("timed out")


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    hanging = Hanging()
    yield hanging
    hanging.goes_on.set()


class Working(threading.Thread):
    """A thread, and what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.result: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._work()
        except HeadwaterError as fault:
            self.result = fault

    def outcome(self) -> Any:
        self.join(PATIENCE)
        assert not self.is_alive()
        return self.result


# taking


def test_database_that_is_away_makes_no_id(faulty: Store, backend: FaultyBackend) -> None:
    backend.fail("read_objects")
    with pytest.raises(UnavailableError, match="injected"):
        faulty.new_id()

    assert faulty.new_id() > 0


def test_beaten_candidate_is_passed_over(faulty: Store, backend: FaultyBackend) -> None:
    backend.fail("insert_object", fault=SwapConflictError("another was faster"), times=3)

    assert leased_nodes(faulty) == 0
    assert lease_of(faulty, faulty.new_id()).owner != ""


def test_taken_node_whose_answer_was_lost_is_used(faulty: Store, backend: FaultyBackend) -> None:
    backend.fail("insert_object", **ANSWER_LOST)
    made = faulty.new_id()

    assert leased_nodes(faulty) == 1
    assert lease_of(faulty, made).start == millis_of(made)


def test_node_that_another_took_in_between_is_not_used(
    faulty: Store, process: Callable[..., Store], backend: FaultyBackend
) -> None:
    fill(faulty, but=[77])
    taken = []
    backend.intervene("insert_object", lambda: taken.append(process().new_id()))
    with pytest.raises(UnavailableError, match="all 1024"):
        faulty.new_id()

    assert node_of(taken[0]) == 77


def test_request_for_a_node_that_was_lost_makes_no_id(faulty: Store, backend: FaultyBackend) -> None:
    backend.fail("insert_object", **LOST_ON_ITS_WAY)
    with pytest.raises(UnavailableError, match="no node could be leased: lost on its way"):
        faulty.new_id()

    assert leased_nodes(faulty) == 0
    assert faulty.new_id() > 0


def test_node_that_was_perhaps_taken_is_used_by_nobody(
    faulty: Store, process: Callable[..., Store], backend: FaultyBackend, clock: FakeClock
) -> None:
    backend.fail("insert_object", **ANSWER_LOST)
    backend.fail("read_objects", at=2)  # after the one that looks for a free node
    with pytest.raises(UnavailableError, match="no node could be leased: injected"):
        faulty.new_id()
    node = next(node for node in range(NODES) if faulty.system.find_versioned(node_lease_id(node), NodeLease))
    fill(faulty, but=[node])
    with pytest.raises(UnavailableError, match="all 1024"):
        process().new_id()
    clock.advance(HOUR)

    assert node_of(process().new_id()) == node


def test_database_slower_than_a_lease_makes_no_id(faulty: Store, backend: FaultyBackend, clock: FakeClock) -> None:
    for attempt in range(1, 20):
        for call in ("insert_object", "update_object"):  # a node that an attempt has had is taken again
            backend.intervene(call, lambda: clock.advance(2 * HOUR), at=attempt)
    with pytest.raises(UnavailableError, match="leases of 3600000 ms end before they can be used: raise HEADWATER_NODE_LEASE"):
        faulty.new_id()
    backend.heal()

    assert faulty.new_id() > 0


def test_threads_that_wait_for_a_node_fail_together(faulty: Store, backend: FaultyBackend, hanging: Hanging) -> None:
    backend.intervene("read_objects", hanging.fail)
    first = Working(faulty.new_id)
    assert hanging.is_reached.wait(PATIENCE)
    others = [Working(faulty.new_id) for _ in range(5)]
    until(lambda: waiting_on(faulty) == 6)
    calls = len(backend.calls)
    hanging.goes_on.set()

    assert {str(one.outcome()) for one in [first, *others]} == {"timed out"}
    assert len(backend.calls) == calls
    assert faulty.new_id() > 0


def waiting_on(store: Store) -> int:
    """How many threads are inside of ``new_id``, which none leaves here before it is let."""
    return sum(isinstance(thread, Working) and thread.is_alive() and is_waiting(thread) for thread in threading.enumerate())


def is_waiting(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code.co_name == "_take_in_turn":
            return True
        frame = frame.f_back
    return False


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        time.sleep(0.005)
    raise AssertionError("it never came to be so")


# renewing


def test_renewal_that_fails_keeps_the_lease_to_its_end(due: tuple[Store, ObjectId], backend: FaultyBackend) -> None:
    store, first = due
    backend.fail("update_object")

    assert node_of(store.new_id()) == node_of(first)
    assert lease_of(store, first).end == millis_of(first) + 3_600_000


def test_renewal_that_fails_is_not_tried_with_every_id(
    due: tuple[Store, ObjectId], backend: FaultyBackend, clock: FakeClock
) -> None:
    store, first = due
    backend.fail("update_object", times=2)
    backend.calls.clear()
    for _ in range(31):
        store.new_ids(5000)
        clock.advance(1)

    assert backend.calls.count("update_object") == 3  # at 0, 15 and 30 seconds
    assert lease_of(store, first).end > millis_of(first) + 3_600_000


def test_lease_without_renewals_is_used_up_to_its_end(
    due: tuple[Store, ObjectId], backend: FaultyBackend, clock: FakeClock
) -> None:
    store, first = due
    backend.fail("update_object", times=1000)
    backend.fail("insert_object", times=1000)
    clock.advance(899.999)
    last = store.new_id()
    clock.advance(0.001)
    with pytest.raises(UnavailableError, match="injected"):
        store.new_ids(4096)

    assert (node_of(last), millis_of(last)) == (node_of(first), lease_of(store, first).end - 1)


@pytest.mark.parametrize("lost", [LOST_ON_ITS_WAY, ANSWER_LOST], ids=["request", "answer"])
def test_renewal_of_unknown_outcome_is_settled_by_looking(
    due: tuple[Store, ObjectId], backend: FaultyBackend, clock: FakeClock, lost: dict[str, Any]
) -> None:
    store, first = due
    backend.fail("update_object", **lost)
    made = [store.new_id()]
    for _ in range(5):
        clock.advance(800)
        made.append(store.new_id())

    assert {node_of(one) for one in made} == {node_of(first)}
    assert leased_nodes(store) == 1
    assert made == sorted(made)


def test_renewal_of_unknown_outcome_holds_to_the_old_end(
    due: tuple[Store, ObjectId], backend: FaultyBackend, clock: FakeClock
) -> None:
    store, first = due
    backend.fail("update_object", **ANSWER_LOST)
    backend.fail("read_objects")
    made = [store.new_id()]
    clock.advance(60)
    made.append(store.new_id())  # beaten by itself
    clock.advance(HOUR - 100)
    made.append(store.new_id())

    assert {node_of(one) for one in made} == {node_of(first)}
    assert leased_nodes(store) == 1


def test_threads_go_on_while_a_renewal_hangs(due: tuple[Store, ObjectId], backend: FaultyBackend, hanging: Hanging) -> None:
    store, first = due
    backend.intervene("update_object", hanging)
    renewing = Working(store.new_id)
    assert hanging.is_reached.wait(PATIENCE)
    made = [*[store.new_id() for _ in range(10_000)], *store.new_ids(10_000)]
    hanging.goes_on.set()
    late = renewing.outcome()

    assert {node_of(one) for one in made} == {node_of(first)}
    assert made == sorted(set(made))
    assert late > made[-1]
    assert lease_of(store, first).end == millis_of(made[0]) + 3_600_000


def test_threads_stay_before_the_end_while_a_renewal_hangs(
    due: tuple[Store, ObjectId], backend: FaultyBackend, hanging: Hanging, clock: FakeClock
) -> None:
    store, first = due
    end = lease_of(store, first).end
    backend.intervene("update_object", hanging)
    renewing = Working(store.new_id)
    assert hanging.is_reached.wait(PATIENCE)
    clock.advance(1000)
    waiting = Working(store.new_id)
    until(lambda: is_waiting(waiting))
    hanging.goes_on.set()
    made = [renewing.outcome(), waiting.outcome()]

    assert lease_of(store, first).end == end - 900_000 + 3_600_000  # by the time at which the renewal began
    assert {millis_of(one) for one in made} == {end + 100_000}
    assert {node_of(one) for one in made} == {node_of(first)}


def test_renewal_that_finds_another_owner_does_not_use_his_window(
    due: tuple[Store, ObjectId], process: Callable[..., Store], backend: FaultyBackend, hanging: Hanging, clock: FakeClock
) -> None:
    store, first = due
    other = process()
    fill(store, but=[node_of(first)])
    backend.intervene("update_object", hanging)
    renewing = Working(store.new_id)
    assert hanging.is_reached.wait(PATIENCE)
    clock.advance(1000)
    taken = other.new_id()
    hanging.goes_on.set()

    assert node_of(taken) == node_of(first)
    assert "all 1024" in str(renewing.outcome())
    assert other.new_id() == taken + 1


# giving back


@pytest.mark.parametrize("lost", [{}, LOST_ON_ITS_WAY, ANSWER_LOST], ids=["fault", "request", "answer"])
def test_release_that_fails_is_no_error(faulty: Store, backend: FaultyBackend, lost: dict[str, Any]) -> None:
    faulty.new_id()
    backend.fail("update_object", **lost)

    faulty.close()


def test_release_after_an_unanswered_renewal_gives_the_node_back(
    due: tuple[Store, ObjectId], process: Callable[..., Store], backend: FaultyBackend
) -> None:
    store, first = due
    backend.fail("update_object", **ANSWER_LOST)
    backend.fail("read_objects")
    last = store.new_id()
    store.close()

    assert lease_on(process(), node_of(first)).end == millis_of(last) + 1


def test_release_shortens_no_window_of_another(faulty: Store, process: Callable[..., Store], clock: FakeClock) -> None:
    first, other = faulty.new_id(), process()
    fill(other, but=[node_of(first)])
    clock.advance(2 * HOUR)
    taken = other.new_id()
    lease = lease_of(other, taken)
    faulty.close()

    assert node_of(taken) == node_of(first)
    assert lease_of(other, taken) == lease


def test_closed_store_makes_no_more_ids(store: Store) -> None:
    store.new_id()
    store.close()
    for make in (store.new_id, lambda: store.new_ids(5)):
        with pytest.raises(RefusedError, match="closed and makes no more ids"):
            make()


def test_store_closed_while_it_leases_gives_the_node_back(
    faulty: Store, process: Callable[..., Store], backend: FaultyBackend, hanging: Hanging
) -> None:
    other = process()
    backend.intervene("insert_object", hanging)
    leasing = Working(faulty.new_id)
    assert hanging.is_reached.wait(PATIENCE)
    closing = Working(faulty.close)
    until(lambda: faulty.ids._is_closed)
    hanging.goes_on.set()
    closing.outcome()
    made = leasing.outcome()

    assert isinstance(made, RefusedError)
    assert [lease.owner for lease in leases(other)] == [""]


def test_store_closed_beside_threads_has_shortened_its_window(process: Callable[..., Store], backend: FaultyBackend) -> None:
    for _ in range(20):
        store, made = process(), []

        def work(store: Store = store, made: list[ObjectId] = made) -> None:
            for _ in range(1_000_000):
                made.append(store.new_id())

        threads = [Working(work) for _ in range(3)]
        until(lambda made=made: len(made) > 100)
        store.close()

        assert {type(thread.outcome()) for thread in threads} == {RefusedError}
        lease = lease_of(process(), made[0])
        assert lease.owner == ""
        assert len(set(made)) == len(made)
        assert all(lease.start <= millis_of(one) < lease.end for one in made)
