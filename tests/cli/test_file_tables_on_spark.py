"""``headwater file-table`` with ``--spark``: the same rows by other means."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import CommandLine


@pytest.fixture
def rows_file(headwater: CommandLine, realm: str, tmp_path: Path) -> Path:
    columns = ("--column", "id=long", "--column", "name=string", "--key", "id")
    headwater.ok("file-table", "create", f"{realm}/orders", "--location", tmp_path / "lake", *columns)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [3, 1, 2], "name": ["c", "a", "b"]}), path)
    return path


def test_spark_that_is_off_is_refused(url: str, rows_file: Path) -> None:
    off = CommandLine(url, {"HEADWATER_SPARK_MASTER": "off"})
    result = off("file-table", "ingest", "acme/orders", rows_file, "--spark")

    assert (result.exit_code, "which cannot run here: spark_master is off" in result.stderr) == (5, True)


@pytest.mark.rare(3)
@pytest.mark.long
def test_rows_are_ingested_and_compacted_on_spark(url: str, rows_file: Path) -> None:
    spark = CommandLine(url, {"HEADWATER_SPARK_MASTER": "local[1]"})
    spark.ok("file-table", "ingest", "acme/orders", rows_file)
    spark.ok("file-table", "ingest", "acme/orders", rows_file, "--spark")
    compacted = spark.data("file-table", "compact", "acme/orders", "--strategy", "all", "--spark")

    assert (compacted["applied"], compacted["rows"]) == (1, 6)
    assert [row["id"] for row in spark.data("file-table", "query", "acme/orders")] == [1, 1, 2, 2, 3, 3]
