"""Tables of a served catalog, created and changed by Spark with Iceberg's own engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from served_lake import ServedLake
from spark_sql import SparkFault

pytestmark = pytest.mark.long


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_spark_writes_each_format_version(lake: ServedLake, version: str) -> None:
    lake.sql(
        "CREATE TABLE lake.sales.orders (id BIGINT NOT NULL, city STRING, at TIMESTAMP, tags ARRAY<STRING>)"
        f" PARTITIONED BY (bucket(2, id), days(at)) TBLPROPERTIES ('format-version' = '{version}')"
    )
    for number, city in enumerate(("Bern", "Graz")):
        lake.sql(f"INSERT INTO lake.sales.orders VALUES ({number}, '{city}', TIMESTAMP '2026-01-0{number + 1}', array('x'))")
    lake.sql("DELETE FROM lake.sales.orders WHERE id = 0")

    assert lake.rows(columns="id, city, tags") == [(1, "Graz", ["x"])]
    assert lake.pyiceberg().load_table("sales.orders").metadata.format_version == int(version)


def test_spark_upgrades_a_table(orders: ServedLake) -> None:
    for version in ("2", "3"):
        orders.sql(f"ALTER TABLE lake.sales.orders SET TBLPROPERTIES ('format-version' = '{version}')")
        orders.sql(f"INSERT INTO lake.sales.orders VALUES ({version}, 'Lyon')")

    assert len(orders.rows()) == 4
    assert orders.sql("SELECT count(DISTINCT _row_id) FROM lake.sales.orders") == [(4,)]


def test_table_from_a_query_is_there_at_once(orders: ServedLake) -> None:
    orders.sql("CREATE TABLE lake.sales.copied PARTITIONED BY (city) AS SELECT * FROM lake.sales.orders")
    assert orders.rows("lake.sales.copied") == [(1, "Bern"), (2, "Graz")]

    with pytest.raises(SparkFault, match="no number"):
        orders.sql(
            "CREATE TABLE lake.sales.failed AS SELECT CAST(raise_error('no number') AS INT) AS id FROM lake.sales.orders"
        )
    orders.sql("CREATE OR REPLACE TABLE lake.sales.copied AS SELECT id * 10 AS number FROM lake.sales.orders")
    orders.sql("REPLACE TABLE lake.sales.orders USING iceberg AS SELECT id + 1 AS id, city FROM lake.sales.orders")

    assert orders.rows("lake.sales.copied", "number") == [(10,), (20,)]
    assert orders.rows() == [(2, "Bern"), (3, "Graz")] and len(orders.snapshots()) == 2
    assert [name for _, name, _ in orders.sql("SHOW TABLES IN lake.sales")] == ["copied", "orders"]


def test_spark_changes_columns(orders: ServedLake) -> None:
    for change in (
        "ADD COLUMNS (price INT COMMENT 'in euro' AFTER id, place STRUCT<zip: INT>)",
        "RENAME COLUMN city TO town",
        "ALTER COLUMN price TYPE BIGINT",
        "ALTER COLUMN town FIRST",
        "ADD COLUMN place.street STRING",
        "DROP COLUMN place.zip",
    ):
        orders.sql(f"ALTER TABLE lake.sales.orders {change}")
    orders.sql("INSERT INTO lake.sales.orders VALUES ('Lyon', 3, 7, named_struct('street', 'Rue'))")

    assert orders.sql("SELECT * FROM lake.sales.orders ORDER BY id") == [
        ("Bern", 1, None, None),
        ("Graz", 2, None, None),
        ("Lyon", 3, 7, {"street": "Rue"}),
    ]


def test_spark_changes_partitions_order_and_identifiers(lake: ServedLake) -> None:
    lake.sql("CREATE TABLE lake.sales.orders (id BIGINT NOT NULL, city STRING)")
    for change in (
        "ADD PARTITION FIELD bucket(4, id) AS shard",
        "ADD PARTITION FIELD city",
        "REPLACE PARTITION FIELD city WITH truncate(1, city)",
        "DROP PARTITION FIELD shard",
        "WRITE ORDERED BY city DESC, id",
        "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id",
        "SET IDENTIFIER FIELDS id",
    ):
        lake.sql(f"ALTER TABLE lake.sales.orders {change}")
    lake.sql("INSERT INTO lake.sales.orders VALUES (3, 'Gent'), (4, 'Bonn')")

    table = lake.pyiceberg().load_table("sales.orders")
    assert [field.name for field in table.spec().fields] == ["city_trunc_1"]
    assert [field.source_id for field in table.sort_order().fields] == [1]
    assert table.schema().identifier_field_names() == {"id"}
    assert lake.sql("SELECT partition.city_trunc_1 FROM lake.sales.orders.partitions ORDER BY 1") == [("B",), ("G",)]
    lake.sql("ALTER TABLE lake.sales.orders DROP IDENTIFIER FIELDS id")
    lake.sql("ALTER TABLE lake.sales.orders WRITE UNORDERED")
    assert table.refresh().sort_order().is_unsorted and not table.schema().identifier_field_ids


def test_spark_changes_properties(orders: ServedLake) -> None:
    orders.sql("ALTER TABLE lake.sales.orders SET TBLPROPERTIES (team = 'blue', region = 'eu')")
    orders.sql("ALTER TABLE lake.sales.orders UNSET TBLPROPERTIES (region)")
    properties = dict(orders.sql("SHOW TBLPROPERTIES lake.sales.orders"))

    assert properties["team"] == "blue" and "region" not in properties
    with pytest.raises(SparkFault, match=r"cannot have property 'py-io-impl'"):
        orders.sql("ALTER TABLE lake.sales.orders SET TBLPROPERTIES ('py-io-impl' = 'x.Y')")


def test_table_outside_of_the_catalog_is_refused(lake: ServedLake) -> None:
    with pytest.raises(SparkFault, match=r"cannot have files at file:/tmp/elsewhere"):
        lake.sql("CREATE TABLE lake.sales.orders (id BIGINT) LOCATION 'file:///tmp/elsewhere'")


def test_names_with_strange_characters_stay_what_they_are(lake: ServedLake) -> None:
    lake.sql("CREATE NAMESPACE lake.`a/b%2Fc.d`")
    lake.sql("CREATE TABLE lake.`a/b%2Fc.d`.`t|@ x..` AS SELECT 1 AS id")

    assert lake.sql("SELECT * FROM lake.`a/b%2Fc.d`.`t|@ x..`") == [(1,)]
    assert lake.pyiceberg().list_tables(("a/b%2Fc.d",)) == [("a/b%2Fc.d", "t|@ x..")]


def test_table_is_created_again_at_its_location(lake: ServedLake, tmp_path: Path) -> None:
    place = (tmp_path / "fixed").as_uri()
    for number in (1, 2):
        lake.sql(f"CREATE TABLE lake.sales.t (id INT) LOCATION '{place}'")
        lake.sql(f"INSERT INTO lake.sales.t VALUES ({number})")
        assert lake.rows("lake.sales.t", "id") == [(number,)]
        lake.sql("DROP TABLE lake.sales.t")
