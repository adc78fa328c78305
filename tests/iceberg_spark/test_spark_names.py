"""Namespaces, views and references of a served catalog, as Spark with Iceberg's own engine sees and changes them."""

from __future__ import annotations

import pytest
from served_lake import ServedLake
from spark_sql import SparkFault

pytestmark = pytest.mark.long


def test_spark_keeps_namespaces_in_one_another(lake: ServedLake) -> None:
    lake.sql("CREATE NAMESPACE lake.sales.eu COMMENT 'of Europe' WITH PROPERTIES (team = 'blue')")
    lake.sql("ALTER NAMESPACE lake.sales.eu SET PROPERTIES (team = 'green')")

    described = dict(lake.sql("DESCRIBE NAMESPACE EXTENDED lake.sales.eu"))
    assert described["Comment"] == "of Europe" and "(team,green)" in described["Properties"]
    assert lake.sql("SHOW NAMESPACES IN lake") == [("sales",)]
    assert lake.sql("SHOW NAMESPACES IN lake.sales") == [("sales.eu",)]
    with pytest.raises(SparkFault, match=r"Namespace .*sales.* is not empty"):
        lake.sql("DROP NAMESPACE lake.sales")
    lake.sql("DROP NAMESPACE lake.sales.eu")
    assert lake.sql("SHOW NAMESPACES IN lake.sales") == []


def test_spark_keeps_letters_of_latin_1_in_names_comments_and_properties(lake: ServedLake) -> None:
    lake.sql("CREATE NAMESPACE lake.`straße`")
    lake.sql("CREATE TABLE lake.`straße`.`größe` (`maß` INT COMMENT 'Größe in ° é') TBLPROPERTIES ('wer' = 'Jürgen')")
    lake.sql("ALTER TABLE lake.`straße`.`größe` ADD COLUMN `naïve` STRING")
    lake.sql("INSERT INTO lake.`straße`.`größe` VALUES (1, '日本')")
    lake.sql("CREATE VIEW lake.`straße`.`für` AS SELECT `maß` FROM lake.`straße`.`größe`")

    assert lake.sql("SELECT * FROM lake.`straße`.`größe`") == [(1, "日本")]
    assert lake.sql("SELECT `maß` FROM lake.`straße`.`für`") == [(1,)]
    table = lake.pyiceberg().load_table(("straße", "größe"))
    assert (table.schema().find_field("maß").doc, table.properties["wer"]) == ("Größe in ° é", "Jürgen")


def test_spark_cannot_send_other_letters(lake: ServedLake) -> None:
    """Its client writes a question mark for each, before anything reaches the server."""
    lake.sql("CREATE TABLE lake.sales.t (id INT COMMENT '日本')")

    assert lake.pyiceberg().load_table("sales.t").schema().find_field("id").doc == "??"


def test_spark_says_which_name_is_taken_or_missing(orders: ServedLake) -> None:
    with pytest.raises(SparkFault, match="SCHEMA_ALREADY_EXISTS"):
        orders.sql("CREATE NAMESPACE lake.sales")
    with pytest.raises(SparkFault, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        orders.sql("CREATE TABLE lake.sales.orders (id BIGINT)")
    with pytest.raises(SparkFault, match="TABLE_OR_VIEW_NOT_FOUND"):
        orders.sql("SELECT * FROM lake.sales.none")


def test_spark_keeps_views(orders: ServedLake) -> None:
    orders.sql("CREATE VIEW lake.sales.towns (town COMMENT 'where') AS SELECT city FROM lake.sales.orders")
    assert orders.sql("SELECT * FROM lake.sales.towns ORDER BY town") == [("Bern",), ("Graz",)]

    orders.sql("CREATE OR REPLACE VIEW lake.sales.towns AS SELECT upper(city) AS town FROM lake.sales.orders")
    orders.sql("ALTER VIEW lake.sales.towns SET TBLPROPERTIES (team = 'blue')")
    orders.sql("ALTER VIEW lake.sales.towns UNSET TBLPROPERTIES (team)")

    assert orders.sql("SELECT * FROM lake.sales.towns ORDER BY town") == [("BERN",), ("GRAZ",)]
    assert [name for _, name, _ in orders.sql("SHOW VIEWS IN lake.sales")] == ["towns"]
    assert [name for _, name, _ in orders.sql("SHOW TABLES IN lake.sales")] == ["orders"]
    orders.sql("ALTER VIEW lake.sales.towns RENAME TO lake.sales.places")
    orders.sql("DROP VIEW lake.sales.places")
    assert orders.sql("SHOW VIEWS IN lake.sales") == []


def test_view_beside_a_table_is_refused(orders: ServedLake) -> None:
    orders.sql("CREATE VIEW lake.sales.towns AS SELECT city FROM lake.sales.orders")

    with pytest.raises(SparkFault, match=r"Table with same name already exists: sales\.orders"):
        orders.sql("CREATE OR REPLACE VIEW lake.sales.orders AS SELECT 1 AS one")
    for statement in (
        "CREATE VIEW lake.sales.orders AS SELECT 1 AS one",
        "CREATE TABLE lake.sales.towns (id BIGINT)",
        "CREATE TABLE lake.sales.towns AS SELECT 1 AS one",
        "ALTER TABLE lake.sales.orders RENAME TO sales.towns",
    ):
        with pytest.raises(SparkFault, match=r"sales\.(orders|towns) because it already exists"):
            orders.sql(statement)


def test_spark_renames_and_drops_tables(orders: ServedLake) -> None:
    orders.sql("CREATE NAMESPACE lake.archive")
    orders.sql("ALTER TABLE lake.sales.orders RENAME TO archive.old")

    assert orders.rows("lake.archive.old") == [(1, "Bern"), (2, "Graz")]
    assert orders.sql("SHOW TABLES IN lake.sales") == []
    orders.sql("DROP TABLE lake.archive.old PURGE")
    with pytest.raises(SparkFault, match="TABLE_OR_VIEW_NOT_FOUND"):
        orders.sql("DROP TABLE lake.archive.old")


def test_spark_works_on_a_branch(orders: ServedLake) -> None:
    orders.catalog.create_branch("dev/x")
    orders.add_reference("dev", "dev/x")

    orders.sql("INSERT INTO dev.sales.orders VALUES (3, 'Lyon')")
    orders.sql("CREATE TABLE dev.sales.extra AS SELECT 1 AS id")

    assert orders.rows("dev.sales.orders") == [(1, "Bern"), (2, "Graz"), (3, "Lyon")]
    assert orders.rows() == [(1, "Bern"), (2, "Graz")]
    assert [name for _, name, _ in orders.sql("SHOW TABLES IN lake.sales")] == ["orders"]


@pytest.mark.parametrize("kind", ["tag", "hash"])
def test_spark_is_told_that_a_reference_is_read_only(orders: ServedLake, kind: str) -> None:
    orders.catalog.create_tag("v1")
    orders.add_reference("past", "v1" if kind == "tag" else next(iter(orders.catalog.log())).hash)
    orders.sql("INSERT INTO lake.sales.orders VALUES (3, 'Lyon')")

    assert orders.rows("past.sales.orders") == [(1, "Bern"), (2, "Graz")]
    for statement in (
        "INSERT INTO past.sales.orders VALUES (4, 'Wien')",
        "CREATE NAMESPACE past.more",
        "DROP TABLE past.sales.orders",
    ):
        with pytest.raises(SparkFault, match=r"is not a branch of catalog .*: it can only be read"):
            orders.sql(statement)
    assert orders.rows("past.sales.orders") == [(1, "Bern"), (2, "Graz")]
