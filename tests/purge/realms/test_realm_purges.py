"""A purge goes on wherever it was killed, says PURGED only of what is empty, and never touches a later realm of the same id."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from backend_fixtures import BACKENDS, STORES
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import Catalog
from headwater.errors import FencedError, HeadwaterError, RefusedError, UnavailableError
from headwater.gc import collect_realm
from headwater.jobs import run_purge
from headwater.jobs.task_runs import list_runs
from headwater.purge.realm_purge import purge_realm
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.settings import DAY, Settings
from headwater.store import SYSTEM_REALM, RealmKey, RealmStore, ScanSplit, Store, StoredObject, object_type
from headwater.tasks import TaskLease, TaskQueue
from lakes import HOUR, make_lake, make_realm, open_on, put, rows_of
from lakes import lake as open_lake


@object_type("test-late-note")
class Note(StoredObject, frozen=True, kw_only=True):
    text: str = ""


@pytest.fixture
def purging(store: Store, clock: FakeClock) -> Realm:
    make_realm(store)
    put(make_lake(store), 1)
    return to_purging(store, clock)


def to_purging(store: Store, clock: FakeClock) -> Realm:
    realms = RealmRegistry(store)
    inactive = realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    clock.advance(HOUR)
    return realms.move_realm(inactive, RealmState.PURGING)


def rows_left(store: Store, key: RealmKey) -> int:
    rows = [*store.backend.scan_objects(ScanSplit(), None, 10_000), *store.backend.scan_references(ScanSplit(), None, 10_000)]
    return sum(row.realm == key for row in rows)


def write_late(store: Store, key: RealmKey) -> None:
    """What a handle does that has passed its check long ago."""
    rows = store.rows(RealmRegistry(store).read_realm("acme").id, key)
    rows.write_objects([(rows.new_id(), Note(text="late"))])


def test_purge_deletes_everything_and_says_so(store: Store, purging: Realm) -> None:
    expected = rows_left(store, purging.key)
    done = purge_realm(store, "acme")

    assert (done.rows_deleted, rows_left(store, purging.key)) == (expected, 0)
    assert RealmRegistry(store).read_realm("acme").state is RealmState.PURGED


def test_purge_says_how_much_there_is_to_delete(store: Store, purging: Realm) -> None:
    expected, told = rows_left(store, purging.key), []
    purge_realm(store, "acme", progress=lambda done, total, unit: told.append((done, total, unit)))

    assert told[-1] == (expected, expected, "rows deleted")


def test_purge_deletes_in_batches(store: Store, purging: Realm, clock: FakeClock) -> None:
    asked, told = rows_left(store, purging.key), [0]
    small = open_on(store.backend, dataclasses.replace(store.settings, delete_batch=3), clock)
    purge_realm(small, "acme", progress=lambda done, total, unit: told.append(done))

    assert {after - before for before, after in pairwise(told)} <= {1, 2, 3}
    assert (told[-1], len(told) >= asked / 3) == (asked, True)


def test_purge_that_was_killed_between_two_batches_goes_on(store: Store, purging: Realm, clock: FakeClock) -> None:
    small = open_on(store.backend, dataclasses.replace(store.settings, delete_batch=5), clock)
    left = rows_left(store, purging.key)

    def be_killed() -> None:
        if rows_left(store, purging.key) < left:
            raise KeyboardInterrupt

    while left > 5:
        with pytest.raises(KeyboardInterrupt):
            purge_realm(small, "acme", fence=be_killed)
        assert rows_left(store, purging.key) == left - 5
        assert RealmRegistry(store).read_realm("acme").state is RealmState.PURGING
        left -= 5
    purge_realm(store, "acme")

    assert RealmRegistry(store).read_realm("acme").state is RealmState.PURGED


def test_fenced_purge_deletes_nothing_more(store: Store, purging: Realm) -> None:
    before = rows_left(store, purging.key)

    def fence() -> None:
        raise FencedError("taken over")

    with pytest.raises(FencedError):
        purge_realm(store, "acme", fence=fence)
    assert rows_left(store, purging.key) == before


def test_late_write_during_a_purge_is_deleted_too(store: Store, purging: Realm, clock: FakeClock) -> None:
    backend, written = FaultyBackend(store.backend), list[int]()

    def write_once(done: int, total: int, unit: str) -> None:
        if not written:
            write_late(store, purging.key)
        written.append(done)

    at = 3 if store.backend.capabilities.bulk_realm_deletion else 9  # when it looks whether all is gone
    backend.intervene("scan_references", lambda: write_late(store, purging.key), at=at)
    done = purge_realm(open_on(backend, store.settings, clock), "acme", progress=write_once)

    assert (done.rounds, rows_left(store, purging.key)) == (1, 0)


def test_realm_written_to_without_end_is_not_said_purged(store: Store, purging: Realm, clock: FakeClock) -> None:
    backend = FaultyBackend(store.backend)
    for at in range(1, 2000):
        backend.intervene("scan_references", lambda: write_late(store, purging.key), at=at)

    with pytest.raises(UnavailableError, match="stop its writers"):
        purge_realm(open_on(backend, store.settings, clock), "acme")
    assert RealmRegistry(store).read_realm("acme").state is RealmState.PURGING


def test_late_write_into_a_purged_realm_is_purged_again(store: Store, purging: Realm) -> None:
    purge_realm(store, "acme")
    write_late(store, purging.key)
    realms = RealmRegistry(store)
    with pytest.raises(RefusedError, match="purge once more"):
        realms.remove_realm(realms.read_realm("acme"))

    purge_realm(store, "acme", key=purging.key)
    realms.remove_realm(realms.read_realm("acme"))
    assert realms.find_realm("acme") is None


def test_late_write_never_lands_in_a_realm_created_again(
    store: Store, clock: FakeClock, make_realm_again: Callable[[], RealmStore]
) -> None:
    make_realm(store)
    late, old = make_lake(store), RealmRegistry(store).read_realm("acme")
    to_purging(store, clock)
    new = make_realm_again()
    before = rows_left(store, new.key)

    with pytest.raises(HeadwaterError):
        put(late, 1)  # its handle looks at the realm again
    write_late(store, old.key)  # and one that does not
    assert (rows_left(store, new.key), rows_left(store, old.key)) == (before, 1)
    assert open_lake(store).count() == 0


@pytest.fixture
def make_realm_again(store: Store) -> Callable[[], RealmStore]:
    def make() -> RealmStore:
        realms = RealmRegistry(store)
        purge_realm(store, "acme")
        realms.remove_realm(realms.read_realm("acme"))
        make_realm(store)
        make_lake(store)
        return rows_of(store)

    return make


def test_purge_of_the_old_realm_leaves_the_new_one_alone(
    store: Store, purging: Realm, make_realm_again: Callable[[], RealmStore]
) -> None:
    new = make_realm_again()
    before = rows_left(store, new.key)

    assert purge_realm(store, "acme", key=purging.key).rows_deleted == 0
    assert rows_left(store, new.key) == before


def test_purge_of_a_key_that_no_realm_had_is_refused(store: Store, purging: Realm) -> None:
    with pytest.raises(RefusedError, match="created again"):
        purge_realm(store, "acme", key=purging.key + 1)

    assert rows_left(store, purging.key)


@pytest.mark.parametrize("state", [RealmState.ACTIVE, RealmState.INACTIVE])
def test_realm_that_is_not_purging_is_left_alone(store: Store, lake: Catalog, realm: Realm, state: RealmState) -> None:
    RealmRegistry(store).move_realm(realm, state)
    before = rows_left(store, realm.key)

    with pytest.raises(RefusedError, match=state):
        purge_realm(store, "acme")
    assert rows_left(store, realm.key) == before


@pytest.mark.parametrize("collected", ["acme", SYSTEM_REALM])
def test_every_collection_deletes_what_came_late_under_purged_keys(
    store: Store, purging: Realm, make_realm_again: Callable[[], RealmStore], collected: str
) -> None:
    make_realm_again()
    write_late(store, purging.key)
    done = collect_realm(store, collected)

    assert (done.late_rows_deleted, rows_left(store, purging.key)) == (1, 0)


def test_every_collection_deletes_what_came_late_into_a_purged_realm(store: Store, purging: Realm) -> None:
    """A writer that hung in its write until all was deleted."""
    purge_realm(store, "acme")
    write_late(store, purging.key)
    rows_of(store).store.rows(purging.id, purging.key).create_reference("late")
    done = collect_realm(store, SYSTEM_REALM)
    RealmRegistry(store).remove_realm(RealmRegistry(store).read_realm("acme"))

    assert (done.late_rows_deleted, rows_left(store, purging.key)) == (2, 0)


def test_collections_leave_realms_alone_that_are_not_purged_yet(store: Store, purging: Realm) -> None:
    before = rows_left(store, purging.key)
    collect_realm(store, SYSTEM_REALM)

    assert rows_left(store, purging.key) == before > 0


def test_purged_key_is_forgotten_after_its_time(
    store: Store, purging: Realm, make_realm_again: Callable[[], RealmStore], clock: FakeClock
) -> None:
    make_realm_again()
    clock.advance(89 * DAY)
    collect_realm(store, SYSTEM_REALM)
    assert list(RealmRegistry(store).purged_keys()) == [purging.key]
    clock.advance(2 * DAY)
    collect_realm(store, SYSTEM_REALM)

    assert RealmRegistry(store).purged_keys() == {}


@pytest.fixture(params=STORES)
def any_purging(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    """A realm that is to be purged, on each of the four databases."""
    with open_on(BACKENDS[request.param](request), dataclasses.replace(settings, delete_batch=9), clock) as opened:
        make_realm(opened)
        put(make_lake(opened), 1)
        to_purging(opened, clock)
        yield opened


def claim_of(store: Store, realm: Realm, *, key: int | None = None) -> TaskLease:
    tasks = TaskQueue(store)
    submitted = tasks.submit_task("purge", realm=realm.id, realm_key=RealmKey(realm.key if key is None else key))
    claim = tasks.claim_task(submitted.id, "worker")
    assert claim is not None
    return claim


def test_worker_purges_on_any_database_and_keeps_a_record(any_purging: Store) -> None:
    realm = RealmRegistry(any_purging).read_realm("acme")
    expected = rows_left(any_purging, realm.key)
    run_purge(any_purging, claim_of(any_purging, realm))

    [run] = list_runs(any_purging, kind="purge")
    assert (run.counts["rowsDeleted"], rows_left(any_purging, realm.key)) == (expected, 0)
    assert RealmRegistry(any_purging).read_realm("acme").state is RealmState.PURGED


@pytest.mark.parametrize("is_keyed", [True, False])
def test_stale_task_purges_no_active_realm(store: Store, lake: Catalog, realm: Realm, is_keyed: bool) -> None:
    claim = claim_of(store, realm, key=None if is_keyed else 0)
    before = rows_left(store, realm.key)

    with pytest.raises(RefusedError, match="ACTIVE"):
        run_purge(store, claim)
    assert rows_left(store, realm.key) == before


def test_purge_keeps_its_limit(store: Store, purging: Realm, clock: FakeClock) -> None:
    slow = open_on(store.backend, dataclasses.replace(store.settings, delete_rows_per_second=10, delete_batch=20), clock)
    began = clock.monotonic()
    done = purge_realm(slow, "acme")

    assert clock.monotonic() - began >= done.rows_deleted / 10
