"""Contents in JSON: what each version writes, what is read, and what is refused."""

import json
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs import ContentKey, ContentType, DeltaLakeTable, IcebergTable, IcebergView, Namespace, Udf
from headwater.errors import RefusedError
from headwater_server.nessie.content_bodies import (
    ContentKeyBody,
    DiffEntryBody,
    content_body,
    content_type_name,
    parse_content,
)

ID = UUID("b874b5d5-f926-4eed-9be7-b2380d9810c0")
KEY = ContentKey.of("sales", "or.ders")
_TABLE = {
    "type": "ICEBERG_TABLE",
    "metadataLocation": "s3://lake/t/1.json",
    "snapshotId": -1,
    "schemaId": 0,
    "specId": 0,
    "sortOrderId": 0,
}
_NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)
_LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
_TEXTS = st.text(min_size=1, max_size=5)
_MAYBE = st.none() | _TEXTS
_IDS = st.none() | st.uuids()
_CONTENTS = st.one_of(
    st.builds(
        IcebergTable,
        id=_IDS,
        metadata_location=_TEXTS,
        snapshot_id=_LONGS,
        schema_id=_NUMBERS,
        spec_id=_NUMBERS,
        sort_order_id=_NUMBERS,
    ),
    st.builds(
        IcebergView,
        id=_IDS,
        metadata_location=_TEXTS,
        version_id=_LONGS,
        schema_id=_NUMBERS,
        sql_text=_MAYBE,
        dialect=_MAYBE,
    ),
    st.builds(
        DeltaLakeTable,
        id=_IDS,
        metadata_location_history=st.lists(_TEXTS, max_size=3).map(tuple),
        checkpoint_location_history=st.lists(_TEXTS, max_size=3).map(tuple),
        last_checkpoint=_MAYBE,
    ),
    st.builds(Namespace, id=_IDS, properties=st.dictionaries(_TEXTS, _TEXTS, max_size=3)),
    st.builds(
        Udf,
        id=_IDS,
        metadata_location=_TEXTS,
        version_id=st.text(max_size=3),
        signature_id=st.text(max_size=3),
        sql_text=_MAYBE,
        dialect=_MAYBE,
    ),
)


def _written(content, version=2, key=KEY):
    return json.loads(msgspec.json.encode(content_body(key, content, version=version)))


@given(_CONTENTS, st.sampled_from([1, 2]))
def test_content_survives_its_body(content, version):
    assert parse_content(_written(content, version), KEY) == content


@pytest.mark.parametrize("version", [1, 2])
def test_table_always_has_its_numbers(version):
    assert _written(IcebergTable(id=ID, metadata_location="s3://lake/t/1.json"), version) == _TABLE | {"id": str(ID)}


def test_view_has_its_old_fields_in_version_1_alone():
    body = {"type": "ICEBERG_VIEW", "id": str(ID), "metadataLocation": "v", "versionId": 1, "schemaId": 0}
    view = IcebergView(id=ID, metadata_location="v", version_id=1)

    assert _written(view) == body
    assert _written(view, 1) == body | {"sqlText": "", "dialect": ""}


def test_view_keeps_what_old_clients_gave_it():
    view = IcebergView(id=ID, metadata_location="v", sql_text="select 1", dialect="SPARK")

    for version in (1, 2):
        assert {"sqlText": "select 1", "dialect": "SPARK"}.items() <= _written(view, version).items()


def test_delta_table_always_has_a_checkpoint_in_version_1():
    table = DeltaLakeTable(id=ID, metadata_location_history=("a",))

    assert _written(table) == {
        "type": "DELTA_LAKE_TABLE",
        "id": str(ID),
        "metadataLocationHistory": ["a"],
        "checkpointLocationHistory": [],
    }
    assert _written(table, 1)["lastCheckpoint"] == ""


def test_namespace_has_the_elements_of_its_key():
    assert _written(Namespace(id=ID)) == {"type": "NAMESPACE", "id": str(ID), "elements": ["sales", "or.ders"]}
    assert _written(Namespace(id=ID, properties={"owner": "x"}), 1)["properties"] == {"owner": "x"}


def test_function_leaves_out_what_it_has_not():
    assert _written(Udf(id=ID, metadata_location="")) == {"type": "UDF", "id": str(ID)}


def test_null_counts_as_left_out():
    assert parse_content({**_TABLE, "id": None, "metadata": None}) == IcebergTable(metadata_location="s3://lake/t/1.json")
    assert parse_content({"type": "NAMESPACE", "id": None, "elements": None, "properties": None}) == Namespace()
    nulls = dict.fromkeys(["id", "metadataLocationHistory", "checkpointLocationHistory", "lastCheckpoint"])
    assert parse_content({"type": "DELTA_LAKE_TABLE", **nulls}) == DeltaLakeTable()
    assert parse_content({"type": "UDF", "dialect": "SPARK", "sqlText": "1"}).metadata_location == ""


def test_unknown_fields_are_ignored():
    assert parse_content({**_TABLE, "metadata": {"old": 1}, "later": []}) == parse_content(_TABLE)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"type": "HUDI_TABLE"}, "HUDI_TABLE"),
        ({"type": None}, "type"),
        ({"id": "table-1"}, "id"),
        ({"id": ""}, "id"),
        ({"snapshotId": 1 << 63}, "snapshotId"),
        ({"snapshotId": -(1 << 63) - 1}, "snapshotId"),
        ({"snapshotId": "1"}, "snapshotId"),
        ({"snapshotId": 1.5}, "snapshotId"),
        ({"schemaId": 1 << 31}, "schemaId"),
        ({"specId": True}, "specId"),
        ({"metadataLocation": ""}, "metadataLocation"),
        ({"metadataLocation": None}, "metadataLocation"),
    ],
)
def test_wrong_field_is_named(change, what):
    with pytest.raises(RefusedError, match=what):
        parse_content(_TABLE | change)


@pytest.mark.parametrize("name", ["metadataLocation", "snapshotId", "schemaId", "specId", "sortOrderId"])
def test_missing_field_of_a_table_is_named(name):
    with pytest.raises(RefusedError, match=name):
        parse_content({field: value for field, value in _TABLE.items() if field != name})


def test_content_without_a_type_is_refused():
    for body in ({}, [], None, "ICEBERG_TABLE"):
        with pytest.raises(RefusedError):
            parse_content(body)


def test_namespace_with_the_elements_of_another_key_is_refused():
    body = {"type": "NAMESPACE", "elements": ["sales"]}

    assert parse_content(body) == parse_content(body, ContentKey.of("sales")) == Namespace()
    with pytest.raises(RefusedError, match="its key"):
        parse_content(body, KEY)


def test_key_is_a_list_of_elements():
    assert ContentKeyBody.of_key(KEY).elements == ["sales", "or.ders"]
    assert ContentKeyBody(["sales", "or.ders"]).to_key() == KEY
    with pytest.raises(RefusedError):
        ContentKeyBody([]).to_key()


def test_difference_says_null_for_a_missing_side():
    body = DiffEntryBody(ContentKeyBody.of_key(KEY), None, content_body(KEY, Namespace(id=ID)))

    assert json.loads(msgspec.json.encode(body)) == {
        "key": {"elements": ["sales", "or.ders"]},
        "from": None,
        "to": {"type": "NAMESPACE", "id": str(ID), "elements": ["sales", "or.ders"]},
    }


def test_type_of_a_later_release_is_unknown():
    assert content_type_name(ContentType.ICEBERG_VIEW) == "ICEBERG_VIEW"
    assert content_type_name(99) == "UNKNOWN"
