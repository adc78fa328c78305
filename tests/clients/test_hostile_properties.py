"""How files are reached is said by the client's own properties: nothing else is given them, and imported ones rule nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from canaries import Address, listening, planted_module
from lake_doors import REFUSED, own_properties
from msgspec.structs import replace
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import RESTError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from headwater import Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, IcebergView, Namespace, Put
from headwater.iceberg.metadata_json import split_metadata
from headwater.realms import RealmRegistry

OpenClient = Callable[..., IcebergCatalog]
ORDERS = ContentKey.of("sales", "orders")
PLACE = "s3://bucket/lake/orders"
PROVIDER = "write.py-location-provider.impl"


@pytest.fixture
def shop(client: IcebergCatalog) -> IcebergCatalog:
    client.create_namespace("sales")
    return client


@pytest.fixture
def orders(shop: IcebergCatalog, schema: Schema) -> Table:
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
def visible(door: str, hostile: dict[str, str]) -> dict[str, str]:
    """What a client sees of them: one that would obey them does not get them."""
    return hostile if door == "library" else {}


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


@pytest.fixture
def imported(shop: IcebergCatalog, lake: Catalog, schema: Schema, hostile: dict[str, str]) -> Table:
    """A table that has such properties since before it came into the catalog."""
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
    shop.create_table("sales.orders", schema, partition_spec=spec)
    bring_properties(lake, ORDERS, hostile)
    return shop.load_table("sales.orders")


def file_with(location: str, properties: dict[str, str]) -> str:
    """A metadata file beside another one, with other properties."""
    path = Path(location.removeprefix("file://"))
    path.with_name("v9.metadata.json").write_text(json.dumps(json.loads(path.read_text()) | {"properties": properties}))
    return path.with_name("v9.metadata.json").as_uri()


def bring_properties(lake: Catalog, key: ContentKey, properties: dict[str, str]) -> None:
    """Give a table or view properties as an import does, which takes documents as they are."""
    content = lake.get_content(None, key)
    assert isinstance(content, IcebergTable | IcebergView)
    file = file_with(content.metadata_location, properties)
    parts = split_metadata(Path(file.removeprefix("file://")).read_bytes())
    lake.commit(None, [Put(key, replace(content, metadata_location=file), content, parts)])


def test_new_table_with_such_a_property_is_refused(shop: IcebergCatalog, schema: Schema, hostile: dict[str, str]) -> None:
    for name, value in hostile.items():
        with pytest.raises(REFUSED, match=rf"table sales\.orders cannot have property '{name}'") as error:
            shop.create_table("sales.orders", schema, properties={name: value})
        assert value not in str(error.value)
        with pytest.raises(REFUSED, match=f"cannot have property '{name}'"):
            shop.create_table_transaction("sales.orders", schema, properties={name: value})

    assert shop.list_tables("sales") == []


def test_property_that_is_set_later_is_refused(orders: Table, hostile: dict[str, str]) -> None:
    for name, value in hostile.items():
        with pytest.raises(REFUSED, match=f"cannot have property '{name}'"), orders.transaction() as transaction:
            transaction.set_properties(**{name: value})

    assert orders.catalog.load_table("sales.orders").properties == {}


def test_staged_table_is_refused_at_its_commit(shop: IcebergCatalog, schema: Schema, hostile: dict[str, str]) -> None:
    with (
        pytest.raises(REFUSED, match="cannot have properties"),
        shop.create_table_transaction("sales.orders", schema) as transaction,
    ):
        transaction.set_properties(**hostile)

    assert shop.list_tables("sales") == []


def test_imported_table_is_used_without_asking_its_properties(
    imported: Table, hostile: dict[str, str], visible: dict[str, str], rows: pa.Table
) -> None:
    rows = rows.cast(imported.schema().as_arrow())
    imported.append(rows)
    imported.overwrite(rows)
    imported.delete("id = 1")

    loaded = imported.catalog.load_table("sales.orders")
    assert (loaded.properties, loaded.scan().to_arrow().num_rows) == (visible, 1)
    assert set(loaded.io.properties) & set(hostile) == set()
    assert imported.catalog.rename_table("sales.orders", "sales.lines").properties == visible
    imported.catalog.purge_table("sales.lines")


def test_imported_table_changes_other_properties(imported: Table, visible: dict[str, str]) -> None:
    with imported.transaction() as transaction:
        transaction.set_properties(owner="ann")

    assert imported.catalog.load_table("sales.orders").properties == visible | {"owner": "ann"}


def test_imported_table_keeps_the_value_that_it_has(imported: Table, visible: dict[str, str]) -> None:
    with pytest.raises(REFUSED, match="'py-io-impl'"), imported.transaction() as transaction:
        transaction.set_properties({"py-io-impl": "another.FileIO"})

    assert imported.catalog.load_table("sales.orders").properties == visible


def test_imported_table_is_rid_of_such_a_property(imported: Table, hostile: dict[str, str]) -> None:
    with imported.transaction() as transaction:
        transaction.remove_properties(*hostile)

    assert imported.catalog.load_table("sales.orders").properties == {}


def test_partitions_are_not_overwritten_by_way_of_a_tables_module(imported: Table, rows: pa.Table) -> None:
    with pytest.raises(REFUSED, match=PROVIDER):
        imported.dynamic_partition_overwrite(rows)


def test_registered_table_with_such_a_property_is_refused(shop: IcebergCatalog, orders: Table, hostile: dict[str, str]) -> None:
    file = file_with(orders.metadata_location, hostile)

    for overwrite in (True, False):
        if not overwrite:
            shop.drop_table("sales.orders")
        with pytest.raises(REFUSED, match="cannot have properties") as error:
            shop.register_table("sales.orders", file, overwrite=overwrite)
        assert not [value for value in hostile.values() if value in str(error.value)]


def test_view_with_such_a_property_is_refused(
    shop: IcebergCatalog, lake: Catalog, schema: Schema, hostile: dict[str, str]
) -> None:
    shop.create_view("sales.recent", schema, version())
    content = lake.get_content(None, ContentKey.of("sales", "recent"))
    assert isinstance(content, IcebergView)
    file = file_with(content.metadata_location, hostile)

    with pytest.raises(REFUSED, match=r"view sales\.older cannot have properties"):
        shop.create_view("sales.older", schema, version(), properties=hostile)
    shop.drop_view("sales.recent")
    with pytest.raises(REFUSED, match=r"view sales\.recent cannot have properties"):
        shop.register_view("sales.recent", file)


def test_imported_view_is_loaded_without_asking_its_properties(
    shop: IcebergCatalog, lake: Catalog, schema: Schema, hostile: dict[str, str], visible: dict[str, str]
) -> None:
    shop.create_view("sales.recent", schema, version())
    bring_properties(lake, ContentKey.of("sales", "recent"), hostile)

    assert shop.load_view("sales.recent").properties == visible


def test_namespace_with_such_a_property_is_refused(shop: IcebergCatalog, lake: Catalog, hostile: dict[str, str]) -> None:
    lake.commit(None, [Put(ContentKey.of("old"), Namespace(properties=hostile))])

    with pytest.raises(REFUSED, match="namespace new cannot have properties"):
        shop.create_namespace("new", hostile)
    for namespace in ("sales", "old"):
        with pytest.raises(REFUSED, match=f"namespace {namespace} cannot have property 's3.endpoint'"):
            shop.update_namespace_properties(namespace, updates={"s3.endpoint": "http://elsewhere"})
    shop.update_namespace_properties("old", removals={"py-io-impl"}, updates={"owner": "ann"})

    kept = {name: value for name, value in hostile.items() if name != "py-io-impl"}
    assert own_properties(shop, "old") == kept | {"owner": "ann"}


def test_provider_that_the_client_names_itself_is_used(
    open_client: OpenClient, tmp_path: Path, schema: Schema, rows: pa.Table
) -> None:
    with planted_module(tmp_path / "own") as (name, note):
        client = open_client(**{PROVIDER: f"{name}.Provider"})
        client.create_namespace("sales")
        client.create_table("sales.orders", schema, properties={PROVIDER: f"{name}.Provider"}).append(rows)

        assert note.exists()


def test_secrets_go_to_the_clients_own_endpoint_alone(
    store: Store, open_client: OpenClient, schema: Schema, rows: pa.Table, ours: Address, canary: Address
) -> None:
    Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("far", base_location="s3://bucket/lake")
    reached = {"s3.access-key-id": "ada", "s3.secret-access-key": "secret", "s3.region": "eu-1", "s3.endpoint": ours.url}
    client = open_client(catalog="far", **reached)
    client.create_namespace("sales")
    document = json.loads(new_table_metadata(schema, PartitionSpec(), SortOrder(), PLACE).model_dump_json(exclude_none=True))
    document["properties"] = {"s3.endpoint": canary.url, "s3.proxy-uri": canary.url}
    content = IcebergTable(metadata_location=f"{PLACE}/metadata/v1.metadata.json")
    parts = split_metadata(json.dumps(document).encode())
    far = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("far")
    far.commit(None, [Put(ORDERS, content, metadata=parts)])

    with suppress(OSError, RESTError):
        client.load_table("sales.orders").append(rows)

    assert ours.asked
