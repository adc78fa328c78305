from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import RefusedError
from headwater.iceberg import canonical_location, is_same_place, is_through_link, is_within, plain_location


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
def test_location_has_one_spelling(location: str, spelled: str) -> None:
    assert canonical_location(location) == spelled


@pytest.mark.parametrize("location", ["", "data/lake", "s3:bucket", "s3://bucket/../other", "/data/./lake"])
def test_location_that_could_mean_two_places_is_refused(location: str) -> None:
    with pytest.raises(RefusedError):
        canonical_location(location)


@pytest.mark.parametrize(
    "location",
    [
        *["s3://b/x?y", "s3://b/x#y", "s3://b//x", "s3://b/x\\y", "s3://b/x/%2e%2E/y", "s3://b/x%2Fy", "s3://b/%2e"],
        *["s3://b/x\ty", "s3://b/x\n", "s3://b/x\r/y", "s3://b/x ", "file:///lake/\x00", "/lake/\x7f", "s3://b/../x", ""],
    ],
)
def test_location_that_drivers_read_differently_is_not_plain(location: str) -> None:
    with pytest.raises(RefusedError):
        plain_location(location)


@pytest.mark.parametrize("location", ["s3://b/x", "s3://b", "/lake/a b", "file:/lake//x/", "s3://b/dt=2026%3A01/x", "gs://b/ü"])
def test_plain_location_is_spelled_as_every_other(location: str) -> None:
    assert plain_location(location) == canonical_location(location)


def test_link_below_a_folder_is_told_from_one_above(tmp_path: Path) -> None:
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "lake")
    (tmp_path / "lake" / "away").symlink_to(tmp_path)

    assert not is_through_link(f"{tmp_path}/alias/orders/x", f"{tmp_path}/alias")
    assert not is_through_link(f"{tmp_path}/lake/orders/no/such", f"{tmp_path}/lake")
    assert is_through_link(f"{tmp_path}/lake/away/x", f"{tmp_path}/lake")
    assert is_through_link(f"{tmp_path}/alias/orders/x", f"{tmp_path}")
    assert not is_through_link("s3://b/x", "s3://b")
    assert not is_through_link("/", "/")


def test_hosts_are_compared_without_their_case() -> None:
    assert is_same_place("hdfs://Node:8020/x", "HDFS://node:8020/x")
    assert not is_same_place("s3://Bucket/x", "s3://bucket/x")
    assert not is_same_place("hdfs://node/X", "hdfs://node/x")


def test_same_objects_by_another_client_are_the_same_place() -> None:
    assert is_same_place("s3a://bucket/t/", "s3://bucket/t")
    assert not is_same_place("s3://bucket/t", "gs://bucket/t")


def test_within_goes_by_whole_segments() -> None:
    assert is_within("s3a://b/lake/t", "s3://b/lake/")
    assert is_within("s3://b/lake", "s3://b/lake")
    assert not is_within("s3://b/lakes/t", "s3://b/lake")


def test_text_that_is_no_location_lies_nowhere() -> None:
    assert not is_within("s3://b/lake/../other", "s3://b/lake")
    assert not is_same_place("orders", "orders")
