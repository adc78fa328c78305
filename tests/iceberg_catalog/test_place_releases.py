"""Places of dropped tables: taken over by new tables of the catalog, released, and kept from coming back twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from commits_of_engines import LINES, ORDERS, SALES, SCHEMA

from headwater import Store
from headwater.catalogs import (
    Catalog,
    Catalogs,
    DeltaLakeTable,
    MergeConflictError,
    MergeEffect,
    MergeOptions,
    Put,
    TableClaim,
    TableClaims,
    find_homes,
    release_location,
)
from headwater.errors import ConflictError, NotFoundError, RefusedError
from headwater.iceberg_catalog import IcebergCatalog, LoadedTable, TableCreation, ViewCreation
from headwater.jobs.table_tasks import lock_locations
from headwater.purge import PurgeRequest
from headwater.realms import RealmRegistry
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.store import ObjectId, RealmStore, id_text
from headwater.tasks import TaskNotReadyError, TaskQueue

MakeTable = Callable[..., LoadedTable]
VIEW_VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    "default-namespace": ["sales"],
}
TAKEN = "two tables in one place would delete each other's files"


@pytest.fixture
def rows(store: Store, lake: IcebergCatalog) -> RealmStore:
    return RealmRegistry(store).open_realm("acme")


@pytest.fixture
def place(warehouse: Path) -> str:
    return (warehouse / "fixed").as_uri()


def head_of(catalog: Catalog) -> str:
    head = catalog.resolve("main")
    assert head is not None
    return f"main@{id_text(head.id)}"


def test_new_table_takes_the_place_of_a_dropped_one(lake: IcebergCatalog, make_table: MakeTable, place: str) -> None:
    seen = set()
    for key in (ORDERS, LINES, ORDERS):
        seen.add(make_table(key, location=place).content_id)
        with pytest.raises(RefusedError, match=TAKEN):
            lake.tables.create(TableCreation(key=LINES if key == ORDERS else ORDERS, schema=SCHEMA, location=f"{place}/inside"))
        lake.tables.drop(key)

    assert len(seen) == 3
    assert make_table(LINES, location=f"{place}/inside").document["location"] == f"{place}/inside"


def test_place_of_a_table_that_a_reference_holds_stays_its_own(
    lake: IcebergCatalog, catalog: Catalog, make_table: MakeTable, place: str, rows: RealmStore
) -> None:
    make_table(location=place)
    catalog.create_branch("dev")
    lake.tables.drop(ORDERS)
    catalog.delete_branch("dev")  # and can be undeleted

    with pytest.raises(RefusedError, match=TAKEN):
        make_table(LINES, location=place)
    with pytest.raises(RefusedError, match="belongs to a table that the branch 'dev', deleted of acme/lake holds"):
        release_location(rows, place)


def test_claim_of_a_commit_under_way_is_not_taken_over(
    lake: IcebergCatalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    staged = lake.tables.stage(TableCreation(key=ORDERS, schema=SCHEMA, location=place))
    TableClaims(rows).take_claims([lake.tables.claim_of(uuid4(), staged.document)])

    with pytest.raises(RefusedError, match=TAKEN):
        make_table(LINES, location=place)


def test_commit_whose_claim_was_let_go_has_to_claim_again(
    lake: IcebergCatalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    dropped, claims = make_table(location=place), TableClaims(rows)
    claim = lake.tables.claim_of(dropped.content_id, dropped.document)
    claims.check_own([claim])
    lake.tables.drop(ORDERS)
    assert release_location(rows, place) == (place,)

    with pytest.raises(ConflictError, match="was released since"):
        claims.check_own([claim])
    with pytest.raises(NotFoundError, match="it is free"):
        release_location(rows, place)


def test_undo_of_the_drop_is_refused_with_the_reason(
    lake: IcebergCatalog, catalog: Catalog, make_table: MakeTable, place: str
) -> None:
    catalog.create_branch("empty")
    first, before = make_table(location=place), head_of(catalog)
    lake.tables.drop(ORDERS)
    make_table(LINES, location=place)
    held = catalog.resolve(before)
    assert held is not None

    undos: list[Callable[[], object]] = [
        lambda: catalog.create_branch("old", before),
        lambda: catalog.assign_branch("empty", held.id),
        lambda: catalog.merge(before, "empty"),
        lambda: catalog.merge(before, "empty", options=MergeOptions(dry_run=True)),
        lambda: catalog.transplant(before, [held.id], "empty"),
        lambda: catalog.transplant(before, [held.id], "empty", options=MergeOptions(dry_run=True)),
    ]
    assert catalog.preview_merge(before, "empty") == {ORDERS: MergeEffect.CONFLICT}
    for undo in undos:
        with pytest.raises(RefusedError, match=r"it holds sales\.orders, dropped since, whose place in storage was released"):
            undo()
    with pytest.raises(RefusedError, match=r"(in|overlaps) a place of another table"):
        lake.tables.register(ORDERS, first.metadata_location)
    assert catalog.create_tag("old", before).name == "old"


def test_dropped_table_comes_back_while_its_place_is_free(
    lake: IcebergCatalog, catalog: Catalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    first, before = make_table(location=place), head_of(catalog)
    lake.tables.drop(ORDERS)
    release_location(rows, place)

    assert lake.tables.register(ORDERS, first.metadata_location).content_id == first.content_id
    assert catalog.create_branch("again", before).name == "again"
    with pytest.raises(RefusedError, match=TAKEN):
        make_table(LINES, location=place)


def test_branch_whose_name_is_taken_leaves_a_released_place_free(
    lake: IcebergCatalog, catalog: Catalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    make_table(location=place)
    before = head_of(catalog)
    lake.tables.drop(ORDERS)
    release_location(rows, place)

    with pytest.raises(ConflictError):
        catalog.create_branch("main", before)
    assert TableClaims(rows).find_location(place) is None


def test_merge_with_conflicts_leaves_a_released_place_free(
    lake: IcebergCatalog, catalog: Catalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    catalog.create_branch("other")
    catalog.commit("other", [Put(LINES, DeltaLakeTable())])
    make_table(LINES)
    make_table(location=place)
    before = head_of(catalog)
    lake.tables.drop(ORDERS)
    release_location(rows, place)

    with pytest.raises(MergeConflictError):
        catalog.merge(before, "other")
    assert TableClaims(rows).find_location(place) is None


@pytest.mark.parametrize("undo", ["branch", "move", "merge", "transplant"])
def test_undo_takes_back_a_place_that_is_free(
    lake: IcebergCatalog, catalog: Catalog, make_table: MakeTable, rows: RealmStore, place: str, undo: str
) -> None:
    catalog.create_branch("empty")
    first, before = make_table(location=place), head_of(catalog)
    lake.tables.drop(ORDERS)
    release_location(rows, place)
    held = catalog.resolve(before)
    assert held is not None

    if undo == "branch":
        catalog.create_branch("old", before)
    elif undo == "move":
        catalog.assign_branch("main", held.id)
    elif undo == "transplant":
        catalog.transplant(before, [held.id], "empty")
    else:
        catalog.merge(before, "empty")

    owner = TableClaims(rows).find_location(place)
    assert owner is not None and owner.content_id == first.content_id
    assert first.content_id in find_homes(rows, catalog.definition.id)
    with pytest.raises(RefusedError, match=TAKEN):
        make_table(LINES, location=place)


def test_place_of_a_deleted_catalog_is_released_when_it_is_gone(
    store: Store, lake: IcebergCatalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    make_table(location=place)
    catalogs = Catalogs(rows)
    catalogs.delete_catalog("lake")

    with pytest.raises(RefusedError, match=r"belongs to a table of the deleted catalog acme/lake: end its hold first"):
        release_location(rows, place)


def test_purge_frees_the_place_and_waits_for_the_history(
    store: Store, lake: IcebergCatalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    make_table(location=place)
    lake.tables.drop(ORDERS, purge=True)
    [task] = TaskQueue(store).list_tasks(kind="purge-table")
    wish = PurgeRequest.from_task(task.value)

    assert TableClaims(rows).find_location(place) is None
    with pytest.raises(TaskNotReadyError, match="commits that are kept may hold content"):
        lock_locations(rows, wish, fence=lambda: None)
    assert TableClaims(rows).find_location(place) is None
    make_table(LINES, location=place)
    with pytest.raises(TaskNotReadyError):
        lock_locations(rows, wish, fence=lambda: None)


def test_commits_of_a_table_whose_place_was_taken_are_not_transplanted(
    lake: IcebergCatalog, catalog: Catalog, make_table: MakeTable, place: str
) -> None:
    catalog.create_branch("empty")
    make_table(location=place)
    held = catalog.resolve("main")
    assert held is not None
    before = head_of(catalog)
    lake.tables.drop(ORDERS)
    make_table(LINES, location=place)

    with pytest.raises(RefusedError, match=r"it holds sales\.orders, dropped since"):
        catalog.transplant(before, [held.id], "empty")


def test_restored_view_stays_away_from_a_place_that_is_anothers(
    lake: IcebergCatalog, catalog: Catalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    lake.views.create(ViewCreation(key=ORDERS, schema=SCHEMA, view_version=VIEW_VERSION, location=place))
    held = catalog.resolve("main")
    assert held is not None
    lake.views.drop(ORDERS)
    make_table(LINES, location=place)

    done = restore_state(rows, ObjectId(7), RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=held.id)))

    assert [conflict for conflict in done.conflicts if "sales.orders stays away" in conflict]
    assert catalog.get_content("main", ORDERS) is None


def test_announced_release_of_a_table_that_came_back_ends_with_its_next_claim(
    lake: IcebergCatalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    table, claims = make_table(location=place), TableClaims(rows)
    owner, claim = claims.find_location(place), lake.tables.claim_of(table.content_id, table.document)
    assert owner is not None and claims.announce_release({place: owner}) == {place: owner}
    with pytest.raises(ConflictError, match="take it again"):
        claims.check_own([claim])

    assert not claims.take_claims([claim])
    claims.check_own([claim])
    assert not claims.release_places({place: owner})
    assert claims.announce_release({place: owner}) == {}


def test_places_of_a_purged_catalog_are_free_once_released(
    store: Store, lake: IcebergCatalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    make_table(location=place)
    catalogs = Catalogs(rows)
    catalogs.delete_catalog("lake")
    catalogs.purge_catalog("lake")
    catalogs.create_catalog("lake", base_location=place.rpartition("/")[0])
    again, creation = IcebergCatalog.open(store, "acme", "lake"), TableCreation(key=ORDERS, schema=SCHEMA, location=place)
    again.namespaces.create(SALES, {})
    with pytest.raises(RefusedError, match=TAKEN):
        again.tables.create(creation)

    assert release_location(rows, place) == (place,)
    assert again.tables.create(creation).document["location"] == place


def test_places_of_a_catalog_that_is_gone_are_free_once_released(
    lake: IcebergCatalog, make_table: MakeTable, rows: RealmStore, place: str
) -> None:
    assert not TableClaims(rows).take_claims([TableClaim("00000000000000bb", uuid4(), f"{place}/inside")])
    with pytest.raises(RefusedError, match=TAKEN):
        make_table(location=place)

    assert release_location(rows, place) == (f"{place}/inside",)
    assert make_table(location=place).document["location"] == place
