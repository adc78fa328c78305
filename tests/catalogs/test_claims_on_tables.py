"""A table uuid and a location belong to one table of a realm."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs import Claim, Claims, normalise_location
from headwater.clock import FakeClock
from headwater.errors import FencedError, RefusedError
from headwater.store import RealmStore

LAKE, OTHER = "00000000000000aa", "00000000000000bb"
ONE, TWO = UUID(int=1), UUID(int=2)


def claim(location: str, *, content: UUID = ONE, catalog: str = LAKE, table: UUID | None = None) -> Claim:
    return Claim(catalog_id=catalog, content_id=content, location=location, table_uuid=table)


@pytest.fixture
def claims(realm: RealmStore) -> Claims:
    return Claims(realm)


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
    ],
)
def test_a_location_has_one_text(location: str, text: str) -> None:
    assert normalise_location(location) == text


@pytest.mark.parametrize("location", ["", "data/x", "s3://b/../c", "s3://b/./c", "/a/..", "s3://b/" + "x" * 500])
def test_what_is_no_location_is_refused(location: str) -> None:
    with pytest.raises(RefusedError):
        normalise_location(location)


@given(st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4), st.sampled_from(["s3://bucket", "file://", "gs://bucket"]))
def test_a_normal_location_stays_as_it_is(segments: list[str], start: str) -> None:
    text = normalise_location("/".join([start, *segments]) if segments else start + "/")

    assert normalise_location(text + "/") == text


def test_a_free_claim_is_taken(claims: Claims) -> None:
    assert claims.take([claim("s3://b/x", table=TWO)]) == ()

    owner = claims.find([TWO])[TWO]
    assert (owner.catalog_id, owner.content_id) == (LAKE, ONE)
    assert claims.find_location("s3a://b/x/") == owner


def test_nothing_is_claimed_at_first(claims: Claims) -> None:
    assert (claims.find([ONE]), claims.find_location("s3://b/x")) == ({}, None)


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
def test_a_location_in_or_around_anothers_is_refused(claims: Claims, taken: str, wanted: str, conflicts: bool) -> None:
    claims.take([claim(taken)])
    refused = claims.take([claim(wanted, content=TWO)])

    assert [(conflict.held, conflict.owner.content_id) for conflict in refused] == (
        [(f"location {normalise_location(taken)}", ONE)] if conflicts else []
    )


def test_a_location_within_ones_own_is_taken(claims: Claims) -> None:
    claims.take([claim("s3://b/x")])

    assert claims.take([claim("s3://b/x/v2"), claim("s3://b")]) == ()


@pytest.mark.parametrize(("content", "catalog"), [(TWO, LAKE), (ONE, OTHER)])
def test_a_uuid_of_another_table_is_refused(claims: Claims, content: UUID, catalog: str) -> None:
    claims.take([claim("s3://b/x", table=ONE)])
    (conflict,) = claims.take([claim("s3://b/y", content=content, catalog=catalog, table=ONE)])

    assert conflict.held == f"table uuid {ONE}"
    assert claims.find_location("s3://b/y") is None


def test_the_claims_of_a_batch_are_held_against_each_other(claims: Claims) -> None:
    refused = claims.take([claim("s3://b/x"), claim("s3://b/x/y", content=TWO), claim("s3://b/z", content=TWO)])

    assert [conflict.claim.location for conflict in refused] == ["s3://b/x/y"]
    assert claims.find_location("s3://b/z") is not None


def test_taking_ones_own_again_refreshes_its_time(claims: Claims, clock: FakeClock) -> None:
    claims.take([claim("s3://b/x", table=ONE)])
    before = claims.find([ONE])[ONE].taken
    clock.advance(5)
    claims.take([claim("s3://b/x", table=ONE)])

    assert claims.find([ONE])[ONE].taken > before
    assert claims.find_location("s3://b/x") == claims.find([ONE])[ONE]


def test_a_fenced_claim_is_not_taken(claims: Claims) -> None:
    def fence() -> None:
        raise FencedError("taken over")

    with pytest.raises(FencedError):
        claims.take([claim("s3://b/x")], fence=fence)
    assert claims.find_location("s3://b/x") is None
