"""Trino 476, configured by what `headwater client-config trino` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_tools import OpenLake, printed_config
from trino_server import Trino, TrinoError

from vending_lake import VendingLake

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]  # engines take minutes to start on a busy machine


def test_tables_are_made_in_schemas_without_a_location(trino: Trino, open_lake: OpenLake) -> None:
    trino.add_catalog("folders", printed_config("trino", open_lake.warehouse, open_lake.url, "folders"))

    def run(statement: str) -> list[list[object]]:
        return trino.run(statement, "folders", "sales")

    run("CREATE SCHEMA sales")
    run("CREATE TABLE orders (id bigint, city varchar, at timestamp(6)) WITH (partitioning = ARRAY['bucket(id, 4)'])")
    run("INSERT INTO orders VALUES (1, 'Bern', TIMESTAMP '2026-01-01 10:00:00'), (2, 'Graz', NULL)")
    run("CREATE TABLE copies AS SELECT id, city FROM orders")
    run("UPDATE copies SET city = 'GRAZ' WHERE id = 2")
    run("DELETE FROM copies WHERE id = 1")
    run(
        "MERGE INTO copies t USING (VALUES (2, 'Linz'), (9, 'Lyon')) AS s(id, city) ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET city = s.city WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.city)"
    )
    assert run("SELECT * FROM copies ORDER BY id") == [[2, "Linz"], [9, "Lyon"]]
    run("CREATE OR REPLACE TABLE copies AS SELECT 5 AS id, 'five' AS word")
    run("CREATE TABLE IF NOT EXISTS made AS SELECT 7 AS id")
    assert (run("SELECT * FROM copies"), run("SELECT * FROM made")) == ([[5, "five"]], [[7]])
    run("CREATE VIEW recent AS SELECT id FROM orders")
    run("ALTER TABLE orders EXECUTE optimize")
    assert run("SELECT count(*) FROM recent") == [[2]]
    with pytest.raises(TrinoError, match="already exists"):
        run("CREATE TABLE orders (id bigint)")
    assert f"location = '{open_lake.folder.as_uri()}/sales'" in run("SHOW CREATE SCHEMA sales")[0][0]  # type: ignore[operator]


def test_nested_schemas_and_registration_work(trino: Trino, open_lake: OpenLake) -> None:
    trino.add_catalog("nested", printed_config("trino", open_lake.warehouse, open_lake.url, "folders"))

    def run(statement: str) -> list[list[object]]:
        return trino.run(statement, "nested", "a.b")

    run('CREATE SCHEMA "a.b"')
    run("CREATE TABLE t AS SELECT 1 AS id")
    [[path]] = run('SELECT DISTINCT "$path" FROM t')
    place = str(path).rpartition("/data/")[0]
    run("CALL nested.system.unregister_table('a.b', 't')")
    run(f"CALL nested.system.register_table('a.b', 'back', '{place}')")

    assert place.startswith(f"{open_lake.folder.as_uri()}/a/b/t-")
    assert (run("SELECT * FROM back"), run("SHOW TABLES")) == ([[1]], [["back"]])


def test_branch_is_a_warehouse_of_its_own(trino: Trino, open_lake: OpenLake) -> None:
    trino.add_catalog("main_", printed_config("trino", open_lake.warehouse, open_lake.url, "folders"))
    trino.run("CREATE SCHEMA s", "main_")
    trino.run("CREATE TABLE t AS SELECT 1 AS id", "main_", "s")
    open_lake.catalog.create_branch("trial")
    trino.add_catalog("trial", printed_config("trino", f"{open_lake.warehouse}@trial", open_lake.url, "folders"))

    trino.run("INSERT INTO t VALUES 2", "trial", "s")
    trino.run("CREATE TABLE only_there AS SELECT 3 AS id", "trial", "s")

    assert trino.run("SELECT count(*) FROM t", "trial", "s") == [[2]]
    assert trino.run("SELECT count(*) FROM t", "main_", "s") == [[1]]
    assert trino.run("SHOW TABLES", "main_", "s") == [["t"]]


def test_bucket_is_reached_by_credentials_of_the_server(trino: Trino, bucket_lake: VendingLake, root_file: Path) -> None:
    words = ("--s3-endpoint", bucket_lake.endpoint, "--credentials", root_file, "--show-secret", "--check")
    trino.add_catalog("buckets", printed_config("trino", "acme/lake", bucket_lake.url, "s3", *words))

    def run(statement: str) -> list[list[object]]:
        return trino.run(statement, "buckets", "trino")

    run("CREATE SCHEMA trino")
    run("CREATE TABLE t (id bigint)")
    run("INSERT INTO t VALUES 1, 2, 3")
    run("CREATE TABLE c AS SELECT id, 'x' AS word FROM t")
    run("UPDATE c SET word = 'y' WHERE id = 2")
    run("DELETE FROM t WHERE id = 1")

    assert run("SELECT count(*) FROM t") == [[2]]
    assert run("SELECT word, count(*) FROM c GROUP BY word ORDER BY word") == [["x", 2], ["y", 1]]
