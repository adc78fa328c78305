"""Tables that exist in their storage, put into a catalog."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from lake_doors import NO_NAMESPACE, REFUSED
from pydantic import ValidationError
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.table import Table

from headwater.catalogs import Catalog, ContentKey, IcebergTable, Namespace, Put
from headwater.iceberg.metadata_json import split_metadata

ORDERS = ContentKey.of("sales", "orders")


@pytest.fixture
def make_stray(tmp_path: Path, warehouse: str, rows: pa.Table) -> Callable[[str], Table]:
    """A table with two rows that another catalog has made in the warehouse."""

    def make(name: str) -> Table:
        with SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db", warehouse=warehouse) as other:
            other.create_namespace_if_not_exists("stray")
            table = other.create_table(f"stray.{name}", rows.schema)
            table.append(rows)
            return table

    return make


@pytest.fixture
def stray(make_stray: Callable[[str], Table]) -> Table:
    return make_stray("orders")


@pytest.fixture
def edited(stray: Table) -> Callable[..., str]:
    """The location of a copy of the stray table's metadata with some fields changed."""

    def edit(name: str = "edited.metadata.json", **fields: Any) -> str:
        path = Path(stray.metadata_location.removeprefix("file://"))
        document = json.loads(path.read_text()) | {name.replace("_", "-"): value for name, value in fields.items()}
        text = json.dumps({key: value for key, value in document.items() if value is not None}).encode()
        path.with_name(name).write_bytes(gzip.compress(text) if ".gz." in name else text)
        return path.with_name(name).as_uri()

    return edit


def test_registered_table_is_read_where_it_lies(catalog: IcebergCatalog, stray: Table) -> None:
    catalog.create_namespace("sales")

    registered = catalog.register_table("sales.orders", stray.metadata_location)

    assert (registered.name(), registered.metadata_location) == (("sales", "orders"), stray.metadata_location)
    assert catalog.load_table("sales.orders").scan().to_arrow().num_rows == 2


def test_registered_table_can_be_changed(catalog: IcebergCatalog, stray: Table, rows: pa.Table) -> None:
    catalog.create_namespace("sales")

    catalog.register_table("sales.orders", stray.metadata_location).append(rows)

    assert catalog.load_table("sales.orders").scan().to_arrow().num_rows == 4


def test_table_is_not_registered_over_another(catalog: IcebergCatalog, stray: Table) -> None:
    catalog.create_namespace("sales")
    catalog.register_table("sales.orders", stray.metadata_location)

    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table("sales.orders", stray.metadata_location)


def test_table_is_not_registered_in_a_missing_namespace(catalog: IcebergCatalog, stray: Table) -> None:
    with pytest.raises(NO_NAMESPACE, match="sales"):
        catalog.register_table("sales.orders", stray.metadata_location)


# ours only


@pytest.fixture
def shop(client: IcebergCatalog) -> IcebergCatalog:
    client.create_namespace("sales")
    return client


def test_packed_metadata_is_told_by_its_content(shop: IcebergCatalog, edited: Callable[..., str]) -> None:
    location = edited("v7.gz.metadata.json")

    assert shop.register_table("sales.orders", location).metadata == shop.load_table("sales.orders").metadata


def test_one_table_is_not_registered_twice(shop: IcebergCatalog, stray: Table) -> None:
    shop.register_table("sales.orders", stray.metadata_location)

    with pytest.raises(REFUSED, match="would delete each other's files"):
        shop.register_table("sales.lines", stray.metadata_location)


def test_table_dropped_and_registered_again_is_the_same_content(shop: IcebergCatalog, lake: Catalog, stray: Table) -> None:
    shop.register_table("sales.orders", stray.metadata_location)
    before = lake.get_content(None, ORDERS)
    shop.drop_table("sales.orders")

    shop.register_table("sales.orders", stray.metadata_location)

    assert lake.get_content(None, ORDERS) == before


def test_registering_over_the_same_table_moves_it(
    shop: IcebergCatalog, lake: Catalog, stray: Table, edited: Callable[..., str]
) -> None:
    shop.register_table("sales.orders", stray.metadata_location)
    before = lake.get_content(None, ORDERS)

    shop.register_table("sales.orders", edited(properties={"owner": "ann"}), overwrite=True)

    now = lake.get_content(None, ORDERS)
    assert before is not None and now is not None and (now.id, now == before) == (before.id, False)
    assert shop.load_table("sales.orders").properties == {"owner": "ann"}


def test_registering_over_another_table_takes_its_place(
    shop: IcebergCatalog, lake: Catalog, make_stray: Callable[[str], Table]
) -> None:
    shop.register_table("sales.orders", make_stray("a").metadata_location)
    before = lake.get_content(None, ORDERS)

    shop.register_table("sales.orders", make_stray("b").metadata_location, overwrite=True)

    now = lake.get_content(None, ORDERS)
    assert before is not None and now is not None and now.id != before.id


@pytest.mark.parametrize("is_same", [True, False])
def test_tables_without_a_uuid_are_told_apart_by_their_location(
    shop: IcebergCatalog, lake: Catalog, edited: Callable[..., str], warehouse: str, is_same: bool
) -> None:
    fields = {"format_version": 1, "table_uuid": None, "partition_spec": [], "schema": {"type": "struct", "fields": []}}
    fields |= {"snapshots": [], "current_snapshot_id": -1, "refs": {}, "metadata_log": []}
    shop.register_table("sales.orders", edited(**fields))
    before = lake.get_content(None, ORDERS)
    place = Path(warehouse.removeprefix("file://")) / "another" / "metadata" / "v1.metadata.json"
    place.parent.mkdir(parents=True)
    elsewhere = Path(edited("other.metadata.json", **fields | {"location": f"{warehouse}/another"}).removeprefix("file://"))
    shutil.copy(elsewhere, place)

    shop.register_table("sales.orders", edited("v2.metadata.json", **fields) if is_same else place.as_uri(), overwrite=True)

    now = lake.get_content(None, ORDERS)
    assert before is not None and now is not None and (now.id == before.id) == is_same


@pytest.mark.parametrize(
    "fields", [{"location": "s3://elsewhere/orders"}, {"properties": {"write.data.path": "s3://elsewhere/data"}}]
)
def test_table_with_files_outside_of_the_allowed_is_refused(
    shop: IcebergCatalog, edited: Callable[..., str], fields: dict[str, Any]
) -> None:
    with pytest.raises(REFUSED, match="outside the locations that catalog 'lake' allows"):
        shop.register_table("sales.orders", edited(**fields))


def test_table_whose_snapshots_point_outside_is_refused(shop: IcebergCatalog, stray: Table, edited: Callable[..., str]) -> None:
    snapshots = [json.loads(one.model_dump_json()) | {"manifest-list": "s3://other/x.avro"} for one in stray.metadata.snapshots]

    with pytest.raises(REFUSED, match=r"files at s3://other/x\.avro"):
        shop.register_table("sales.orders", edited(snapshots=snapshots))


def test_table_of_version_1_gets_no_uuid_in_the_catalog(
    shop: IcebergCatalog, lake: Catalog, edited: Callable[..., str]
) -> None:
    location = edited(format_version=1, table_uuid=None, partition_spec=[], schema={"type": "struct", "fields": []})

    shop.register_table("sales.orders", location)

    content = lake.get_content(None, ORDERS)
    assert content is not None and content.table_uuid is None  # type: ignore[union-attr]  # it is a table


def test_file_that_is_no_metadata_is_refused(shop: IcebergCatalog, stray: Table) -> None:
    path = Path(stray.metadata_location.removeprefix("file://")).with_name("empty.metadata.json")
    path.write_bytes(b"")

    with pytest.raises(REFUSED, match="is empty"):
        shop.register_table("sales.orders", path.as_uri())

    assert shop.list_tables("sales") == []


def test_table_that_pyiceberg_does_not_read_is_named(client: IcebergCatalog, lake: Catalog, warehouse: str) -> None:
    document = {
        "format-version": 2,
        "table-uuid": str(uuid4()),
        "location": f"{warehouse}/t",
        "properties": {"secret": "hidden"},
    }
    location = f"{warehouse}/t/metadata/v1.metadata.json"
    put = Put(
        ContentKey.of("n", "t"),
        IcebergTable(metadata_location=location),
        metadata=split_metadata(json.dumps(document).encode()),
    )
    lake.commit(None, [Put(ContentKey.of("n"), Namespace()), put])

    with pytest.raises(REFUSED, match=f"{location} is no metadata of a table as pyiceberg reads it") as refusal:
        client.load_table("n.t")
    assert not isinstance(refusal.value, ValidationError)
    assert "hidden" not in str(refusal.value)
