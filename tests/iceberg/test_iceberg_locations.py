from __future__ import annotations

import pytest

from headwater.catalogs.iceberg import canonical, is_same_place, is_within
from headwater.errors import RefusedError


@pytest.mark.parametrize(
    ("location", "spelled"),
    [
        ("/data/lake/", "file:///data/lake"),
        ("file:/data/lake", "file:///data/lake"),
        ("file:///data//lake/", "file:///data/lake"),
        ("file://localhost/data", "file:///data"),
        ("S3://bucket/folder/", "s3://bucket/folder"),
        ("s3a://bucket/a b%20c", "s3a://bucket/a b%20c"),
        ("s3://bucket/a//b", "s3://bucket/a//b"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket//a", "s3://bucket//a"),
        ("file://localhost/a", "file:///a"),
        ("file:////a", "file:///a"),
        ("/a", "file:///a"),
        ("/", "file:///"),
    ],
)
def test_a_location_has_one_spelling(location: str, spelled: str) -> None:
    assert canonical(location) == spelled


@pytest.mark.parametrize("location", ["", "data/lake", "s3:bucket", "s3://bucket/../other", "/data/./lake"])
def test_what_could_mean_two_places_is_refused(location: str) -> None:
    with pytest.raises(RefusedError):
        canonical(location)


def test_the_same_objects_by_another_client_are_the_same_place() -> None:
    assert is_same_place("s3a://bucket/t/", "s3://bucket/t")
    assert not is_same_place("s3://bucket/t", "gs://bucket/t")


def test_within_goes_by_whole_segments() -> None:
    assert is_within("s3a://b/lake/t", "s3://b/lake/")
    assert is_within("s3://b/lake", "s3://b/lake")
    assert not is_within("s3://b/lakes/t", "s3://b/lake")


def test_a_text_that_is_no_location_lies_nowhere() -> None:
    assert not is_within("s3://b/lake/../other", "s3://b/lake")
    assert not is_same_place("orders", "orders")
