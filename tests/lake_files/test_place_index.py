"""Places by location: in which one a file lies, and which ones a block concerns."""

from __future__ import annotations

import pytest

from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace, TablePlace
from headwater.lake_files.place_index import PlaceIndex

OUTER, INNER, OTHER = "s3://lake/sales", "s3://lake/sales/orders", "s3://lake/salesmen"


@pytest.fixture
def index() -> PlaceIndex:
    return PlaceIndex([TablePlace(location=place, catalog_id="0" * 16) for place in (OUTER, INNER, OTHER)])


def blocked(index: PlaceIndex, location: str, code: PlaceReason = PlaceReason.REFERRER_UNREADABLE) -> set[str]:
    return set(index.blocked_by([BlockedPlace(location=location, code=code)]))


def test_file_belongs_to_the_innermost_place(index: PlaceIndex) -> None:
    assert index.find_place(f"{INNER}/data/f") == INNER
    assert index.find_place(f"{OUTER}/f") == OUTER
    assert index.find_place("s3://lake/f") is None
    assert index.around(f"{INNER}/f") == [INNER, OUTER]


def test_roots_hold_all_places_and_where_the_catalog_may_have_files(index: PlaceIndex) -> None:
    other = PlaceIndex(index.places.values(), ["s3://lake/sales/", "gs://more"])

    assert index.roots() == [f"{OUTER}/", f"{OTHER}/"]
    assert other.roots() == ["s3://lake/sales/", "gs://more/", f"{OTHER}/"]


def test_outermost_places_hold_all_others(index: PlaceIndex) -> None:
    assert [place.location for place in index.outermost()] == [OUTER, OTHER]


@pytest.mark.parametrize(
    ("location", "concerned"),
    [
        ("", {OUTER, INNER, OTHER}),
        ("s3://lake", {OUTER, INNER, OTHER}),
        ("s3a://lake/sales/", {OUTER, INNER}),
        (f"{INNER}/metadata/v1.metadata.json", {OUTER, INNER}),
        ("s3://lake/sales/returns", {OUTER}),
        ("s3://else", set()),
    ],
)
def test_block_concerns_what_it_lies_in_and_what_lies_in_it(index: PlaceIndex, location: str, concerned: set[str]) -> None:
    assert blocked(index, location) == concerned


def test_guest_concerns_its_own_place_alone(index: PlaceIndex) -> None:
    assert blocked(index, INNER, PlaceReason.GUEST) == {INNER}
    assert blocked(index, OUTER, PlaceReason.GUEST) == {OUTER, INNER}


def test_missing_file_concerns_no_table_beside_its_own(index: PlaceIndex) -> None:
    assert blocked(index, OUTER, PlaceReason.LIVE_NOT_LISTED) == {OUTER}
    assert blocked(index, INNER, PlaceReason.LIVE_NOT_LISTED) == {INNER}


def test_local_disk_is_one_bucket() -> None:
    index = PlaceIndex([TablePlace(location="/lake/orders", catalog_id="0" * 16)])

    assert index.find_place("file:///lake/orders/f") == "file:///lake/orders"
    assert blocked(index, "file://") == {"file:///lake/orders"}


def test_first_reason_stays(index: PlaceIndex) -> None:
    first = BlockedPlace(location=INNER, code=PlaceReason.GUEST)
    later = BlockedPlace(location="s3://lake", code=PlaceReason.GC_DISABLED)

    assert index.blocked_by([first, later])[INNER] == first
