"""Locations that a catalog may be given, by whichever entry point."""

from __future__ import annotations

import pytest

from headwater.errors import RefusedError
from headwater.iceberg.catalog_location import check_catalog_location


@pytest.mark.parametrize(
    "location",
    [
        "s3://lake/",
        "s3a://lake/x",
        "gs://lake",
        "abfss://lake@account.dfs.core.windows.net/x",
        "file:///data/lake",
        "memory://lake/x",
        "hdfs://name:8020/lake",
        "s3://lake/größe%20a/",
    ],
)
def test_location_that_a_driver_reaches_is_accepted(location: str) -> None:
    check_catalog_location(location)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("/data", "write file:///data"),
        ("data", "is not a location"),
        ("file://data", "three slashes"),
        ("s3:///x", "the name after s3:// is missing"),
        ("s4://lake/", "no driver here knows the scheme s4://"),
        ("s3://lake/%2e%2e/other", "read differently"),
        ("s3://lake/%2E/other", "read differently"),
        ("s3://lake/a%2fb", "read differently"),
        ("s3://lake/a\\b", "read differently"),
        ("s3://lake/a\x7fb", "read differently"),
        ("s3://lake/a\x00b", "is not a location"),
        ("s3://lake//a", "read differently"),
        ("s3://lake/${HOME}", "variables are not filled in"),
        ("s3://lake/?x", "a query"),
        ("s3://lake/../other", '".."'),
    ],
)
def test_location_that_drivers_read_differently_is_refused(location: str, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_catalog_location(location)

    assert said in str(refused.value)
