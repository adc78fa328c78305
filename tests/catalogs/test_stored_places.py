"""Where tables lie and write, by the metadata that is stored with them."""

from __future__ import annotations

import json

import pytest

from faulty_backend import FaultyBackend
from headwater import Store
from headwater.catalogs import IDS, Catalog, ContentKey, IcebergTable, Put, StoredPlaces, stored_places
from headwater.errors import NotFoundError
from headwater.iceberg.metadata_json import MetadataParts, split_metadata
from headwater.store import ObjectId, RealmStore


def document(number: int) -> MetadataParts:
    """With and without properties, some of which take objects of their own."""
    properties = {f"name{i}": "x" * 300 for i in range(number)} | {"write.data.path": f"s3://data/{number}"}
    fields = {"location": f"s3://lake/{number}"} | ({"properties": properties} if number % 2 else {})
    return split_metadata(json.dumps(fields).encode())


@pytest.fixture
def metadata(catalog: Catalog) -> list[ObjectId]:
    """The ids of twenty documents, in the order of their numbers."""
    keys = [ContentKey.of(f"t{number}") for number in range(20)]
    table = IcebergTable(metadata_location="s3://lake/v1.json")
    done = catalog.commit("main", [Put(key, table, metadata=document(number)) for number, key in enumerate(keys)])
    head = catalog.resolve("main")
    assert head is not None
    stored = head.index(IDS).get_many([done.result[key].bytes for key in keys])
    return [value.object_id for value in stored.values() if value.object_id is not None]


def test_places_of_many_tables_are_read_in_one_go(store: Store, rows: RealmStore, metadata: list[ObjectId]) -> None:
    faulty = FaultyBackend(store.backend)
    other = Store(faulty, url="memory://", settings=store.settings, clock=store.clock)  # type: ignore[arg-type]

    found = stored_places(other.rows(rows.realm, rows.key), metadata)

    assert [found[one] for one in metadata] == [
        StoredPlaces(f"s3://lake/{number}", (f"s3://data/{number}",) if number % 2 else ()) for number in range(20)
    ]
    assert faulty.calls.count("read_objects") <= 2  # the documents, and their large pieces


def test_document_that_is_not_there_is_told(rows: RealmStore, metadata: list[ObjectId]) -> None:
    with pytest.raises(NotFoundError):
        stored_places(rows, [*metadata, ObjectId(5)])
