"""What a request reads of the database: as much in a catalog of a million tables, and with a long history, as in a small one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from managed_office import unhashed

from asgi_client import AsgiClient
from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, Namespace, Put
from headwater.realms import RealmRegistry, bootstrap
from headwater.store.backends.memory import MemoryBackend
from headwater_server.call import ServedStore
from headwater_server.management import management_table
from headwater_server.server_application import ServerApplication
from tiers import long_but_for
from wide_catalog import CountingBackend, fill

_CATALOG = "/api/v1/realms/acme/catalogs/lake"
_REF = "/references/main"
PAGES = {
    "top": f"{_REF}/entries?pageSize=10",
    "children of many": f"{_REF}/entries?parent=m&pageSize=10",
    "children of few": f"{_REF}/entries?parent=z",
    "search of a prefix": f"{_REF}/search?q=m.t00000&pageSize=10",
    "search of the last": f"{_REF}/search?q=z.",
    "search of nothing": f"{_REF}/search?q=zz",
    "table": f"{_REF}/tables/z",
    "references": "/references",
    "reference": _REF,
    "log": f"{_REF}/log?pageSize=10",
    "graph": "/graph?pageSize=10",
    "differences": "/diff?before=main&after=main~1&pageSize=10",
    "differences with a merge": "/diff?before=main~1&after=main&pageSize=10&merge=true",
}


@contextmanager
def serving(
    settings: Settings, clock: FakeClock, tables: int, commits: int
) -> Iterator[tuple[AsgiClient, CountingBackend, Store]]:
    """A server that has read nothing yet of a catalog with so many tables, and so many commits of one of them."""
    backend = MemoryBackend()
    with Store(backend, url="memory://", settings=settings, clock=clock) as store:
        registry = RealmRegistry(store)
        registry.create_realm("acme")
        bootstrap(registry, "acme", unhashed("root"))
        catalogs = Catalogs(registry.open_realm("acme"))
        catalogs.create_catalog("lake", base_location="s3://lake/")
        catalog = catalogs.open_catalog("lake")
        fill(registry.open_realm("acme"), catalog, tables)
        change(catalog, commits)
        counting = CountingBackend(backend)
        fresh = Store(counting, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # counting is any backend
        application = ServerApplication(ServedStore(fresh), [management_table()], settings=settings, clock=clock, version="1")
        yield AsgiClient(application), counting, fresh
        application.close()


def change(catalog: Catalog, times: int) -> None:
    for number in range(times):
        catalog.commit("main", [Put(ContentKey.of(f"y{number:04}"), Namespace())])


def reads_of(settings: Settings, clock: FakeClock, *, tables: int, commits: int) -> Mapping[str, int]:
    """The objects that each request reads by itself."""
    reads = {}
    with serving(settings, clock, tables, commits) as (client, counting, store):
        assert client.request("GET", f"{_CATALOG}{_REF}").status == 200  # the realm and the catalog are open
        for name, path in PAGES.items():
            store.cache.clear()
            before = counting.objects
            answer = client.request("GET", f"{_CATALOG}{path}")
            assert answer.status == 200, (name, answer.content)
            reads[name] = counting.objects - before
    return reads


@pytest.mark.parametrize("tables", long_but_for({30_000}, [30_000, 1_000_000], rare=3))
def test_page_reads_as_much_among_many_tables_as_among_few(tables: int, settings: Settings, clock: FakeClock) -> None:
    few, many = (reads_of(settings, clock, tables=count, commits=3) for count in (1_000, tables))

    assert {name: reads for name, reads in many.items() if reads > few[name] + 4} == {}
    assert max(many.values()) <= 30


def test_page_reads_no_more_of_a_long_history(settings: Settings, clock: FakeClock) -> None:
    short, long = (reads_of(settings, clock, tables=10, commits=count) for count in (15, 150))

    assert {name: reads for name, reads in long.items() if reads > short[name] + 12} == {}


@pytest.mark.parametrize("tables", long_but_for({30_000}, [30_000, 1_000_000], rare=3))
def test_search_of_all_keys_ends_within_bounds(tables: int, settings: Settings, clock: FakeClock) -> None:
    """Each request looks at so many keys at most, and says so until the last has looked at all."""
    wanted, looked, token, most = f"m.t{tables - 1:07}", list[int](), "", tables // 20_000 + 2
    with serving(settings, clock, tables, 0) as (client, _, _):
        for _ in range(most):
            path = f"{_CATALOG}{_REF}/search?match=substring&q=T{tables - 1:07}{token}"
            page = client.request("GET", path).data
            looked.append(page["looked"])
            if page["isComplete"]:
                break
            token = f"&pageToken={page['nextPageToken']}"
            assert page["entries"] == [] or page["entries"][0]["name"] == wanted

    assert max(looked) <= 20_000 and sum(looked) == page["total"]
    assert page["isComplete"] and page["nextPageToken"] is None
