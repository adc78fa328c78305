"""A collector, or a mover, whose clock is wrong takes nothing that others still need."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from headwater import Settings
from headwater.catalogs import Catalog
from headwater.clock import Micros, SystemClock
from headwater.commits import read_log
from headwater.gc import collect_realm
from headwater.jobs import COLLECT, run_collection
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import DoubtfulClockError, RealmStore, Store, check_clock, confirm_clock, id_time
from headwater.tasks import LeaseWatch, TaskNotReadyError, TaskQueue
from lakes import HOUR, REALM, make_realm, open_on, put
from lakes import lake as lake_of

DAY = 24 * HOUR
Opens = Callable[[float], Store]


@pytest.fixture
def realm(store: Store) -> Realm:
    return make_realm(store, age_seconds=30 * DAY)


@pytest.fixture
def history(lake: Catalog, clock: FakeClock) -> Catalog:
    for version in range(10):
        put(lake, version)
        clock.advance(HOUR)
    return lake


@pytest.fixture
def opened(store: Store, clock: FakeClock) -> Opens:
    """Another process, so many seconds ahead."""
    return lambda ahead: open_on(store.backend, store.settings, FakeClock(clock.now() + round(ahead * 1_000_000)))


def kept(rows: RealmStore, catalog: Catalog) -> int:
    head = catalog.resolve("main")
    assert head is not None
    return len(list(read_log(rows, head.id)))


@pytest.mark.parametrize("days", [15, 5 * 365])
def test_collector_that_is_ahead_deletes_nothing(realm_rows: RealmStore, history: Catalog, opened: Opens, days: float) -> None:
    with pytest.raises(DoubtfulClockError, match="nobody wrote to the store between"):
        collect_realm(opened(days * DAY), REALM)
    assert kept(realm_rows, history) == 10


def test_machine_that_jumped_ahead_is_told_by_its_past(realm_rows: RealmStore, history: Catalog, opened: Opens) -> None:
    put_by(opened(400 * DAY), 99)  # another process of the same machine

    with pytest.raises(DoubtfulClockError):
        collect_realm(opened(400 * DAY + HOUR), REALM)
    assert kept(realm_rows, history) == 11


def test_idle_store_is_collected_a_day_after_it_woke(history: Catalog, opened: Opens) -> None:
    RealmRegistry(opened(20 * DAY)).update_realm(RealmRegistry(opened(20 * DAY)).read_realm(REALM), properties={"awake": "yes"})

    assert collect_realm(opened(21.1 * DAY), REALM).dry_run is False


def test_clock_that_was_confirmed_is_believed(history: Catalog, opened: Opens) -> None:
    confirm_clock(opened(60 * DAY))

    assert collect_realm(opened(60 * DAY + HOUR), REALM).deleted > 0


def test_dry_run_tells_of_doubtful_clock(history: Catalog, opened: Opens) -> None:
    assert any("nobody wrote" in note for note in collect_realm(opened(60 * DAY), REALM, dry_run=True).notes)


def test_process_that_wrote_all_itself_needs_no_witness(store: Store, history: Catalog, clock: FakeClock) -> None:
    clock.advance(400 * DAY)

    assert collect_realm(store, REALM).deleted > 0


def test_process_that_runs_alone_collects_for_weeks(history: Catalog, opened: Opens) -> None:
    alone, clock = alone_on(opened)
    for version in range(6):
        clock.advance(5 * DAY)
        put_by(alone, 100 + version)

        assert collect_realm(alone, REALM).dry_run is False


def test_clock_set_ahead_under_a_running_process_is_noticed(realm_rows: RealmStore, history: Catalog, opened: Opens) -> None:
    alone, clock = alone_on(opened)
    put_by(alone, 100)
    clock.set_ahead(5 * 365 * DAY)
    for version in range(3):
        clock.advance(DAY)
        put_by(alone, 101 + version)

    with pytest.raises(DoubtfulClockError, match="nobody wrote to the store between"):
        collect_realm(alone, REALM)
    assert kept(realm_rows, history) == 14


def test_clock_that_stays_ahead_is_doubted_for_a_day(history: Catalog, opened: Opens) -> None:
    alone, clock = alone_on(opened)
    clock.set_ahead(60 * DAY)
    with pytest.raises(DoubtfulClockError) as doubt:
        check_clock(alone)
    clock.advance(DAY - 1)
    with pytest.raises(DoubtfulClockError) as later:
        check_clock(alone)
    clock.advance(2)

    check_clock(alone)
    assert later.value.until == doubt.value.until


def test_doubt_ends_a_day_after_it_was_first_raised(store: Store, history: Catalog, opened: Opens) -> None:
    realms = RealmRegistry(store)
    realm = realms.move_realm(realms.read_realm(REALM), RealmState.INACTIVE)
    for days in (60, 60.9):
        with pytest.raises(DoubtfulClockError):
            RealmRegistry(opened(days * DAY)).move_realm(realm, RealmState.PURGING)

    assert RealmRegistry(opened(61.1 * DAY)).move_realm(realm, RealmState.PURGING).state is RealmState.PURGING


def test_confirmation_outlives_a_doubt(history: Catalog, opened: Opens) -> None:
    late = opened(60 * DAY)
    confirm_clock(opened(30 * DAY))
    with pytest.raises(DoubtfulClockError):
        check_clock(late, is_noted=True)
    confirm_clock(late)

    check_clock(opened(60 * DAY + HOUR))


def test_task_waits_while_clock_is_doubtful(history: Catalog, opened: Opens) -> None:
    late = opened(60 * DAY)
    tasks = TaskQueue(late)
    claim = tasks.claim_task(tasks.submit_task(COLLECT, realm=REALM).id, "worker", LeaseWatch(late.clock, 60))
    assert claim is not None

    with pytest.raises(TaskNotReadyError, match="clock-is-right"):
        run_collection(late, claim)


def test_purge_by_clock_that_is_ahead_waits(store: Store, history: Catalog, opened: Opens) -> None:
    realms = RealmRegistry(store)
    realm = realms.move_realm(realms.read_realm(REALM), RealmState.INACTIVE)

    with pytest.raises(DoubtfulClockError):
        RealmRegistry(opened(60 * DAY)).move_realm(realm, RealmState.PURGING)


def test_tombstone_counts_from_the_commit_it_left(
    store: Store, realm_rows: RealmStore, history: Catalog, opened: Opens, clock: FakeClock
) -> None:
    history.create_branch("dev", "main")
    left = put(history, 99, branch="dev")
    behind = lake_of(opened(-DAY))
    behind.delete_branch("dev")

    [row] = [row for row in realm_rows.scan_references() if row.name.endswith("/heads/dev")]
    found = realm_rows.find_row(row.name)
    assert found is not None
    assert found.deleted == id_time(left)
    collect_realm(store, REALM)
    assert realm_rows.find_row(row.name) is not None


def test_mover_behind_records_no_time_before_what_it_leaves(realm_rows: RealmStore, history: Catalog, opened: Opens) -> None:
    head, before = history.resolve("main"), history.resolve("main~1")
    assert head is not None
    assert before is not None
    lake_of(opened(-DAY)).assign_branch("main", before.id)

    [move] = next(row.moves for row in map(realm_rows.find_row, names(realm_rows)) if row is not None and row.moves)
    assert move.time == id_time(head.id)


def test_mover_ahead_forgets_no_moves(realm_rows: RealmStore, history: Catalog, opened: Opens) -> None:
    head, before = history.resolve("main"), history.resolve("main~1")
    assert head is not None
    assert before is not None
    history.assign_branch("main", before.id)
    lake_of(opened(400 * DAY)).assign_branch("main", head.id)

    [moves] = [row.moves for row in map(realm_rows.find_row, names(realm_rows)) if row is not None and row.moves]
    assert [move.pointer for move in moves] == [before.id, head.id]


class Ahead(SystemClock):
    """A machine five years ahead."""

    def now(self) -> Micros:
        return Micros(super().now() + 5 * 365 * 86_400_000_000)

    def wall(self) -> Micros:
        return Micros(super().wall() + 5 * 365 * 86_400_000_000)


@pytest.mark.parametrize("database", ["postgresql", "mongodb"])
def test_clock_is_held_against_the_databases(request: pytest.FixtureRequest, settings: Settings, database: str) -> None:
    with closing(BACKENDS[database](request)) as backend:
        store = open_on(backend, settings, SystemClock())
        make_realm(store)
        assert collect_realm(store, REALM).dry_run is False

        with pytest.raises(DoubtfulClockError, match="that of the database"):
            collect_realm(open_on(backend, settings, Ahead()), REALM)


@pytest.mark.long
def test_task_waits_where_a_clock_differs_from_the_databases(request: pytest.FixtureRequest, settings: Settings) -> None:
    with closing(BACKENDS["postgresql"](request)) as backend:
        late = open_on(backend, settings, Ahead())
        make_realm(late)
        claim = TaskQueue(late).claim_task(
            TaskQueue(late).submit_task(COLLECT, realm=REALM).id, "worker", LeaseWatch(late.clock, 60)
        )
        assert claim is not None

        with pytest.raises(TaskNotReadyError, match="set the clocks right") as waits:
            run_collection(late, claim)
        assert 50 < waits.value.seconds <= 60


def alone_on(opened: Opens) -> tuple[Store, FakeClock]:
    """A process that is the only one left, and its clock."""
    store = opened(0)
    assert isinstance(store.clock, FakeClock)
    return store, store.clock


def put_by(store: Store, version: int) -> None:
    put(lake_of(store), version)


def names(rows: RealmStore) -> list[str]:
    return [row.name for row in rows.scan_references()]
