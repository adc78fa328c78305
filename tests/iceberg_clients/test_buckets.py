"""Tables in a bucket, of which the server tells clients the address and no login: one module, so that few processes start a storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from client_lakes import SCHEMA, ClientLake, rows
from client_texts import PYTHON_ENGINES, printed_config, python_with, rows_of_sql, run_program
from installed_engines import connect_duckdb, import_engine, run_daft
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform

from servers.s3 import S3_LOGIN

pytestmark = pytest.mark.long

CITIES = ("with space", "Zürich", "100%", "%2F", "a/b", "it's", "a+b&c=d?e#f", "日本")


def storage_options(table: Any) -> dict[str, str]:
    """What Polars has to be told of a bucket."""
    return {name: value for name, value in table.io.properties.items() if name.startswith("s3.")}


def test_pyiceberg_keeps_a_table_in_a_bucket(s3_lake: ClientLake) -> None:
    table = s3_lake.create_orders((1, "Bern"), (2, "Graz"))
    table.append(rows((3, "Lyon")))
    table.delete("id = 1")
    table.overwrite(rows((4, "Linz")), "id = 2")

    assert table.location().startswith("s3://lake/")
    assert s3_lake.ids() == [3, 4]
    s3_lake.connect().purge_table("sales.orders")
    assert not s3_lake.connect().table_exists("sales.orders")


def test_duckdb_keeps_a_table_in_a_bucket(s3_lake: ClientLake) -> None:
    connection = connect_duckdb(lake=s3_lake)
    connection.execute("create schema lake.sales")
    connection.execute("create table lake.sales.orders as select 1::bigint as id, 'Bern' as city")

    connection.execute("insert into lake.sales.orders values (2, 'Graz'), (3, 'Lyon')")
    connection.execute("update lake.sales.orders set city = 'Linz' where id = 2")
    connection.execute("delete from lake.sales.orders where id = 1")

    assert connection.execute("from lake.sales.orders order by id").fetchall() == [(2, "Linz"), (3, "Lyon")]
    assert s3_lake.ids() == [2, 3]
    connection.execute("drop table lake.sales.orders")


def test_polars_keeps_rows_in_a_bucket(polars: Any, s3_lake: ClientLake) -> None:
    table = s3_lake.create_orders((1, "Bern"))

    polars.DataFrame(rows((2, "Graz"))).write_iceberg(table, mode="append")
    options = storage_options(table)
    polars.LazyFrame(rows((3, "Lyon"))).sink_iceberg(table, mode="append", storage_options=options)
    fresh = s3_lake.connect().load_table("sales.orders")
    fresh.delete("id = 1")

    assert sorted(polars.scan_iceberg(fresh, storage_options=options).collect()["id"].to_list()) == [2, 3]
    assert polars.scan_iceberg(fresh, reader_override="pyiceberg").collect().height == 2


def test_daft_keeps_rows_in_a_bucket(s3_lake: ClientLake) -> None:
    s3_lake.create_orders((1, "Bern"))

    result = run_daft(
        """
table = catalog.load_table("sales.orders")
daft.from_pydict({"id": [2], "city": ["Graz"]}).write_iceberg(table)
catalog.load_table("sales.orders").delete("id = 1")
result = daft.read_iceberg(catalog.load_table("sales.orders")).to_pydict()
""",
        s3_lake,
    )

    assert result == {"id": [2], "city": ["Graz"]}
    assert s3_lake.ids() == [2]


def test_odd_values_of_partitions_are_read_from_a_bucket(polars: Any, s3_lake: ClientLake) -> None:
    client = s3_lake.connect()
    client.create_namespace("sales")
    city = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="city"))
    table = client.create_table("sales.orders", SCHEMA, partition_spec=city)
    table.append(rows(*enumerate(CITIES)))
    connection = connect_duckdb(lake=s3_lake)
    connection.execute("insert into lake.sales.orders select id + 100, city from lake.sales.orders")

    frame = polars.scan_iceberg(client.load_table("sales.orders"), storage_options=storage_options(table)).collect()
    by_client = {
        "daft": run_daft("result = daft.read_iceberg(catalog.load_table('sales.orders')).to_pydict()['city']", s3_lake),
        "duckdb": [value for (value,) in connection.execute("select city from lake.sales.orders").fetchall()],
        "polars": frame["city"].to_list(),
        "pyiceberg": client.load_table("sales.orders").scan().to_arrow()["city"].to_pylist(),
    }

    assert {name: sorted(cities) for name, cities in by_client.items()} == {name: sorted(CITIES * 2) for name in by_client}


@pytest.mark.parametrize("engine", PYTHON_ENGINES)
def test_python_that_is_printed_reads_a_bucket(s3_lake: ClientLake, engine: str) -> None:
    python = python_with(engine)
    s3_lake.create_orders((1, "Oslo"), (2, "Bergen"))

    assert "Bergen" in run_program(python, "-c", printed_config(s3_lake, engine, "python"))


def test_sql_that_is_printed_reads_a_bucket(s3_lake: ClientLake, tmp_path: Path) -> None:
    s3_lake.create_orders((1, "Oslo"))
    text = printed_config(s3_lake, "duckdb", "s3")
    for told, meant in [
        ("your-key-id", S3_LOGIN["access-key-id"]),
        ("your-secret", S3_LOGIN["secret-access-key"]),
        ("s3.us-east-1.amazonaws.com", urlsplit(s3_lake.endpoint).netloc),
        ("USE_SSL true", "USE_SSL false"),
    ]:
        assert told in text
        text = text.replace(told, meant)

    assert rows_of_sql(text, tmp_path / "extensions") == [(1, "Oslo")]


def test_duckdb_without_the_option_shadows_its_secret(s3_lake: ClientLake) -> None:
    s3_lake.create_orders((1, "Oslo"))
    connection = connect_duckdb(lake=s3_lake)
    connection.execute(
        f"attach '{s3_lake.warehouse}' as other (type iceberg, endpoint '{s3_lake.uri}', authorization_type 'none')"
    )

    with pytest.raises(import_engine("duckdb").Error, match="403"):
        connection.execute("from other.sales.orders")
