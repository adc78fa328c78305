"""A branch holds again what it held, by a commit on top."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from pasts import catalogs_of, claimed, contents, drop, passed, planned, put, request, restored, submitted

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalog, ContentKey, Delete, IcebergTable, Put, TableClaim, TableClaims
from headwater.commits import COLLECTION_ID, CollectionRecord, read_commit, read_pins
from headwater.errors import ExpiredError, NotFoundError, UnavailableError
from headwater.jobs import run_restore
from headwater.store import ObjectId, RealmStore, id_text
from request_keys import make_request

V1 = "s3://lake/orders/metadata/1.json"


def id_of_content(lake: Catalog, table: str, ref: str = "main") -> UUID:
    found = lake.get_content(ref, ContentKey.of(table))
    assert found is not None
    assert found.id is not None
    return found.id


def test_branch_holds_again_what_a_commit_held(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders", 1)
    put(lake, "orders", 2)
    put(lake, "customers")
    restored(store, request("lake/main", old, is_commit=True))

    assert contents(lake) == {"orders": V1}


def test_branch_holds_again_what_it_held_at_a_time(store: Store, lake: Catalog, clock: FakeClock) -> None:
    put(lake, "orders", 1)
    moment = passed(clock)
    drop(lake, "orders")
    restored(store, request("lake/main", moment))

    assert contents(lake) == {"orders": V1}


def test_table_that_comes_back_has_its_id(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders")
    before = id_of_content(lake, "orders")
    drop(lake, "orders")
    restored(store, request("lake/main", old, is_commit=True))

    assert id_of_content(lake, "orders") == before


def test_restoration_is_a_commit_on_top(store: Store, lake: Catalog) -> None:
    old, new = put(lake, "orders", 1), put(lake, "orders", 2)
    restored(store, request("lake/main", old, is_commit=True))

    entry, former = list(lake.log(limit=2))
    assert former.id == new
    assert (entry.message, entry.meta.properties["restored"]) == (f"restore to commit {id_text(old)}", (id_text(old),))


def test_attempt_that_goes_on_undoes_nothing_that_came_after(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders", 1)
    put(lake, "orders", 2)
    claim = claimed(store, submitted(store, request("lake/main", old, is_commit=True)))
    run_restore(store, claim)  # and dies before it says so
    put(lake, "news")
    run_restore(store, claim)

    assert set(contents(lake)) == {"orders", "news"}


def test_restoring_again_does_nothing(store: Store, lake: Catalog) -> None:
    old = put(lake, "orders", 1)
    put(lake, "orders", 2)
    restored(store, request("lake/main", old, is_commit=True))
    head = lake.branch("main").head
    outcome = restored(store, request("lake/main", old, is_commit=True))

    assert (outcome["changed"], lake.branch("main").head) == (0, head)


def test_equal_content_keeps_its_object(store: Store, lake: Catalog, rows: RealmStore) -> None:
    old = put(lake, "orders")
    put(lake, "customers")
    head = lake.branch("main").head
    assert head is not None
    before = read_commit(rows, head).index("content").get(b"orders")
    restored(store, request("lake/main", old, is_commit=True))

    now = lake.resolve("main")
    assert now is not None
    assert now.index("content").get(b"orders") == before


def test_restored_content_is_a_copy(store: Store, lake: Catalog, rows: RealmStore) -> None:
    old = put(lake, "orders")
    drop(lake, "orders")
    restored(store, request("lake/main", old, is_commit=True))

    now = lake.resolve("main")
    was = read_commit(rows, old).index("content").get(b"orders")
    assert now is not None
    assert was is not None
    there = now.index("content").get(b"orders")
    assert there is not None
    assert (there.data, there.object_id == was.object_id) == (was.data, False)


def test_plan_counts_keys_by_type_and_writes_nothing(store: Store, lake: Catalog) -> None:
    put(lake, "orders", 1)
    old = put(lake, "customers")
    put(lake, "orders", 2)
    drop(lake, "customers")
    head = put(lake, "news")
    [step] = planned(store, request("lake/main", old, is_commit=True)).steps

    assert {kind: counts.as_plain() for kind, counts in step.counts.items()} == {
        "ICEBERG_TABLE": {"put": 1, "changed": 1, "removed": 1}
    }
    assert lake.branch("main").head == head


def test_branch_is_emptied_to_before_its_first_commit(store: Store, lake: Catalog, clock: FakeClock) -> None:
    moment = passed(clock)
    put(lake, "orders")
    restored(store, request("lake/main", moment))

    assert contents(lake) == {}


def test_deleted_branch_comes_back(store: Store, lake: Catalog, clock: FakeClock) -> None:
    lake.create_branch("dev")
    put(lake, "orders", 1, branch="dev")
    moment = passed(clock)
    put(lake, "orders", 2, branch="dev")
    lake.delete_branch("dev")
    restored(store, request("lake/dev", moment))

    assert contents(lake, "dev") == {"orders": V1}


def test_branch_that_was_put_elsewhere_holds_what_it_held_before(store: Store, lake: Catalog, clock: FakeClock) -> None:
    base = put(lake, "orders", 1)
    lake.create_branch("dev")
    put(lake, "customers", branch="dev")
    moment = passed(clock)
    lake.assign_branch("dev", base)
    restored(store, request("lake/dev", moment))

    assert set(contents(lake, "dev")) == {"orders", "customers"}


def test_branch_at_a_time_when_it_was_deleted_is_refused(store: Store, lake: Catalog, clock: FakeClock) -> None:
    put(lake, "orders")
    lake.create_branch("dev")
    passed(clock)
    lake.delete_branch("dev")
    moment = passed(clock)
    lake.create_branch("dev")

    with pytest.raises(NotFoundError, match="no state of branch dev of catalog lake"):
        planned(store, request("lake/dev", moment))


def test_moves_beyond_memory_are_not_guessed(store: Store, lake: Catalog, clock: FakeClock) -> None:
    base = put(lake, "orders", 1)
    put(lake, "orders", 2)
    moment = passed(clock)
    clock.advance(4 * 3600)
    lake.assign_branch("main", base)

    with pytest.raises(ExpiredError, match=r"moves before .* are forgotten; give a commit instead"):
        planned(store, request("lake/main", moment))


def test_tag_is_put_where_it_was(store: Store, lake: Catalog, clock: FakeClock) -> None:
    old, new = put(lake, "orders", 1), put(lake, "orders", 2)
    lake.create_tag("v1", at=old)
    moment = passed(clock)
    lake.assign_tag("v1", new)
    restored(store, request("lake/v1", moment))

    assert lake.tag("v1").head == old


def test_commit_of_another_catalog_is_refused(store: Store, lake: Catalog, rows: RealmStore) -> None:
    catalogs_of(store).create_catalog("pond", base_location="s3://pond/")
    foreign = put(catalogs_of(store).open_catalog("pond"), "fish")

    with pytest.raises(NotFoundError, match="is not one of catalog 'lake'"):
        planned(store, request("lake/main", foreign, is_commit=True))


def test_commit_that_never_was_is_refused(store: Store, lake: Catalog) -> None:
    with pytest.raises(ExpiredError):
        planned(store, request("lake/main", ObjectId(4711), is_commit=True))


def test_pins_do_not_stay(store: Store, lake: Catalog, rows: RealmStore) -> None:
    old = put(lake, "orders", 1)
    put(lake, "orders", 2)
    restored(store, request("lake/main", old, is_commit=True))

    assert read_pins(rows) == []


def test_restoration_is_put_off_during_a_sweep(store: Store, lake: Catalog, rows: RealmStore) -> None:
    old = put(lake, "orders", 1)
    head = put(lake, "orders", 2)
    rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))

    with pytest.raises(UnavailableError, match="a collection is sweeping"):
        restored(store, request("lake/main", old, is_commit=True))
    assert lake.branch("main").head == head


def test_table_that_comes_back_claims_its_files(store: Store, lake: Catalog, rows: RealmStore) -> None:
    old = put(lake, "orders")
    content_id = id_of_content(lake, "orders")
    drop(lake, "orders")
    restored(store, request("lake/main", old, is_commit=True))

    owner = TableClaims(rows).find_location("s3://lake/orders")
    assert owner is not None
    assert owner.content_id == content_id


def test_table_whose_files_belong_to_another_stays_away(store: Store, lake: Catalog, rows: RealmStore) -> None:
    put(lake, "orders")
    old = put(lake, "customers")
    for table in ("orders", "customers"):
        drop(lake, table)
    TableClaims(rows).take_claims([TableClaim(lake.definition.id, uuid4(), "s3://lake/orders")])
    outcome = restored(store, request("lake/main", old, is_commit=True))

    assert set(contents(lake)) == {"customers"}
    assert outcome["conflicts"] == 1


def test_table_goes_back_from_an_absent_ones_key(store: Store, lake: Catalog, rows: RealmStore) -> None:
    put(lake, "orders")
    old = put(lake, "customers")
    customers = lake.get_content("main", ContentKey.of("customers"))
    assert customers is not None
    drop(lake, "orders")
    lake.commit("main", [Delete(ContentKey.of("customers")), Put(ContentKey.of("orders"), customers)])
    TableClaims(rows).take_claims([TableClaim(lake.definition.id, uuid4(), "s3://lake/orders")])
    restored(store, request("lake/main", old, is_commit=True))

    assert set(contents(lake)) == {"customers"}
    assert customers.id is not None
    assert [str(one.key) for one in lake.find_by_id("main", [customers.id]).values()] == ["customers"]


@pytest.mark.parametrize(
    "places", [("s3://lake/1.json", "s3://lake/2.json"), ("nowhere", "1.json"), ("s3://a/b/1", "s3://a/1")]
)
def test_tables_that_shared_files_come_back_together(store: Store, lake: Catalog, places: tuple[str, ...]) -> None:
    keys = [ContentKey.of("one"), ContentKey.of("two")]
    puts = [Put(key, IcebergTable(metadata_location=place)) for key, place in zip(keys, places, strict=True)]
    old = lake.commit("main", puts).commit_id
    lake.commit("main", [Delete(key) for key in keys])
    assert old is not None
    restored(store, request("lake/main", old, is_commit=True))

    assert set(contents(lake)) == {"one", "two"}


def test_restore_takes_no_request_away_and_brings_none_back(store: Store, lake: Catalog) -> None:
    table = IcebergTable(metadata_location=V1)
    old = lake.commit("main", [Put(ContentKey.of("orders"), table)], request=make_request(1)).commit_id
    new = lake.commit("main", [Delete(ContentKey.of("orders"))], request=make_request(2)).commit_id
    assert old is not None
    restored(store, request("lake/main", old, is_commit=True))

    assert contents(lake) == {"orders": V1}
    assert [lake.commit("main", [], request=make_request(number)).commit_id for number in (1, 2)] == [old, new]
