"""pyiceberg's own REST catalog against a server over loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    RESTError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion
from rest_caller import new_key

from headwater import Store
from headwater.catalogs import Catalog
from rest_server import serve_store

pytestmark = pytest.mark.long

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "city", StringType()))
ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])


def rows(*values: tuple[int, str]) -> pa.Table:
    return pa.Table.from_pylist([{"id": number, "city": city} for number, city in values], schema=ROWS)


def view_version(sql: str) -> ViewVersion:
    return ViewVersion(
        version_id=1,
        timestamp_ms=1_700_000_000_000,
        schema_id=0,
        summary={"engine-name": "test"},
        representations=[SQLViewRepresentation(type="sql", sql=sql, dialect="spark")],
        default_namespace=["sales"],
    )


def connect(url: str, warehouse: str = "acme/lake", **properties: str) -> RestCatalog:
    return RestCatalog("rest", uri=f"{url}/iceberg", warehouse=warehouse, **properties)


@pytest.fixture
def server_url(store: Store, lake: Catalog) -> Iterator[str]:
    with serve_store(store) as url:
        yield url


@pytest.fixture
def client(server_url: str) -> Iterator[RestCatalog]:
    catalog = connect(server_url)
    catalog.create_namespace("sales", {"owner": "ann"})
    yield catalog
    catalog.close()


def test_pyiceberg_keeps_namespaces(client: RestCatalog) -> None:
    client.create_namespace(("a/b", "c.d"))

    assert client.list_namespaces() == [("a/b",), ("sales",)]
    assert client.list_namespaces(("a/b",)) == [("a/b", "c.d")]
    assert client.namespace_exists(("a/b", "c.d")) and not client.namespace_exists("none")
    summary = client.update_namespace_properties("sales", {"owner"}, {"region": "eu"})
    assert (summary.removed, summary.updated) == (["owner"], ["region"])
    assert client.load_namespace_properties("sales").items() >= {"region": "eu"}.items()
    client.drop_namespace(("a/b", "c.d"))

    with pytest.raises(NamespaceAlreadyExistsError):
        client.create_namespace("sales")
    with pytest.raises(NoSuchNamespaceError):
        client.load_namespace_properties("none")


def test_pyiceberg_appends_and_reads(client: RestCatalog) -> None:
    table = client.create_table("sales.orders", SCHEMA)
    table.append(rows((1, "Bern"), (2, "Graz")))
    table.append(rows((3, "Lyon")))

    again = client.load_table("sales.orders")
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert len(again.metadata.snapshots) == 2
    assert client.table_exists("sales.orders") and client.list_tables("sales") == [("sales", "orders")]
    with pytest.raises(TableAlreadyExistsError):
        client.create_table("sales.orders", SCHEMA)
    with pytest.raises(NamespaceNotEmptyError):
        client.drop_namespace("sales")


def test_pyiceberg_changes_schema_partitions_and_properties(client: RestCatalog) -> None:
    table = client.create_table("sales.orders", SCHEMA)
    with table.update_schema() as update:
        update.add_column("price", LongType())
    with table.update_spec() as spec:
        spec.add_field("city", IdentityTransform(), "city")
    with table.transaction() as transaction:
        transaction.set_properties({"owner": "ann"})
    table.append(
        pa.Table.from_pylist([{"id": 1, "city": "Bern", "price": 7}], schema=ROWS.append(pa.field("price", pa.int64())))
    )
    table.delete("id = 1")

    again = client.load_table("sales.orders")
    assert [field.name for field in again.schema().fields] == ["id", "city", "price"]
    assert again.properties["owner"] == "ann" and again.scan().to_arrow().num_rows == 0


def test_pyiceberg_creates_a_table_by_a_transaction(client: RestCatalog) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
    with client.create_table_transaction("sales.orders", SCHEMA, partition_spec=spec) as creation:
        assert not client.table_exists("sales.orders")
        creation.append(rows((1, "Bern")))

    assert client.load_table("sales.orders").scan().to_arrow().num_rows == 1


def test_pyiceberg_refreshes_after_another_writer(server_url: str, client: RestCatalog) -> None:
    client.create_table("sales.orders", SCHEMA)
    mine, theirs = client.load_table("sales.orders"), connect(server_url).load_table("sales.orders")

    theirs.append(rows((1, "Bern")))
    mine.append(rows((2, "Graz")))

    assert sorted(client.load_table("sales.orders").scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_pyiceberg_renames_drops_and_registers(client: RestCatalog) -> None:
    created = client.create_table("sales.orders", SCHEMA)
    client.create_namespace("archive")

    renamed = client.rename_table("sales.orders", "archive.old")
    assert renamed.metadata.table_uuid == created.metadata.table_uuid
    client.drop_table("archive.old")
    with pytest.raises(NoSuchTableError):
        client.load_table("archive.old")
    back = client.register_table("archive.back", created.metadata_location)
    assert back.metadata == created.metadata
    client.purge_table("archive.back")
    assert not client.table_exists("archive.back")


def test_pyiceberg_keeps_views(client: RestCatalog) -> None:
    client.create_view("sales.recent", SCHEMA, view_version("select 1"), properties={"owner": "ann"})

    assert client.list_views("sales") == [("sales", "recent")] and client.view_exists("sales.recent")
    assert client.load_view("sales.recent").metadata.properties == {"owner": "ann"}
    with pytest.raises(ViewAlreadyExistsError):
        client.create_view("sales.recent", SCHEMA, view_version("select 2"))
    client.drop_view("sales.recent")
    with pytest.raises(NoSuchViewError):
        client.load_view("sales.recent")


def test_pyiceberg_works_on_a_branch(server_url: str, client: RestCatalog, lake: Catalog) -> None:
    client.create_table("sales.orders", SCHEMA).append(rows((1, "Bern")))
    lake.create_branch("feature/x")
    lake.create_tag("v1")
    branch, tag = (connect(server_url, f"acme/lake@{name}") for name in ("feature/x", "v1"))

    branch.load_table("sales.orders").append(rows((2, "Graz")))

    assert branch.load_table("sales.orders").scan().to_arrow().num_rows == 2
    assert client.load_table("sales.orders").scan().to_arrow().num_rows == 1
    with pytest.raises(BadRequestError, match="'v1'"):
        tag.load_table("sales.orders").append(rows((3, "Lyon")))


def test_pyiceberg_loads_only_snapshots_with_references(server_url: str, client: RestCatalog) -> None:
    table = client.create_table("sales.orders", SCHEMA)
    for number in range(3):
        table.append(rows((number, "Bern")))

    trimmed = connect(server_url, **{"snapshot-loading-mode": "refs"}).load_table("sales.orders")

    assert len(trimmed.metadata.snapshots) == 1 and trimmed.scan().to_arrow().num_rows == 3


def test_pyiceberg_follows_pages(server_url: str, client: RestCatalog) -> None:
    for name in "abcde":
        client.create_table(f"sales.{name}", SCHEMA)

    paged = connect(server_url, **{"rest-page-size": "2"})

    assert paged.list_tables("sales") == [("sales", name) for name in "abcde"]


def test_pyiceberg_with_a_credential_is_told_to_do_without(server_url: str) -> None:
    with pytest.warns(DeprecationWarning), pytest.raises(RESTError, match="remove credential"):
        connect(server_url, credential="root:geheim")


def test_pyiceberg_is_told_which_warehouse_is_missing(server_url: str) -> None:
    with pytest.raises(RESTError, match="NoSuchWarehouseException"):
        connect(server_url, "acme/none")


def test_transaction_over_the_wire_is_one_commit(server_url: str, client: RestCatalog, lake: Catalog) -> None:
    for name in ("a", "b"):
        client.create_table(f"sales.{name}", SCHEMA)
    before = len(list(lake.log()))

    def change(name: str) -> dict[str, Any]:
        updates = [{"action": "set-properties", "updates": {"owner": "ann"}}]
        return {"identifier": {"namespace": ["sales"], "name": name}, "requirements": [], "updates": updates}

    url, headers = f"{server_url}/iceberg/v1/acme~lake/transactions/commit", {"Idempotency-Key": new_key()}
    statuses = [
        requests.post(url, json={"table-changes": [change("a"), change("b")]}, headers=headers, timeout=10).status_code
        for _ in range(2)
    ]

    assert statuses == [204, 204] and len(list(lake.log())) == before + 1


def test_table_that_was_dropped_meanwhile_is_a_failed_commit(client: RestCatalog) -> None:
    table = client.create_table("sales.orders", SCHEMA)
    client.drop_table("sales.orders")

    with pytest.raises((CommitFailedException, NoSuchTableError, RESTError), match="does not exist"):
        table.append(rows((1, "Bern")))
