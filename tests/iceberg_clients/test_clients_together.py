"""Clients of different makers on one table and on the branches of one catalog."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from client_lakes import ClientLake, rows
from installed_engines import connect_duckdb, import_engine, run_daft
from pyiceberg.exceptions import CommitFailedException

pytestmark = pytest.mark.long

DAFT_READS = "result = sorted(daft.read_iceberg(catalog.load_table('sales.orders')).to_pydict()['id'])"
APPENDS = 5


def ids_by_client(polars: Any, lake: ClientLake) -> dict[str, tuple[int, ...]]:
    """What each client reads of ``sales.orders`` now."""
    duckdb = connect_duckdb(lake=lake).execute("select id from lake.sales.orders order by id").fetchall()
    frame = polars.scan_iceberg(lake.connect().load_table("sales.orders")).collect()
    return {
        "daft": tuple(run_daft(DAFT_READS, lake)),
        "duckdb": tuple(number for (number,) in duckdb),
        "polars": tuple(sorted(frame["id"].to_list())),
        "pyiceberg": tuple(lake.ids()),
    }


def test_clients_append_to_one_table_and_agree(polars: Any, lake: ClientLake) -> None:
    connection = connect_duckdb(lake=lake)
    connection.execute("create schema lake.sales")
    connection.execute("create table lake.sales.orders (id bigint, city varchar)")
    connection.execute("insert into lake.sales.orders values (1, 'Bern'), (2, 'Graz')")

    polars.DataFrame({"id": [3], "city": ["Lyon"]}).write_iceberg(lake.connect().load_table("sales.orders"), mode="append")
    run_daft(
        "daft.from_pydict({'id': [4], 'city': ['Linz']}).write_iceberg(catalog.load_table('sales.orders'))\nresult = 0", lake
    )
    lake.connect().load_table("sales.orders").delete("id = 1")
    connection.execute("update lake.sales.orders set city = 'Oslo' where id = 2")
    connection.execute("delete from lake.sales.orders where id = 3")

    by_client = ids_by_client(polars, lake)
    assert by_client == dict.fromkeys(by_client, (2, 4))


def test_clients_see_a_branch_and_then_its_merge(polars: Any, lake: ClientLake) -> None:
    lake.create_orders((1, "Bern"))
    lake.catalog.create_branch("dev")
    connect_duckdb(dev=lake.at("dev")).execute("insert into dev.sales.orders values (2, 'Graz')")

    on_main, on_branch = lake.ids(), ids_by_client(polars, lake.at("dev"))
    lake.catalog.merge("dev", "main")
    merged = ids_by_client(polars, lake)

    assert on_main == [1]
    assert on_branch == merged == dict.fromkeys(merged, (1, 2))


def test_clients_that_race_lose_no_row(lake: ClientLake) -> None:
    lake.create_orders()
    errors = (CommitFailedException, import_engine("duckdb").Error)
    start, connection = Barrier(2), connect_duckdb(lake=lake)

    def by_duckdb(number: int) -> None:
        connection.execute(f"insert into lake.sales.orders values ({number}, 'duckdb')")

    def by_pyiceberg(number: int) -> None:
        lake.connect().load_table("sales.orders").append(rows((number, "pyiceberg")))

    def append_all(numbers: range, append: Callable[[int], None]) -> list[int]:
        """The numbers whose append was told as done; one that lost a race is sent again."""
        start.wait()
        done = []
        for number in numbers:
            for _ in range(20):
                try:
                    append(number)
                except errors:
                    continue
                done.append(number)
                break
        return done

    with ThreadPoolExecutor(2) as threads:
        told = [
            threads.submit(append_all, range(APPENDS), by_duckdb),
            threads.submit(append_all, range(100, 100 + APPENDS), by_pyiceberg),
        ]
        done = sorted(number for future in told for number in future.result())

    assert lake.ids() == done == [*range(APPENDS), *range(100, 100 + APPENDS)]
