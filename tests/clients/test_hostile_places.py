"""A table has its own places and no others: judged by their names, before a byte is read, and told of without a word of what is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lake_doors import REFUSED
from msgspec.structs import replace
from noted_files import NotedFiles
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    SetLocationUpdate,
    SetPartitionStatisticsUpdate,
    SetPropertiesUpdate,
    SetStatisticsUpdate,
    TableUpdate,
)
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

from headwater import Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Namespace, Put, TableClaim, TableClaims
from headwater.errors import RefusedError
from headwater.iceberg.metadata_json import split_metadata
from headwater.iceberg.table_places import check_files_inside
from headwater.realms import RealmRegistry

OpenClient = Callable[..., IcebergCatalog]
PATHS = ["write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"]
SECRET = "root:x:0:0:hunter2"
VERSION = ViewVersion.model_validate(
    {
        "version-id": 1,
        "schema-id": 7,
        "default-namespace": ["sales"],
        "representations": [ViewRepresentation(root=SQLViewRepresentation(type="sql", sql="SELECT 1", dialect="spark"))],
    }
)


@pytest.fixture
def shop(client: IcebergCatalog) -> IcebergCatalog:
    client.create_namespace("sales")
    return client


@pytest.fixture
def victim(shop: IcebergCatalog, rows: pa.Table) -> Table:
    table = shop.create_table("sales.victim", rows.schema)
    table.append(rows)
    return table


@pytest.fixture
def orders(shop: IcebergCatalog, schema: Schema) -> Table:
    return shop.create_table("sales.orders", schema)


@pytest.fixture
def stranger(store: Store, open_client: OpenClient, warehouse: str) -> IcebergCatalog:
    """A client of another catalog of the realm, which allows the same place."""
    Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("other", base_location=warehouse)
    made = open_client(catalog="other")
    made.create_namespace("mine")
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file outside of what the catalog allows, which nobody may read."""
    path = tmp_path / "secrets.json"
    path.write_text(SECRET)
    return path


def told(error: pytest.ExceptionInfo[BaseException]) -> str:
    """All that the error, and those that led to it, say."""
    texts, fault = [], error.value
    while fault is not None:
        texts.append(str(fault))
        fault = fault.__cause__  # type: ignore[assignment]  # None at the end
    return " ".join(texts)


def rewritten(table: Table, name: str = "v9.metadata.json", **fields: Any) -> str:
    """A metadata file of a table with other fields, beside its own."""
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text()) | {field.replace("_", "-"): value for field, value in fields.items()}
    path.with_name(name).write_text(json.dumps(document))
    return path.with_name(name).as_uri()


def test_place_outside_is_refused_alike_if_missing(shop: IcebergCatalog, outside: Path) -> None:
    texts = []
    for path in (outside, outside.with_name("nothing.json")):
        with pytest.raises(REFUSED, match="outside the locations that catalog 'lake' allows") as error:
            shop.register_table("sales.orders", path.as_uri())
        texts.append(told(error).replace(path.name, ""))

    assert texts[0] == texts[1]
    assert "hunter2" not in texts[0]


@pytest.mark.parametrize(
    "spelled",
    [
        "{warehouse}/../secrets.json",
        "{warehouse}/%2e%2e/secrets.json",
        "{warehouse}/..%2fsecrets.json",
        "{warehouse}/\t../secrets.json",
        "FILE:{path}",
        "file:{path}",
        "{path}",
        "file://localhost{path}",
        "file://elsewhere{path}",
        "relative/secrets.json",
        "",
    ],
)
def test_no_spelling_leads_outside(shop: IcebergCatalog, outside: Path, warehouse: str, spelled: str) -> None:
    location = spelled.format(warehouse=warehouse, path=outside)

    for register in (shop.register_table, shop.register_view):
        with pytest.raises(REFUSED) as error:  # what is refused has several reasons
            register("sales.orders", location)
        assert "hunter2" not in told(error)


def test_link_leads_nowhere(shop: IcebergCatalog, outside: Path, warehouse: str) -> None:
    link = Path(warehouse.removeprefix("file://")) / "orders"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside.parent)

    with pytest.raises(REFUSED, match="reached through a symbolic link"):
        shop.register_table("sales.orders", f"{link.as_uri()}/secrets.json")


def test_file_that_is_no_metadata_is_refused_untold(shop: IcebergCatalog, victim: Table) -> None:
    path = Path(victim.metadata_location.removeprefix("file://"))
    for name, text in (("a.json", SECRET), ("b.json", json.dumps({"format-version": SECRET, SECRET: 1}))):
        path.with_name(name).write_text(text)

        for register in (shop.register_table, shop.register_view):
            with pytest.raises(REFUSED, match=r"is no (sound )?metadata of a|is no JSON object") as error:
                register("sales.orders", path.with_name(name).as_uri())
            assert "hunter2" not in told(error)


def test_purge_says_nothing_of_what_is_in_a_file(shop: IcebergCatalog, victim: Table) -> None:
    snapshot = victim.current_snapshot()
    assert snapshot is not None
    Path(snapshot.manifest_list.removeprefix("file://")).write_text(SECRET)

    with pytest.raises(REFUSED, match="is not an Avro manifest or manifest list") as error:
        shop.purge_table("sales.victim")
    assert "hunter2" not in told(error)


def test_content_that_points_outside_is_not_read(shop: IcebergCatalog, lake: Catalog, outside: Path) -> None:
    """Not everybody who commits to a catalog is a client of it."""
    content = IcebergTable(metadata_location=outside.as_uri(), snapshot_id=-1, schema_id=0, spec_id=0, sort_order_id=0)
    lake.commit(None, [Put(ContentKey.of("sales", "planted"), content)])

    for use in (shop.load_table, shop.purge_table, lambda name: shop.rename_table(name, "sales.other")):
        with pytest.raises(REFUSED, match="outside the locations that catalog 'lake' allows") as error:
            use("sales.planted")
        assert "hunter2" not in told(error)


def test_refusal_of_an_overlap_says_nothing_of_the_other(
    stranger: IcebergCatalog, victim: Table, lake: Catalog, schema: Schema
) -> None:
    content = lake.get_content(None, ContentKey.of("sales", "victim"))
    above = victim.location().rpartition("/")[0]

    with pytest.raises(REFUSED, match="a place of another table") as error:
        stranger.create_table("mine.orders", schema, location=above)

    assert content is not None
    assert not [one for one in (lake.definition.id, str(content.id), "victim", "lake'") if one in told(error)]


@pytest.mark.parametrize("name", PATHS)
def test_no_path_of_a_new_table_lies_within_another_table(
    stranger: IcebergCatalog, victim: Table, schema: Schema, name: str
) -> None:
    properties = {name: f"{victim.location()}/data"}

    with pytest.raises(REFUSED, match="a place of another table"):
        stranger.create_table("mine.orders", schema, properties=properties)
    with pytest.raises(REFUSED, match="a place of another table"):
        stranger.create_table_transaction("mine.orders", schema, properties=properties)


@pytest.mark.parametrize("name", PATHS)
def test_no_path_that_is_set_later_lies_within_another_table(orders: Table, victim: Table, name: str) -> None:
    with pytest.raises(REFUSED, match="a place of another table"), orders.transaction() as transaction:
        transaction.set_properties({name: f"{victim.location()}/data"})

    assert orders.catalog.load_table("sales.orders").properties == {}


def test_no_file_is_written_where_another_table_lies(
    open_client: OpenClient, victim: Table, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one that is removed when the commit is refused."""
    client = open_client(**{"py-io-impl": "noted_files.NotedFiles"})
    orders = client.create_table("sales.orders", schema)
    monkeypatch.setattr(NotedFiles, "written", written := list[str]())
    properties = {"write.metadata.path": f"{victim.location()}/metadata"}

    with pytest.raises(REFUSED, match="a place of another table"):
        client.create_table("sales.lines", schema, properties=properties)
    with pytest.raises(REFUSED, match="a place of another table"), orders.transaction() as transaction:
        transaction.set_properties(properties)
    with pytest.raises(REFUSED, match="a place of another table"):
        client.create_view("sales.totals", schema, VERSION, properties=properties)

    assert written == []


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
def test_transaction_writes_nothing_where_another_table_lies(
    open_client: OpenClient, victim: Table, rows: pa.Table, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    client = open_client(**{"py-io-impl": "noted_files.NotedFiles"})
    orders = client.create_table("sales.orders", rows.schema)
    monkeypatch.setattr(NotedFiles, "written", written := list[str]())
    properties = {name: f"{victim.location()}/data"}

    for begin in (orders.transaction, lambda: client.create_table_transaction("sales.lines", rows.schema)):
        with pytest.raises(REFUSED, match="a place of another table"), begin() as transaction:
            transaction.set_properties(properties)
            transaction.append(rows)

    assert written == []


def test_transaction_writes_where_a_path_that_it_sets_leads(
    shop: IcebergCatalog, orders: Table, rows: pa.Table, warehouse: str
) -> None:
    with orders.transaction() as transaction:
        transaction.set_properties({"write.data.path": f"{warehouse}/apart"})
        transaction.append(rows.cast(orders.schema().as_arrow()))

    assert len(list(Path(warehouse.removeprefix("file://"), "apart").glob("*.parquet"))) == 1


def test_no_table_lies_within_the_path_of_another(
    shop: IcebergCatalog, stranger: IcebergCatalog, schema: Schema, warehouse: str
) -> None:
    shop.create_table("sales.orders", schema, properties={"write.data.path": f"{warehouse}/apart"})

    for place in (f"{warehouse}/apart", f"{warehouse}/apart/deeper"):
        with pytest.raises(REFUSED, match="a place of another table"):
            stranger.create_table("mine.orders", schema, location=place)


def test_path_that_is_set_later_is_claimed(orders: Table, store: Store, warehouse: str) -> None:
    with orders.transaction() as transaction:
        transaction.set_properties({"write.data.path": f"{warehouse}/later"})

    assert TableClaims(RealmRegistry(store).open_realm("acme")).find_location(f"{warehouse}/later") is not None


def test_path_within_the_table_itself_is_fine(shop: IcebergCatalog, rows: pa.Table, warehouse: str) -> None:
    properties = {"write.data.path": f"{warehouse}/own/files", "write.metadata.path": f"{warehouse}/own/about"}
    table = shop.create_table("sales.orders", rows.schema, location=f"{warehouse}/own", properties=properties)
    table.append(rows)

    assert shop.load_table("sales.orders").scan().to_arrow().num_rows == 2


def test_path_besides_the_location_is_written_and_read(shop: IcebergCatalog, rows: pa.Table, warehouse: str) -> None:
    properties = {"write.data.path": f"{warehouse}/files", "write.metadata.path": f"{warehouse}/about"}
    shop.create_table("sales.orders", rows.schema, properties=properties).append(rows)

    assert shop.load_table("sales.orders").scan().to_arrow().num_rows == 2
    assert len(list(Path(warehouse.removeprefix("file://"), "about").glob("*.avro"))) == 2


def test_path_unclaimed_by_an_earlier_release_is_claimed_next(
    shop: IcebergCatalog, store: Store, schema: Schema, warehouse: str
) -> None:
    table = shop.create_table("sales.orders", schema, properties={"write.data.path": f"{warehouse}/apart"})
    claims = TableClaims(RealmRegistry(store).open_realm("acme"))
    owner = claims.find_location(f"{warehouse}/apart")
    assert owner is not None
    claims.release_own([TableClaim(owner.catalog_id, owner.content_id, f"{warehouse}/apart")])

    with table.transaction() as transaction:
        transaction.set_properties(owner="ann")

    assert claims.find_location(f"{warehouse}/apart") is not None


def test_two_spellings_of_one_place_are_one(orders: Table, victim: Table, schema: Schema) -> None:
    """Who reads URLs drops tabs and line ends, and stops at a question mark."""
    for place in (victim.location()[:-3] + "\t" + victim.location()[-3:], victim.location() + "?x", victim.location() + "#x"):
        with pytest.raises(REFUSED, match="read differently by different drivers"):
            orders.catalog.create_table("sales.more", schema, location=place)
        with pytest.raises(REFUSED, match="read differently by different drivers"):
            orders.catalog.commit_table(orders, (), (SetLocationUpdate(location=place),))


def added(victim: Table) -> list[TableUpdate]:
    """What leads to the files of another table."""
    snapshot = victim.current_snapshot()
    assert snapshot is not None
    statistics = {"snapshot-id": snapshot.snapshot_id, "statistics-path": snapshot.manifest_list, "file-size-in-bytes": 9}
    puffin = StatisticsFile.model_validate(statistics | {"file-footer-size-in-bytes": 9, "blob-metadata": []})
    parts = PartitionStatisticsFile.model_validate(statistics)
    return [
        AddSnapshotUpdate(snapshot=snapshot),
        SetStatisticsUpdate(statistics=puffin),
        SetPartitionStatisticsUpdate(partition_statistics=parts),
    ]


@pytest.mark.parametrize("number", range(3))
def test_commit_adds_no_file_of_another_table(orders: Table, victim: Table, number: int) -> None:
    with pytest.raises(REFUSED, match="outside the table's own places"):
        orders.catalog.commit_table(orders, (), (added(victim)[number],))

    assert orders.catalog.load_table("sales.orders").metadata.snapshots == []


def test_place_that_a_commit_brings_is_no_way_around(orders: Table, victim: Table) -> None:
    updates = (SetPropertiesUpdate(updates={"write.metadata.path": f"{victim.location()}/metadata"}), added(victim)[0])

    with pytest.raises(REFUSED, match="a place of another table"):
        orders.catalog.commit_table(orders, (), updates)


def test_place_that_an_import_took_from_elsewhere_stays(
    shop: IcebergCatalog, lake: Catalog, orders: Table, victim: Table, rows: pa.Table
) -> None:
    snapshot = json.loads(added(victim)[0].model_dump_json())["snapshot"]
    moved = rewritten(orders, snapshots=[snapshot], current_snapshot_id=snapshot["snapshot-id"], last_sequence_number=1)
    content = lake.get_content(None, ContentKey.of("sales", "orders"))
    assert isinstance(content, IcebergTable)
    parts = split_metadata(Path(moved.removeprefix("file://")).read_bytes())
    lake.commit(None, [Put(ContentKey.of("sales", "orders"), replace(content, metadata_location=moved), content, parts)])

    shop.load_table("sales.orders").append(rows)

    assert shop.load_table("sales.orders").scan().to_arrow().num_rows == 4


def test_table_of_another_catalog_is_not_registered(stranger: IcebergCatalog, victim: Table, warehouse: str) -> None:
    with pytest.raises(REFUSED, match="a place of another table"):
        stranger.register_table("mine.orders", victim.metadata_location)
    with pytest.raises(REFUSED, match="a place of another table"):
        stranger.register_table("mine.orders", f"{victim.location()}/nothing.json")


def test_registered_table_does_not_lead_to_anothers_files(
    shop: IcebergCatalog, stranger: IcebergCatalog, victim: Table, schema: Schema
) -> None:
    snapshot = json.loads(added(victim)[0].model_dump_json())["snapshot"]
    for client, name in ((shop, "sales.orders"), (stranger, "mine.orders")):
        own = client.create_table(name, schema)
        moved = rewritten(own, snapshots=[snapshot], current_snapshot_id=snapshot["snapshot-id"], last_sequence_number=1)

        with pytest.raises(REFUSED, match="a place of another table"):
            client.register_table(name, moved, overwrite=True)


def test_registered_file_lies_with_its_table(shop: IcebergCatalog, orders: Table, warehouse: str) -> None:
    away = Path(warehouse.removeprefix("file://")) / "dropbox" / "v1.metadata.json"
    away.parent.mkdir()
    away.write_bytes(Path(orders.metadata_location.removeprefix("file://")).read_bytes())
    shop.drop_table("sales.orders")

    with pytest.raises(REFUSED, match="outside the table's own places"):
        shop.register_table("sales.orders", away.as_uri())


def test_namespaces_location_is_no_way_outside(shop: IcebergCatalog, lake: Catalog, schema: Schema, tmp_path: Path) -> None:
    lake.commit(None, [Put(ContentKey.of("far"), Namespace(properties={"location": (tmp_path / "far").as_uri()}))])

    with pytest.raises(REFUSED, match="outside the locations that catalog 'lake' allows"):
        shop.create_table_transaction("far.orders", schema)


def test_file_that_is_there_is_neither_overwritten_nor_removed(
    shop: IcebergCatalog, orders: Table, lake: Catalog, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where names of files are given twice, and a collection has let go of the place."""
    name = Path(orders.metadata_location).name
    monkeypatch.setattr("headwater.iceberg_catalog.lake_files.own_name", lambda *_: name)
    before = StaticTable.from_metadata(orders.metadata_location).metadata
    content = lake.get_content(None, ContentKey.of("sales", "orders"))
    assert content is not None and content.id is not None
    shop.drop_table("sales.orders")
    TableClaims(RealmRegistry(store).open_realm("acme")).release_own(
        [TableClaim(lake.definition.id, content.id, orders.location())]
    )

    with pytest.raises((FileExistsError, TableAlreadyExistsError), match=r"already exists|there is a file"):
        shop.create_table("sales.lines", orders.schema(), location=orders.location())

    assert StaticTable.from_metadata(orders.metadata_location).metadata == before


@pytest.mark.parametrize(
    ("file", "is_own"),
    [
        ("s3://b//odd?/metadata/a.avro", True),
        ("s3a://b/plain/metadata/a.avro", True),
        ("s3://b//odd?/../other/a.avro", False),
        ("s3://b//odd?//a.avro", False),
        ("s3://b//odd?/a.avro?x", False),
        ("s3://b/plainer/a.avro", False),
        ("s3a://b//odd?/a.avro", False),
    ],
)
def test_file_is_spelled_plainly_below_a_place_that_is_not(file: str, is_own: bool) -> None:
    """An import may have taken a place with doubled slashes, and its table can be written to."""
    places = ["s3://b//odd?", "s3://b/plain"]

    with nullcontext() if is_own else pytest.raises(RefusedError, match="outside the table's own places"):
        check_files_inside([file], places, of="sales.orders")
