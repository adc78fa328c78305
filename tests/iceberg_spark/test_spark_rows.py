"""Rows that Spark with Iceberg's own engine changes in tables of a served catalog, and what its metadata tables say of them."""

from __future__ import annotations

import pytest
import requests
from served_lake import ServedLake

pytestmark = pytest.mark.long

MODES = [("copy-on-write", "2"), ("merge-on-read", "2"), ("merge-on-read", "3")]


@pytest.mark.parametrize(("mode", "version"), MODES)
def test_spark_changes_rows(lake: ServedLake, mode: str, version: str) -> None:
    modes = "".join(f", 'write.{change}.mode' = '{mode}'" for change in ("delete", "update", "merge"))
    lake.sql(
        f"CREATE TABLE lake.sales.orders TBLPROPERTIES ('format-version' = '{version}'{modes})"
        " AS SELECT id, concat('city ', id) AS city FROM range(6)"
    )
    lake.sql("UPDATE lake.sales.orders SET city = 'Bern' WHERE id = 1")
    lake.sql("DELETE FROM lake.sales.orders WHERE id IN (2, 3)")
    lake.sql(
        "MERGE INTO lake.sales.orders AS o USING (SELECT * FROM VALUES (4L, 'Graz'), (5L, null), (9L, 'Lyon') AS v(id, city)) AS n"
        " ON o.id = n.id WHEN MATCHED AND n.city IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )

    assert lake.rows() == [(0, "city 0"), (1, "Bern"), (4, "Graz"), (9, "Lyon")]
    deletes = lake.sql("SELECT count(*) FROM lake.sales.orders.delete_files")
    assert (deletes > [(0,)]) == (mode == "merge-on-read")


def test_spark_overwrites_partitions(lake: ServedLake) -> None:
    lake.sql(
        "CREATE TABLE lake.sales.orders PARTITIONED BY (city) AS SELECT * FROM VALUES (1L, 'Bern'), (2L, 'Graz') AS v(id, city)"
    )
    lake.sql.set_option("spark.sql.sources.partitionOverwriteMode", "dynamic")
    lake.sql("INSERT OVERWRITE lake.sales.orders VALUES (3, 'Bern')")
    assert lake.rows() == [(2, "Graz"), (3, "Bern")]

    lake.sql.set_option("spark.sql.sources.partitionOverwriteMode", "static")
    lake.sql("INSERT OVERWRITE lake.sales.orders PARTITION (city = 'Graz') SELECT 4L")
    assert lake.rows() == [(3, "Bern"), (4, "Graz")]
    lake.sql("TRUNCATE TABLE lake.sales.orders")
    assert lake.rows() == []


def test_metadata_tables_tell_the_history(orders: ServedLake) -> None:
    orders.sql("DELETE FROM lake.sales.orders WHERE id = 1")

    assert orders.sql("SELECT operation FROM lake.sales.orders.snapshots ORDER BY committed_at") == [("append",), ("delete",)]
    assert orders.sql("SELECT is_current_ancestor FROM lake.sales.orders.history") == [(True,), (True,)]
    assert orders.sql("SELECT sum(record_count) FROM lake.sales.orders.files") == [(1,)]
    assert orders.sql("SELECT count(*) FROM lake.sales.orders.metadata_log_entries") == [(3,)]
    assert orders.sql("SELECT name, type FROM lake.sales.orders.refs") == [("main", "BRANCH")]


def test_reports_of_spark_are_taken(orders: ServedLake) -> None:
    def reports() -> float:
        lines = requests.get(f"{orders.url}/metrics", timeout=10).text.splitlines()
        head = 'headwater_server_requests_total{code="204",route="reportMetrics"} '
        return sum(float(line.removeprefix(head)) for line in lines if line.startswith(head))

    before = reports()
    orders.rows()

    assert reports() > before


def test_spark_and_pyiceberg_read_each_other(orders: ServedLake) -> None:
    table = orders.pyiceberg().load_table("sales.orders")
    rows = table.scan().to_arrow()
    assert sorted(rows["city"].to_pylist()) == ["Bern", "Graz"]

    table.append(rows)
    with table.update_schema() as update:
        update.rename_column("city", "town")
    table.delete("town = 'Bern'")

    assert orders.rows(columns="id, town") == [(2, "Graz"), (2, "Graz")]
