"""Namespaces of a lake, level by level and page by page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from commits_of_engines import SALES

from headwater.catalogs import ContentKey
from headwater.errors import RefusedError
from headwater.iceberg_catalog import (
    AlreadyExistsError,
    IcebergCatalog,
    LoadedTable,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    PropertyClashError,
)


def test_namespaces_are_listed_one_level_at_a_time(lake: IcebergCatalog) -> None:
    for names in (("a", "b", "c"), ("z",)):
        lake.namespaces.create(ContentKey(names), {})

    first = lake.namespaces.list_children(None, limit=2)
    second = lake.namespaces.list_children(None, limit=2, token=first.next_token)

    assert (first.keys, second.keys) == ((ContentKey.of("a"), SALES), (ContentKey.of("z"),))
    assert lake.namespaces.list_children(ContentKey.of("a"), token="").keys == (ContentKey.of("a", "b"),)


def test_token_of_another_listing_is_refused(lake: IcebergCatalog) -> None:
    lake.namespaces.create(ContentKey.of("a"), {})
    token = lake.namespaces.list_children(None, limit=1).next_token

    with pytest.raises(RefusedError):
        lake.namespaces.list_children(SALES, token=token)


def test_missing_namespace_is_named(lake: IcebergCatalog) -> None:
    missing = ContentKey.of("a", "b")

    for ask in (lake.namespaces.list_children, lake.namespaces.read_properties, lake.namespaces.drop):
        with pytest.raises(NoSuchNamespaceError, match=r"^Namespace does not exist: a\.b$"):
            ask(missing)


def test_namespace_is_created_once_and_dropped_when_empty(lake: IcebergCatalog, orders: LoadedTable) -> None:
    with pytest.raises(AlreadyExistsError, match=r"^Namespace already exists: sales$"):
        lake.namespaces.create(SALES, {})
    with pytest.raises(NamespaceNotEmptyError, match=r"^Namespace sales is not empty: it holds sales\.orders$"):
        lake.namespaces.drop(SALES)

    lake.tables.drop(orders.key)
    lake.namespaces.drop(SALES)

    assert not lake.namespaces.exists(SALES)


def test_properties_are_set_and_removed(lake: IcebergCatalog) -> None:
    lake.namespaces.update_properties(SALES, [], {"owner": "ann", "color": "red"})

    changes = lake.namespaces.update_properties(SALES, ["color", "nothing"], {"owner": "bob"})

    assert (changes.updated, changes.removed, changes.missing) == (("owner",), ("color",), ("nothing",))
    assert lake.namespaces.read_properties(SALES) == {"owner": "bob"}


def test_property_is_not_set_and_removed_at_once(lake: IcebergCatalog) -> None:
    with pytest.raises(PropertyClashError, match=r"^Cannot remove and update the same key: owner$"):
        lake.namespaces.update_properties(SALES, ["owner"], {"owner": "ann"})


def test_property_that_reaches_files_is_refused(lake: IcebergCatalog) -> None:
    changes: list[Callable[[], object]] = [
        lambda: lake.namespaces.create(ContentKey.of("a"), {"s3.endpoint": "http://x"}),
        lambda: lake.namespaces.update_properties(SALES, [], {"s3.endpoint": "http://x"}),
    ]

    for change in changes:
        with pytest.raises(RefusedError, match=r"s3\.endpoint"):
            change()
