"""A commit that took effect late notes so on its reference; what retention keeps of its history stays kept."""

from __future__ import annotations

import pytest
from deaths import SETTINGS, open_on
from grounds_of_work import HOUR, ROOT

from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put
from headwater.commits import commit_change
from headwater.gc import collect_realm
from headwater.index import IndexValue
from headwater.realms import HistoryRetention, RealmRegistry, bootstrap
from headwater.store import RealmStore, Store
from headwater.store.backends.memory import MemoryBackend

pytestmark = pytest.mark.long

VERSIONS = 6


def put(catalog: Catalog, number: int) -> None:
    catalog.commit(None, [Put(ContentKey.of(f"table-{number}"), IcebergTable(metadata_location=f"s3://lake/{number}.json"))])


def make_lake(store: Store) -> tuple[RealmStore, Catalog]:
    """In a realm that keeps all history of content, and little of the rest."""
    realms = RealmRegistry(store)
    realms.create_realm("acme", retention=HistoryRetention(content_commits=1000, reference_commits=2))
    bootstrap(realms, "acme", ROOT)
    rows = realms.open_realm("acme")
    Catalogs(rows).create_catalog("lake", base_location="s3://lake/")
    return rows, Catalogs(rows).open_catalog("lake")


def test_kept_history_survives_a_note_of_a_late_commit() -> None:
    """The late one's clock is behind, as far as clocks may: its commit is of a time at which others cut already."""
    backend, clock = MemoryBackend(), FakeClock()
    rows, catalog = make_lake(open_on(backend, clock))
    for number in range(VERSIONS):
        put(catalog, number)
        clock.advance(HOUR)
    for note in (b"1", b"2", b"3", b"4"):
        clock.advance(HOUR if note == b"4" else 1)
        commit_change(rows, "policy-mappings", lambda tx, note=note: tx.index("notes").put(note, IndexValue(None, b"")))  # type: ignore[misc]
    collect_realm(rows.store, "acme")
    behind = open_on(backend, FakeClock(clock.now() - round(SETTINGS.clock_bound_seconds * 1_000_000)))
    late = RealmRegistry(behind).open_realm("acme")
    row = late.find_row(f"cat/{catalog.definition.id}/heads/main")
    assert row is not None and row.pointer is not None
    put(Catalogs(late).open_catalog("lake"), VERSIONS)
    seen = late.find_row(row.name)
    assert seen is not None
    late.record_move(seen, row.pointer)
    clock.advance(HOUR)
    collect_realm(rows.store, "acme")

    assert len(list(catalog.log())) == VERSIONS + 1
