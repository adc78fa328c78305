"""A collection that dies anywhere is followed by one that ends right; one that was taken over stops before its next step."""

from __future__ import annotations

import itertools

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import read_collection
from headwater.errors import FencedError, HeadwaterError
from headwater.fsck import check_store
from headwater.gc import collect_realm
from headwater.settings import Settings
from headwater.store import ObjectKey, Store, id_text
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, Meeting, copied, lake, make_lake, make_realm, open_on, put, rows_of, unreadable_heads
from tiers import Sample

STEPS = {
    "create_reference",
    "delete_objects",
    "delete_realm",
    "insert_object",
    "remove_reference",
    "swap_reference",
    "update_object",
    "write_objects",
}


class Killed(BaseException):
    """Nothing in the collector may catch it: the process is gone."""


@pytest.fixture
def prepared(settings: Settings, clock: FakeClock) -> MemoryBackend:
    """A realm with garbage, a branch that is long deleted, and a flag that an earlier run left."""
    backend = MemoryBackend()
    store = open_on(backend, settings, clock)
    make_realm(store)
    catalog = make_lake(store)
    catalog.create_branch("gone")
    put(catalog, 10, branch="gone")
    for version in (1, 2):
        put(catalog, version)
        clock.advance(HOUR)
    catalog.delete_branch("gone")
    clock.advance(HOUR)
    return backend


def killed_at(prepared: MemoryBackend, settings: Settings, start: int, *, before: bool, at: int) -> Meeting | None:
    """A collection that died at a call; None when it makes fewer."""
    backend, clock = copied(prepared), FakeClock(start)
    faulty = FaultyBackend(backend)
    faulty.fail("*", at=at, before=before, fault=Killed())  # type: ignore[arg-type]  # raised as it is
    try:
        collect_realm(open_on(faulty, settings, clock), "acme")
    except Killed:
        return Meeting(at, backend, clock, settings, HeadwaterError())
    return None


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_collection_that_dies_anywhere_is_ended_by_the_next(
    prepared: MemoryBackend, settings: Settings, clock: FakeClock, before: bool, sample: Sample
) -> None:
    undisturbed = Meeting(0, copied(prepared), FakeClock(clock.now()), settings, HeadwaterError())
    collect_realm(undisturbed.open(), "acme")
    undisturbed.collect_again()

    for call in sample.one_in(5, itertools.count(1)):
        met = killed_at(prepared, settings, clock.now(), before=before, at=call)
        if met is None:
            break
        assert met.faults == []
        met.collect_again()
        met.collect_again()
        assert met.faults == []
        assert content_types(met.open()) == content_types(undisturbed.open())
        assert not is_sweeping(met.open())
        assert check_store(met.open()) == []


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_collection_loses_nothing_wherever_the_database_fails_once(
    prepared: MemoryBackend, settings: Settings, clock: FakeClock, before: bool, sample: Sample
) -> None:
    for call in sample.one_in(5, itertools.count(1)):
        backend, now = copied(prepared), FakeClock(clock.now())
        faulty = FaultyBackend(backend)
        faulty.fail("*", at=call, before=before)
        met = Meeting(call, backend, now, settings, HeadwaterError())
        try:
            collect_realm(open_on(faulty, settings, now), "acme")
        except HeadwaterError as fault:
            assert "injected" in repr(fault) + repr(fault.__cause__) + repr(fault.__context__)
        assert met.faults == []
        met.collect_again()
        assert not is_sweeping(met.open())
        if check_store(met.open()):  # a name that lost its row: the next collection buries it, and the one after removes it
            met.collect_again()
            met.collect_again()
        assert check_store(met.open()) == []
        if len(faulty.calls) < call:
            break


def test_fenced_collection_stops_before_its_next_step(prepared: MemoryBackend, settings: Settings, clock: FakeClock) -> None:
    for step in itertools.count(1):
        backend = copied(prepared)
        faulty = FaultyBackend(backend)
        fence = Fence(faulty, raises_at=step)
        try:
            collect_realm(open_on(faulty, settings, FakeClock(clock.now())), "acme", fence=fence)
        except FencedError:
            assert STEPS.isdisjoint(faulty.calls[fence.calls_before :])
            assert unreadable_heads(backend, settings, clock) == []
            continue
        break
    assert step > 10


class Fence:
    """Raises at its nth call, and knows which calls to the database came before."""

    def __init__(self, backend: FaultyBackend, *, raises_at: int) -> None:
        self._backend = backend
        self._left = raises_at
        self.calls_before = 0

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.calls_before = len(self._backend.calls)
            raise FencedError("taken over")


def test_every_deletion_has_a_fence_before_it(prepared: MemoryBackend, settings: Settings, clock: FakeClock) -> None:
    backend = FaultyBackend(prepared)
    marks: list[int] = []
    collect_realm(open_on(backend, settings, clock), "acme", fence=lambda: marks.append(len(backend.calls)))
    deletions = [at for at, name in enumerate(backend.calls) if name in ("delete_objects", "remove_reference")]

    assert deletions
    for deletion in deletions:
        last_fence = max(mark for mark in marks if mark <= deletion)
        assert STEPS.isdisjoint(backend.calls[last_fence:deletion])


def test_flag_is_left_to_the_successor(prepared: MemoryBackend, settings: Settings, clock: FakeClock) -> None:
    """The first one is stopped in its sweep; a second one collects; the first one wakes up and finds that it is fenced."""
    backend = FaultyBackend(prepared)
    fence = Fence(backend, raises_at=10_000)
    store = open_on(prepared, settings, clock)
    backend.intervene("delete_objects", lambda: collect_realm(store, "acme", owner="second") and None)

    collect_realm(open_on(backend, settings, clock), "acme", owner="first", fence=fence)
    record = read_collection(rows_of(store))
    assert record is not None
    assert (record.value.owner, record.value.sweeping) == ("second", False)


def test_interrupted_sweep_is_named_by_the_next(prepared: MemoryBackend, settings: Settings, clock: FakeClock) -> None:
    backend = FaultyBackend(prepared)
    backend.fail("delete_objects", fault=Killed())  # type: ignore[arg-type]
    with pytest.raises(Killed):
        collect_realm(open_on(backend, settings, clock), "acme", owner="task 1")

    assert any("task 1" in note for note in collect_realm(open_on(prepared, settings, clock), "acme").notes)


def is_sweeping(store: Store) -> bool:
    record = read_collection(rows_of(store))
    return record is not None and record.value.sweeping


def content_types(store: Store) -> list[str]:
    """The rows that are not the collector's own bookkeeping, by id."""
    own = {"collection", "cuts", "marks"}
    rows = rows_of(store)
    head = lake(store).resolve()
    keys: list[ObjectKey] = [key for batch in rows.scan_objects() for key in batch]
    assert head is not None
    listing = [id_text(head.id)]
    return listing + sorted(key.type for key in keys if key.type not in own | {"commit"})
