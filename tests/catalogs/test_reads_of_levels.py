"""What a page of one level reads of the database: as much in a catalog of a million tables as in one of a thousand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    CONTENT,
    Catalog,
    Catalogs,
    ContentKey,
    ContentType,
    ContentValue,
    EntryExpression,
    Namespace,
)
from headwater.catalogs.registry import RefKind, content_reference
from headwater.commits import Commit
from headwater.index import IndexLimits, NewIndex
from headwater.store import RealmId, RealmKey, RealmStore, id_text
from headwater.store.backends.memory import MemoryBackend
from tiers import long_but_for

BIG, SMALL = ContentKey.of("m"), ContentKey.of("z")
BESIDE = [ContentKey.of(f"n{number}") for number in range(20)]
PAGE = 100
FILTERS = {
    "namespaces at the top by a filter": "entry.contentType == 'NAMESPACE' && size(entry.keyElements) == 1",
    "namespace by a filter": "size(entry.keyElements) == 2 && entry.encodedKey.startsWith('z.')",
}
"""As the Java client spells them."""
UNIQUE = UUID(int=7)


class CountingBackend(FaultyBackend):
    """Counts the objects that are asked for."""

    objects = 0

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        if name == "read_objects":
            self.objects += len(arguments[1])
        return super()._call(name, *arguments, **named)


def fill(rows: RealmStore, catalog: Catalog, tables: int) -> None:
    """Put a namespace with so many tables between others, as one commit without its operations."""
    [object_id] = rows.new_ids(1)
    values = {
        kind: bytes(ContentValue(kind, UNIQUE, bytes(16), object_id).to_value().data)
        for kind in (ContentType.NAMESPACE, ContentType.ICEBERG_TABLE)
    }
    spaces = [BIG, SMALL, *BESIDE]
    data = {key.to_index(): values[ContentType.NAMESPACE] for key in spaces}
    data |= {key.child("t").to_index(): values[ContentType.ICEBERG_TABLE] for key in (SMALL, *BESIDE)}
    prefix = BIG.child_prefix()
    data |= {prefix + b"t%07d" % number: values[ContentType.ICEBERG_TABLE] for number in range(tables)}
    limits = IndexLimits(embedded_bytes=rows.settings.index_embedded_bytes, stripe_bytes=rows.settings.index_stripe_bytes)
    stored = NewIndex(data, dict.fromkeys(data, object_id)).stored(rows.new_ids, limits)
    [commit_id] = rows.new_ids(1)
    commit = Commit(
        seq=1, time=rows.clock.now(), properties={"catalog": catalog.definition.id}, indexes={CONTENT: stored.container}
    )
    rows.write_objects([(object_id, Namespace()), *stored.objects, (commit_id, commit)])
    main = content_reference(catalog.definition.id, RefKind.BRANCH, "main")
    rows.advance_reference(rows.read_reference(main, fresh=True), commit_id)


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


@pytest.mark.parametrize("tables", long_but_for({30_000}, [30_000, 1_000_000]))
def test_first_page_reads_as_much_among_many_tables_as_among_few(tables: int, settings: Settings, clock: FakeClock) -> None:
    few, many = (reads_of_pages(count, settings, clock) for count in (1_000, tables))

    assert {name: reads for name, reads in many.items() if reads > few[name] + 4} == {}
    assert max(many.values()) <= 12
