"""A set of realms, collected in one scan where keys are not ordered: each has a fate of its own, and nobody else scans meanwhile."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import read_collection
from headwater.errors import FencedError, RefusedError, UnavailableError
from headwater.gc import CollectionResult, collect_realm
from headwater.gc.shared_scan import collect_realms, hold_scan_lock
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import ObjectKey, RealmStore, Store, StoredObject, object_type
from headwater.throttle import FenceWatch
from lakes import HOUR, open_on
from unordered import UnorderedBackend

REALMS = ("one", "two", "three")


class Killed(BaseException):
    """The process is gone."""


@object_type("test-together")
class Crumb(StoredObject, frozen=True, kw_only=True):
    text: str = ""


@pytest.fixture(params=["memory", "unordered"])
def store(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    """Three realms with ten crumbs each, old ones."""
    with open_on(BACKENDS[request.param](request), dataclasses.replace(settings, delete_batch=3), clock) as opened:
        realms = RealmRegistry(opened)
        for name in REALMS:
            realm = realms.move_realm(realms.create_realm(name), RealmState.INITIALIZING)
            rows = realms.open_realm_for(name, RealmState.INITIALIZING)
            for reference in REALM_REFERENCES:
                rows.ensure_reference(reference)
            realms.move_realm(realm, RealmState.ACTIVE)
            rows = realms.open_realm(name)
            rows.write_objects((rows.new_id(), Crumb()) for _ in range(10))
        clock.advance(HOUR)
        yield opened


def crumbs(store: Store) -> list[int]:
    return [sum(key.type == "test-together" for key in keys_of(RealmRegistry(store).open_realm(name))) for name in REALMS]


def keys_of(rows: RealmStore) -> list[ObjectKey]:
    return [key for batch in rows.scan_objects() for key in batch]


def test_each_realm_is_collected(store: Store) -> None:
    fates = collect_realms(store, REALMS)

    assert [fate.deleted_types["test-together"][0] for fate in fates.values() if isinstance(fate, CollectionResult)] == [
        10,
        10,
        10,
    ]
    assert crumbs(store) == [0, 0, 0]


def test_set_tells_of_each_realm_what_a_collection_alone_does(store: Store) -> None:
    alone = collect_realm(store, "two", dry_run=True)
    together = collect_realms(store, REALMS, dry_run=True)["two"]

    assert isinstance(together, CollectionResult)
    assert (together.scanned, together.kept, together.garbage) == (alone.scanned, alone.kept, alone.garbage)
    assert crumbs(store) == [10, 10, 10]


def test_realm_that_cannot_be_collected_hinders_no_other(store: Store) -> None:
    RealmRegistry(store).create_realm("new")
    fates = collect_realms(store, ["one", "new", "two"])

    assert isinstance(fates["new"], RefusedError)
    assert crumbs(store) == [0, 0, 10]


def test_unordered_store_is_scanned_twice_for_however_many_realms(settings: Settings, clock: FakeClock) -> None:
    faulty = FaultyBackend(UnorderedBackend())
    with open_on(faulty, settings, clock) as opened:
        for name in REALMS:
            realms = RealmRegistry(opened)
            realm = realms.move_realm(realms.create_realm(name), RealmState.INITIALIZING)
            for reference in REALM_REFERENCES:
                realms.open_realm_for(name, RealmState.INITIALIZING).ensure_reference(reference)
            realms.move_realm(realm, RealmState.ACTIVE)
        faulty.calls.clear()
        collect_realms(opened, REALMS)

    assert faulty.calls.count("scan_objects") == 4  # a page and an empty one, to plan and to sweep


def test_set_that_dies_in_its_sweep_is_gone_on_with(store: Store, clock: FakeClock) -> None:
    faulty = FaultyBackend(store.backend)
    faulty.fail("delete_objects", at=5, fault=Killed())  # type: ignore[arg-type]  # raised as it is
    with pytest.raises(Killed):
        collect_realms(open_on(faulty, store.settings, clock), REALMS)
    clock.advance(HOUR)
    collect_realms(store, REALMS)

    assert crumbs(store) == [0, 0, 0]
    assert not any(found.value.sweeping for name in REALMS if (found := read_collection(RealmRegistry(store).open_realm(name))))


def test_taken_over_set_stops(store: Store) -> None:
    def fence() -> None:
        raise FencedError("taken over")

    with pytest.raises(FencedError):
        collect_realms(store, REALMS, fence=fence)
    assert crumbs(store) == [10, 10, 10]


def test_one_scan_of_a_store_is_on_at_a_time(store: Store, clock: FakeClock) -> None:
    with hold_scan_lock(store, "first", FenceWatch(lambda: None, clock)) as turn:
        lives = FenceWatch(turn.heartbeat, clock)  # the first one goes on beating while the second one waits
        with pytest.raises(UnavailableError, match="first"), hold_scan_lock(store, "second", lives):
            pass


def test_turn_of_a_dead_collector_is_taken_after_a_lease(store: Store, clock: FakeClock) -> None:
    died = hold_scan_lock(store, "first", FenceWatch(lambda: None, clock))
    died.__enter__()
    began = clock.monotonic()
    with hold_scan_lock(store, "second", FenceWatch(lambda: None, clock)):
        assert clock.monotonic() - began >= store.settings.task_lease_seconds
