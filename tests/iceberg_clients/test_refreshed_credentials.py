"""Clients with credentials of the server that end while a table is read: how each comes by others, and goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from installed_engines import connect_duckdb
from pyiceberg.io import load_file_io

from vending_lake import DONE, ROWS, VendedBucket, VendingLake, vending_lake

pytestmark = pytest.mark.long

LIFE_SECONDS = 6
ORDERS = "namespaces/sales/tables/orders"


@pytest.fixture(scope="module")
def brief_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VendingLake]:
    """A lake whose credentials end after six seconds; three are always left when somebody gets them."""
    with vending_lake(tmp_path_factory.mktemp("brief"), session=f"{LIFE_SECONDS}s") as made:
        for _ in range(4):
            made.client(made.root).load_table("sales.orders").append(ROWS)
        yield made


def loads(lake: VendingLake) -> int:
    return sum(json.loads(line)["action"] == "loadTable" for line in lake.audit_file.read_text().splitlines())


def connect(lake: VendingLake, credential: str) -> Any:
    """DuckDB without a login for the bucket, and without a memory of files."""
    connection = connect_duckdb()
    client_id, _, secret = credential.partition(":")
    login = f"client_id '{client_id}', client_secret '{secret}', oauth2_server_uri '{lake.url}/iceberg/v1/oauth/tokens'"
    connection.execute(f"create secret (type iceberg, {login})")
    connection.execute(f"attach 'acme/lake' as lake (type iceberg, endpoint '{lake.url}/iceberg')")
    connection.execute("set enable_external_file_cache = false")
    return connection


def test_credentials_end(brief_lake: VendingLake) -> None:
    file = brief_lake.client(brief_lake.reader).load_table("sales.orders").metadata_location.removeprefix("s3://lake/")
    bucket = brief_lake.bucket(brief_lake.reader)
    before = bucket.read(file)
    time.sleep(LIFE_SECONDS + 1)
    [part] = brief_lake.get(brief_lake.reader, f"{ORDERS}/credentials").json()["storage-credentials"]

    assert (before, VendedBucket(part["config"]).read(file)) == (DONE, DONE)
    assert bucket.read(file) in ("InvalidAccessKeyId", "ExpiredToken")


def test_pyiceberg_asks_for_others(brief_lake: VendingLake) -> None:
    client = brief_lake.client(brief_lake.reader)
    table = client.load_table("sales.orders")
    time.sleep(LIFE_SECONDS + 1)
    with pytest.raises(OSError, match=r"ACCESS_DENIED|InvalidAccessKeyId"):
        table.scan().to_arrow()
    renewed = client.load_credentials("sales.orders", table.metadata_location)
    table.io = load_file_io({**table.io.properties, **renewed})

    assert table.scan().to_arrow().num_rows == 10


def test_duckdb_goes_on_in_a_long_transaction(brief_lake: VendingLake) -> None:
    connection = connect(brief_lake, brief_lake.reader)
    connection.execute("begin")
    read = "select sum(id), count(*) from lake.sales.orders"
    first, loaded = connection.execute(read).fetchall(), loads(brief_lake)
    time.sleep(LIFE_SECONDS + 1)

    assert first == connection.execute(read).fetchall() == [(15, 10)]
    assert loads(brief_lake) > loaded


def test_duckdb_writes_with_credentials_of_the_server(brief_lake: VendingLake) -> None:
    connection = connect(brief_lake, brief_lake.root)
    connection.execute("create table lake.sales.made as select 1 as id")
    connection.execute("insert into lake.sales.made values (2)")

    assert connection.execute("select sum(id) from lake.sales.made").fetchall() == [(3,)]
