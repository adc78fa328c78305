"""Flink's SQL client, given what `headwater client-config flink` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_tools import MINUTES, OpenLake, find_java, printed_config, run_program, tool_folder

from vending_lake import VendingLake

pytestmark = [pytest.mark.long, pytest.mark.timeout(2 * MINUTES)]

_OLDEST_JAVA = 17
_CONFIG = """\
execution.target: local
execution.checkpointing.interval: 2s
execution.checkpointing.dir: {folder}/checkpoints
parallelism.default: 1
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
jobmanager.rpc.address: 127.0.0.1
jobmanager.bind-host: 127.0.0.1
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
table.dml-sync: true
sql-client.execution.result-mode: tableau
"""
_MODULES = ("java.base/java.lang", "java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/sun.nio.ch")


def run_flink(folder: Path, printed: str, statements: str, **environment: str) -> str:
    """What the SQL client prints for the statements, with the printed catalog before them and the printed query behind them."""
    tool, java = tool_folder("flink"), find_java(_OLDEST_JAVA)
    create, query = printed[: printed.index("SELECT")], printed[printed.index("SELECT") :]
    (folder / "conf").mkdir()
    (folder / "conf" / "config.yaml").write_text(_CONFIG.format(folder=folder.as_uri()), encoding="utf-8")
    script = folder / "script.sql"
    script.write_text(f"SET 'execution.runtime-mode' = 'batch';\n{create}\n{statements}\n{query}", encoding="utf-8")
    opened = [f"--add-opens={module}=ALL-UNNAMED" for module in _MODULES]
    command = [java, "-Xmx900m", "-XX:+UseSerialGC", *opened, "-cp", f"{tool}/lib/*"]
    client = ["org.apache.flink.table.client.SqlClient", "embedded", "-f", script]
    output = run_program([*command, *client], folder, FLINK_CONF_DIR=str(folder / "conf"), **environment)
    assert "[ERROR]" not in output, output
    return output


def test_tables_are_made_written_and_read(open_lake: OpenLake, tmp_path: Path) -> None:
    name = open_lake.warehouse.partition("/")[2]
    statements = f"""\
CREATE DATABASE {name}.sales;
CREATE TABLE {name}.sales.orders (id BIGINT, city STRING, ts TIMESTAMP(6)) PARTITIONED BY (city);
INSERT INTO {name}.sales.orders VALUES (1, 'Bern', TIMESTAMP '2026-01-01 00:00:00'), (2, 'Graz', CAST(NULL AS TIMESTAMP(6)));
INSERT OVERWRITE {name}.sales.orders SELECT 3, 'Bern', CAST(NULL AS TIMESTAMP(6));
ALTER TABLE {name}.sales.orders ADD extra INT;
ALTER TABLE {name}.sales.orders SET ('a' = 'b');
ALTER DATABASE {name}.sales SET ('owner' = 'ann');
CREATE TABLE {name}.sales.latest (id BIGINT NOT NULL, n INT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('format-version' = '2', 'write.upsert.enabled' = 'true');
INSERT INTO {name}.sales.latest VALUES (1, 10), (2, 20);
INSERT INTO {name}.sales.latest VALUES (1, 11), (3, 30);
CREATE TEMPORARY TABLE default_catalog.default_database.numbers (id BIGINT, n INT) WITH ('connector' = 'datagen',
  'rows-per-second' = '40', 'fields.id.kind' = 'random', 'fields.id.min' = '4', 'fields.id.max' = '9', 'number-of-rows' = '200');
SET 'execution.runtime-mode' = 'streaming';
INSERT INTO {name}.sales.latest SELECT id, n FROM default_catalog.default_database.numbers WHERE id IS NOT NULL;
SET 'execution.runtime-mode' = 'batch';
SELECT 'latest', count(*), count(DISTINCT id), max(n) FILTER (WHERE id = 1) FROM {name}.sales.latest;
"""
    output = run_flink(tmp_path, printed_config("flink", open_lake.warehouse, open_lake.url, "sql"), statements)

    lines = [[word.strip() for word in line.strip("| ").split("|")] for line in output.splitlines() if line.startswith("|")]
    assert ["latest", "9", "9", "11"] in lines, output
    assert ["2", "Graz", "<NULL>", "<NULL>"] in lines and ["3", "Bern", "<NULL>", "<NULL>"] in lines, output


def test_bucket_is_reached_by_credentials_of_the_server(bucket_lake: VendingLake, root_file: Path, tmp_path: Path) -> None:
    printed = printed_config("flink", "acme/lake", bucket_lake.url, "s3", "--credentials", root_file, "--check")
    statements = """\
CREATE DATABASE lake.flink;
CREATE TABLE lake.flink.t (id BIGINT, city STRING);
INSERT INTO lake.flink.t VALUES (7, 'Linz');
SELECT * FROM lake.flink.t;
"""
    output = run_flink(tmp_path, printed, statements, ICEBERG_CREDENTIAL=bucket_lake.root)

    assert "Linz" in output and "Graz" in output  # of the printed query
