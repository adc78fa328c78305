"""A catalog as pyiceberg sees it: ours, and beside it pyiceberg's own, wherever both promise the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from synced_lakes import Synced

from headwater import Store, open_store
from headwater.catalogs import Catalog, Catalogs
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState

MakeLake = Callable[[Store], Catalog]
OpenClient = Callable[..., HeadwaterCatalog]


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return (tmp_path / "warehouse").as_uri()


@pytest.fixture
def make_lake(warehouse: str) -> MakeLake:
    """An active realm ``acme`` with the catalog ``lake``, as an operator makes them."""

    def make(store: Store) -> Catalog:
        realms = RealmRegistry(store)
        realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
        realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
        realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
        catalogs = Catalogs(realms.open_realm("acme"))
        catalogs.create_catalog("lake", base_location=warehouse)
        return catalogs.open_catalog("lake")

    return make


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://") as opened:
        yield opened


@pytest.fixture
def lake(store: Store, make_lake: MakeLake) -> Catalog:
    """The catalog as Headwater sees it."""
    return make_lake(store)


@pytest.fixture
def open_client(store: Store, lake: Catalog) -> OpenClient:
    """Another client of the lake: ``open_client(branch="dev")``."""

    def make(**properties: str) -> HeadwaterCatalog:
        return HeadwaterCatalog.on(store, **{"realm": "acme", "catalog": "lake", **properties})

    return make


@pytest.fixture
def client(open_client: OpenClient) -> HeadwaterCatalog:
    """The lake as pyiceberg sees it."""
    return open_client(author="ada")


@pytest.fixture(params=["headwater", "sql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path, warehouse: str) -> Iterator[IcebergCatalog]:
    """Ours, and pyiceberg's own: what a test says of it, both promise."""
    if request.param == "headwater":
        yield request.getfixturevalue("client")
        return
    with SqlCatalog("sql", uri=f"sqlite:///{tmp_path}/sql.db", warehouse=warehouse) as made:
        yield made


@pytest.fixture
def schema() -> Schema:
    return Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "customer", StringType()))


@pytest.fixture
def rows() -> pa.Table:
    """Two rows of that schema."""
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("customer", pa.string())])
    return pa.table({"id": [1, 2], "customer": ["ann", "bob"]}, schema=columns)


@pytest.fixture
def synced(tmp_path: Path, warehouse: str, schema: Schema, rows: pa.Table, store: Store, lake: Catalog) -> Iterator[Synced]:
    """A table with two versions from outside, imported once."""
    with SqlCatalog("sql", uri=f"sqlite:///{tmp_path}/sql.db", warehouse=warehouse) as outside:
        outside.create_namespace("sales")
        outside.create_table("sales.orders", schema)
        made = Synced(store, lake, outside, warehouse, rows)
        made.append(outside)
        assert made.sync().outcome == "imported"
        yield made
