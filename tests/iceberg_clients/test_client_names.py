"""Names that a path or a language could take for something else, through each client."""

from __future__ import annotations

from typing import Any

import pytest
from client_lakes import SCHEMA, ClientLake, rows
from installed_engines import connect_duckdb, run_daft

pytestmark = pytest.mark.long

NAMES = ("a.b", "with space", "Zürich", "100%", "%2F", "a/b", "it's", 'say "so"', "a+b&c=d?e#f", "\\", "日本")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_pyiceberg_keeps_odd_names(lake: ClientLake) -> None:
    client = lake.connect()
    for name in NAMES:
        client.create_namespace((name,))
        client.create_table((name, name), SCHEMA).append(rows((1, name)))

    assert sorted(client.list_namespaces()) == sorted((name,) for name in NAMES)
    assert [client.load_table((name, name)).scan().to_arrow()["city"].to_pylist() for name in NAMES] == [
        [name] for name in NAMES
    ]


def test_duckdb_keeps_odd_names(lake: ClientLake) -> None:
    connection = connect_duckdb(lake=lake)
    names = [name for name in NAMES if "." not in name]
    for name in names:
        table = f"lake.{quoted(name)}.{quoted(name)}"
        connection.execute(f"create schema lake.{quoted(name)}")
        connection.execute(f"create table {table} as select 1::bigint as id")
        connection.execute(f"insert into {table} values (2)")

    assert sorted(lake.connect().list_namespaces()) == sorted((name,) for name in names)
    assert [sorted(lake.connect().load_table((name, name)).scan().to_arrow()["id"].to_pylist()) for name in names] == [
        [1, 2] for _ in names
    ]


def test_dot_in_a_schema_of_duckdb_parts_levels(lake: ClientLake) -> None:
    connection = connect_duckdb(lake=lake)
    connection.execute("create schema lake.sales")

    connection.execute('create schema lake."sales.eu"')
    connection.execute('create table lake."sales.eu"."orders.new" as select 1::bigint as id')

    assert lake.connect().list_tables(("sales", "eu")) == [("sales", "eu", "orders.new")]


def test_dataframes_read_odd_names(polars: Any, lake: ClientLake) -> None:
    client = lake.connect()
    for name in NAMES:
        client.create_namespace((name,))
        client.create_table((name, name), SCHEMA).append(rows((1, name)))

    by_polars = [polars.scan_iceberg(client.load_table((name, name))).collect()["city"].to_list() for name in NAMES]
    program = f"result = [daft.read_iceberg(catalog.load_table((name, name))).to_pydict()['city'] for name in {NAMES!r}]"

    assert by_polars == run_daft(program, lake) == [[name] for name in NAMES]
