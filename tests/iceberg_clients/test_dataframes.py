"""Polars and Daft on tables that pyiceberg keeps for them."""

from __future__ import annotations

from typing import Any

import pytest
from client_lakes import SCHEMA, ClientLake, rows
from installed_engines import run_daft

pytestmark = pytest.mark.long


def test_polars_scans_and_sees_another_writer(polars: Any, lake: ClientLake) -> None:
    lake.create_orders((1, "Bern"), (2, "Graz"))
    lake.connect().load_table("sales.orders").append(rows((3, "Lyon")))

    table = lake.connect().load_table("sales.orders")
    frame = polars.scan_iceberg(table)

    assert sorted(frame.collect()["id"].to_list()) == [1, 2, 3]
    assert frame.filter(polars.col("id") > 2).collect()["city"].to_list() == ["Lyon"]


def test_polars_reads_after_a_deletion_and_an_earlier_snapshot(polars: Any, lake: ClientLake) -> None:
    table = lake.create_orders((1, "Bern"), (2, "Graz"))
    earlier = table.metadata.current_snapshot_id
    table.delete("id = 1")

    assert polars.scan_iceberg(table).collect()["id"].to_list() == [2]
    assert sorted(polars.scan_iceberg(table, snapshot_id=earlier).collect()["id"].to_list()) == [1, 2]


def test_polars_appends_overwrites_and_streams(polars: Any, lake: ClientLake) -> None:
    table = lake.create_orders((1, "Bern"))

    polars.DataFrame(rows((2, "Graz"))).write_iceberg(table, mode="append")
    polars.LazyFrame(rows((3, "Lyon"))).sink_iceberg(table, mode="append")
    assert lake.ids() == [1, 2, 3]

    polars.DataFrame(rows((4, "Linz"))).write_iceberg(lake.connect().load_table("sales.orders"), mode="overwrite")
    assert lake.ids() == [4]


def test_daft_reads_and_appends(lake: ClientLake) -> None:
    lake.create_orders((1, "Bern"), (2, "Graz"))
    lake.connect().create_table("sales.empty", SCHEMA)

    result = run_daft(
        """
daft.attach_catalog(catalog, "lake")
tables = sorted(str(name) for name in daft.list_tables())
table = catalog.load_table("sales.orders")
read = daft.read_iceberg(table).sort("id").to_pydict()
daft.from_pydict({"id": [3], "city": ["Lyon"]}).write_iceberg(table)
selected = daft.sql("SELECT city FROM lake.sales.orders WHERE id > 2").to_pydict()
result = {"tables": tables, "read": read, "selected": selected}
""",
        lake,
    )

    assert result["read"] == {"id": [1, 2], "city": ["Bern", "Graz"]}
    assert result["selected"] == {"city": ["Lyon"]}
    assert lake.ids() == [1, 2, 3]
    assert result["tables"] == ["lake.sales.empty", "lake.sales.orders"]


def test_daft_creates_overwrites_and_drops(lake: ClientLake) -> None:
    lake.create_orders((1, "Bern"))

    result = run_daft(
        """
lake = daft.catalog.Catalog.from_iceberg(catalog)
lake.create_namespace("more")
cities = lake.create_table("more.cities", daft.from_pydict({"id": [5, 6]}))
cities.append(daft.from_pydict({"id": [7]}))
created = sorted(cities.read().to_pydict()["id"])
daft.from_pydict({"id": [8], "city": ["Oslo"]}).write_iceberg(catalog.load_table("sales.orders"), mode="overwrite")
lake.drop_table("more.cities")
result = {"created": created, "namespaces": sorted(str(name) for name in lake.list_namespaces())}
""",
        lake,
    )

    assert result["namespaces"] == ["more", "sales"]
    assert result["created"] == [5, 6, 7]
    assert lake.ids() == [8]
    assert not lake.connect().table_exists("more.cities")
