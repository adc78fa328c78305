"""Contents and the value that an index holds for each."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs import (
    Content,
    ContentType,
    ContentValue,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Udf,
    content_digest,
    content_type_of,
)
from headwater.catalogs.content import with_id, without_id
from headwater.errors import CorruptionError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore

CONTENTS: list[Content] = [
    IcebergTable(
        metadata_location="s3://b/v1.json",
        snapshot_id=2**62,
        schema_id=1,
        spec_id=2,
        sort_order_id=3,
        table_uuid=str(UUID(int=7)),
    ),
    DeltaLakeTable(metadata_location_history=("a", "b"), checkpoint_location_history=("c",), last_checkpoint="d"),
    IcebergView(metadata_location="s3://b/view.json", version_id=3, schema_id=1, sql_text="select 1", dialect="SPARK"),
    Namespace(properties={"owner": "me"}),
    Udf(metadata_location="s3://b/udf.json", version_id="2", signature_id="1", sql_text="x + 1", dialect="SPARK"),
]


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: type(content).__name__)
def test_content_is_stored_with_all_its_fields(content: Content, rows: RealmStore) -> None:
    object_id = rows.new_id()
    rows.write_objects([(object_id, content)])
    rows.store.cache.clear()

    assert rows.read_object(object_id, type(content)) == content


def test_type_bytes_are_fixed() -> None:
    assert [int(content_type_of(content)) for content in CONTENTS] == [1, 2, 3, 4, 5]


def test_digest_is_fixed() -> None:
    """A release that changed it would see every content as changed."""
    assert [content_digest(content).hex() for content in CONTENTS] == DIGESTS


DIGESTS = [
    "6c264c6d6a6c46e8b76553e1266e88a8",
    "6b2ca205416f48865d46966439022b61",
    "21220bc1c9b7f3d89fa2a6e8dc077616",
    "9326091a98d73a27060984daa9b01591",
    "e664087617a0a575838e3168d7adcfc2",
]


def test_digest_does_not_see_the_content_id() -> None:
    table = IcebergTable(metadata_location="s3://b/v1.json")

    assert content_digest(with_id(table, uuid4())) == content_digest(table)


def test_digest_does_not_see_the_order_of_properties() -> None:
    one, other = Namespace(properties={"a": "1", "b": "2"}), Namespace(properties={"b": "2", "a": "1"})

    assert content_digest(one) == content_digest(other)


def test_digest_sees_the_type() -> None:
    table, view = IcebergTable(metadata_location="s3://b/x.json"), IcebergView(metadata_location="s3://b/x.json")

    assert content_digest(table) != content_digest(view)


@given(metadata=st.text(), snapshot=st.integers(-1, 2**63 - 1), other=st.text())
def test_digest_sees_every_difference(metadata: str, snapshot: int, other: str) -> None:
    table = IcebergTable(metadata_location=metadata, snapshot_id=snapshot)
    changed = IcebergTable(metadata_location=other, snapshot_id=snapshot)

    assert (content_digest(table) == content_digest(changed)) == (metadata == other)


@given(st.sampled_from(ContentType), st.uuids(), st.binary(min_size=16, max_size=16), st.integers(1, 2**63 - 1))
def test_index_value_survives_its_bytes(kind: ContentType, content_id: UUID, digest: bytes, number: int) -> None:
    value = ContentValue(kind, content_id, digest, ObjectId(number))

    assert ContentValue.from_value(value.to_value()) == value
    assert len(value.to_value().data) == 33


def test_type_of_a_newer_release_is_kept() -> None:
    value = ContentValue(9, uuid4(), bytes(16), ObjectId(1))

    assert ContentValue.from_value(value.to_value()) == value


@pytest.mark.parametrize(
    "value", [IndexValue(ObjectId(1), b""), IndexValue(ObjectId(1), bytes(32)), IndexValue(None, bytes(33))]
)
def test_index_value_of_another_shape_is_unreadable(value: IndexValue) -> None:
    with pytest.raises(CorruptionError, match="is not a content"):
        ContentValue.from_value(value)


def test_id_is_taken_off_and_given_back() -> None:
    table, content_id = IcebergTable(metadata_location="s3://b/x.json"), uuid4()

    assert without_id(with_id(table, content_id)) == table
