"""A plan says in order what would mend a store, and what it costs; a repair does the safe steps, and guesses nothing."""

from __future__ import annotations

import msgspec
import pytest
from harm import HOUR, REALM, lose, lose_row, make_lake, make_realm, put, rows_of, table_of

from backend_fixtures import STORES
from fake_clock import FakeClock
from headwater import Settings, open_store
from headwater.catalogs import CATALOGS, Catalog, Catalogs, ContentKey
from headwater.commits import COLLECTION_ID, CollectionRecord, HistoryCuts, read_collection
from headwater.fsck import FindingCode, RepairAction, RepairStep, check_store, plan_repairs, repair_realm
from headwater.gc import collect_realm, open_marker, open_scope
from headwater.jobs import COLLECT
from headwater.store import ObjectId, RealmStore, Store, id_text
from headwater.tasks import TaskQueue


def plan(store: Store) -> list[RepairStep]:
    return plan_repairs(check_store(store))


def mend(store: Store, realm: str = REALM) -> list[str]:
    return [step.result for step in repair_realm(store, realm, plan_repairs(check_store(store, realm=realm)))]


def test_sound_store_needs_no_repair(store: Store, commits: list[ObjectId]) -> None:
    assert plan(store) == []


def test_lost_head_goes_back_to_the_newest_whole_pointer(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    good = put(lake, 1)
    put(lake, 2)
    lost_table, head = table_of(lake), put(lake, 3)
    for lost in (lost_table, head):
        lose(realm_rows, lost)
    [step] = plan(store)
    assert (step.action, step.target) == (RepairAction.GO_BACK, id_text(good))

    [result] = mend(store)
    assert id_text(good) in result
    assert lake.resolve("main").id == good  # type: ignore[union-attr]


def test_pointer_that_a_repaired_reference_left_is_recorded(
    store: Store, realm_rows: RealmStore, commits: list[ObjectId]
) -> None:
    lose(realm_rows, commits[2])
    [step] = plan(store)
    mend(store)

    row = realm_rows.read_reference(step.subject, fresh=True)
    assert [move.pointer for move in row.moves] == [commits[2]]


def test_repaired_store_is_sound_and_collected_after_the_grace(
    store: Store, realm_rows: RealmStore, commits: list[ObjectId], clock: FakeClock
) -> None:
    lose(realm_rows, commits[2])
    mend(store)
    assert {found.code for found in check_store(store)} == {FindingCode.COLLECTION_REFUSED}
    clock.advance(HOUR)

    assert check_store(store) == []
    assert collect_realm(store, REALM).deleted > 0


def test_repair_done_twice_does_nothing_the_second_time(store: Store, realm_rows: RealmStore, commits: list[ObjectId]) -> None:
    lose(realm_rows, commits[2])
    steps = plan(store)
    list(repair_realm(store, REALM, steps))

    assert [step.result for step in repair_realm(store, REALM, steps)] == ["nothing to do: its head can be read"]


def test_head_never_goes_back_while_a_sweep_is_on(store: Store, realm_rows: RealmStore, commits: list[ObjectId]) -> None:
    lose(realm_rows, commits[2])
    realm_rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))

    [result] = mend(store)
    assert "not done" in result and "sweeping" in result


def test_head_never_goes_back_beyond_the_last_cut(
    store: Store, lake: Catalog, realm_rows: RealmStore, commits: list[ObjectId], clock: FakeClock
) -> None:
    scope = open_scope(store, REALM)
    marker = open_marker(scope)
    marker.mark(scope.find_references())
    cuts = realm_rows.new_id()
    realm_rows.write_objects([(cuts, HistoryCuts(lines=marker.cuts))])
    realm_rows.insert_object(COLLECTION_ID, CollectionRecord(cuts=cuts))
    lose(realm_rows, commits[2])

    [result] = mend(store)
    assert "older than what the last collection kept" in result


def test_head_without_a_readable_pointer_is_left_to_a_person(
    store: Store, realm_rows: RealmStore, commits: list[ObjectId]
) -> None:
    for lost in commits:
        lose(realm_rows, lost)

    assert {step.action for step in plan(store)} == {RepairAction.BY_HAND}


def test_lost_list_of_catalogs_comes_back_in_full(
    store: Store, lake: Catalog, realm_rows: RealmStore, commits: list[ObjectId]
) -> None:
    Catalogs(realm_rows).update_catalog(lake.definition, properties={"a": "b"})
    lose(realm_rows, realm_rows.read_reference(CATALOGS, fresh=True).pointer)  # type: ignore[arg-type]

    mend(store)
    assert lake.get_content("main", ContentKey.of("orders")) is not None
    assert Catalogs(realm_rows).read_catalog("lake").properties == {}


def test_incomplete_catalog_is_completed(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    lose_row(store, realm_rows, f"cat/{lake.definition.id}/grants")

    assert mend(store) == ["it is complete"]
    assert check_store(store) == []


def test_lost_and_stale_tasks_are_settled(store: Store, lake: Catalog, clock: FakeClock) -> None:
    tasks = TaskQueue(store)
    lost = tasks.submit_task(COLLECT, realm=REALM)
    later = tasks.submit_task("export", realm=REALM, due=clock.now() + 3_600_000_000)
    lose(store.system, lost.id)
    seen = tasks.read_task(later.id)
    store.system.update_object(seen, msgspec.structs.replace(seen.value, due=clock.now() + 60_000_000))

    [result] = mend(store, "::system::")
    assert result == "entries of 2 tasks were mended"
    assert {found.code for found in check_store(store)} == {
        FindingCode.COLLECTION_REFUSED
    }  # kept history still refers to what is lost
    assert tasks.submit_task(COLLECT, realm=REALM).created


def test_flag_of_a_sweep_without_a_task_is_withdrawn(store: Store, realm_rows: RealmStore) -> None:
    ended = TaskQueue(store).submit_task(COLLECT, realm=REALM)
    TaskQueue(store).cancel_task(ended.id)
    realm_rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True, owner=f"task {id_text(ended.id)}, attempt 1"))
    mend(store)

    record = read_collection(realm_rows)
    assert record is not None and not record.value.sweeping
    assert check_store(store) == []


def test_sweep_flag_stays_when_a_task_goes_on(store: Store, realm_rows: RealmStore) -> None:
    ended = TaskQueue(store).submit_task(COLLECT, realm=REALM)
    TaskQueue(store).cancel_task(ended.id)
    realm_rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True, owner=f"task {id_text(ended.id)}, attempt 1"))
    steps = plan(store)
    TaskQueue(store).submit_task(COLLECT, realm=REALM)

    assert [step.result for step in repair_realm(store, REALM, steps)] == ["nothing to do: no sweep is on that nobody owns"]


def test_reference_is_mended_before_what_it_lists(
    store: Store, lake: Catalog, realm_rows: RealmStore, commits: list[ObjectId]
) -> None:
    lose(realm_rows, commits[2])
    lose_row(store, realm_rows, f"cat/{lake.definition.id}/grants")

    assert [step.action for step in plan(store)][:2] == [RepairAction.GO_BACK, RepairAction.COMPLETE_CATALOG]


def test_plan_changes_nothing(store: Store, realm_rows: RealmStore, commits: list[ObjectId]) -> None:
    lose(realm_rows, commits[2])
    before = realm_rows.find_row(plan(store)[0].subject)
    plan(store)

    assert realm_rows.find_row(plan(store)[0].subject) == before


@pytest.mark.parametrize("database", STORES)
def test_lost_head_is_mended_on_every_database(
    request: pytest.FixtureRequest, settings: Settings, clock: FakeClock, database: str
) -> None:
    with open_store(STORES[database](request), settings=settings, clock=clock) as store:
        make_realm(store)
        lake = make_lake(store)
        good, head = put(lake, 1), put(lake, 2)
        lose(rows_of(store), head)
        mend(store)

        assert lake.resolve("main").id == good  # type: ignore[union-attr]
