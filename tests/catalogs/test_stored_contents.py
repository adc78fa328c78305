"""Contents that are read by what an index has of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.catalogs import Catalog, ContentKey, ContentType, IcebergTable, Namespace, Put, read_contents
from headwater.errors import CorruptionError
from headwater.store import ObjectId, RealmStore

SALES, ORDERS = ContentKey.of("sales"), ContentKey.of("sales", "orders")


def test_contents_of_several_commits_are_read_at_once(catalog: Catalog, realm: RealmStore) -> None:
    catalog.commit(
        "main", [Put(SALES, Namespace(properties={"a": "1"})), Put(ORDERS, IcebergTable(metadata_location="s3://a"))]
    )
    present = catalog.get_content("main", ORDERS)
    assert present is not None
    catalog.commit("main", [Put(ORDERS, IcebergTable(id=present.id, metadata_location="s3://b"))])
    values = [
        (operation.key, operation.value)
        for entry in catalog.log("main")
        for operation in entry.operations
        if operation.value is not None
    ]

    contents = read_contents(realm, values, catalog="lake")
    assert [getattr(content, "metadata_location", None) for content in contents] == ["s3://b", None, "s3://a"]
    assert contents[0].id == contents[2].id == present.id


def test_content_that_is_lost_or_another_is_told(catalog: Catalog, realm: RealmStore) -> None:
    catalog.commit("main", [Put(SALES, Namespace())])
    [entry] = catalog.find_entries("main", [SALES])

    with pytest.raises(CorruptionError, match="is not there"):
        read_contents(realm, [(SALES, replace(entry.value, object_id=ObjectId(1)))], catalog="lake")
    with pytest.raises(CorruptionError, match="UDF in the index, Namespace stored"):
        read_contents(realm, [(SALES, replace(entry.value, type=ContentType.UDF))], catalog="lake")
