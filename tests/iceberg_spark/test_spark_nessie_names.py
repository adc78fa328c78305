"""Namespaces, views and names of a catalog that Spark uses by Nessie's API, and the exceptions that it makes of refusals."""

from __future__ import annotations

import pytest
from nessie_lake import NessieLake
from spark_sql import SparkFault

pytestmark = pytest.mark.long


def test_spark_keeps_namespaces_in_one_another(nessie: NessieLake) -> None:
    sql = nessie.sql
    sql("CREATE NAMESPACE nessie.sales.eu COMMENT 'of Europe' WITH PROPERTIES (team = 'blue')")
    sql("ALTER NAMESPACE nessie.sales.eu SET PROPERTIES (team = 'green')")

    described = dict(sql("DESCRIBE NAMESPACE EXTENDED nessie.sales.eu"))
    assert described["Comment"] == "of Europe" and "(team,green)" in described["Properties"]
    assert sql("SHOW NAMESPACES IN nessie") == [("sales",)]
    assert sql("SHOW NAMESPACES IN nessie.sales") == [("sales.eu",)]
    sql("DROP NAMESPACE nessie.sales.eu")
    assert sql("SHOW NAMESPACES IN nessie.sales") == []


def test_spark_keeps_views(versioned: NessieLake) -> None:
    sql = versioned.sql
    sql("CREATE VIEW nessie.sales.towns (town COMMENT 'where') AS SELECT city FROM nessie.sales.orders")
    before = versioned.content_id("towns")
    sql("CREATE OR REPLACE VIEW nessie.sales.towns AS SELECT upper(city) AS town FROM nessie.sales.orders")
    sql("ALTER VIEW nessie.sales.towns SET TBLPROPERTIES (team = 'blue')")

    assert sql("SELECT * FROM nessie.sales.towns ORDER BY town") == [("BERN",), ("GRAZ",)]
    assert [name for _, name, _ in sql("SHOW VIEWS IN nessie.sales")] == ["towns"]
    sql("ALTER VIEW nessie.sales.towns RENAME TO nessie.sales.places")
    assert versioned.content_id("places") == before
    sql("DROP VIEW nessie.sales.places")
    assert sql("SHOW VIEWS IN nessie.sales") == []


@pytest.mark.parametrize(
    ("method", "name", "kind"),
    [
        ("createNamespace", "sales.x", "AlreadyExistsException"),
        ("createNamespace", "eu.west.x", "NoSuchNamespaceException"),
        ("dropNamespace", "sales.x", "NamespaceNotEmptyException"),
        ("loadNamespaceMetadata", "eu.x", "NoSuchNamespaceException"),
        ("loadTable", "sales.none", "NoSuchTableException"),
        ("loadTable", "eu.orders", "NoSuchTableException"),
        ("loadView", "sales.orders", "NoSuchViewException"),
    ],
)
def test_refusal_becomes_its_own_exception(versioned: NessieLake, method: str, name: str, kind: str) -> None:
    named = versioned.identifier(name)
    with pytest.raises(SparkFault) as fault:
        versioned.call(method, named.namespace() if "Namespace" in method else named)

    assert fault.value.kinds[0] == kind


def test_names_that_are_taken_or_missing_are_told(versioned: NessieLake) -> None:
    sql = versioned.sql
    sql("CREATE VIEW nessie.sales.towns AS SELECT city FROM nessie.sales.orders")
    for statement, told in (
        ("CREATE NAMESPACE nessie.sales", "SCHEMA_ALREADY_EXISTS"),
        ("CREATE TABLE nessie.sales.orders (id BIGINT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE nessie.sales.towns (id BIGINT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        (
            "CREATE OR REPLACE VIEW nessie.sales.orders AS SELECT 1 AS one",
            r"Table with same name already exists: sales\.orders",
        ),
        ("CREATE TABLE nessie.eu.orders (id BIGINT)", "Namespace does not exist: eu|SCHEMA_NOT_FOUND"),
        ("DROP NAMESPACE nessie.sales", "is not empty"),
        ("ALTER TABLE nessie.sales.orders RENAME TO sales.towns", r"sales\.towns"),
        ("DROP TABLE nessie.sales.none", "TABLE_OR_VIEW_NOT_FOUND"),
    ):
        with pytest.raises(SparkFault, match=told):
            sql(statement)


def test_names_may_have_any_letters(nessie: NessieLake) -> None:
    sql = nessie.sql
    sql("CREATE NAMESPACE nessie.`a.b`")
    sql("CREATE TABLE nessie.`a.b`.`größe/in mü` AS SELECT 1 AS id")

    assert sql("SELECT * FROM nessie.`a.b`.`größe/in mü`") == [(1,)]
    assert [name for _, name, _ in sql("SHOW TABLES IN nessie.`a.b`")] == ["größe/in mü"]
