"""fsck finds what interruptions leave behind, and weighs it: what maintenance clears by itself is no reason to wake anybody."""

from __future__ import annotations

import uuid

import msgspec
import pytest
from harm import HOUR, REALM, deactivate, findings, lose, lose_row, put

from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put, TableClaim, TableClaims
from headwater.commits import COLLECTION_ID, CollectionRecord, pin_commits, read_head
from headwater.fsck import FindingCode, check_store, is_bad
from headwater.gc import collect_realm
from headwater.iceberg.metadata_json import split_metadata
from headwater.jobs import COLLECT, LOAD, PURGE
from headwater.purge.realm_purge import purge_realm
from headwater.realms import RealmRegistry, RealmState
from headwater.store import ObjectId, RealmStore, Store, UnknownObject, id_text
from headwater.tasks import TaskQueue


@pytest.fixture
def ended_task(store: Store) -> ObjectId:
    """A collection that was cancelled."""
    tasks = TaskQueue(store)
    submitted = tasks.submit_task(COLLECT, realm=REALM)
    tasks.cancel_task(submitted.id)
    return submitted.id


def sweep_of(rows: RealmStore, owner: str) -> None:
    rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True, owner=owner))


def test_sweep_whose_task_has_ended_is_found(store: Store, realm_rows: RealmStore, ended_task: ObjectId) -> None:
    sweep_of(realm_rows, f"task {id_text(ended_task)}, attempt 1")

    assert set(findings(store)) == {FindingCode.SWEEP_ABANDONED}


def test_sweep_that_another_task_continues_is_no_finding(store: Store, realm_rows: RealmStore, ended_task: ObjectId) -> None:
    sweep_of(realm_rows, f"task {id_text(ended_task)}, attempt 1")
    TaskQueue(store).submit_task(COLLECT, realm=REALM)

    assert check_store(store) == []


def test_pin_is_stale_once_its_task_has_ended(
    store: Store, lake: Catalog, realm_rows: RealmStore, ended_task: ObjectId
) -> None:
    waiting = TaskQueue(store).submit_task("export", realm=REALM)
    commit = put(lake, 1)
    for owner in (ended_task, waiting.id):
        pin_commits(realm_rows, owner, {commit: [f"cat/{lake.definition.id}/heads/main"]})

    [found] = check_store(store)
    assert (found.code, id_text(ended_task) in found.message) == (FindingCode.PIN_STALE, True)
    assert not is_bad([found])


def test_task_that_is_listed_and_not_there_is_found_once(store: Store, realm_rows: RealmStore) -> None:
    submitted = TaskQueue(store).submit_task(COLLECT, realm=REALM)
    lose(store.system, submitted.id)

    assert {found.subject for found in check_store(store, realm="::system::") if found.code is FindingCode.TASK_MISSING} == {
        id_text(submitted.id)
    }


def test_entry_that_contradicts_its_task_is_a_left_over(store: Store, clock: FakeClock) -> None:
    submitted = TaskQueue(store).submit_task(COLLECT, realm=REALM, due=clock.now() + 3_600_000_000)
    seen = TaskQueue(store).read_task(submitted.id)
    store.system.update_object(seen, msgspec.structs.replace(seen.value, due=clock.now()))

    [found] = check_store(store)
    assert (found.code, is_bad([found])) == (FindingCode.TASK_ENTRY_STALE, False)


def test_catalog_without_a_list_of_its_own_is_found(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    lose_row(store, realm_rows, f"cat/{lake.definition.id}/grants")

    assert "no grants" in findings(store)[FindingCode.CATALOG_INCOMPLETE].message


def test_claims_of_content_that_nothing_keeps_are_left_over(
    store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock
) -> None:
    claim = TableClaim(lake.definition.id, uuid.uuid4(), "s3://lake/gone", uuid.uuid4())
    TableClaims(realm_rows).take_claims([claim])
    assert check_store(store) == []
    clock.advance(HOUR)

    found = findings(store)[FindingCode.CLAIM_WITHOUT_CONTENT]
    assert f"2 claims belong to 1 contents that nothing keeps ({claim.content_id})" in found.message


def test_table_with_the_uuid_of_another_is_found(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    table_uuid = uuid.uuid4()
    TableClaims(realm_rows).take_claims([TableClaim(lake.definition.id, uuid.uuid4(), "s3://lake/first", table_uuid)])
    put(lake, 1, "second", table_uuid=str(table_uuid))

    found = findings(store)[FindingCode.CLAIM_OF_ANOTHER]
    assert found.keys == ("second",)


@pytest.mark.parametrize("field", ["location", "properties"])
def test_table_in_a_place_of_another_is_found(store: Store, lake: Catalog, realm_rows: RealmStore, field: str) -> None:
    """As where a release that claimed no paths let it in."""
    first = TableClaim(lake.definition.id, uuid.uuid4(), "s3://lake/first", paths=("s3://lake/apart",))
    TableClaims(realm_rows).take_claims([first])
    place = {"location": "s3://lake/first/in", "properties": {"write.data.path": "s3a://lake/apart/in"}}
    document = {"location": "s3://lake/second", field: place[field]}
    content = IcebergTable(metadata_location="s3://lake/second/v1.json")
    lake.commit(None, [Put(ContentKey.of("second"), content, metadata=split_metadata(msgspec.json.encode(document)))])

    found = findings(store)[FindingCode.CLAIM_OF_ANOTHER]
    assert (found.keys, str(first.content_id) in found.message, "/in, which is claimed" in found.message) == (
        ("second",),
        True,
        True,
    )


def test_table_in_its_own_places_is_no_finding(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    document = {"location": "s3://lake/one", "properties": {"write.data.path": "s3://lake/apart", "write.metadata.path": 7}}
    content = IcebergTable(metadata_location="s3://lake/one/v1.json")
    done = lake.commit(None, [Put(ContentKey.of("one"), content, metadata=split_metadata(msgspec.json.encode(document)))])
    (content_id,) = done.result.values()
    TableClaims(realm_rows).take_claims(
        [TableClaim(lake.definition.id, content_id, "s3://lake/one", paths=("s3://lake/apart",))]
    )

    assert check_store(store) == []


def test_purge_that_nobody_does_is_found(store: Store, lake: Catalog, clock: FakeClock) -> None:
    inactive = deactivate(store)
    clock.advance(HOUR)
    RealmRegistry(store).move_realm(inactive, RealmState.PURGING)
    assert set(findings(store)) == {FindingCode.PURGE_ABANDONED}

    TaskQueue(store).submit_task(PURGE, realm=REALM, realm_key=inactive.key)
    assert check_store(store) == []


def test_rows_that_came_back_after_a_purge_are_found(store: Store, lake: Catalog, clock: FakeClock) -> None:
    inactive = deactivate(store)
    clock.advance(HOUR)
    RealmRegistry(store).move_realm(inactive, RealmState.PURGING)
    purge_realm(store, REALM)
    store.rows(inactive.id, inactive.key).write_objects([(store.new_id(), UnknownObject(name="late-row", body=b"\x80"))])

    assert set(findings(store)) == {FindingCode.ROWS_AFTER_PURGE}


def test_lost_definition_of_a_realm_makes_its_rows_no_leftovers(store: Store, lake: Catalog) -> None:
    realms = read_head(store.system, "realms")
    assert realms is not None
    lose(store.system, realms.index("by-id").get(REALM.encode()).object_id)  # type: ignore[union-attr, arg-type]

    found = {one.code: one for one in check_store(store)}
    assert FindingCode.REALM_UNREADABLE in found
    assert "a living realm" in found[FindingCode.ROWS_OF_NO_REALM].repair


def test_load_that_nobody_does_is_found(store: Store) -> None:
    realms = RealmRegistry(store)
    loading = realms.move_realm(realms.create_realm(REALM), RealmState.LOADING)
    assert set(findings(store)) == {FindingCode.LOAD_ABANDONED}

    TaskQueue(store).submit_task(LOAD, realm=REALM, realm_key=loading.key)
    assert check_store(store) == []


def test_deleted_catalog_is_no_finding_at_any_time(
    store: Store, lake: Catalog, realm_rows: RealmStore, clock: FakeClock
) -> None:
    put(lake, 1)
    Catalogs(realm_rows).delete_catalog("lake")
    for _ in range(4):
        assert [found for found in check_store(store) if is_bad([found])] == []
        clock.advance(12 * HOUR)
        collect_realm(store, REALM)

    assert check_store(store) == []
