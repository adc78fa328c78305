"""How files are reached is said by the client's own properties; what a table or a view says of it is kept, and not obeyed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from canaries import Address, listening, planted_module
from pyiceberg.exceptions import RESTError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from headwater import Store
from headwater.catalogs import Catalogs
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.realms import RealmRegistry

OpenClient = Callable[..., HeadwaterCatalog]
PROVIDER = "write.py-location-provider.impl"


@pytest.fixture
def shop(client: HeadwaterCatalog) -> HeadwaterCatalog:
    client.create_namespace("sales")
    return client


@pytest.fixture
def orders(shop: HeadwaterCatalog, schema: Schema) -> Table:
    return shop.create_table("sales.orders", schema)


@pytest.fixture
def module(tmp_path: Path) -> Iterator[str]:
    """The name of a module; nothing may import it."""
    with planted_module(tmp_path / "canary") as (name, note):
        yield name
        assert not note.exists(), "what a table names was imported"


@pytest.fixture
def hostile(module: str) -> dict[str, str]:
    return {
        "py-io-impl": f"{module}.FileIO",
        PROVIDER: f"{module}.Provider",
        "s3.retry-strategy-impl": f"{module}.FileIO",
        "s3.endpoint": "http://127.0.0.1:1",
        "s3.signer": "S3V4RestSigner",
        "adls.connection-string": "hostile",
    }


@pytest.fixture
def canary() -> Iterator[Address]:
    with listening() as address:
        yield address
    assert address.asked == []


@pytest.fixture
def ours() -> Iterator[Address]:
    """The storage that the client is meant to reach."""
    with listening() as address:
        yield address


def version() -> ViewVersion:
    representations = [SQLViewRepresentation(type="sql", sql="select 1", dialect="spark")]
    return ViewVersion.model_validate(
        {
            "version-id": 1,
            "schema-id": 1,
            "timestamp-ms": 1,
            "summary": {},
            "representations": representations,
            "default-namespace": ["sales"],
        }
    )


def test_new_table_says_nothing_of_how_files_are_reached(
    shop: HeadwaterCatalog, schema: Schema, hostile: dict[str, str]
) -> None:
    table = shop.create_table("sales.orders", schema, properties=hostile)

    assert (table.properties, set(table.io.properties) & set(hostile)) == (hostile, set())


def test_property_that_is_set_later_says_nothing_either(orders: Table, hostile: dict[str, str], rows: pa.Table) -> None:
    with orders.transaction() as transaction:
        transaction.set_properties(**hostile)
    orders.append(rows)
    orders.overwrite(rows)
    orders.delete("id = 1")

    loaded = orders.catalog.load_table("sales.orders")
    assert (loaded.properties, loaded.scan().to_arrow().num_rows) == (hostile, 1)
    assert set(loaded.io.properties) & set(hostile) == set()


def test_staged_table_is_written_without_asking_its_properties(
    shop: HeadwaterCatalog, rows: pa.Table, hostile: dict[str, str]
) -> None:
    with shop.create_table_transaction("sales.orders", rows.schema, properties=hostile) as transaction:
        transaction.append(rows)

    assert shop.load_table("sales.orders").properties == hostile
    assert shop.load_table("sales.orders").scan().to_arrow().num_rows == 2


def test_partitions_are_not_overwritten_by_way_of_a_tables_module(
    shop: HeadwaterCatalog, schema: Schema, hostile: dict[str, str], rows: pa.Table
) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
    table = shop.create_table("sales.orders", schema, partition_spec=spec, properties=hostile)

    with pytest.raises(ValueError, match=PROVIDER):
        table.dynamic_partition_overwrite(rows)


def test_table_is_rid_of_such_a_property(orders: Table, hostile: dict[str, str]) -> None:
    with orders.transaction() as transaction:
        transaction.set_properties(**hostile)
    with orders.transaction() as transaction:
        transaction.remove_properties(*hostile)

    assert orders.catalog.load_table("sales.orders").properties == {}


def test_registered_table_says_nothing_of_how_files_are_reached(
    shop: HeadwaterCatalog, orders: Table, hostile: dict[str, str], rows: pa.Table
) -> None:
    path = Path(orders.metadata_location.removeprefix("file://"))
    path.with_name("v9.metadata.json").write_text(json.dumps(json.loads(path.read_text()) | {"properties": hostile}))
    shop.drop_table("sales.orders")

    table = shop.register_table("sales.orders", path.with_name("v9.metadata.json").as_uri())
    table.append(rows)

    assert shop.rename_table("sales.orders", "sales.lines").properties == hostile
    shop.purge_table("sales.lines")


def test_view_says_nothing_of_how_files_are_reached(shop: HeadwaterCatalog, schema: Schema, hostile: dict[str, str]) -> None:
    shop.create_view("sales.recent", schema, version(), properties=hostile)

    assert shop.load_view("sales.recent").properties == hostile


def test_provider_that_the_client_names_itself_is_used(
    open_client: OpenClient, tmp_path: Path, schema: Schema, rows: pa.Table
) -> None:
    with planted_module(tmp_path / "own") as (name, note):
        client = open_client(**{PROVIDER: f"{name}.Provider"})
        client.create_namespace("sales")
        client.create_table("sales.orders", schema, properties={PROVIDER: f"{name}.Provider"}).append(rows)

        assert note.exists()


def test_secrets_go_to_the_clients_own_endpoint_alone(
    store: Store, open_client: OpenClient, schema: Schema, ours: Address, canary: Address
) -> None:
    Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("far", base_location="s3://bucket/lake")
    reached = {"s3.access-key-id": "ada", "s3.secret-access-key": "secret", "s3.region": "eu-1", "s3.endpoint": ours.url}
    client = open_client(catalog="far", **reached)
    client.create_namespace("sales")

    with suppress(OSError, RESTError):
        client.create_table("sales.orders", schema, properties={"s3.endpoint": canary.url, "s3.proxy-uri": canary.url})

    assert ours.asked
