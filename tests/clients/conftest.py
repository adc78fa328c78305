"""A catalog as pyiceberg sees it: ours, and beside it pyiceberg's own, wherever both promise the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from lake_doors import LIBRARY_ONLY, QUICK_BY_REST, connect
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from synced_lakes import Synced

from headwater import Store, open_store
from headwater.catalogs import Catalog, Catalogs
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from rest_server import StoreHost, host_stores
from tiers import long_but_for

MakeLake = Callable[[Store], Catalog]
OpenClient = Callable[..., IcebergCatalog]
_OURS, _ALL = ("library", "rest"), ("library", "rest", "sql")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have a test go through every door that can do what it asks."""
    if "door" in metafunc.fixturenames:
        doors = _ALL if "catalog" in metafunc.fixturenames else _OURS
        kept = [door for door in doors if door != "rest" or metafunc.function.__name__ not in LIBRARY_ONLY]
        quick = kept if metafunc.module.__name__ in QUICK_BY_REST else [door for door in kept if door != "rest"]
        metafunc.parametrize("door", long_but_for(quick, kept), indirect=True)


@pytest.fixture
def door(request: pytest.FixtureRequest) -> str:
    """What a test reaches the lake by."""
    return str(request.param)


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


@pytest.fixture(scope="session")
def store_host() -> Iterator[StoreHost]:
    with host_stores() as host:
        yield host


@pytest.fixture
def server_url(store: Store, store_host: StoreHost) -> Iterator[str]:
    with store_host.serve(store) as url:
        yield url


@pytest.fixture
def open_client(request: pytest.FixtureRequest, door: str, store: Store, lake: Catalog) -> Iterator[OpenClient]:
    """Another client of the lake: ``open_client(branch="dev")``."""
    opened = ExitStack()

    def make(**properties: str) -> IcebergCatalog:
        if door == "library":
            return HeadwaterCatalog.on(store, **{"realm": "acme", "catalog": "lake", **properties})
        return opened.enter_context(connect(request.getfixturevalue("server_url"), **properties))

    with opened:
        yield make


@pytest.fixture
def client(open_client: OpenClient) -> IcebergCatalog:
    """The lake as pyiceberg sees it."""
    return open_client(author="ada")


@pytest.fixture
def catalog(request: pytest.FixtureRequest, door: str, tmp_path: Path, warehouse: str) -> Iterator[IcebergCatalog]:
    """Ours, and pyiceberg's own: what a test says of it, all promise."""
    if door != "sql":
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
