"""A realm with the references that catalogs need, and one catalog in it."""

from __future__ import annotations

import pytest

from headwater.catalogs import CATALOGS, CLAIMS, Catalog, Catalogs, ContentKey, IcebergTable, Namespace, Put
from headwater.store import ObjectId, RealmStore


@pytest.fixture
def realm(rows: RealmStore) -> RealmStore:
    for name in (CATALOGS, CLAIMS):
        rows.ensure_reference(name)
    return rows


@pytest.fixture
def catalogs(realm: RealmStore) -> Catalogs:
    return Catalogs(realm)


@pytest.fixture
def catalog(catalogs: Catalogs) -> Catalog:
    catalogs.create_catalog("lake", base_location="s3://lake/")
    return catalogs.open_catalog("lake")


@pytest.fixture
def sales() -> ContentKey:
    return ContentKey.of("sales")


@pytest.fixture
def orders() -> ContentKey:
    return ContentKey.of("sales", "orders")


@pytest.fixture
def first(catalog: Catalog, sales: ContentKey, orders: ContentKey) -> ObjectId:
    """The first commit of main: a namespace with one table."""
    table = IcebergTable(metadata_location="s3://lake/orders/v1.json")
    done = catalog.commit("main", [Put(sales, Namespace()), Put(orders, table)], message="first")
    assert done.commit_id is not None
    return done.commit_id
