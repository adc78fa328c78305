"""Processes that write through a database at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from pyiceberg.schema import Schema

from backend_fixtures import STORES
from forked_children import run_forked
from headwater import Store, open_store
from headwater.catalogs import Catalog
from headwater.clients.pyiceberg import HeadwaterCatalog

PLACE = {"realm": "acme", "catalog": "lake"}
CHANGES = 4


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, make_lake: Callable[[Store], Catalog]) -> str:
    """A store that several processes can open, with the lake in it."""
    url = STORES[request.param](request)
    with open_store(url) as store:
        make_lake(store)
    return url


@pytest.fixture
def lake(url: str, schema: Schema) -> Iterator[HeadwaterCatalog]:
    """A client of it, with one table."""
    with HeadwaterCatalog("lake", store=url, **PLACE) as catalog:
        catalog.create_namespace("sales")
        catalog.create_table("sales.orders", schema)
        yield catalog


def change(url: str, number: int) -> None:
    """What one process does: it makes a table of its own, and changes that and one that all change."""
    with HeadwaterCatalog(f"process-{number}", store=url, **PLACE) as catalog:
        shared = catalog.load_table("sales.orders")
        own = catalog.create_table(f"sales.own{number}", shared.schema())
        for n in range(CHANGES):
            own.transaction().set_properties({f"n{n}": "x"}).commit_transaction()
            shared.transaction().set_properties({f"p{number}n{n}": "x"}).commit_transaction()


def test_no_change_of_forked_processes_is_lost(url: str, lake: HeadwaterCatalog) -> None:
    run_forked(2, partial(change, url))

    assert len(lake.load_table("sales.orders").properties) == 2 * CHANGES
    assert [len(lake.load_table(f"sales.own{number}").properties) for number in range(2)] == [CHANGES, CHANGES]


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_process_that_knows_nothing_of_another_writes_beside_it(url: str, lake: HeadwaterCatalog) -> None:
    other = multiprocessing.get_context("spawn").Process(target=change, args=(url, 7))
    other.start()
    change(url, 1)
    other.join(120)

    assert other.exitcode == 0
    assert len(lake.load_table("sales.orders").properties) == 2 * CHANGES
