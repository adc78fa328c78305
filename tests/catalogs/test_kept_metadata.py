"""When the metadata that is stored beside a table stays, and when it goes."""

from __future__ import annotations

import json

import pytest

from headwater.catalogs import CONTENT, Catalog, ContentKey, ContentValue, Delete, IcebergTable, Put
from headwater.catalogs.content import with_id
from headwater.iceberg.metadata_json import MetadataParts, split_metadata

A, B, C = ContentKey.of("a"), ContentKey.of("b"), ContentKey.of("c")
V1, V2 = (IcebergTable(metadata_location=f"s3://lake/v{version}.json") for version in (1, 2))


def document(version: int) -> MetadataParts:
    return split_metadata(json.dumps({"last-updated-ms": version}).encode())


def version_at(catalog: Catalog, key: ContentKey) -> int | None:
    """Which document is stored, if one is; and the key's value says the same."""
    stored, head = catalog.metadata("main", key), catalog.resolve("main")
    value = None if head is None else head.index(CONTENT).get(key.to_index())
    assert value is not None
    assert ContentValue.from_value(value).has_metadata == (stored is not None)
    return None if stored is None else int(json.loads(stored)["last-updated-ms"])


@pytest.fixture
def catalog(catalog: Catalog) -> Catalog:
    """With two tables, each with metadata."""
    catalog.commit("main", [Put(A, V1, metadata=document(1)), Put(B, V2, metadata=document(2))])
    return catalog


def kept(catalog: Catalog, key: ContentKey, table: IcebergTable) -> IcebergTable:
    """The table with the id of what stands under a key."""
    there = catalog.get_content("main", key)
    assert there is not None and there.id is not None
    return with_id(table, there.id)


def test_renamed_table_keeps_its_metadata(catalog: Catalog) -> None:
    catalog.commit("main", [Delete(B), Put(C, kept(catalog, B, V2))])

    assert version_at(catalog, C) == 2


def test_table_that_is_changed_without_metadata_has_none(catalog: Catalog) -> None:
    catalog.commit("main", [Put(B, kept(catalog, B, V1))])

    assert version_at(catalog, B) is None


def test_table_that_is_renamed_and_changed_without_metadata_has_none(catalog: Catalog) -> None:
    catalog.commit("main", [Delete(A), Delete(B), Put(C, kept(catalog, B, V1))])  # equal to what goes with A

    assert version_at(catalog, C) is None


def test_table_that_is_made_anew_without_metadata_has_none(catalog: Catalog) -> None:
    catalog.commit("main", [Delete(A), Put(A, V1)])

    assert version_at(catalog, A) is None


def test_document_may_come_after_its_table(catalog: Catalog) -> None:
    catalog.commit("main", [Put(C, V1)])
    before = version_at(catalog, C)
    catalog.commit("main", [Put(C, kept(catalog, C, V1), metadata=document(3))])

    assert (before, version_at(catalog, C)) == (None, 3)
