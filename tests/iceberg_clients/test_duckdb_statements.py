"""Which statements of DuckDB reach a lake, and which DuckDB refuses: what the page of the server says of them."""

from __future__ import annotations

from typing import Any

import pytest
from client_lakes import ClientLake
from installed_engines import connect_duckdb, import_engine

pytestmark = pytest.mark.long

REFUSED = (
    "create view lake.sales.cities as select city from lake.sales.orders",
    "create or replace table lake.sales.orders as select 1 as id",
    "comment on table lake.sales.orders is 'all of them'",
    "drop schema lake.sales cascade",
)


@pytest.fixture
def duckdb(lake: ClientLake) -> Any:
    """A connection to a lake with two orders."""
    connection = connect_duckdb(lake=lake)
    connection.execute("create schema lake.sales")
    connection.execute("create table lake.sales.orders as select 1::bigint as id, 'Bern' as city union all select 2, 'Graz'")
    return connection


def test_merge_updates_and_inserts(duckdb: Any, lake: ClientLake) -> None:
    duckdb.execute("""
        merge into lake.sales.orders o using (values (2, 'Linz'), (3, 'Lyon')) n(id, city) on o.id = n.id
        when matched then update set city = n.city when not matched then insert
    """)

    assert duckdb.execute("from lake.sales.orders order by id").fetchall() == [(1, "Bern"), (2, "Linz"), (3, "Lyon")]
    assert lake.ids() == [1, 2, 3]


def test_columns_are_altered_and_the_table_is_renamed(duckdb: Any, lake: ClientLake) -> None:
    duckdb.execute("alter table lake.sales.orders add column price integer")
    duckdb.execute("alter table lake.sales.orders rename column city to town")
    duckdb.execute("alter table lake.sales.orders alter column price type bigint")
    duckdb.execute("alter table lake.sales.orders rename to bills")
    duckdb.execute("call set_iceberg_table_properties(lake.sales.bills, {'owner': 'ann'})")

    table = lake.connect().load_table("sales.bills")
    assert [(field.name, str(field.field_type)) for field in table.schema().fields] == [
        ("id", "long"),
        ("town", "string"),
        ("price", "long"),
    ]
    assert table.properties["owner"] == "ann"
    duckdb.execute("alter table lake.sales.bills drop column price")
    assert lake.connect().load_table("sales.bills").schema().column_names == ["id", "town"]


def test_partitions_are_created_and_changed(duckdb: Any, lake: ClientLake) -> None:
    duckdb.execute("create table lake.sales.parts (id bigint, city varchar) partitioned by (city)")
    duckdb.execute("insert into lake.sales.parts values (1, 'Bern'), (2, 'Graz')")
    duckdb.execute("update lake.sales.parts set id = 9 where city = 'Bern'")
    duckdb.execute("alter table lake.sales.parts set partitioned by (bucket(4, id))")
    duckdb.execute("insert into lake.sales.parts values (3, 'Rome')")

    assert lake.ids("sales.parts") == [2, 3, 9]
    specs = lake.connect().load_table("sales.parts").specs().values()
    assert {str(field.transform) for spec in specs for field in spec.fields} == {"identity", "bucket[4]"}


def test_rows_of_version_3_are_deleted(duckdb: Any, lake: ClientLake) -> None:
    duckdb.execute("create table lake.sales.third (id bigint) with ('format-version' = '3')")
    duckdb.execute("insert into lake.sales.third values (1), (2)")
    duckdb.execute("delete from lake.sales.third where id = 1")

    assert duckdb.execute("from lake.sales.third").fetchall() == [(2,)]
    assert lake.connect().load_table("sales.third").format_version == 3


def test_earlier_snapshot_is_read(duckdb: Any) -> None:
    [(snapshot,)] = duckdb.execute("select snapshot_id from iceberg_snapshots(lake.sales.orders)").fetchall()
    duckdb.execute("truncate lake.sales.orders")

    assert duckdb.execute("select count(*) from lake.sales.orders").fetchall() == [(0,)]
    assert duckdb.execute(f"select count(*) from lake.sales.orders at (version => {snapshot})").fetchall() == [(2,)]


@pytest.mark.parametrize("statement", REFUSED, ids=["view", "replacement", "comment", "cascade"])
def test_statement_that_duckdb_lacks_changes_nothing(duckdb: Any, lake: ClientLake, statement: str) -> None:
    before = lake.commits()

    with pytest.raises(import_engine("duckdb").NotImplementedException):
        duckdb.execute(statement)

    assert lake.commits() == before


def test_table_created_in_a_transaction_is_its_own_commit(duckdb: Any, lake: ClientLake) -> None:
    before = lake.commits()

    duckdb.execute("begin")
    duckdb.execute("create table lake.sales.bills as select 7::bigint as id")
    duckdb.execute("insert into lake.sales.orders values (3, 'Lyon')")
    duckdb.execute("commit")

    assert (lake.ids(), lake.ids("sales.bills")) == ([1, 2, 3], [7])
    assert lake.commits() == before + 2


def test_attachment_of_nothing_says_only_404(lake: ClientLake) -> None:
    with pytest.raises(import_engine("duckdb").Error, match=r"NotFound_404\), with reason: Not Found$"):
        connect_duckdb(lake=lake.at("nowhere"))
