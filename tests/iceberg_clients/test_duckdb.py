"""DuckDB with its iceberg extension against a process that serves."""

from __future__ import annotations

from typing import Any

import pytest
from client_lakes import ClientLake
from installed_engines import connect_duckdb, import_engine

pytestmark = pytest.mark.long


def with_orders(lake: ClientLake) -> Any:
    connection = connect_duckdb(lake=lake)
    connection.execute("create schema lake.sales")
    connection.execute("create table lake.sales.orders (id bigint, city varchar)")
    connection.execute("insert into lake.sales.orders values (1, 'Bern'), (2, 'Graz')")
    return connection


def test_duckdb_inserts_updates_deletes_and_drops(lake: ClientLake) -> None:
    connection = with_orders(lake)

    connection.execute("update lake.sales.orders set city = 'Lyon' where id = 2")
    connection.execute("delete from lake.sales.orders where id = 1")

    assert connection.execute("from lake.sales.orders").fetchall() == [(2, "Lyon")]
    assert lake.ids() == [2]
    connection.execute("drop table lake.sales.orders")
    assert not lake.connect().table_exists("sales.orders")


def test_transaction_over_tables_is_one_commit(lake: ClientLake) -> None:
    connection = with_orders(lake)
    connection.execute("create table lake.sales.bills (id bigint)")
    before = lake.commits()

    connection.execute("begin")
    connection.execute("insert into lake.sales.bills values (7)")
    connection.execute("update lake.sales.orders set city = 'Linz'")
    connection.execute("commit")

    assert lake.commits() == before + 1
    assert connection.execute("from lake.sales.bills").fetchall() == [(7,)]


def test_transaction_rolled_back_leaves_no_commit(lake: ClientLake) -> None:
    connection = with_orders(lake)
    before = lake.commits()

    connection.execute("begin")
    connection.execute("insert into lake.sales.orders values (3, 'Linz')")
    connection.execute("rollback")

    assert lake.commits() == before


def test_duckdb_keeps_branches_apart_until_a_merge(lake: ClientLake) -> None:
    with_orders(lake)
    lake.catalog.create_branch("feature/x")
    connection = connect_duckdb(lake=lake, dev=lake.at("feature/x"))

    connection.execute("insert into dev.sales.orders values (3, 'Linz')")

    assert connection.execute("select count(*) from lake.sales.orders").fetchall() == [(2,)]
    lake.catalog.merge("feature/x", "main")
    assert connect_duckdb(lake=lake).execute("select count(*) from lake.sales.orders").fetchall() == [(3,)]


def test_tag_tells_duckdb_that_it_is_read_only(lake: ClientLake) -> None:
    with_orders(lake)
    lake.catalog.create_tag("v1")
    connection = connect_duckdb(tag=lake.at("v1"))

    assert connection.execute("select count(*) from tag.sales.orders").fetchall() == [(2,)]
    with pytest.raises(import_engine("duckdb").Error, match=r"'v1' is not a branch.*it can only be read"):
        connection.execute("create schema tag.more")


def test_writer_that_lost_adds_no_row(lake: ClientLake) -> None:
    with_orders(lake)
    first, second = (connect_duckdb(lake=lake) for _ in range(2))
    for number, connection in ((3, first), (4, second)):
        connection.execute("begin")
        connection.execute(f"insert into lake.sales.orders values ({number}, 'Linz')")

    first.execute("commit")
    with pytest.raises(import_engine("duckdb").Error, match="Requirement failed: branch main has changed"):
        second.execute("commit")

    assert lake.ids() == [1, 2, 3]


def test_full_schema_is_not_dropped_and_says_why(lake: ClientLake) -> None:
    connection = with_orders(lake)

    with pytest.raises(import_engine("duckdb").Error, match="Namespace sales is not empty"):
        connection.execute("drop schema lake.sales")
