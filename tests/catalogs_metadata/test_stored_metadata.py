from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_shelves import Shelf

from headwater.catalogs.stored_metadata import IcebergMetadata, read_fields
from headwater.commits import mark_reachable
from headwater.errors import CorruptionError, NotFoundError
from headwater.store import ObjectId
from metadata_fixtures import FIXTURES

MakeDocument = Callable[[int, int], dict[str, Any]]
scalars = st.none() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
elements = scalars | st.dictionaries(st.text(max_size=3), scalars, max_size=3) | st.just("long" * 600)
lists = st.lists(elements, max_size=8)
names = st.sampled_from(["snapshots", "refs", "n" * 250, "a\0b", ""])
large = st.dictionaries(st.text(max_size=3) | st.just("m" * 300), st.just("x" * 600), min_size=2, max_size=4)
documents = st.dictionaries(names, lists | scalars | large, max_size=5)


def without_nulls(document: dict[str, Any]) -> dict[str, Any]:
    """An optional field of the format that is null is left out; unknown ones stay."""
    known = {"snapshots", "refs", "current-snapshot-id"}
    return {name: value for name, value in document.items() if value is not None or name not in known}


def test_document_comes_back_with_equal_values(shelf: Shelf, make_document: MakeDocument) -> None:
    stored = shelf.store(make_document(0, 60))

    assert shelf.read(stored) == make_document(0, 60)


def test_all_fixtures_come_back(make_shelf: Callable[[], Shelf]) -> None:
    shelf = make_shelf()

    for fixture in FIXTURES:
        assert shelf.read(shelf.store(fixture.document)) == without_nulls(fixture.document), fixture.name


@given(st.lists(documents, min_size=1, max_size=5))
@settings(max_examples=40)
def test_every_version_comes_back_whatever_came_before(make_shelf: Callable[[], Shelf], versions: list[dict[str, Any]]) -> None:
    shelf = make_shelf()

    stored = [shelf.store(document) for document in versions]

    assert [shelf.read(one) for one in stored] == [without_nulls(version) for version in versions]
    assert [shelf.kept_text(one) for one in stored] == [shelf.stored_text(one) for one in stored]


def test_next_version_reads_no_piece_of_the_one_before(shelf: Shelf, make_document: MakeDocument) -> None:
    first = shelf.store(make_document(0, 20))
    second = shelf.store(make_document(1, 21))

    assert shelf.rows.find_derived(first, object) is not None
    assert shelf.rows.find_derived(second, object) is not None
    assert shelf.read(second) == make_document(1, 21)


def test_pieces_of_a_deleted_version_are_not_found(shelf: Shelf, make_document: MakeDocument) -> None:
    shelf.store(make_document(0, 20))
    stored = shelf.store(make_document(1, 21))
    shelf.kept_text(stored)

    shelf.rows.delete_unchanged([key for batch in shelf.rows.scan_objects() for key in batch if key.id == stored])

    with pytest.raises(NotFoundError):
        shelf.kept_text(stored)


@given(documents, names)
@settings(max_examples=40)
def test_field_is_read_alone_as_it_is_with_all_others(
    make_shelf: Callable[[], Shelf], document: dict[str, Any], name: str
) -> None:
    shelf = make_shelf()
    stored = shelf.store(document)
    found = read_fields(shelf.rows, [stored], [name])[stored].get(name)
    there = {key: value for key, value in document.items() if not isinstance(value, list) or not value}

    assert (None if found is None else json.loads(found)) == there.get(name)


def test_versions_that_came_after_change_nothing_of_those_before(shelf: Shelf, make_document: MakeDocument) -> None:
    first = shelf.store(make_document(0, 50))
    for end in range(51, 60):
        shelf.store(make_document(end - 50, end))

    assert shelf.read(first) == make_document(0, 50)


def test_numbers_come_back_as_they_were_written(shelf: Shelf) -> None:
    text = b'{"a":1.50,"b":[1E3,123456789012345678901234567890]}'

    assert shelf.read(shelf.store_text(text)) == json.loads(text)


@pytest.mark.long
@pytest.mark.parametrize("expires", [False, True], ids=["growing", "expiring"])
def test_next_version_of_a_long_table_writes_little(
    make_shelf: Callable[[], Shelf], make_document: MakeDocument, expires: bool
) -> None:
    shelf, versions = make_shelf(), 25
    shelf.store(make_document(0, 1500))
    before = shelf.stored_bytes()
    for number in range(1, versions + 1):
        shelf.store(make_document(number if expires else 0, 1500 + number))

    assert (shelf.stored_bytes() - before) / versions < 16 * 1024


def test_large_piece_is_written_once(shelf: Shelf, make_document: MakeDocument) -> None:
    for end in range(1, 6):
        shelf.store(make_document(0, end))

    assert shelf.count("iceberg-piece") == 1


def test_equal_large_pieces_of_a_document_are_one(shelf: Shelf, make_document: MakeDocument) -> None:
    [schema] = make_document(0, 1)["schemas"]
    shelf.store({"schemas": [schema, schema], "schema": 5})

    assert shelf.count("iceberg-piece") == 1


def test_same_document_again_writes_no_pieces(shelf: Shelf, make_document: MakeDocument) -> None:
    shelf.store(make_document(0, 1500))
    stripes = shelf.count("stripe")
    shelf.store(make_document(0, 1500))

    assert (shelf.count("stripe"), shelf.count("iceberg-piece")) == (stripes, 1)


def test_no_row_grows_with_the_history(shelf: Shelf, make_document: MakeDocument) -> None:
    shelf.store(make_document(0, 1500))

    assert max(key.bytes for batch in shelf.rows.scan_objects() for key in batch) < 48 * 1024


def test_metadata_leads_to_all_its_pieces(shelf: Shelf, make_document: MakeDocument) -> None:
    stored = shelf.store(make_document(0, 100))
    met: set[ObjectId] = set()
    mark_reachable(shelf.rows, [stored], lambda object_id, _: not (object_id in met or met.add(object_id)))

    types = {key.id: key.type for batch in shelf.rows.scan_objects() for key in batch}
    assert {types[one] for one in met} == {"iceberg-metadata", "iceberg-piece", "stripe"}


def test_piece_that_is_gone_is_named(shelf: Shelf, make_document: MakeDocument) -> None:
    stored = shelf.store(make_document(0, 1))
    [piece] = shelf.rows.read_object(stored, IcebergMetadata).points_to()
    shelf.rows.delete_unchanged([key for batch in shelf.rows.scan_objects() for key in batch if key.id == piece])
    shelf.rows.store.cache.clear()

    with pytest.raises(CorruptionError, match=f"{piece:016x}.*a piece of the metadata {stored:016x}, is not there"):
        shelf.read(stored)


def test_metadata_that_was_never_stored_is_missing(shelf: Shelf) -> None:
    with pytest.raises(NotFoundError):
        shelf.read(ObjectId(1 << 40))
