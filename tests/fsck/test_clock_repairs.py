"""A clock that was ahead: fsck names what it has left and mends it, and all that goes by time goes on from there."""

from __future__ import annotations

from uuid import uuid4

import pytest
from harm import HOUR, REALM, make_realm, open_on, put, rows_of
from harm import make_lake as make_lake_of

from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, TableClaim, TableClaims
from headwater.clock import Micros, as_text
from headwater.commits import commit_as_of, read_changes, read_log
from headwater.errors import RefusedError
from headwater.fsck import FindingCode, FsckFinding, RepairAction, check_store, plan_repairs, repair_realm
from headwater.gc import collect_realm
from headwater.realms import HistoryRetention, RealmRegistry, RealmState
from headwater.store import SYSTEM_REALM, ObjectId, RealmStore, Store, id_text
from headwater.tasks import TaskQueue

FIVE_YEARS = 5 * 365 * 86400.0


@pytest.fixture
def lake(store: Store) -> Catalog:
    make_realm(store, commits=100)
    return make_lake_of(store)


@pytest.fixture
def ahead(store: Store, clock: FakeClock) -> Store:
    """A process five years ahead, that has written nothing yet."""
    return open_on(store.backend, store.settings, FakeClock(clock.now() + round(FIVE_YEARS * 1_000_000)))


@pytest.fixture
def poisoned(store: Store, lake: Catalog, clock: FakeClock, ahead: Store) -> list[ObjectId]:
    """Nine commits of main, ten minutes apart, of which the fourth is by a clock that was ahead."""
    made = []
    for version in range(9):
        made.append(put(lake_on(ahead) if version == 3 else lake, version))
        store.cache.clear()
        clock.advance(600)
    return made


def lake_on(store: Store) -> Catalog:
    return Catalogs(rows_of(store)).open_catalog("lake")


def mend(store: Store, realm: str = REALM) -> list[str]:
    return [step.result for step in repair_realm(store, realm, plan_repairs(check_store(store, realm=realm)))]


def found(store: Store, realm: str = REALM) -> dict[FindingCode, FsckFinding]:
    return {finding.code: finding for finding in check_store(store, realm=realm)}


def test_fsck_names_the_commit_that_was_ahead(store: Store, poisoned: list[ObjectId]) -> None:
    findings = found(store)

    assert set(findings) == {FindingCode.COMMITS_AHEAD, FindingCode.TIME_AHEAD}
    assert f"6 commits, from {poisoned[3]:016x} on" in findings[FindingCode.COMMITS_AHEAD].message
    actions = [step.action for step in plan_repairs(findings.values())]
    assert actions == [RepairAction.MEND_TIME, RepairAction.REWRITE_ROWS]


def test_mended_store_is_sound_and_collected(
    store: Store, realm_rows: RealmStore, lake: Catalog, poisoned: list[ObjectId], clock: FakeClock
) -> None:
    with pytest.raises(RefusedError, match="ahead of this machine"):
        collect_realm(store, REALM)
    mend(store)

    assert check_store(store, realm=REALM) == []
    clock.advance(HOUR)
    collect_realm(store, REALM)
    assert [head.id for head in read_log(realm_rows, poisoned[-1])][:9] == poisoned[::-1]


def test_mend_done_twice_does_nothing(store: Store, lake: Catalog, poisoned: list[ObjectId]) -> None:
    steps = plan_repairs(check_store(store, realm=REALM))
    list(repair_realm(store, REALM, steps))
    head = lake.resolve("main")

    assert [step.result for step in repair_realm(store, REALM, steps)] == [
        "nothing to do: its time is right",
        "0 objects and 0 references were written anew",
    ]
    assert lake.resolve("main") == head


def test_commits_after_a_mend_are_by_the_clock(store: Store, lake: Catalog, poisoned: list[ObjectId], clock: FakeClock) -> None:
    mend(store)
    clock.advance(60)
    put(lake, 10)

    head = lake.resolve("main")
    assert head is not None
    assert head.commit.time == clock.now()


def test_mend_changes_no_content_and_no_feed(
    store: Store, realm_rows: RealmStore, lake: Catalog, poisoned: list[ObjectId]
) -> None:
    before = lake.get_content("main", ContentKey.of("orders"))
    mend(store)

    assert lake.get_content("main", ContentKey.of("orders")) == before
    head = lake.resolve("main")
    assert head is not None
    assert (head.commit.tail, head.commit.seq) == ((poisoned[-1],), 10)
    reference = next(row.name for row in realm_rows.scan_references() if row.name.endswith("/heads/main"))
    assert list(read_changes(realm_rows, reference, poisoned[-1])) == []


@pytest.mark.parametrize("later", [0, 15, 25, 60])
def test_moments_beside_a_mended_span_are_told(
    store: Store, lake: Catalog, poisoned: list[ObjectId], clock: FakeClock, later: int
) -> None:
    clock.advance(600)
    mend(store)
    mended, made = clock.now(), []
    for version in range(later):
        clock.advance(60)
        made.append(put(lake, 100 + version))

    for number, commit in enumerate(made):
        assert read_at(lake, mended + (number + 1) * 60_000_000) == commit
    start = mended - 10 * 600_000_000
    assert [read_at(lake, start + number * 600_000_000 + 1) for number in range(2)] == poisoned[:2]
    for number in range(3, 10):
        with pytest.raises(RefusedError, match="may have been made before or after that"):
            read_at(lake, start + number * 600_000_000 - 1)


def read_at(lake: Catalog, time: int) -> ObjectId | None:
    head = lake.resolve("main")
    assert head is not None
    answer = commit_as_of(head, Micros(time), what=lambda: "main")
    return None if answer is None else answer.id


def test_collection_after_a_mend_keeps_what_retention_says(
    store: Store, realm_rows: RealmStore, lake: Catalog, poisoned: list[ObjectId], clock: FakeClock
) -> None:
    realms = RealmRegistry(store)
    realms.update_realm(realms.read_realm(REALM), retention=HistoryRetention(content_commits=5, content_age_seconds=0.0))
    mend(store)
    clock.advance(HOUR)
    collect_realm(store, REALM)

    kept = [head.id for head in read_log(realm_rows, poisoned[-1])]
    assert kept == poisoned[:-5:-1]
    assert check_store(store, realm=REALM) == []
    with pytest.raises(Exception, match=r"not in the kept history|was collected|is not in realm"):
        lake.create_branch("old", at=poisoned[3])
    assert lake.create_branch("new", at=poisoned[6]).head == poisoned[6]


def test_branches_that_share_the_span_are_each_mended(store: Store, lake: Catalog, poisoned: list[ObjectId]) -> None:
    lake.create_branch("dev", "main")
    lake.create_tag("v1", "main")
    mend(store)

    assert check_store(store, realm=REALM) == []


def test_merge_across_a_mend_finds_its_base(store: Store, lake: Catalog, poisoned: list[ObjectId], clock: FakeClock) -> None:
    lake.create_branch("dev", "main")
    mend(store)
    clock.advance(60)
    put(lake, 1, "customers", branch="dev")
    put(lake, 2, "invoices")
    lake.merge("dev", "main")

    assert {str(entry.key) for entry in lake.entries("main").entries} == {"orders", "customers", "invoices"}


def test_realm_state_of_a_clock_ahead_is_held_from_now(store: Store, lake: Catalog, ahead: Store, clock: FakeClock) -> None:
    realms = RealmRegistry(store)
    RealmRegistry(ahead).move_realm(RealmRegistry(ahead).read_realm(REALM), RealmState.INACTIVE)
    store.cache.clear()

    with pytest.raises(RefusedError, match=f"is held until {as_text(clock.now() + 60_000_000)}"):
        realms.move_realm(realms.read_realm(REALM), RealmState.PURGING)
    clock.advance(61)
    assert realms.move_realm(realms.read_realm(REALM), RealmState.PURGING).state is RealmState.PURGING


def test_hold_after_a_head_ahead_is_by_the_clock(store: Store, lake: Catalog, ahead: Store, clock: FakeClock) -> None:
    realms = RealmRegistry(store)
    RealmRegistry(ahead).update_realm(RealmRegistry(ahead).read_realm(REALM), properties={"a": "b"})
    store.cache.clear()

    assert realms.move_realm(realms.read_realm(REALM), RealmState.INACTIVE).entered["INACTIVE"] == clock.now()


def test_system_realm_is_mended_and_collected(store: Store, lake: Catalog, ahead: Store, clock: FakeClock) -> None:
    RealmRegistry(ahead).update_realm(RealmRegistry(ahead).read_realm(REALM), properties={"a": "b"})
    store.cache.clear()
    with pytest.raises(RefusedError, match="ahead of this machine"):
        collect_realm(store, SYSTEM_REALM)
    mend(store, SYSTEM_REALM)

    assert check_store(store, realm=SYSTEM_REALM) == []
    assert collect_realm(store, SYSTEM_REALM).dry_run is False


def test_catalog_deleted_by_a_clock_ahead_goes_after_its_hold(
    store: Store, lake: Catalog, ahead: Store, clock: FakeClock
) -> None:
    Catalogs(rows_of(ahead)).delete_catalog("lake")
    store.cache.clear()
    mend(store)
    catalogs = Catalogs(rows_of(store))
    collect_realm(store, REALM)
    [held_until] = [one.held_until for one in catalogs.list_deleted()]
    assert held_until is not None
    assert 0 <= held_until - clock.now() - 24 * 3600 * 1_000_000 < 1000  # a few commits at one moment of the clock

    clock.advance(24 * HOUR + 1)
    collect_realm(store, REALM)
    assert [one.held_until for one in catalogs.list_deleted()] == [None]


def test_tombstone_by_a_clock_ahead_goes_after_the_grace(
    store: Store, realm_rows: RealmStore, lake: Catalog, ahead: Store, clock: FakeClock
) -> None:
    lake.create_branch("dev", "main")
    lake_on(ahead).delete_branch("dev")
    [name] = [row.name for row in realm_rows.scan_references() if row.name.endswith("/heads/dev")]
    collect_realm(store, REALM)

    row = realm_rows.find_row(name)
    assert row is not None
    assert row.deleted == clock.now()
    clock.advance(HOUR)
    collect_realm(store, REALM)
    assert realm_rows.find_row(name) is None


def test_claim_by_a_clock_ahead_goes_after_the_grace(
    store: Store, realm_rows: RealmStore, lake: Catalog, ahead: Store, clock: FakeClock
) -> None:
    wish = TableClaim(lake.definition.id, uuid4(), "s3://lake/never-made")
    TableClaims(rows_of(ahead)).take_claims([wish])
    store.cache.clear()
    mend(store)
    claims = TableClaims(realm_rows)
    clock.advance(HOUR)
    collect_realm(store, REALM)
    assert claims.has_taken(wish)

    clock.advance(HOUR)
    assert collect_realm(store, REALM).claims_released == 1


def test_doubtful_clock_mends_nothing(store: Store, poisoned: list[ObjectId], clock: FakeClock) -> None:
    late = open_on(store.backend, store.settings, FakeClock(clock.now() + 40 * 86_400_000_000))

    assert all("not done" in result for result in mend(late))


def test_fsck_names_tasks_that_a_clock_ahead_has_put_off(store: Store, lake: Catalog, ahead: Store, clock: FakeClock) -> None:
    put_off = TaskQueue(ahead).submit_task("fsck", realm=REALM).id
    meant = TaskQueue(store).submit_task("gc", realm=REALM, due=Micros(clock.now() + round(FIVE_YEARS * 1_000_000))).id
    mend(store, SYSTEM_REALM)
    reported = [finding for finding in check_store(store) if finding.code is FindingCode.TASK_AHEAD]

    assert [finding.subject for finding in reported] == [id_text(put_off)] != [id_text(meant)]
    assert f"headwater task run-now {id_text(put_off)}" in reported[0].repair
    TaskQueue(store).run_now(put_off)
    assert check_store(store) == []
