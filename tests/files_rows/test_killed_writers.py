"""Ingests and compactions that are killed at any moment: the rows are those of the ingests that were applied, each once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from killed_writer import rows_of_ingest
from row_tables import Row, rows_of

from headwater import Settings, open_store
from headwater.files import (
    CompactionRules,
    CompactionStrategy,
    FileTable,
    FileTableColumn,
    FileTables,
    RowKeyType,
    compact_table,
    is_applied,
    open_file_references,
    open_file_table,
    query_rows,
)
from headwater.files.data_folder import DataFolder
from headwater.files.file_collection import FileCollector
from headwater.store import RealmId, RealmKey, Store

SCRIPT = Path(__file__).with_name("killed_writer.py")
KILLS = 4
SHORT = Settings(files_delete_delay_seconds=0.001, files_writer_grace_seconds=0.001)


@pytest.mark.long
def test_rows_survive_every_kill_of_their_writers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with open_store(url) as store, open_store(url, settings=SHORT) as hasty:
        table = make_table(store, tmp_path)
        begun = 0
        for _ in range(KILLS):
            begun = run_and_kill(url, table.scope.realm, begun)

            assert sorted(rows_of([query_rows(table)])) == applied_rows(table, begun)

        assert compact_table(table, CompactionRules(CompactionStrategy.ALL), lease_seconds=0).failed == ()
        assert sorted(rows_of([query_rows(table)])) == applied_rows(table, begun)
        assert files_left_by_collections(hasty, table) == {each.filename for each in table.references.references()}
        assert sorted(rows_of([query_rows(table)])) == applied_rows(table, begun)


def make_table(store: Store, folder: Path) -> FileTable:
    rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
    tables = FileTables(rows, lambda scope: open_file_references(store, scope, create=True))
    columns = (("key", "long"), ("place", "string"), ("value", "double"))
    tables.create_table(
        "orders",
        location=f"file://{folder}/lake",
        key_column="key",
        key_type=RowKeyType.LONG,
        sort_columns=("place",),
        columns=tuple(FileTableColumn(name=name, type=kind) for name, kind in columns),
    )
    return open_file_table(rows, "orders", lambda scope: open_file_references(store, scope))


def run_and_kill(url: str, key: int, first: int) -> int:
    """Let a writer work for a while, and kill it. Returns the number of the first ingest that it cannot have begun."""
    arguments = [sys.executable, str(SCRIPT), url, str(int(key)), str(first)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        last = int(writer.stdout.readline())
        time.sleep(random.uniform(0, 0.6))
        writer.kill()
        rest = writer.stdout.read().split()
    return max([last, *map(int, rest)]) + 2


def applied_rows(table: FileTable, begun: int) -> list[Row]:
    return sorted(row for number in range(begun) if is_applied(table, f"ingest {number}") for row in rows_of_ingest(number))


def files_left_by_collections(store: Store, table: FileTable) -> set[str]:
    folder = DataFolder(table.definition.data_folder)
    for _ in range(2):
        time.sleep(0.01)
        FileCollector(store, table.references, folder).collect()
    return set(folder.list_files())
