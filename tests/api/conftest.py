"""A store, a realm and a catalog as a user of the public API makes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headwater

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[headwater.Connection]:
    with headwater.connect(f"sqlite:///{tmp_path}/store.db", create=True, author="ada") as opened:
        yield opened


@pytest.fixture
def realm(store: headwater.Connection, tmp_path: Path) -> headwater.RealmClient:
    return store.create_realm("acme", credentials=tmp_path / "root.json")


@pytest.fixture
def lake(realm: headwater.RealmClient, tmp_path: Path) -> headwater.CatalogClient:
    """A catalog with a table on its default branch, which has a row."""
    made = realm.create_catalog("lake", base_location=(tmp_path / "lake").as_uri())
    catalog = made.branch().pyiceberg()
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", COLUMNS).append(pa.table({"id": [1], "name": ["ann"]}, schema=COLUMNS))
    return made
