"""What pyiceberg can do to a table, over REST, beyond the tests that go through both doors of a lake."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from client_lakes import SCHEMA, ClientLake, rows
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.statistics import BlobMetadata, StatisticsFile
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

pytestmark = pytest.mark.long


@pytest.fixture
def orders(lake: ClientLake) -> Table:
    return lake.create_orders((1, "Bern"), (2, "Graz"))


def test_columns_are_added_renamed_moved_widened_and_deleted(lake: ClientLake, orders: Table) -> None:
    with orders.update_schema() as update:
        update.add_column("price", IntegerType(), doc="in cents")
        update.add_column("note", StringType())
        update.rename_column("city", "town")
        update.move_first("city")
        update.make_column_optional("id")
    with orders.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("price", LongType())
        update.delete_column("note")
        update.union_by_name(Schema(NestedField(9, "country", StringType())))

    fields = lake.connect().load_table("sales.orders").schema().fields
    assert [(field.name, str(field.field_type)) for field in fields] == [
        ("town", "string"),
        ("id", "long"),
        ("price", "long"),
        ("country", "string"),
    ]


def test_identifiers_partitions_and_order_are_changed(lake: ClientLake, orders: Table) -> None:
    with orders.update_schema() as update:
        update.set_identifier_fields("id")
    with orders.update_spec() as spec:
        spec.add_field("id", IdentityTransform(), "id_part")
        spec.add_identity("city")
    with orders.update_spec() as spec:
        spec.rename_field("id_part", "part")
        spec.remove_field("city")
    with orders.update_sort_order() as order:
        order.asc("city", IdentityTransform())

    table = lake.connect().load_table("sales.orders")
    assert table.schema().identifier_field_names() == {"id"}
    assert [field.name for field in table.spec().fields] == ["part"]
    assert [field.source_id for field in table.sort_order().fields] == [2]
    table.append(rows((3, "Lyon")))
    assert lake.ids() == [1, 2, 3]


def test_upsert_updates_and_inserts(lake: ClientLake, orders: Table) -> None:
    result = orders.upsert(rows((2, "Linz"), (3, "Lyon")), join_cols=["id"])

    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert lake.ids() == [1, 2, 3]


def test_partition_is_overwritten_by_its_rows(lake: ClientLake) -> None:
    client = lake.connect()
    client.create_namespace("sales")
    spec = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="city"))
    table = client.create_table("sales.orders", SCHEMA, partition_spec=spec)
    table.append(rows((1, "Bern"), (2, "Graz")))

    table.dynamic_partition_overwrite(rows((3, "Graz")))

    assert lake.ids() == [1, 3]
    assert table.inspect.partitions().num_rows == 2


def test_files_of_others_are_added(lake: ClientLake, orders: Table) -> None:
    file = Path(orders.location().removeprefix("file://")) / "data" / "added.parquet"
    pq.write_table(rows((7, "Oslo")), file)

    orders.add_files([file.as_uri()])

    assert lake.ids() == [1, 2, 7]


def test_snapshots_are_rolled_back_tagged_and_expired(lake: ClientLake, orders: Table) -> None:
    first = orders.metadata.current_snapshot_id or 0
    orders.append(rows((3, "Lyon")))
    second = orders.metadata.current_snapshot_id or 0
    orders.manage_snapshots().create_tag(second, "v2").create_branch(first, "old").commit()

    orders.manage_snapshots().rollback_to_snapshot(first).commit()
    assert lake.ids() == [1, 2]
    orders.manage_snapshots().set_current_snapshot(second).commit()
    assert lake.ids() == [1, 2, 3]

    orders.manage_snapshots().remove_branch("old").remove_tag("v2").commit()
    orders.maintenance.expire_snapshots().by_id(first).commit()
    table = lake.connect().load_table("sales.orders")
    assert ([snapshot.snapshot_id for snapshot in table.snapshots()], set(table.refs())) == ([second], {"main"})


def test_statistics_are_set_and_removed(lake: ClientLake, orders: Table) -> None:
    snapshot = orders.metadata.current_snapshot_id or 0
    blob = BlobMetadata.model_validate(
        {"type": "apache-datasketches-theta-v1", "snapshot-id": snapshot, "sequence-number": 1, "fields": [1]}
    )
    path = f"{orders.location()}/metadata/stats.puffin"
    with orders.update_statistics() as update:
        update.set_statistics(
            StatisticsFile(
                snapshot_id=snapshot,
                statistics_path=path,
                file_size_in_bytes=10,
                file_footer_size_in_bytes=5,
                blob_metadata=[blob],
            )
        )
    assert [file.statistics_path for file in lake.connect().load_table("sales.orders").metadata.statistics] == [path]

    with orders.update_statistics() as update:
        update.remove_statistics(snapshot)
    assert lake.connect().load_table("sales.orders").metadata.statistics == []


def test_table_of_version_1_is_upgraded(lake: ClientLake) -> None:
    client = lake.connect()
    client.create_namespace("sales")
    table = client.create_table("sales.orders", SCHEMA, properties={"format-version": "1"})
    table.append(rows((1, "Bern")))
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
        transaction.set_properties(owner="ann")
    table.append(rows((2, "Graz")))

    changed = client.load_table("sales.orders")
    assert (changed.format_version, changed.properties["owner"], lake.ids()) == (2, "ann", [1, 2])


def test_transaction_of_many_changes_is_one_commit(lake: ClientLake, orders: Table) -> None:
    before = lake.commits()

    with orders.transaction() as transaction:
        with transaction.update_schema() as update:
            update.add_column("price", LongType())
        transaction.append(rows((3, "Lyon")))
        transaction.delete("id = 1")

    assert lake.commits() == before + 1
    assert lake.ids() == [2, 3]


def test_rows_since_a_snapshot_are_scanned(lake: ClientLake, orders: Table) -> None:
    first = orders.metadata.current_snapshot_id
    orders.append(rows((3, "Lyon")))

    scan = lake.connect().load_table("sales.orders").incremental_append_scan(from_snapshot_id_exclusive=first)

    assert scan.to_arrow()["id"].to_pylist() == [3]


def test_metadata_tables_are_read(orders: Table) -> None:
    inspect = orders.inspect
    tables: dict[str, pa.Table] = {
        name: getattr(inspect, name)()
        for name in ("snapshots", "entries", "refs", "manifests", "history", "files", "metadata_log_entries", "all_data_files")
    }

    assert {name: table.num_rows for name, table in tables.items() if table.num_rows == 0} == {}
    assert tables["snapshots"].num_rows == tables["history"].num_rows == 1
