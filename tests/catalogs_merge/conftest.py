"""A catalog with a branch ``main`` and a branch ``dev`` that parted from it, in memory unless a module asks for other databases."""

from __future__ import annotations

import pytest
from sketched_branches import Branching

from headwater.catalogs import CATALOGS, CLAIMS, Catalog, Catalogs
from headwater.store import RealmStore


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def catalog(rows: RealmStore) -> Catalog:
    for name in (CATALOGS, CLAIMS):
        rows.ensure_reference(name)
    catalogs = Catalogs(rows)
    catalogs.create_catalog("lake", base_location="s3://lake/")
    return catalogs.open_catalog("lake")


@pytest.fixture
def empty(catalog: Catalog) -> Branching:
    """The catalog with nothing on ``main``."""
    return Branching(catalog)


@pytest.fixture
def lake(empty: Branching) -> Branching:
    """Namespace ``s`` with tables ``s.a`` and ``s.b`` on ``main``, and ``dev`` at the same commit."""
    empty.put("main", "s/", "s.a", "s.b")
    empty.catalog.create_branch("dev")
    return empty
