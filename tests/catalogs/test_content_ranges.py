"""Entries of a range of keys, forwards and backwards, and contents by their ids."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from headwater.catalogs import Catalog, ContentKey, Delete, IcebergTable, Namespace, Put
from headwater.errors import RefusedError
from headwater.iceberg.metadata_json import split_metadata


@pytest.fixture
def store_url() -> str:
    return "memory://"


TABLE = IcebergTable(metadata_location="s3://lake/x.json")
A, B = ContentKey.of("a"), ContentKey.of("b")


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    """Two namespaces with three tables each."""
    tables = [Put(space.child(f"t{number}"), TABLE) for space in (A, B) for number in range(3)]
    catalog.commit("main", [Put(A, Namespace()), Put(B, Namespace()), *tables])
    return catalog


def keys(catalog: Catalog, **options: object) -> str:
    return " ".join(str(entry.key) for entry in catalog.entries("main", **options).entries)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"start": B}, "b b.t0 b.t1 b.t2"),
        ({"end": B}, "a a.t0 a.t1 a.t2"),
        ({"start": A.child("t1"), "end": B.child("t1")}, "a.t1 a.t2 b b.t0"),
        ({"start": A.child("t"), "end": A.child("t1")}, "a.t0"),
        ({"prefix": A, "start": A.child("t1")}, "a.t1 a.t2"),
        ({"prefix": A, "end": A.child("t1")}, "a.t0"),
        ({"prefix": A, "start": B}, ""),
        ({"prefix": B, "end": B}, ""),
        ({"start": B, "end": A}, ""),
        ({"reverse": True, "start": A.child("t2"), "end": B.child("t1")}, "b.t0 b a.t2"),
        ({"reverse": True, "prefix": A}, "a.t2 a.t1 a.t0"),
    ],
)
def test_range_begins_with_its_start_and_ends_before_its_end(filled: Catalog, options: dict[str, object], found: str) -> None:
    assert keys(filled, **options) == found


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_of_a_range_are_the_whole_range(filled: Catalog, reverse: bool, limit: int) -> None:
    page = filled.entries("main", start=A.child("t1"), end=B.child("t2"), reverse=reverse, limit=limit)
    found = [str(entry.key) for entry in page.entries]
    while page.next_token:
        page = filled.entries("main", limit=limit, page_token=page.next_token)
        found += [str(entry.key) for entry in page.entries]

    assert " ".join(found) == keys(filled, start=A.child("t1"), end=B.child("t2"), reverse=reverse)


def test_page_token_of_another_direction_is_refused(filled: Catalog) -> None:
    token = filled.entries("main", limit=1).next_token

    with pytest.raises(RefusedError, match="another listing"):
        filled.entries("main", reverse=True, page_token=token)


def test_contents_are_found_by_their_ids_wherever_they_stand(filled: Catalog) -> None:
    moved = filled.get_content("main", A.child("t1"))
    gone = filled.get_content("main", B)
    assert moved is not None and moved.id is not None and gone is not None and gone.id is not None
    filled.commit("main", [Delete(A.child("t1")), Put(B.child("new"), moved)])

    found = filled.find_by_id("main", [uuid4(), moved.id, gone.id])

    assert [(content_id, str(entry.key)) for content_id, entry in found.items()] == [(moved.id, "b.new"), (gone.id, "b")]
    assert str(filled.find_by_id("main~1", [moved.id])[moved.id].key) == "a.t1"


def test_empty_branch_has_nothing_by_id(catalog: Catalog) -> None:
    assert catalog.find_by_id(None, [uuid4()]) == {}


def test_stored_metadata_is_read_at_any_reference(filled: Catalog) -> None:
    key = ContentKey.of("m")
    filled.commit("main", [Put(key, TABLE, metadata=split_metadata(b'{"format-version": 2, "snapshots": []}'))])
    filled.commit("main", [Delete(key)])

    assert json.loads(filled.metadata("main~1", key) or b"") == {"format-version": 2, "snapshots": []}
    assert (filled.metadata("main", key), filled.metadata("main", A.child("t0"))) == (None, None)
