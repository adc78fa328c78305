"""A table uuid and a location belong to one table of a realm."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_clock import FakeClock
from headwater.catalogs import TableClaim, TableClaims, normalise_location
from headwater.errors import FencedError, RefusedError
from headwater.store import RealmStore

LAKE, OTHER = "00000000000000aa", "00000000000000bb"
ONE, TWO = UUID(int=1), UUID(int=2)


def claim(location: str, *paths: str, content: UUID = ONE, catalog: str = LAKE, table: UUID | None = None) -> TableClaim:
    return TableClaim(catalog_id=catalog, content_id=content, location=location, table_uuid=table, paths=paths)


@pytest.fixture
def claims(realm: RealmStore) -> TableClaims:
    return TableClaims(realm)


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("s3a://b/x/", "s3://b/x"),
        ("s3n://b/x", "s3://b/x"),
        ("S3://b/x", "s3://b/x"),
        ("s3://b", "s3://b"),
        ("s3://b/", "s3://b"),
        ("s3://b/x//y", "s3://b/x//y"),
        ("gs://b/x", "gs://b/x"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfs://c@a.dfs.core.windows.net/x"),
        ("file:///data/x/", "file:///data/x"),
        ("file:/data/x", "file:///data/x"),
        ("file://localhost/data/x", "file:///data/x"),
        ("/data//x", "file:///data/x"),
        ("file:///", "file://"),
        ("s3://b/a%20b c", "s3://b/a%20b c"),
        ("HDFS://Node:8020/Data", "hdfs://node:8020/Data"),
        ("abfss://C@A.dfs.core.windows.net/X", "abfs://c@a.dfs.core.windows.net/X"),
        ("s3://Bucket/x", "s3://Bucket/x"),
    ],
)
def test_location_has_one_text(location: str, text: str) -> None:
    assert normalise_location(location) == text


@pytest.mark.parametrize("location", ["", "data/x", "s3://b/../c", "s3://b/./c", "/a/..", "s3://b/" + "x" * 500])
def test_text_that_is_no_location_is_refused(location: str) -> None:
    with pytest.raises(RefusedError):
        normalise_location(location)


@given(st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4), st.sampled_from(["s3://bucket", "file://", "gs://bucket"]))
def test_normal_location_stays_as_it_is(segments: list[str], start: str) -> None:
    text = normalise_location("/".join([start, *segments]) if segments else start + "/")

    assert normalise_location(text + "/") == text


def test_free_claim_is_taken(claims: TableClaims) -> None:
    assert claims.take_claims([claim("s3://b/x", table=TWO)]) == ()

    owner = claims.find_by_uuid([TWO])[TWO]
    assert (owner.catalog_id, owner.content_id) == (LAKE, ONE)
    assert claims.find_location("s3a://b/x/") == owner


def test_claims_are_none_at_first(claims: TableClaims) -> None:
    assert (claims.find_by_uuid([ONE]), claims.find_location("s3://b/x")) == ({}, None)


NEIGHBOURS = [
    ("s3://b/x", "s3a://b/x/", True),
    ("s3://b/x", "s3://b/x/y", True),
    ("s3://b/x/y", "s3://b/x", True),
    ("s3://b/x/y/z", "s3://b", True),
    ("s3://b", "s3://b/x/y", True),
    ("file:///", "/data/x", True),
    ("s3://b/x", "s3://b/xy", False),
    ("s3://b/x y", "s3://b/x", False),
    ("s3://b/x", "gs://b/x", False),
    ("s3://b/x", "s3://c/x", False),
]


@pytest.mark.parametrize(("taken", "wanted", "conflicts"), NEIGHBOURS)
def test_location_in_or_around_anothers_is_refused(claims: TableClaims, taken: str, wanted: str, conflicts: bool) -> None:
    claims.take_claims([claim(taken)])
    refused = claims.take_claims([claim(wanted, content=TWO)])

    assert [(conflict.held, conflict.owner.content_id) for conflict in refused] == (
        [(f"location {normalise_location(taken)}", ONE)] if conflicts else []
    )


@pytest.mark.parametrize(("taken", "wanted", "conflicts"), NEIGHBOURS)
def test_path_in_or_around_anothers_place_is_refused(claims: TableClaims, taken: str, wanted: str, conflicts: bool) -> None:
    claims.take_claims([claim("s3://far/one", taken)])

    assert len(claims.find_conflicts([claim(wanted, content=TWO)])) == conflicts
    assert len(claims.find_conflicts([claim("s3://far/two", wanted, content=TWO)])) == conflicts
    assert len(claims.take_claims([claim("s3://far/two", "s3://free", wanted, content=TWO)])) == conflicts


def test_path_within_the_tables_own_place_needs_no_entry(claims: TableClaims) -> None:
    claims.take_claims([claim("s3://b/x", "s3://b/x/data", "s3://b/y/meta", "s3://b/y")])

    assert [
        claims.find_location(place) is not None for place in ("s3://b/x", "s3://b/x/data", "s3://b/y", "s3://b/y/meta")
    ] == [
        True,
        False,
        True,
        False,
    ]


def test_all_places_of_a_claim_are_released(claims: TableClaims) -> None:
    claims.take_claims([claim("s3://b/x", "s3://b/y", table=ONE)])

    assert claims.release_own([claim("s3://b/x", "s3://b/y", table=ONE)]) == 3
    assert claims.find_conflicts([claim("s3://b", content=TWO, table=ONE)]) == ()


def test_claim_is_taken_when_all_of_its_places_are(claims: TableClaims) -> None:
    claims.take_claims([claim("s3://b/x")])

    assert claims.has_taken(claim("s3://b/x"))
    assert not claims.has_taken(claim("s3://b/x", "s3://b/y"))
    assert not claims.has_taken(claim("s3://b/x", content=TWO))


def test_holder_of_a_place_is_whoever_has_the_place_around(claims: TableClaims) -> None:
    claims.take_claims([claim("s3://b/x", "s3://b/y")])

    found = claims.find_holders(["s3://b/x", "s3a://b/y/deep/file", "s3://b", "s3://b/z"])
    assert {place: owner.content_id for place, owner in found.items()} == {"s3://b/x": ONE, "s3a://b/y/deep/file": ONE}


def test_refusal_tells_nothing_of_the_other(claims: TableClaims) -> None:
    claims.take_claims([claim("s3://b/x/secret", catalog=OTHER, table=TWO)])
    texts = [
        str(conflict) for conflict in claims.find_conflicts([claim("s3://b/x", content=TWO), claim("s3://b/y", table=TWO)])
    ]

    assert texts == [
        "location s3://b/x overlaps a place of another table",
        f"table uuid {TWO} belongs to another table",
    ]


def test_location_within_ones_own_is_taken(claims: TableClaims) -> None:
    claims.take_claims([claim("s3://b/x")])

    assert claims.take_claims([claim("s3://b/x/v2"), claim("s3://b")]) == ()


@pytest.mark.parametrize(("content", "catalog"), [(TWO, LAKE), (ONE, OTHER)])
def test_uuid_of_another_table_is_refused(claims: TableClaims, content: UUID, catalog: str) -> None:
    claims.take_claims([claim("s3://b/x", table=ONE)])
    (conflict,) = claims.take_claims([claim("s3://b/y", content=content, catalog=catalog, table=ONE)])

    assert conflict.held == f"table uuid {ONE}"
    assert claims.find_location("s3://b/y") is None


def test_claims_of_a_batch_are_held_against_each_other(claims: TableClaims) -> None:
    refused = claims.take_claims([claim("s3://b/x"), claim("s3://b/x/y", content=TWO), claim("s3://b/z", content=TWO)])

    assert [conflict.claim.location for conflict in refused] == ["s3://b/x/y"]
    assert claims.find_location("s3://b/z") is not None


def test_taking_ones_own_again_refreshes_its_time(claims: TableClaims, clock: FakeClock) -> None:
    claims.take_claims([claim("s3://b/x", table=ONE)])
    before = claims.find_by_uuid([ONE])[ONE].taken
    clock.advance(5)
    claims.take_claims([claim("s3://b/x", table=ONE)])

    assert claims.find_by_uuid([ONE])[ONE].taken > before
    assert claims.find_location("s3://b/x") == claims.find_by_uuid([ONE])[ONE]


def test_fenced_claim_is_not_taken(claims: TableClaims) -> None:
    def fence() -> None:
        raise FencedError("taken over")

    with pytest.raises(FencedError):
        claims.take_claims([claim("s3://b/x")], fence=fence)
    assert claims.find_location("s3://b/x") is None
