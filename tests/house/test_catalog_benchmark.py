"""The suite of catalogs: each part gives rows, of a catalog that holds what it says."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headwater import Store
from headwater.catalogs import ContentKey

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.catalog
    import benchmarks.places

    return benchmarks


def test_every_part_of_the_suite_of_catalogs_gives_rows(suite: Any, store: Store) -> None:
    module = suite.catalog
    scale = module.Scale(keys=200, operations=8, changed=3, commits=5, rounds=1)
    keys = [ContentKey.from_index(key) for key in suite.tables.table_keys(scale.keys)]
    lake = module.Lake(suite.places.MemoryPlace(), scale, module.planted(store, keys), keys)
    found = list(module.measure(lake, suite.options.read_options([], module.PARTS)))

    assert {row.case.split(",")[0].split(" of ")[0] for row in found} >= {
        "first page",
        "plan_commit with its views",
        "difference",
        "log searched by author",
        "history",
    }
    assert all(row.value > 0 for row in found)


def test_planted_catalog_is_found_by_key_and_by_id(suite: Any, store: Store) -> None:
    keys = [ContentKey.from_index(key) for key in suite.tables.table_keys(50)]
    catalog = suite.catalog.planted(store, keys)
    entries = catalog.entries().entries
    by_id = catalog.find_by_id(None, [entry.content_id for entry in entries])

    assert {entry.key for entry in entries} >= set(keys)
    assert [found.key for found in by_id.values()] == [entry.key for entry in entries]
