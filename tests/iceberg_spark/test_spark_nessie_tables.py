"""Tables of a catalog that Spark uses by Nessie's API: what its statements change, and what they leave alone."""

from __future__ import annotations

import pytest
from nessie_lake import NessieLake
from spark_sql import SparkFault

pytestmark = pytest.mark.long

BEFORE = [(1, "Bern"), (2, "Graz")]


def test_rows_are_inserted_changed_and_deleted(versioned: NessieLake) -> None:
    sql = versioned.sql
    sql("UPDATE nessie.sales.orders SET city = 'Linz' WHERE id = 2")
    sql(
        "MERGE INTO nessie.sales.orders AS o USING (SELECT * FROM VALUES (1L, 'Gent'), (3L, 'Lyon') AS v(id, city)) AS n"
        " ON o.id = n.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    sql("DELETE FROM nessie.sales.orders WHERE id = 2")

    assert versioned.rows() == [(1, "Gent"), (3, "Lyon")]
    assert [commit.meta.properties["application-type"] for commit in versioned.catalog.log()] == [("iceberg",)] * 6


def test_columns_and_partitions_are_changed(versioned: NessieLake) -> None:
    sql, table = versioned.sql, "nessie.sales.orders"
    for statement in (
        "ADD COLUMN price INT",
        "ALTER COLUMN price TYPE BIGINT",
        "RENAME COLUMN city TO town",
        "ADD PARTITION FIELD bucket(4, id)",
        "WRITE ORDERED BY town",
        "SET TBLPROPERTIES ('team' = 'eu')",
        "UNSET TBLPROPERTIES ('team')",
    ):
        sql(f"ALTER TABLE {table} {statement}")
    sql(f"INSERT INTO {table} VALUES (3, 'Lyon', 7)")

    assert versioned.rows(columns="id, town, price") == [(1, "Bern", None), (2, "Graz", None), (3, "Lyon", 7)]
    assert "# Partitioning" in [name for name, *_ in sql(f"DESCRIBE TABLE {table}")]


def test_table_keeps_its_id_when_it_is_renamed(versioned: NessieLake) -> None:
    before = versioned.content_id("orders")
    versioned.sql("ALTER TABLE nessie.sales.orders RENAME TO sales.old")

    assert versioned.content_id("old") == before
    assert versioned.rows("nessie.sales.old") == BEFORE
    with pytest.raises(SparkFault, match="TABLE_OR_VIEW_NOT_FOUND"):
        versioned.rows()


def test_tables_come_from_queries_and_are_replaced(versioned: NessieLake) -> None:
    sql = versioned.sql
    sql("CREATE TABLE nessie.sales.copied PARTITIONED BY (city) AS SELECT * FROM nessie.sales.orders")
    assert versioned.rows("nessie.sales.copied") == BEFORE
    before = versioned.content_id("copied")

    sql("CREATE OR REPLACE TABLE nessie.sales.copied AS SELECT id, 'new' AS city FROM nessie.sales.orders")

    assert versioned.rows("nessie.sales.copied") == [(1, "new"), (2, "new")]
    assert versioned.content_id("copied") == before
    sql("DROP TABLE nessie.sales.copied")
    assert [name for _, name, _ in sql("SHOW TABLES IN nessie.sales")] == ["orders"]


def test_client_leaves_old_files_to_the_catalog(versioned: NessieLake) -> None:
    """The client sets these for its tables, and refuses what would delete files that other branches may need."""
    before = versioned.files()
    properties = dict(versioned.sql("SHOW TBLPROPERTIES nessie.sales.orders"))

    assert properties["gc.enabled"] == properties["write.metadata.delete-after-commit.enabled"] == "false"
    for statement in (
        "CALL nessie.system.expire_snapshots('sales.orders', TIMESTAMP '2030-01-01')",
        "CALL nessie.system.remove_orphan_files(table => 'sales.orders')",
        "DROP TABLE nessie.sales.orders PURGE",
    ):
        with pytest.raises(SparkFault, match="GC is disabled"):
            versioned.sql(statement)
    versioned.sql("DROP TABLE nessie.sales.orders")
    assert versioned.files() == before


@pytest.mark.parametrize("name", ["sales.again", "nowhere.again"])
def test_refused_registration_leaves_the_file_alone(versioned: NessieLake, name: str) -> None:
    """The client deletes what it named in a commit that failed, unless it was forbidden: here that is the file of another table."""
    [file] = [file for file in versioned.files() if file.name.startswith("00001-") and file.suffix == ".json"]

    with pytest.raises(SparkFault) as fault:
        versioned.sql(f"CALL nessie.system.register_table('{name}', '{file}')")
    assert "NessieForbiddenException" in fault.value.kinds
    assert file.exists() and versioned.rows() == BEFORE


def test_dropped_table_is_registered_again(versioned: NessieLake) -> None:
    [file] = [file for file in versioned.files() if file.name.startswith("00001-") and file.suffix == ".json"]
    before = versioned.content_id("orders")
    versioned.sql("DROP TABLE nessie.sales.orders")
    versioned.sql(f"CALL nessie.system.register_table('sales.back', '{file}')")

    assert versioned.rows("nessie.sales.back") == BEFORE and versioned.content_id("back") == before
    versioned.sql("INSERT INTO nessie.sales.back VALUES (3, 'Lyon')")
    assert versioned.rows("nessie.sales.back") == [*BEFORE, (3, "Lyon")]


def test_procedures_that_rewrite_files_commit(versioned: NessieLake) -> None:
    sql = versioned.sql
    sql("INSERT INTO nessie.sales.orders VALUES (3, 'Lyon')")
    before = versioned.hash()
    sql("CALL nessie.system.rewrite_data_files(table => 'sales.orders', options => map('rewrite-all', 'true'))")
    sql("CALL nessie.system.rewrite_manifests('sales.orders')")

    assert versioned.rows() == [*BEFORE, (3, "Lyon")]
    assert len(sql("SELECT * FROM nessie.sales.orders.files")) == 1
    assert versioned.hash() != before


def test_earlier_snapshots_are_read_and_come_back(versioned: NessieLake) -> None:
    sql = versioned.sql
    sql("INSERT INTO nessie.sales.orders VALUES (3, 'Lyon')")
    first, _ = (number for (number,) in sql("SELECT snapshot_id FROM nessie.sales.orders.snapshots ORDER BY committed_at"))
    assert sql(f"SELECT count(*) FROM nessie.sales.orders VERSION AS OF {first}") == [(2,)]

    sql(f"CALL nessie.system.rollback_to_snapshot('sales.orders', {first})")

    assert versioned.rows() == BEFORE


def test_clients_of_the_first_version_work_as_well(versioned: NessieLake) -> None:
    versioned.add("v1", version=1)
    versioned.add("dev", version=1, reference="dev")
    versioned.catalog.create_branch("dev")
    sql = versioned.sql
    sql("INSERT INTO v1.sales.orders VALUES (3, 'Lyon')")
    sql("CREATE NAMESPACE v1.eu")
    sql("CREATE TABLE v1.eu.places AS SELECT city FROM v1.sales.orders")
    sql("INSERT INTO dev.sales.orders VALUES (4, 'Wien')")

    assert versioned.rows() == [*BEFORE, (3, "Lyon")]
    assert versioned.rows("v1.sales.`orders@dev`") == [*BEFORE, (4, "Wien")]
    assert sorted(sql("SHOW NAMESPACES IN v1")) == [("eu",), ("sales",)]
    sql("DROP TABLE v1.eu.places")
    sql("DROP NAMESPACE v1.eu")
    assert sql("SHOW NAMESPACES IN nessie") == [("sales",)]
