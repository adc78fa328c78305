"""fsck finds what is lost or altered, names every branch and key that needs it, and hides no fault behind another."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from harm import alter, findings, lose, make_lake, make_realm, put, rows_of, table_of

from backend_fixtures import STORES
from fake_clock import FakeClock
from headwater import Settings, open_store
from headwater.catalogs import REQUESTS, Catalog, ContentKey, IcebergTable, Put
from headwater.commits import commit_change
from headwater.fsck import FindingCode, FindingWeight, check_store
from headwater.index import IndexContainer, IndexValue
from headwater.store import ObjectId, RealmStore, Store, UnknownObject, id_text
from request_keys import make_request

V1 = "s3://lake/new/v1.json"


def test_lost_table_is_told_with_branch_and_key(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    put(lake, 9, "orders", "customers")
    lose(realm_rows, table_of(lake, "customers"))

    [found] = findings(store).values()
    assert (found.code, found.keys, found.weight) == (FindingCode.OBJECT_UNREADABLE, ("customers",), FindingWeight.DAMAGE)
    assert "branch main of catalog lake needs it, under customers" in found.message


def test_every_branch_that_needs_a_lost_table_is_told(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    put(lake, 1)
    lake.create_branch("dev")
    put(lake, 9, "other", branch="dev")
    lose(realm_rows, table_of(lake))

    told = [(found.subject.rpartition("/")[2], found.keys) for found in check_store(store)]
    assert sorted(told) == [("dev", ("orders",)), ("main", ("orders",))]


def test_two_lost_tables_are_two_findings(realm_rows: RealmStore, store: Store, lake: Catalog) -> None:
    put(lake, 1, "a", "b", "c")
    lose(realm_rows, table_of(lake, "a"))
    lose(realm_rows, table_of(lake, "c"))

    assert sorted(found.keys for found in check_store(store)) == [("a",), ("c",)]


def test_key_in_a_stripe_is_told(settings: Settings, clock: FakeClock) -> None:
    small = dataclasses.replace(settings, index_embedded_bytes=1024, index_stripe_bytes=1024)
    with open_store("memory://", settings=small, clock=clock) as store:
        make_realm(store)
        lake = make_lake(store)
        put(lake, 1, *(f"t{number:03}" for number in range(200)))
        lose(rows_of(store), table_of(lake, "t007"))

        assert [found.keys for found in check_store(store)] == [("t007",)]


def test_altered_bytes_of_a_table_are_found(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    put(lake, 1)
    alter(store, realm_rows, table_of(lake))

    [found] = findings(store).values()
    assert (found.code, found.keys) == (FindingCode.OBJECT_UNREADABLE, ("orders",))
    assert "altered" in found.message


def test_altered_bytes_that_no_head_reaches_are_found(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    put(lake, 1)
    former = table_of(lake)
    put(lake, 2)
    alter(store, realm_rows, former)

    [found] = findings(store).values()
    assert (found.code, found.subject) == (FindingCode.OBJECT_DAMAGED, id_text(former))


def test_damaged_commit_that_collections_stumble_over_is_told_twice(
    store: Store, realm_rows: RealmStore, commits: list[ObjectId]
) -> None:
    alter(store, realm_rows, commits[0])

    assert set(findings(store)) == {FindingCode.OBJECT_DAMAGED, FindingCode.COLLECTION_REFUSED}


def test_type_that_this_release_does_not_know_is_told_apart(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    put(lake, 1)
    realm_rows.write_objects([(table_of(lake), UnknownObject(name="later-table", body=b"\x80"))])
    store.cache.clear()

    [found] = findings(store).values()
    assert (found.code, found.keys) == (FindingCode.TYPE_UNKNOWN, ("orders",))
    assert "'later-table', which this release does not know" in found.message


def test_unknown_type_that_no_head_reaches_is_no_finding(store: Store, realm_rows: RealmStore) -> None:
    realm_rows.write_objects([(store.new_id(), UnknownObject(name="later-table", body=b"\x80"))])

    assert check_store(store) == []


def test_wrong_number_of_entries_is_found(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    put(lake, 1)
    head = lake.resolve()
    assert head is not None
    told = head.commit.indexes["content"]
    wrong = IndexContainer(told.length + 1, told.embedded, told.spilled, told.levels)
    realm_rows.write_objects(
        [(head.id, msgspec.structs.replace(head.commit, indexes={**head.commit.indexes, "content": wrong}))]
    )
    store.cache.clear()

    [found] = findings(store).values()
    assert found.code is FindingCode.INDEX_WRONG
    assert "it has 1 entries; 2 are noted" in found.message


@pytest.mark.parametrize("database", STORES)
def test_lost_table_is_found_on_every_database(
    request: pytest.FixtureRequest, settings: Settings, clock: FakeClock, database: str
) -> None:
    with open_store(STORES[database](request), settings=settings, clock=clock) as store:
        make_realm(store)
        lake = make_lake(store)
        put(lake, 1)
        assert check_store(store) == []
        lose(rows_of(store), table_of(lake))

        assert [(found.code, found.keys) for found in check_store(store)] == [(FindingCode.OBJECT_UNREADABLE, ("orders",))]


def test_entry_that_is_no_applied_request_is_told(store: Store, lake: Catalog, realm_rows: RealmStore) -> None:
    put(lake, 1)
    lake.commit("main", [Put(ContentKey.of("new"), IcebergTable(metadata_location=V1))], request=make_request())
    assert findings(store) == {}

    main = realm_rows.find_rows(
        [reference.name for reference in realm_rows.scan_references() if "heads/main" in reference.name]
    )
    assert main[0] is not None
    commit_change(realm_rows, main[0].name, lambda tx: tx.index(REQUESTS).put(b"key", IndexValue(None, b"value")))

    [found] = findings(store).values()
    assert (found.code, found.weight) == (FindingCode.REQUEST_UNREADABLE, FindingWeight.TROUBLE)
    assert "branch main of catalog lake: 1 applied requests are none, the first of them 6b6579: its key 6b6579" in found.message
