"""Only an ACTIVE realm serves users: a client neither reads nor writes another, and administrators still read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from lake_doors import REFUSED
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import ServiceUnavailableError
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.catalogs import Catalog, Catalogs, ContentKey
from headwater.realms import RealmRegistry, RealmState

CLOSED = (*REFUSED, ServiceUnavailableError)
MakeLake = Callable[[Store], Catalog]
READS: dict[str, Callable[[IcebergCatalog], Any]] = {
    "tables": lambda client: client.list_tables("sales"),
    "table": lambda client: client.load_table("sales.orders"),
    "existence": lambda client: client.table_exists("sales.orders"),
    "namespaces": lambda client: client.list_namespaces(),
    "properties": lambda client: client.load_namespace_properties("sales"),
    "views": lambda client: client.list_views("sales"),
    "drop": lambda client: client.drop_table("sales.orders"),
    "purge": lambda client: client.purge_table("sales.orders"),
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Any:
    with open_store("memory://", settings=Settings(), clock=clock) as opened:
        yield opened


@pytest.fixture
def orders(client: IcebergCatalog, schema: Schema) -> Table:
    client.create_namespace("sales")
    return client.create_table("sales.orders", schema)


def deactivate(store: Store, clock: FakeClock) -> None:
    realms = RealmRegistry(store)
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    clock.advance(store.settings.realm_handle_ttl_seconds + 1)


@pytest.mark.parametrize("name", READS)
def test_client_reads_nothing_of_an_inactive_realm(
    client: IcebergCatalog, orders: Table, store: Store, clock: FakeClock, name: str
) -> None:
    deactivate(store, clock)

    # a HEAD is answered without a word
    with pytest.raises(
        CLOSED, match=r"realm 'acme' is INACTIVE: it serves users only while it is ACTIVE|RestError: Service Unavailable"
    ):
        READS[name](client)


def test_client_is_not_opened_on_an_inactive_realm(
    open_client: Callable[..., IcebergCatalog], orders: Table, store: Store, clock: FakeClock
) -> None:
    deactivate(store, clock)

    with pytest.raises(CLOSED, match="is INACTIVE"):
        open_client().list_namespaces()


def test_table_at_hand_is_not_written_to(orders: Table, store: Store, clock: FakeClock, rows: pa.Table) -> None:
    deactivate(store, clock)

    with pytest.raises(CLOSED, match="is INACTIVE"):
        orders.update_schema().delete_column("customer").commit()
    with pytest.raises(CLOSED, match="is INACTIVE"):
        orders.refresh()


def test_client_goes_on_once_the_realm_is_active_again(
    client: IcebergCatalog, orders: Table, store: Store, clock: FakeClock
) -> None:
    deactivate(store, clock)
    with pytest.raises(CLOSED, match="is INACTIVE"):
        client.list_namespaces()
    realms = RealmRegistry(store)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)

    assert client.list_tables("sales") == [("sales", "orders")]


def test_administrators_read_an_inactive_realm(orders: Table, store: Store, clock: FakeClock) -> None:
    deactivate(store, clock)

    assert (
        Catalogs(RealmRegistry(store).open_realm("acme"))
        .open_catalog("lake")
        .get_content(None, ContentKey.of("sales", "orders"))
        is not None
    )
