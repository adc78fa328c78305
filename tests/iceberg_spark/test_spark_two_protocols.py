"""One catalog by both protocols: what is made by Iceberg REST is read, branched and merged by Nessie's API, and the other way round."""

from __future__ import annotations

import pytest
from nessie_lake import NessieLake
from pyiceberg.catalog.rest import RestCatalog
from spark_sql import SparkFault

from pynessie_env import Pynessie

pytestmark = pytest.mark.long

BEFORE = [(1, "Bern"), (2, "Graz")]
INSERT = "INSERT INTO {}.sales.{} VALUES ({}, '{}')"


@pytest.fixture
def both(nessie: NessieLake) -> NessieLake:
    """The lake, which Spark knows as ``nessie``, and as ``rest`` by the other protocol."""
    nessie.add_rest("rest")
    return nessie


@pytest.fixture
def rest_orders(both: NessieLake) -> NessieLake:
    """The lake with a table of two rows that REST has made."""
    both.sql("CREATE TABLE rest.sales.orders (id BIGINT, city STRING)")
    both.sql(INSERT.format("rest", "orders", 1, "Bern"))
    both.sql(INSERT.format("rest", "orders", 2, "Graz"))
    return both


def ids(pynessie: Pynessie, reference: str = "main") -> dict[str, str]:
    """The ids of all tables, as pynessie reads them; of namespaces it reads none that has properties."""
    program = f"""
keys = [entry.name.elements for entry in client.list_keys({reference!r}).entries if entry.kind == 'ICEBERG_TABLE']
result = {{'.'.join(key): client.get_content({reference!r}, ContentKey(key)).id for key in keys}}
"""
    read: dict[str, str] = pynessie.execute(program)
    return read


def pyiceberg(lake: NessieLake, reference: str = "") -> RestCatalog:
    warehouse = f"{lake.warehouse}@{reference}" if reference else lake.warehouse
    return RestCatalog("rest", uri=f"{lake.url}/iceberg", warehouse=warehouse)


def test_table_of_rest_is_changed_by_nessie(rest_orders: NessieLake, pynessie: Pynessie) -> None:
    sql, before = rest_orders.sql, rest_orders.content_id("orders")
    uuid = pyiceberg(rest_orders).load_table("sales.orders").metadata.table_uuid
    sql(INSERT.format("nessie", "orders", 3, "Lyon"))
    sql("ALTER TABLE nessie.sales.orders ADD COLUMN price INT")
    sql("INSERT INTO rest.sales.orders VALUES (4, 'Wien', 7)")

    rows = [(1, "Bern", None), (2, "Graz", None), (3, "Lyon", None), (4, "Wien", 7)]
    for name in ("nessie", "rest"):
        assert rest_orders.rows(f"{name}.sales.orders", "id, city, price") == rows
    assert pyiceberg(rest_orders).load_table("sales.orders").metadata.table_uuid == uuid
    assert rest_orders.content_id("orders") == ids(pynessie)["sales.orders"] == before


def test_table_of_nessie_is_changed_by_rest(both: NessieLake, pynessie: Pynessie) -> None:
    sql = both.sql
    sql("CREATE TABLE nessie.sales.orders PARTITIONED BY (city) AS SELECT 1L AS id, 'Bern' AS city")
    before = both.content_id("orders")
    client = pyiceberg(both)
    table = client.load_table("sales.orders")
    table.append(table.scan().to_arrow())
    sql("DELETE FROM rest.sales.orders WHERE id = 1")
    sql(INSERT.format("rest", "orders", 2, "Graz"))
    assert both.rows() == [(2, "Graz")]

    client.rename_table("sales.orders", "sales.old")

    assert both.rows("nessie.sales.old") == [(2, "Graz")]
    assert ids(pynessie)["sales.old"] == both.content_id("old") == before


def test_branch_of_nessie_is_written_by_rest_and_merged(rest_orders: NessieLake, pynessie: Pynessie) -> None:
    pynessie.run("branch", "dev")
    rest_orders.add_rest("dev", "dev")
    rest_orders.sql(INSERT.format("dev", "orders", 3, "Lyon"))
    rest_orders.sql("CREATE TABLE dev.sales.extra AS SELECT 1 AS id")
    assert rest_orders.rows("nessie.sales.`orders@dev`") == [*BEFORE, (3, "Lyon")]
    assert rest_orders.rows("rest.sales.orders") == BEFORE
    before = ids(pynessie, "dev")

    pynessie.run("merge", "dev", "-b", "main", "--force")

    assert rest_orders.rows("rest.sales.orders") == rest_orders.rows() == [*BEFORE, (3, "Lyon")]
    assert pyiceberg(rest_orders).list_tables("sales") == [("sales", "extra"), ("sales", "orders")]
    assert ids(pynessie) == before


def test_branch_of_the_core_is_written_by_both(rest_orders: NessieLake) -> None:
    rest_orders.catalog.create_branch("dev")
    rest_orders.add_rest("dev", "dev")
    rest_orders.sql(INSERT.format("nessie", "`orders@dev`", 3, "Lyon"))
    rest_orders.sql(INSERT.format("dev", "orders", 4, "Wien"))

    assert rest_orders.rows("nessie.sales.`orders@dev`") == rest_orders.rows("dev.sales.orders")
    rest_orders.catalog.merge("dev")
    assert rest_orders.rows() == rest_orders.rows("rest.sales.orders") == [*BEFORE, (3, "Lyon"), (4, "Wien")]


def test_namespaces_are_the_same_for_both(rest_orders: NessieLake) -> None:
    sql = rest_orders.sql
    sql("CREATE NAMESPACE nessie.sales.eu WITH PROPERTIES (team = 'blue')")
    sql("CREATE NAMESPACE rest.sales.us WITH PROPERTIES (team = 'red')")
    sql("ALTER NAMESPACE rest.sales.eu SET PROPERTIES (team = 'green')")

    for name in ("nessie", "rest"):
        assert sorted(sql(f"SHOW NAMESPACES IN {name}.sales")) == [("sales.eu",), ("sales.us",)]
        assert "(team,green)" in dict(sql(f"DESCRIBE NAMESPACE EXTENDED {name}.sales.eu"))["Properties"]
        assert "(team,red)" in dict(sql(f"DESCRIBE NAMESPACE EXTENDED {name}.sales.us"))["Properties"]
    assert rest_orders.rows() == BEFORE  # Nessie's client changes namespaces from the commit at which it read a table last
    sql("DROP NAMESPACE nessie.sales.us")
    sql("DROP NAMESPACE rest.sales.eu")
    assert sql("SHOW NAMESPACES IN nessie.sales") == sql("SHOW NAMESPACES IN rest.sales") == []


def test_views_are_the_same_for_both(rest_orders: NessieLake) -> None:
    sql = rest_orders.sql
    sql("CREATE VIEW rest.sales.towns AS SELECT city FROM rest.sales.orders")
    sql("CREATE VIEW nessie.sales.numbers AS SELECT id FROM nessie.sales.orders")
    before = rest_orders.content_id("towns")
    sql("CREATE OR REPLACE VIEW nessie.sales.towns AS SELECT upper(city) AS city FROM nessie.sales.orders")

    assert sql("SELECT * FROM rest.sales.towns ORDER BY city") == [("BERN",), ("GRAZ",)]
    assert sql("SELECT * FROM rest.sales.numbers ORDER BY id") == [(1,), (2,)]
    assert rest_orders.content_id("towns") == before
    sql("DROP VIEW rest.sales.numbers")
    assert [name for _, name, _ in sql("SHOW VIEWS IN nessie.sales")] == ["towns"]


def test_drop_by_one_is_seen_by_the_other(rest_orders: NessieLake) -> None:
    sql, before = rest_orders.sql, rest_orders.content_id("orders")
    sql("DROP TABLE nessie.sales.orders")
    with pytest.raises(SparkFault, match="TABLE_OR_VIEW_NOT_FOUND"):
        rest_orders.rows("rest.sales.orders")

    sql("CREATE TABLE rest.sales.orders AS SELECT 9L AS id, 'Rom' AS city")

    assert rest_orders.rows() == [(9, "Rom")]
    assert rest_orders.content_id("orders") != before
    sql("DROP TABLE rest.sales.orders")
    assert sql("SHOW TABLES IN nessie.sales") == []


def test_log_tells_changes_of_both(rest_orders: NessieLake, pynessie: Pynessie) -> None:
    rest_orders.sql(INSERT.format("nessie", "orders", 3, "Lyon"))

    shown = pynessie.run_json("log", "-x", "-n", "3")
    assert [entry["commitMeta"]["hash"] for entry in shown] == [commit.hash for commit in rest_orders.catalog.log()][:3]
    touched = [(operation["type"], operation["key"]["elements"]) for entry in shown for operation in entry["operations"]]
    assert touched == [("PUT", ["sales", "orders"])] * 3
