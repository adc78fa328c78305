"""Iceberg metadata in pieces: a lost one is told with the table and what it was of, and each has a way that leads to it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from harm import REALM, alter, findings, lose

from headwater.catalogs import IDS, Catalog, ContentKey, IcebergTable, Put, stored_metadata_of
from headwater.catalogs.stored_metadata import IcebergMetadata
from headwater.commits import commit_change
from headwater.fsck import FindingCode, check_store
from headwater.fsck.explanation import explain
from headwater.iceberg.metadata_json import split_metadata
from headwater.index import IndexEditor, IndexValue
from headwater.store import ObjectId, RealmStore, Store, id_text

ORDERS = ContentKey.of("orders")


@pytest.fixture
def metadata(lake: Catalog) -> ObjectId:
    """Of a table with a large schema and more snapshots than lie in one object."""
    snapshots = [{"snapshot-id": number, "note": "x" * 900} for number in range(100)]
    document = {"location": "s3://lake/orders", "schemas": [{"fields": ["y" * 3000]}], "snapshots": snapshots}
    put = Put(
        ORDERS,
        IcebergTable(metadata_location="s3://lake/orders/v1.json"),
        metadata=split_metadata(json.dumps(document).encode()),
    )
    lake.commit("main", [put], message="first")
    head, table = lake.resolve("main"), lake.get_content("main", ORDERS)
    assert head is not None and table is not None and table.id is not None
    found = stored_metadata_of(head.index(IDS), table.id)
    assert found is not None
    return found


@pytest.fixture
def parts(realm_rows: RealmStore, metadata: ObjectId) -> dict[str, ObjectId]:
    """One object of each type that the metadata leads to."""
    types = {key.id: key.type for batch in realm_rows.scan_objects() for key in batch}
    found = {"iceberg-metadata": metadata}
    for target in realm_rows.read_object(metadata, IcebergMetadata).points_to():
        found[types[target]] = target
        if types[target] == "stripe":
            found |= {types[one]: one for one in realm_rows.read_pointing([target])[0].targets or ()}  # type: ignore[union-attr]
    return found


def test_sound_metadata_is_no_finding(store: Store, metadata: ObjectId) -> None:
    assert check_store(store, realm=REALM) == []


@pytest.mark.parametrize(("type_name", "words"), [
    ("iceberg-metadata", "a part of the metadata of orders"),
    ("stripe", "a part of the metadata of orders"),
    ("iceberg-piece", "an element of schemas in the metadata of orders"),
])  # fmt: skip
def test_lost_part_of_metadata_is_told_with_its_table(
    store: Store, realm_rows: RealmStore, parts: dict[str, ObjectId], type_name: str, words: str
) -> None:
    lose(realm_rows, parts[type_name])

    [found] = findings(store).values()
    assert (found.code, found.keys) == (FindingCode.OBJECT_UNREADABLE, (words,))


def test_altered_piece_is_found(store: Store, realm_rows: RealmStore, parts: dict[str, ObjectId]) -> None:
    alter(store, realm_rows, parts["iceberg-piece"])

    assert findings(store)[FindingCode.OBJECT_UNREADABLE].keys == ("an element of schemas in the metadata of orders",)


def test_way_to_a_piece_is_told_by_table_and_list(store: Store, parts: dict[str, ObjectId]) -> None:
    told = explain(store, REALM, parts["iceberg-piece"])

    assert told.path[2] == f"iceberg-metadata {id_text(parts['iceberg-metadata'])}: a part of the metadata of orders"
    assert told.path[-1] == f"iceberg-piece {id_text(parts['iceberg-piece'])}: an element of schemas in the metadata of orders"


def altered(lake: Catalog, rows: RealmStore, edit: Callable[[IndexEditor, bytes], object]) -> None:
    """Edit the index of content ids beside its content, as no commit of a catalog does."""
    table = lake.get_content("main", ORDERS)
    assert table is not None and table.id is not None
    content_id = table.id.bytes
    commit_change(rows, f"cat/{lake.definition.id}/heads/main", lambda tx: edit(tx.index(IDS), content_id))


@pytest.mark.parametrize(("edit", "words"), [
    (lambda ids, at: ids.remove(at), "the index of content ids does not lead back to orders"),
    (lambda ids, at: ids.put(at, IndexValue(ids.get(at).object_id, b"other")), "does not lead back to orders"),
    (lambda ids, at: ids.put(at, IndexValue(None, b"orders")), "does not lead back to orders"),
    (lambda ids, at: ids.put(bytes(16), IndexValue(None, b"other")), "the index of content ids has 2 entries, for 1 contents"),
])  # fmt: skip
def test_ids_that_do_not_lead_back_are_found(
    store: Store,
    lake: Catalog,
    realm_rows: RealmStore,
    metadata: ObjectId,
    edit: Callable[[IndexEditor, bytes], object],
    words: str,
) -> None:
    altered(lake, realm_rows, edit)

    assert words in findings(store)[FindingCode.CONTENT_WRONG].message
