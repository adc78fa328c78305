"""A catalog that is deleted, made anew or turned to another branch behind a server that has it open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from guarded_server import GuardedServer, Guest, held
from headwater.access import Privilege
from headwater.catalogs import Catalogs
from headwater.store import Store

LONGEST = 4.9


@pytest.fixture
def other_process(server: GuardedServer) -> Iterator[Catalogs]:
    """The catalogs of ``acme`` as another process has them, which shares no cache with the server."""
    backend, settings = server.store.backend, server.store.settings
    yield Catalogs(
        type(server.realms)(Store(backend, url="memory://", settings=settings, clock=server.clock)).open_realm("acme")
    )


@pytest.fixture
def reader(server: GuardedServer) -> Guest:
    server.make_table("sales", "orders")
    server.make_principal("reader", held(Privilege.TABLE_READ_DATA))
    guest = server.guest("reader")
    assert guest.get("namespaces/sales/tables/orders").status == 200
    return guest


def test_deleted_catalog_is_read_no_more(server: GuardedServer, reader: Guest, other_process: Catalogs) -> None:
    other_process.delete_catalog("lake")
    server.clock.advance(LONGEST)

    assert reader.get("namespaces/sales/tables/orders").status == 404


def test_catalog_made_anew_has_none_of_the_former_grants(server: GuardedServer, reader: Guest, other_process: Catalogs) -> None:
    other_process.delete_catalog("lake")
    other_process.create_catalog("lake", base_location=f"{server.base_location}/acme/anew")
    server.clock.advance(LONGEST)

    assert reader.get("namespaces/sales/tables/orders").status == 404
    assert server.guest("root").names("namespaces") == []


def test_grant_on_the_default_branch_leaves_the_former_one(
    server: GuardedServer, reader: Guest, other_process: Catalogs
) -> None:
    former = reader.at("acme~lake~main")
    assert former.get("namespaces/sales/tables/orders").status == 200
    lake = other_process.open_catalog("lake")
    lake.create_branch("public")
    other_process.update_catalog(other_process.read_catalog("lake"), default_branch="public")
    server.clock.advance(LONGEST)

    assert former.get("namespaces/sales/tables/orders").status == 404
    assert reader.get("namespaces/sales/tables/orders").status == 200
