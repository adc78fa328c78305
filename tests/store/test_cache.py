"""What a process remembers of a store, and how it never remembers wrongly."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

import pytest
from notes import Note

from headwater.clock import FakeClock
from headwater.store import FaultyBackend, ObjectId, RealmKey, RealmStore
from headwater.store.cache import Cache

REALM = RealmKey(1)


@pytest.fixture
def cache(clock: FakeClock) -> Cache:
    """Room for ten objects of 488 stored bytes, which weigh 1000 each."""
    return Cache(clock=clock, budget_bytes=10_000, reference_ttl_seconds=60)


@pytest.fixture
def remembered(cache: Cache) -> Callable[[], list[int]]:
    return lambda: [number for number in range(100) if cache.find(REALM, ObjectId(number)) is not None]


def fill(cache: Cache, numbers: range) -> None:
    for number in numbers:
        cache.put(REALM, ObjectId(number), Note(number=number), 488)


def test_the_cache_holds_no_more_than_its_budget(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    fill(cache, range(30))

    assert remembered() == list(range(20, 30))


def test_what_was_used_last_stays_longest(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    fill(cache, range(10))
    cache.find(REALM, ObjectId(0))
    fill(cache, range(10, 12))

    assert remembered() == [0, 3, 4, 5, 6, 7, 8, 9, 10, 11]


def test_an_object_larger_than_the_budget_pushes_nothing_out(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    fill(cache, range(10))
    cache.put(REALM, ObjectId(50), Note(), 20_000)

    assert remembered() == list(range(10))


def test_an_object_put_again_weighs_once(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    for _ in range(20):
        fill(cache, range(10))

    assert remembered() == list(range(10))


def test_forgotten_objects_make_room(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    fill(cache, range(10))
    for number in range(5):
        cache.forget(REALM, ObjectId(number))
    fill(cache, range(20, 25))

    assert remembered() == [*range(5, 10), *range(20, 25)]


def test_realms_do_not_share_objects(cache: Cache) -> None:
    fill(cache, range(1))

    assert cache.find(RealmKey(2), ObjectId(0)) is None


def test_clearing_while_others_fill_keeps_the_books_right(cache: Cache, remembered: Callable[[], list[int]]) -> None:
    stop = threading.Event()

    def keep_clearing() -> None:
        while not stop.is_set():
            cache.clear()

    thread = threading.Thread(target=keep_clearing)
    thread.start()
    for _ in range(200):
        fill(cache, range(20))
    stop.set()
    thread.join()
    fill(cache, range(30))

    assert remembered() == list(range(20, 30))


def test_a_reference_is_asked_for_once_within_its_time_to_live(
    faulty: RealmStore, faults: FaultyBackend, clock: FakeClock
) -> None:
    made = faulty.create_reference("branch")
    faults.calls.clear()
    clock.advance(faulty.settings.reference_ttl_seconds)

    assert faulty.find_reference("branch") == made
    assert faults.calls == []
    clock.advance(1)
    assert faulty.find_reference("branch") == made
    assert faults.calls == ["read_references"]


def test_a_fresh_read_goes_past_the_cache(faulty: RealmStore, faults: FaultyBackend) -> None:
    faulty.create_reference("branch")
    faults.calls.clear()
    faulty.find_reference("branch", fresh=True)

    assert faults.calls == ["read_references"]


def test_an_older_version_never_replaces_a_newer_one(rows: RealmStore) -> None:
    old = rows.create_reference("branch", ObjectId(1))
    new = rows.advance_reference(old, ObjectId(2))
    rows.store.cache.put_reference(old)

    assert rows.find_reference("branch") == new


def test_a_reader_who_comes_late_does_not_hide_a_later_swap(faulty: RealmStore, faults: FaultyBackend) -> None:
    old = faulty.create_reference("branch", ObjectId(1))
    stale = dataclasses.replace(old)
    new = faulty.advance_reference(old, ObjectId(2))
    faults.intervene("read_references", lambda: faulty.store.cache.put_reference(stale))
    faulty.find_reference("branch", fresh=True)

    assert faulty.find_reference("branch") == new


def test_references_are_bounded_too(rows: RealmStore, cache: Cache) -> None:
    made = rows.create_reference("branch")
    for number in range(10_001):
        cache.put_reference(dataclasses.replace(made, name=str(number)))

    assert cache.find_reference(made.realm, "0") is None
    assert cache.find_reference(made.realm, "10000") is not None
