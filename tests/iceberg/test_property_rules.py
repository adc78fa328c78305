"""Which properties a table, a view or a namespace may not have."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import RefusedError
from headwater.iceberg import check_properties

SECRET = "hunter2"


@pytest.mark.parametrize(
    "name",
    [
        "py-io-impl",
        "io-impl",
        "py-catalog-impl",
        "metrics-reporter-impl",
        "s3.endpoint",
        "s3.access-key-id",
        "s3.signer",
        "s3.signer.uri",
        "s3.retry-strategy-impl",
        "gcs.service.host",
        "gcs.oauth2.token",
        "adls.connection-string",
        "client.region",
        "client.factory",
        "write.py-location-provider.impl",
        "write.location-provider.impl",
        "fs.s3a.endpoint",
        "hf.token",
        "token",
        "credential",
        "oauth2-server-uri",
        "rest.signing-name",
        "header.Authorization",
        "S3.Endpoint",
        " py-io-impl ",
    ],
)
def test_property_of_file_access_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        check_properties({"owner": "ann", name: SECRET}, of="table sales.orders")

    assert repr(name) in str(refusal.value) and "table sales.orders" in str(refusal.value)
    assert SECRET not in str(refusal.value) and "'owner'" not in str(refusal.value)


@pytest.mark.parametrize(
    "name",
    [
        "owner",
        "location",
        "write.data.path",
        "write.metadata.path",
        "write.parquet.compression-codec",
        "write.object-storage.enabled",
        "write.metadata.metrics.column.token",
        "commit.retry.num-retries",
        "format-version",
        "gc.enabled",
        "engine.hive.enabled",
        "schema.name-mapping.default",
        "encryption.key-id",
        "connector",
        "uri",
        "s3",
        "clients.region",
        "implementation",
        "write.simpl",
    ],
)
def test_property_of_anything_else_is_fine(name: str) -> None:
    check_properties({name: "value"}, of="table sales.orders")


def test_property_that_was_there_before_stays() -> None:
    check_properties({"py-io-impl": "a.B", "owner": "ann"}, of="table sales.orders", before={"py-io-impl": "a.B"})


def test_property_that_was_there_does_not_change() -> None:
    with pytest.raises(RefusedError, match="py-io-impl"):
        check_properties({"py-io-impl": "c.D"}, of="table sales.orders", before={"py-io-impl": "a.B"})


def test_property_that_the_owner_configured_is_fine() -> None:
    check_properties({"py-io-impl": "a.B"}, of="table sales.orders", own={"py-io-impl": "a.B"})


def test_property_named_differently_from_the_owners_is_refused() -> None:
    with pytest.raises(RefusedError, match="py-io-impl"):
        check_properties({"py-io-impl": "c.D"}, of="table sales.orders", own={"py-io-impl": "a.B"})


def test_refusal_of_many_properties_stays_short() -> None:
    with pytest.raises(RefusedError, match="and 95 more") as refusal:
        check_properties({f"s3.{'x' * 1000}{number:03}": SECRET for number in range(100)}, of="namespace sales")

    assert len(str(refusal.value)) < 1000


@settings(max_examples=25)
@given(st.sampled_from(["s3.", "gcs.", "adls.", "client."]), st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_value_never_stands_in_a_refusal(area: str, rest: str, value: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        check_properties({area + rest: f"<{value}>"}, of="table sales.orders")

    assert f"<{value}>" not in str(refusal.value).replace(repr(area + rest), "")
