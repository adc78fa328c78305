"""A file table of a realm, in a store on SQLite, under a clock that stands still until it is moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from collected_tables import HOUR, CollectedTable
from file_tables_of_realms import COLUMNS

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.files import FileScope, FileTableDefinition, FileTables, RowKeyType
from headwater.files.data_folder import DataFolder
from headwater.files.open_references import open_file_references
from headwater.realms import Realm, RealmRegistry
from headwater.store import RealmStore
from lakes import make_realm

MakeTable = Callable[[str], tuple[FileTableDefinition, CollectedTable]]


@pytest.fixture
def settings() -> Settings:
    """Files stay for three hours, and writers take up to a day: the defaults."""
    return Settings(files_delete_delay_seconds=3 * HOUR, files_writer_grace_seconds=24 * HOUR)


@pytest.fixture
def store(tmp_path: Path, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/store.db", settings=settings, clock=clock) as opened:
        yield opened


@pytest.fixture
def realm(store: Store) -> Realm:
    return make_realm(store)


@pytest.fixture
def rows(store: Store, realm: Realm) -> RealmStore:
    return RealmRegistry(store).open_realm(realm.id)


@pytest.fixture
def tables(store: Store, rows: RealmStore) -> FileTables:
    return FileTables(rows, lambda scope: open_file_references(store, scope, create=True))


@pytest.fixture
def make_table(store: Store, rows: RealmStore, tables: FileTables, tmp_path: Path) -> MakeTable:
    """Create a file table of a name."""

    def make(name: str) -> tuple[FileTableDefinition, CollectedTable]:
        made = tables.create_table(
            name, location=(tmp_path / "lake").as_uri(), key_column="id", key_type=RowKeyType.LONG, columns=COLUMNS
        )
        references = open_file_references(store, FileScope(rows.key, made.id))
        path = Path(made.data_folder.removeprefix("file://"))
        return made, CollectedTable(store, references, DataFolder(made.data_folder), path)

    return make


@pytest.fixture
def orders(make_table: MakeTable) -> tuple[FileTableDefinition, CollectedTable]:
    return make_table("orders")


@pytest.fixture
def definition(orders: tuple[FileTableDefinition, CollectedTable]) -> FileTableDefinition:
    return orders[0]


@pytest.fixture
def table(orders: tuple[FileTableDefinition, CollectedTable]) -> CollectedTable:
    return orders[1]
