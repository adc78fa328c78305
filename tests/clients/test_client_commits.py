"""Commits to tables: who is beaten and who is not, and what is left of one that did not happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from lake_doors import NO_TABLE, REFUSED
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ServiceUnavailableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import AssignUUIDUpdate, SetPropertiesUpdate
from pyiceberg.types import IntegerType

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.catalogs import Catalog, ContentKey, Delete, IcebergTable, Put
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.errors import UnknownOutcomeError
from headwater.store import open_backend, parse_url

ORDERS = ContentKey.of("sales", "orders")


@pytest.fixture
def table(catalog: IcebergCatalog, schema: Schema) -> Table:
    """A table of each kind of catalog."""
    catalog.create_namespace("sales")
    return catalog.create_table("sales.orders", schema)


@pytest.fixture
def orders(client: IcebergCatalog, schema: Schema) -> Table:
    """A table of ours."""
    client.create_namespace("sales")
    return client.create_table("sales.orders", schema)


def files_of(warehouse: str) -> set[str]:
    return {path.name for path in Path(warehouse.removeprefix("file://")).rglob("*.metadata.json")}


def test_change_is_a_new_version_that_knows_the_one_before(table: Table, catalog: IcebergCatalog) -> None:
    first = table.metadata_location

    table.update_schema().add_column("region", IntegerType()).commit()

    assert [entry.metadata_file for entry in table.metadata.metadata_log] == [first]
    assert table.metadata_location.rsplit("/", 1)[1].startswith("00001-")
    assert catalog.load_table("sales.orders").schema().find_field("region").field_type == IntegerType()


def test_change_that_changes_nothing_writes_nothing(table: Table, catalog: IcebergCatalog, warehouse: str) -> None:
    before = files_of(warehouse)

    response = catalog.commit_table(table, (), ())

    assert (response.metadata_location, files_of(warehouse)) == (table.metadata_location, before)


def test_change_whose_requirement_is_not_met_any_more_fails(table: Table, catalog: IcebergCatalog) -> None:
    other = catalog.load_table("sales.orders")
    table.update_schema().add_column("region", IntegerType()).commit()

    with pytest.raises(CommitFailedException, match=r"current schema (id has )?changed: expected (id 0 != 1|0, found 1)"):
        other.update_schema().add_column("country", IntegerType()).commit()


def test_appends_of_two_who_saw_the_same_both_hold(table: Table, catalog: IcebergCatalog, rows: pa.Table) -> None:
    other = catalog.load_table("sales.orders")
    table.append(rows)

    other.append(rows)

    assert catalog.load_table("sales.orders").scan().to_arrow().num_rows == 4


def test_change_of_a_dropped_table_fails(table: Table, catalog: IcebergCatalog) -> None:
    catalog.drop_table("sales.orders")

    with pytest.raises(NO_TABLE, match=r"current table metadata is missing|Table does not exist"):
        table.transaction().set_properties(owner="ann").commit_transaction()


def test_change_of_a_table_in_anothers_place_fails(table: Table, catalog: IcebergCatalog, schema: Schema) -> None:
    catalog.drop_table("sales.orders")
    catalog.create_table("sales.orders", schema)

    with pytest.raises(CommitFailedException, match="UUID does not match"):
        table.transaction().set_properties(owner="ann").commit_transaction()


# ours only


def test_change_without_requirements_is_applied_to_the_newest_table(orders: Table, client: IcebergCatalog) -> None:
    other = client.load_table("sales.orders")
    orders.transaction().set_properties(owner="ann").commit_transaction()

    other.transaction().set_properties(color="red").commit_transaction()

    assert client.load_table("sales.orders").properties == {"owner": "ann", "color": "red"}


def test_dropped_table_is_changed_by_nobody_not_even_without_requirements(orders: Table, client: IcebergCatalog) -> None:
    client.drop_table("sales.orders")

    with pytest.raises(NO_TABLE, match="Table does not exist"):
        client.commit_table(orders, (), (SetPropertiesUpdate(updates={"owner": "ann"}),))


def test_changes_of_different_tables_never_fail(client: IcebergCatalog, schema: Schema) -> None:
    client.create_namespace("sales")
    tables = [client.create_table(f"sales.t{n}", schema) for n in range(4)]

    def change(table: Table) -> None:
        for n in range(5):
            table.transaction().set_properties({f"n{n}": "x"}).commit_transaction()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, tables))
    assert [len(client.load_table(table.name()).properties) for table in tables] == [5, 5, 5, 5]


def test_threads_that_change_one_table_all_succeed(
    orders: Table, open_client: Callable[..., IcebergCatalog], warehouse: str
) -> None:
    def change(n: int) -> None:
        open_client().load_table("sales.orders").transaction().set_properties({f"n{n}": "x"}).commit_transaction()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(12)))

    assert len(orders.refresh().properties) == 12
    assert len(files_of(warehouse)) == 13


class Meddler(HeadwaterCatalog):
    """One that is beaten: somebody else acts between its look at the table and its commit."""

    def meddle(self, act: object) -> None:
        self.acts = [act]

    def _update_and_stage_table(self, *arguments: object) -> object:  # type: ignore[override]  # it only passes them on
        staged = super()._update_and_stage_table(*arguments)  # type: ignore[arg-type]
        while self.acts:
            self.acts.pop()()  # type: ignore[operator]
        return staged


@pytest.fixture
def meddled(store: Store, orders: Table) -> Meddler:
    return Meddler.on(store, realm="acme", catalog="lake")  # type: ignore[return-value]  # ``on`` makes one of its own class


def test_change_that_was_beaten_is_made_anew_without_litter(meddled: Meddler, orders: Table, warehouse: str) -> None:
    table = meddled.load_table("sales.orders")
    meddled.meddle(orders.transaction().set_properties(owner="ann").commit_transaction)

    table.transaction().set_properties(color="red").commit_transaction()

    assert table.properties == {"owner": "ann", "color": "red"}
    assert len(files_of(warehouse)) == 3


def test_change_beaten_by_a_drop_fails_and_leaves_no_file(
    meddled: Meddler, lake: Catalog, orders: Table, warehouse: str
) -> None:
    before = files_of(warehouse)
    meddled.meddle(lambda: lake.commit("main", [Delete(ORDERS)]))

    with pytest.raises(CommitFailedException):
        meddled.load_table("sales.orders").transaction().set_properties(color="red").commit_transaction()

    assert files_of(warehouse) == before


def test_change_that_another_tables_change_overtakes_is_not_beaten(
    meddled: Meddler, client: IcebergCatalog, schema: Schema, warehouse: str
) -> None:
    client.create_table("sales.lines", schema)
    before = len(files_of(warehouse))
    meddled.meddle(client.load_table("sales.lines").transaction().set_properties(owner="ann").commit_transaction)

    meddled.load_table("sales.orders").transaction().set_properties(color="red").commit_transaction()

    assert len(files_of(warehouse)) == before + 2


def test_change_stores_the_metadata_with_the_table(orders: Table, lake: Catalog) -> None:
    orders.transaction().set_properties(owner="ann").commit_transaction()

    content = lake.get_content(None, ORDERS)
    assert isinstance(content, IcebergTable)
    assert (content.metadata_location, content.table_uuid) == (orders.metadata_location, str(orders.metadata.table_uuid))


def test_table_without_stored_metadata_is_read_from_its_file(orders: Table, lake: Catalog, client: IcebergCatalog) -> None:
    there = lake.get_content(None, ORDERS)
    assert isinstance(there, IcebergTable)
    lake.commit("main", [Put(ORDERS, IcebergTable(id=there.id, metadata_location=there.metadata_location, spec_id=7))])

    assert client.load_table("sales.orders").metadata == orders.metadata


def test_table_is_not_moved_out_of_what_the_catalog_allows(orders: Table, tmp_path: Path, warehouse: str) -> None:
    before = files_of(warehouse)

    with pytest.raises(REFUSED, match="outside the locations that catalog 'lake' allows"):
        orders.transaction().set_properties({"write.data.path": (tmp_path / "outside").as_uri()}).commit_transaction()

    assert files_of(warehouse) == before


def test_table_keeps_its_uuid(orders: Table, client: IcebergCatalog, warehouse: str) -> None:
    before = files_of(warehouse)

    with pytest.raises(REFUSED, match=r"no table's uuid changes|Cannot reassign uuid"):
        client.commit_table(orders, (), (AssignUUIDUpdate(uuid=uuid4()),))

    assert client.load_table("sales.orders").metadata == orders.metadata
    assert files_of(warehouse) == before


def test_table_without_a_told_uuid_gets_no_others(orders: Table, client: IcebergCatalog, lake: Catalog, schema: Schema) -> None:
    lines = client.create_table("sales.lines", schema)
    there = lake.get_content(None, ORDERS)
    assert isinstance(there, IcebergTable)
    lake.commit("main", [Put(ORDERS, IcebergTable(id=there.id, metadata_location=there.metadata_location))])

    with pytest.raises(REFUSED, match=r"two tables in one place|Cannot reassign uuid"):
        client.commit_table(orders, (), (AssignUUIDUpdate(uuid=lines.metadata.table_uuid),))


def test_old_metadata_files_stay_for_the_commits_that_hold_them(
    orders: Table, lake: Catalog, open_client: Callable[..., IcebergCatalog], warehouse: str
) -> None:
    lake.create_tag("start", "main")
    keep_one = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    for n in range(3):
        orders.transaction().set_properties({**keep_one, "n": str(n)}).commit_transaction()

    assert len(files_of(warehouse)) == 4
    assert open_client(branch="start").load_table("sales.orders").properties == {}


def test_creation_by_many_at_once_succeeds_for_one(client: IcebergCatalog, schema: Schema, warehouse: str) -> None:
    client.create_namespace("sales")

    def create(_: int) -> str:
        try:
            return client.create_table("sales.orders", schema).metadata_location
        except TableAlreadyExistsError:
            return ""

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(create, range(4)))

    assert sorted(made)[:3] == ["", "", ""] and len(files_of(warehouse)) == 1


def test_first_commits_by_many_at_once_all_succeed(client: IcebergCatalog) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(client.create_namespace, ("a", "b", "c", "d")))

    assert client.list_namespaces() == [("a",), ("b",), ("c",), ("d",)]


def test_change_meets_the_branch_where_it_was_put_meanwhile(
    meddled: Meddler, lake: Catalog, client: IcebergCatalog, orders: Table
) -> None:
    start = lake.branch("main").head
    assert start is not None
    orders.transaction().set_properties(owner="ann").commit_transaction()
    table = meddled.load_table("sales.orders")
    meddled.meddle(lambda: lake.assign_branch("main", start))

    table.transaction().set_properties(color="red").commit_transaction()

    assert client.load_table("sales.orders").properties == {"color": "red"}


# a database that fails


@pytest.fixture
def backend() -> FaultyBackend:
    return FaultyBackend(open_backend(parse_url("memory://")))


@pytest.fixture
def shaky(backend: FaultyBackend, make_lake: Callable[[Store], Catalog], schema: Schema) -> Iterator[HeadwaterCatalog]:
    """A catalog with one table, on a store whose backend fails when told to, and whose clock only waits when asked to."""
    with Store(backend, url="memory://", settings=Settings(), clock=FakeClock()) as store:
        make_lake(store)
        client = HeadwaterCatalog.on(store, realm="acme", catalog="lake")
        client.create_namespace("sales")
        client.create_table("sales.orders", schema)
        yield client


FOREVER = 1_000_000


def test_commit_that_did_not_happen_fails_without_a_file(
    shaky: HeadwaterCatalog, backend: FaultyBackend, warehouse: str
) -> None:
    table, before = shaky.load_table("sales.orders"), files_of(warehouse)
    backend.fail("swap_reference", times=FOREVER)

    with pytest.raises(CommitFailedException, match="did not happen within"):
        table.transaction().set_properties(owner="ann").commit_transaction()

    assert files_of(warehouse) == before


def test_commit_of_unknown_outcome_says_so_and_leaves_its_file(
    shaky: HeadwaterCatalog, backend: FaultyBackend, warehouse: str
) -> None:
    table, before = shaky.load_table("sales.orders"), files_of(warehouse)
    backend.fail("swap_reference", times=FOREVER, fault=UnknownOutcomeError("lost on the way"))

    with pytest.raises(CommitStateUnknownException, match="may have happened"):
        table.transaction().set_properties(owner="ann").commit_transaction()

    assert len(files_of(warehouse) - before) == 1


def test_table_whose_claim_is_unclear_was_not_created(
    shaky: HeadwaterCatalog, backend: FaultyBackend, schema: Schema, warehouse: str
) -> None:
    before = files_of(warehouse)
    backend.fail("swap_reference", times=FOREVER, fault=UnknownOutcomeError("lost on the way"))

    with pytest.raises(ServiceUnavailableError, match=r"create table sales\.lines did not happen"):
        shaky.create_table("sales.lines", schema)

    assert files_of(warehouse) == before


def test_table_that_failed_after_its_claim_can_be_created(
    shaky: HeadwaterCatalog, backend: FaultyBackend, schema: Schema, warehouse: str
) -> None:
    backend.fail("swap_reference", at=2, times=200)
    with pytest.raises(ServiceUnavailableError):
        shaky.create_table("sales.lines", schema, location=f"{warehouse}/lines")
    backend.heal()

    assert shaky.create_table("sales.lines", schema, location=f"{warehouse}/lines").location() == f"{warehouse}/lines"


def test_answer_that_was_lost_after_the_commit_is_found_out(shaky: HeadwaterCatalog, backend: FaultyBackend) -> None:
    table = shaky.load_table("sales.orders")
    backend.fail("swap_reference", before=False)

    table.transaction().set_properties(owner="ann").commit_transaction()

    assert shaky.load_table("sales.orders").properties == {"owner": "ann"}


def test_database_that_is_away_is_a_service_that_is_unavailable(
    shaky: HeadwaterCatalog, backend: FaultyBackend, schema: Schema, warehouse: str
) -> None:
    before = files_of(warehouse)
    backend.fail("swap_reference", times=FOREVER)

    with pytest.raises(ServiceUnavailableError, match="try again later"):
        shaky.create_table("sales.lines", schema)

    assert files_of(warehouse) == before


def test_table_whose_metadata_file_fails_is_not_created(client: IcebergCatalog, schema: Schema, warehouse: str) -> None:
    client.create_namespace("sales")
    Path(warehouse.removeprefix("file://")).write_text("a file where the folder should be")

    with pytest.raises((OSError, *REFUSED), match=r"Not a directory|no such file or folder"):
        client.create_table("sales.orders", schema)

    assert client.list_tables("sales") == []
