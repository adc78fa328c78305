"""An import that is killed at any call of the database, before its effect or after it, and run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings
from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    Catalog,
    Catalogs,
    ContentKey,
    IcebergTable,
    ImportOptions,
    TableClaims,
    import_tables,
)
from headwater.catalogs.content_operations import IDS, find_content_key
from headwater.iceberg import AcceptedTable
from headwater.store import RealmId, RealmKey, RealmStore, Store, open_store

MakeFound = Callable[..., AcceptedTable]
KEY = RealmKey(7)
NAMES = ("sales.orders", "sales.items", "web.eu.views")


class KilledError(BaseException):
    """The process is gone: nothing catches this."""


class Lake:
    """One database that outlives its processes."""

    def __init__(self, settings: Settings, clock: FakeClock) -> None:
        self._settings, self._clock = settings, clock
        self.backend = open_store("memory://", settings=settings, clock=clock).backend
        rows = self.process()[0]
        for name in (CATALOGS, CLAIMS):
            rows.ensure_reference(name)
        Catalogs(rows).create_catalog("lake", base_location="s3://lake/")

    def process(self) -> tuple[RealmStore, FaultyBackend]:
        faults = FaultyBackend(self.backend)
        store = Store(faults, url="memory://", settings=self._settings, clock=self._clock)
        return store.rows(RealmId("acme"), KEY), faults

    def run(self, tables: list[AcceptedTable], rows: RealmStore) -> Any:
        return import_tables(
            Catalogs(rows).open_catalog("lake"), TableClaims(rows), tables, options=ImportOptions(batch=2, mode="sync")
        )


@pytest.fixture
def lake(settings: Settings, clock: FakeClock) -> Lake:
    return Lake(settings, clock)


@pytest.fixture
def tables(make_found: MakeFound) -> list[AcceptedTable]:
    return [make_found(name) for name in NAMES]


def content_of(catalog: Catalog) -> dict[str, Any]:
    """By key, without ids, which are given at random."""
    keys = [entry.key for entry in catalog.entries().entries]
    return {str(key): content and content.__class__ for key, content in catalog.get_contents(None, keys).items()}


def check_like_one_run(lake: Lake, tables: list[AcceptedTable], commits: int) -> None:
    rows, _ = lake.process()
    catalog, claims = Catalogs(rows).open_catalog("lake"), TableClaims(rows)
    head = catalog.resolve()
    assert head is not None
    assert len(list(catalog.log())) == commits
    assert sorted(content_of(catalog)) == ["sales", "sales.items", "sales.orders", "web", "web.eu", "web.eu.views"]
    for table in tables:
        owner = claims.find_location(table.directory)
        assert owner is not None
        assert find_content_key(head.index(IDS), owner.content_id) == ContentKey(table.key)


@pytest.mark.long
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_import_killed_at_any_call_ends_as_if_run_once(
    settings: Settings, clock: FakeClock, tables: list[AcceptedTable], before: bool
) -> None:
    for at in range(1, 200):
        lake = Lake(settings, clock)
        rows, faults = lake.process()
        faults.fail(at=at, times=1_000_000, before=before, fault=KilledError())
        try:
            lake.run(tables, rows)
        except KilledError:
            faults.heal()
        else:
            break
        lake.run(tables, lake.process()[0])
        check_like_one_run(lake, tables, commits=2)
        assert lake.run(tables, lake.process()[0]).commits == ()
    assert at > 10, "the kills did not reach the import"


@pytest.mark.long
def test_sync_killed_at_any_call_and_run_again_moves_once(settings: Settings, clock: FakeClock, make_found: MakeFound) -> None:
    old, new = ([make_found(name, version=version) for name in NAMES] for version in (1, 2))
    for at in range(1, 200):
        lake = Lake(settings, clock)
        lake.run(old, lake.process()[0])
        rows, faults = lake.process()
        faults.fail(at=at, times=1_000_000, before=False, fault=KilledError())
        try:
            lake.run(new, rows)
        except KilledError:
            faults.heal()
        else:
            break
        lake.run(new, lake.process()[0])
        check_like_one_run(lake, new, commits=4)
        table = Catalogs(lake.process()[0]).open_catalog("lake").get_content(None, ContentKey.of("sales", "orders"))
        assert isinstance(table, IcebergTable)
        assert table.snapshot_id == 2
    assert at > 10, "the kills did not reach the sync"


def test_lost_answer_is_no_second_commit(lake: Lake, tables: list[AcceptedTable]) -> None:
    rows, faults = lake.process()
    faults.fail("swap_reference", before=False, times=2)

    assert lake.run(tables, rows).imported == 3

    check_like_one_run(lake, tables, commits=2)
