"""A file table with real data files, in a store in a SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.files import FileTable, FileTableColumn, FileTables, RowKeyType, open_file_references, open_file_table
from headwater.store import RealmId, RealmKey


@pytest.fixture
def files_store(tmp_path: Path, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/store.db", settings=settings, clock=clock) as store:
        yield store


@pytest.fixture
def orders(files_store: Store, tmp_path: Path) -> Iterator[FileTable]:
    """A table of the columns of ``row_tables.LONGS``, with one leaf."""
    rows = files_store.rows(RealmId("acme"), RealmKey(files_store.new_id()))
    tables = FileTables(rows, lambda scope: open_file_references(files_store, scope, create=True))
    tables.create_table(
        "orders",
        location=f"file://{tmp_path}/lake",
        key_column="key",
        key_type=RowKeyType.LONG,
        sort_columns=("place",),
        columns=tuple(
            FileTableColumn(name=name, type=kind) for name, kind in (("key", "long"), ("place", "string"), ("value", "double"))
        ),
    )
    with open_file_table(rows, "orders", lambda scope: open_file_references(files_store, scope)) as table:
        yield table
