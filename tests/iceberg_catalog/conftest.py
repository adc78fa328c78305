"""A lake as a server sees it: documents and updates as decoded JSON, metadata files in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commits_of_engines import LINES, ORDERS, SALES, SCHEMA

from file_writing_client import FileWritingClient
from headwater import Store, open_store
from headwater.catalogs import Catalog, Catalogs, ContentKey
from headwater.iceberg.table_storage import TableStorage
from headwater.iceberg_catalog import IcebergCatalog, LoadedTable, TableCreation
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState

MakeTable = Callable[..., LoadedTable]
OpenLake = Callable[..., IcebergCatalog]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def make_realm(warehouse: Path) -> Callable[[Store], Catalog]:
    """An active realm ``acme`` with the catalog ``lake``, as an operator makes them."""

    def make(store: Store) -> Catalog:
        realms = RealmRegistry(store)
        realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
        realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
        realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
        catalogs = Catalogs(realms.open_realm("acme"))
        catalogs.create_catalog("lake", base_location=warehouse.as_uri())
        return catalogs.open_catalog("lake")

    return make


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://") as opened:
        yield opened


@pytest.fixture
def catalog(store: Store, make_realm: Callable[[Store], Catalog]) -> Catalog:
    """The catalog below the lake."""
    return make_realm(store)


@pytest.fixture
def open_lake(store: Store, catalog: Catalog) -> OpenLake:
    """Another door to the lake: ``open_lake("dev")``."""

    def make(reference: str | None = None, **options: Any) -> IcebergCatalog:
        return IcebergCatalog.open(store, "acme", "lake", reference, **options)

    return make


@pytest.fixture
def lake(open_lake: OpenLake) -> IcebergCatalog:
    """The lake's default branch, with the namespace ``sales``."""
    lake = open_lake()
    lake.namespaces.create(SALES, {})
    return lake


@pytest.fixture
def make_table(lake: IcebergCatalog) -> MakeTable:
    def make(key: ContentKey = ORDERS, **fields: Any) -> LoadedTable:
        return lake.tables.create(TableCreation(key=key, schema=SCHEMA, **fields))

    return make


@pytest.fixture
def orders(make_table: MakeTable) -> LoadedTable:
    return make_table()


@pytest.fixture
def lines(make_table: MakeTable) -> LoadedTable:
    return make_table(LINES)


@pytest.fixture
def files(warehouse: Path) -> Callable[[], set[str]]:
    """The names of the metadata files that are there now."""
    return lambda: {path.name for path in warehouse.rglob("*.metadata.json")}


@pytest.fixture
def client(warehouse: Path) -> FileWritingClient:
    """An engine that writes its own metadata files."""
    return FileWritingClient(warehouse)


@pytest.fixture
def overtaken_by(open_lake: Callable[..., IcebergCatalog]) -> Callable[..., IcebergCatalog]:
    """A door to the lake through which one other commit always comes in between, while the first file is read."""

    class SlowStorage(TableStorage):
        action: Callable[[], object] | None = None

        def read_metadata(self, location: str) -> bytes:
            action, self.action = self.action, None
            if action is not None:
                action()
            return super().read_metadata(location)

    def make(action: Callable[[], object], **options: Any) -> IcebergCatalog:
        storage = SlowStorage(realm="acme", catalog="lake")
        storage.action = action
        return open_lake(storage=storage, **options)

    return make
