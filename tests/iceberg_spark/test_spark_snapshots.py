"""Branches, tags and procedures of Iceberg tables in a served catalog, by Spark with Iceberg's own engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from served_lake import ServedLake

pytestmark = pytest.mark.long

CALLED = "CALL lake.system."


def test_spark_keeps_branches_and_tags_of_a_table(orders: ServedLake) -> None:
    for change in (
        "CREATE TAG v1 RETAIN 30 DAYS",
        "CREATE BRANCH audit WITH SNAPSHOT RETENTION 2 SNAPSHOTS",
        "CREATE BRANCH gone",
    ):
        orders.sql(f"ALTER TABLE lake.sales.orders {change}")
    orders.sql("INSERT INTO lake.sales.orders.branch_audit VALUES (3, 'Lyon')")
    orders.sql("DELETE FROM lake.sales.orders WHERE id = 1")
    orders.sql("ALTER TABLE lake.sales.orders DROP BRANCH gone")

    assert orders.rows("lake.sales.orders.branch_audit") == [(1, "Bern"), (2, "Graz"), (3, "Lyon")]
    assert orders.rows("lake.sales.orders VERSION AS OF 'v1'") == [(1, "Bern"), (2, "Graz")]
    assert orders.rows(f"lake.sales.orders VERSION AS OF {orders.snapshots()[0]}") == [(1, "Bern"), (2, "Graz")]
    assert orders.rows() == [(2, "Graz")]
    references = orders.sql("SELECT name, type, min_snapshots_to_keep FROM lake.sales.orders.refs ORDER BY name")
    assert references == [("audit", "BRANCH", 2), ("main", "BRANCH", None), ("v1", "TAG", None)]


def test_procedures_move_a_table_in_its_history(orders: ServedLake) -> None:
    first = orders.snapshots()[0]
    orders.sql("ALTER TABLE lake.sales.orders CREATE BRANCH audit")
    orders.sql("INSERT INTO lake.sales.orders.branch_audit VALUES (3, 'Lyon')")
    orders.sql(f"{CALLED}fast_forward('sales.orders', 'main', 'audit')")
    assert orders.rows() == [(1, "Bern"), (2, "Graz"), (3, "Lyon")]

    orders.sql(f"{CALLED}rollback_to_snapshot('sales.orders', {first})")
    assert orders.rows() == [(1, "Bern"), (2, "Graz")]
    orders.sql(f"{CALLED}cherrypick_snapshot('sales.orders', {orders.snapshots()[1]})")
    assert orders.rows() == [(1, "Bern"), (2, "Graz"), (3, "Lyon")]
    orders.sql(f"{CALLED}set_current_snapshot('sales.orders', {first})")
    assert orders.rows() == [(1, "Bern"), (2, "Graz")]


def test_rows_written_for_audit_are_published(orders: ServedLake) -> None:
    orders.sql("ALTER TABLE lake.sales.orders SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    orders.sql.set_option("spark.wap.id", "night")
    orders.sql("INSERT INTO lake.sales.orders VALUES (3, 'Lyon')")
    assert orders.rows() == [(1, "Bern"), (2, "Graz")]

    orders.sql(f"{CALLED}publish_changes('sales.orders', 'night')")

    assert orders.rows() == [(1, "Bern"), (2, "Graz"), (3, "Lyon")]


def test_procedures_keep_a_table_tidy(orders: ServedLake) -> None:
    for number in range(3, 6):
        orders.sql(f"INSERT INTO lake.sales.orders VALUES ({number}, 'Lyon')")
    orders.sql(f"{CALLED}rewrite_data_files(table => 'sales.orders', options => map('rewrite-all', 'true'))")
    orders.sql(f"{CALLED}rewrite_manifests('sales.orders')")
    orders.sql(f"{CALLED}compute_table_stats('sales.orders')")
    orders.sql(f"{CALLED}expire_snapshots(table => 'sales.orders', older_than => TIMESTAMP '2999-01-01', retain_last => 1)")
    orders.sql(f"{CALLED}remove_orphan_files(table => 'sales.orders', dry_run => true)")

    assert len(orders.snapshots()) == 1
    assert orders.sql("SELECT count(*) FROM lake.sales.orders.files") == [(1,)]
    assert [number for number, _ in orders.rows()] == [1, 2, 3, 4, 5]


def test_table_is_registered_again(orders: ServedLake) -> None:
    metadata = orders.pyiceberg().load_table("sales.orders").metadata_location
    orders.sql("DROP TABLE lake.sales.orders")
    orders.sql(f"{CALLED}register_table('sales.back', '{metadata}')")

    orders.sql("INSERT INTO lake.sales.back VALUES (3, 'Lyon')")

    assert orders.rows("lake.sales.back") == [(1, "Bern"), (2, "Graz"), (3, "Lyon")]


def test_files_of_others_are_added(orders: ServedLake, tmp_path: Path) -> None:
    table = orders.pyiceberg().load_table("sales.orders")
    folder = f"{table.location()}/data/imported"
    orders.sql(f"CREATE TABLE plain USING parquet LOCATION '{folder}' AS SELECT 3L AS id, 'Lyon' AS city")

    orders.sql(f"{CALLED}add_files('sales.orders', '`parquet`.`{folder}`')")
    orders.sql("DROP TABLE plain")

    assert orders.rows() == [(1, "Bern"), (2, "Graz"), (3, "Lyon")]
