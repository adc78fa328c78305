"""What clients wrote is sound to fsck, survives a collection, and is let go of when it should be."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog as IcebergCatalog

from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.catalogs import Catalog
from headwater.fsck import check_store
from headwater.gc import collect_realm
from headwater.realms import HistoryRetention, RealmRegistry
from headwater.store import open_backend, parse_url

HOUR = 3600.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Store:
    """One whose graces are over as soon as the clock says so."""
    graces = Settings(unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60)
    return Store(open_backend(parse_url("memory://")), url="memory://", settings=graces, clock=clock)


@pytest.fixture
def shop(client: IcebergCatalog, store: Store, rows: pa.Table) -> IcebergCatalog:
    """A table with a few versions, in a realm that keeps no more history than the head."""
    realms = RealmRegistry(store)
    kept = HistoryRetention(content_age_seconds=0, content_commits=1, reference_commits=1)
    realms.update_realm(realms.read_realm("acme"), retention=kept)
    client.create_namespace("sales")
    table = client.create_table("sales.orders", rows.schema)
    for _ in range(3):
        table.append(rows)
    return client


def test_fsck_finds_nothing_in_what_clients_wrote(shop: IcebergCatalog, store: Store, rows: pa.Table) -> None:
    shop.rename_table("sales.orders", "sales.lines")
    shop.create_table("sales.orders", rows.schema)
    shop.drop_table("sales.lines")

    assert check_store(store) == []


def test_collection_leaves_the_tables_of_branches_and_tags(
    shop: IcebergCatalog, lake: Catalog, store: Store, clock: FakeClock, open_client: Callable[..., IcebergCatalog]
) -> None:
    lake.create_tag("monday", "main")
    shop.load_table("sales.orders").delete("id = 1")
    clock.advance(HOUR)
    collect_realm(store, "acme")

    assert shop.load_table("sales.orders").scan().to_arrow().num_rows == 3
    assert open_client(branch="monday").load_table("sales.orders").scan().to_arrow().num_rows == 6
    assert check_store(store) == []


def test_dropped_tables_place_is_free_for_the_next_table(shop: IcebergCatalog, rows: pa.Table) -> None:
    place = shop.load_table("sales.orders").location()
    shop.drop_table("sales.orders")

    assert shop.create_table("sales.orders", rows.schema, location=place).location() == place
