"""What a page of one level reads of the database: as much in a catalog of a million tables as in one of a thousand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    Catalog,
    Catalogs,
    ContentType,
    EntryExpression,
)
from headwater.store import RealmId, RealmKey, id_text
from headwater.store.backends.memory import MemoryBackend
from tiers import long_but_for
from wide_catalog import BIG, SMALL, CountingBackend, fill

PAGE = 100
FILTERS = {
    "namespaces at the top by a filter": "entry.contentType == 'NAMESPACE' && size(entry.keyElements) == 1",
    "namespace by a filter": "size(entry.keyElements) == 2 && entry.encodedKey.startsWith('z.')",
}
"""As the Java client spells them."""


@contextmanager
def filled(tables: int, settings: Settings, clock: FakeClock) -> Iterator[tuple[Catalog, CountingBackend]]:
    """The catalog as a process sees it that has read nothing of it yet."""
    backend = MemoryBackend()
    with Store(backend, url="memory://", settings=settings, clock=clock) as store:
        key = RealmKey(store.new_id())
        rows = store.rows(RealmId("acme"), key)
        for name in (CATALOGS, CLAIMS):
            rows.ensure_reference(name)
        Catalogs(rows).create_catalog("lake", base_location="s3://lake/")
        fill(rows, Catalogs(rows).open_catalog("lake"), tables)
        counting = CountingBackend(backend)
        fresh = Store(counting, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]  # counting is any backend
        yield Catalogs(fresh.rows(RealmId("acme"), key)).open_catalog("lake"), counting


def reads_of_pages(tables: int, settings: Settings, clock: FakeClock) -> dict[str, int]:
    """The objects that the first pages read, each for itself by a process that remembers nothing."""
    reads = {}
    with filled(tables, settings, clock) as (catalog, counting):
        pages = {
            "tables": (BIG, ContentType.ICEBERG_TABLE, PAGE),
            "namespaces at the top": (None, ContentType.NAMESPACE, PAGE),
            "namespaces at the top, one by one": (None, ContentType.NAMESPACE, 2),
            "small namespace": (SMALL, ContentType.ICEBERG_TABLE, PAGE),
        }
        head = catalog.resolve()
        assert head is not None
        for name, (parent, kind, limit) in pages.items():
            catalog._rows.store.cache.clear()
            before = counting.objects
            page = catalog.children(id_text(head.id), parent, content_types=[kind], limit=limit)
            reads[name] = counting.objects - before
            assert page.entries
        for name, text in FILTERS.items():
            catalog._rows.store.cache.clear()
            before = counting.objects
            assert catalog.entries(id_text(head.id), where=EntryExpression.parse(text)).entries
            reads[name] = counting.objects - before
    return reads


@pytest.mark.parametrize("tables", long_but_for({30_000}, [30_000, 1_000_000], rare=3))
def test_first_page_reads_as_much_among_many_tables_as_among_few(tables: int, settings: Settings, clock: FakeClock) -> None:
    few, many = (reads_of_pages(count, settings, clock) for count in (1_000, tables))

    assert {name: reads for name, reads in many.items() if reads > few[name] + 4} == {}
    assert max(many.values()) <= 12
