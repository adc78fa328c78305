from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.catalogs.iceberg import File, Found, QuarantineCode, Rule, TableFiles
from headwater.catalogs.iceberg.choosing import Choice
from headwater.catalogs.iceberg.outcomes import UnfitError
from headwater.catalogs.iceberg.validating import validate

DIRECTORY = "s3://lake/sales/orders"
Document = dict[str, Any]


def validated(document: Document, *, allowed: tuple[str, ...] = ("s3://lake",)) -> Found:
    file = File(f"{DIRECTORY}/metadata/v2.metadata.json", 1)
    table = TableFiles(directory=DIRECTORY, key=("sales", "orders"), metadata=(file,))
    return validate(document, Choice(file, Rule.ONLY_FILE, ("1 metadata file",)), table, allowed)


def code_of(document: Document, **options: Any) -> QuarantineCode:
    with pytest.raises(UnfitError) as unfit:
        validated(document, **options)
    assert f"{DIRECTORY}/metadata/v2.metadata.json" in str(unfit.value)
    return unfit.value.code


def test_a_sound_table_gives_what_a_catalog_needs(document: Document) -> None:
    found = validated(document)

    assert (found.key, found.uuid, found.format_version) == (("sales", "orders"), document["table-uuid"], 2)
    assert (found.snapshot_id, found.schema_id, found.spec_id, found.sort_order_id) == (22, 1, 0, 0)
    assert found.metadata_location == f"{DIRECTORY}/metadata/v2.metadata.json"


@pytest.mark.parametrize("current", [None, -1])
def test_no_current_snapshot_is_written_in_two_ways(document: Document, current: int | None) -> None:
    document |= {"current-snapshot-id": current, "refs": {}}

    assert validated(document).snapshot_id is None


def test_a_table_without_refs_has_its_main_by_implication(document: Document) -> None:
    del document["refs"]

    assert validated(document).snapshot_id == 22


def test_the_first_format_may_have_single_forms_only() -> None:
    document = {
        "format-version": 1,
        "location": DIRECTORY + "/",
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schema": {"type": "struct", "fields": []},
        "partition-spec": [],
        "snapshots": [{"snapshot-id": 5, "timestamp-ms": 1, "manifests": [f"{DIRECTORY}/metadata/m0.avro"]}],
        "current-snapshot-id": 5,
    }

    found = validated(document)

    assert (found.uuid, found.snapshot_id, found.schema_id, found.spec_id, found.sort_order_id) == (None, 5, 0, 0, 0)


def test_the_third_format_may_be_encrypted(document: Document) -> None:
    found = validated(document | {"format-version": 3, "next-row-id": 0, "encryption-keys": [{"key-id": "k"}]})

    assert found.format_version == 3


def test_the_log_is_kept_in_one_spelling(document: Document) -> None:
    document["metadata-log"] = [{"metadata-file": "S3://lake/sales/orders/metadata/v1.metadata.json", "timestamp-ms": 1}]

    assert validated(document).log == ("s3://lake/sales/orders/metadata/v1.metadata.json",)


@pytest.mark.parametrize("field", [
    "table-uuid", "location", "last-sequence-number", "last-updated-ms", "last-column-id", "schemas", "current-schema-id",
    "partition-specs", "default-spec-id", "last-partition-id", "sort-orders", "default-sort-order-id",
])  # fmt: skip
def test_each_required_field_is_missed(document: Document, field: str) -> None:
    del document[field]

    assert code_of(document) is QuarantineCode.INVALID


INVALID = {
    "a uuid that is none": {"table-uuid": "orders"},
    "no version": {"format-version": None},
    "a version in words": {"format-version": "2"},
    "a truth as version": {"format-version": True},
    "version 3 without row ids": {"format-version": 3},
    "a number as location": {"location": 5},
    "schemas that are no list": {"schemas": {}},
    "a schema that is no object": {"schemas": ["x"]},
    "a schema without id": {"schemas": [{"type": "struct"}]},
    "a snapshot without time": {"snapshots": [{"snapshot-id": 1}]},
    "a snapshot without manifest list": {"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1}]},
    "refs that are a list": {"refs": []},
    "a ref that is a number": {"refs": {"main": 22}},
    "a log without times": {"metadata-log": [{"metadata-file": "s3://lake/x"}]},
}
SNAPSHOT = {"snapshot-id": 22, "timestamp-ms": 1, "manifest-list": "s3://lake/x.avro"}
INCONSISTENT = {
    "current schema": {"current-schema-id": 7},
    "default spec": {"default-spec-id": 7},
    "default sort order": {"default-sort-order-id": 7},
    "no sort orders at all": {"sort-orders": []},
    "current snapshot": {"current-snapshot-id": 7},
    "a ref beside the snapshots": {"refs": {"main": {"snapshot-id": 22}, "b": {"snapshot-id": 7}}},
    "main beside the current snapshot": {"refs": {"main": {"snapshot-id": 11}}},
    "main without a current snapshot": {"current-snapshot-id": None},
    "a snapshot twice": {"snapshots": [SNAPSHOT, SNAPSHOT]},
    "a schema twice": {"schemas": [{"schema-id": 1}, {"schema-id": 1}]},
    "a snapshot from the future": {"last-sequence-number": 1},
    "a log that goes back": {
        "snapshot-log": [{"snapshot-id": 11, "timestamp-ms": 90_000}, {"snapshot-id": 22, "timestamp-ms": 1}]
    },
    "an update before the last entry": {"last-updated-ms": 5},
}


@pytest.mark.parametrize("changes", INVALID.values(), ids=INVALID.keys())
def test_a_document_of_wrong_shape_is_invalid(document: Document, changes: Document) -> None:
    changed = document | changes

    assert code_of(changed) is QuarantineCode.INVALID


@pytest.mark.parametrize("changes", INCONSISTENT.values(), ids=INCONSISTENT.keys())
def test_a_document_that_contradicts_itself_is_inconsistent(document: Document, changes: Document) -> None:
    assert code_of(document | changes) is QuarantineCode.INCONSISTENT


@pytest.mark.parametrize("version", [0, 4, 5])
def test_other_format_versions_are_refused_by_name(document: Document, version: int) -> None:
    assert code_of(document | {"format-version": version}) is QuarantineCode.UNSUPPORTED_VERSION


def test_a_view_is_no_table(document: Document) -> None:
    assert code_of({"view-uuid": "x", "format-version": 1, "versions": []}) is QuarantineCode.IS_VIEW


@pytest.mark.parametrize(
    "location", ["s3://elsewhere/sales/orders", "s3://lake/sales", "orders", "s3://lake/sales/../sales/orders"]
)
def test_a_table_recorded_elsewhere_is_not_registered(document: Document, location: str) -> None:
    assert code_of(document | {"location": location}) is QuarantineCode.LOCATION_MISMATCH


def test_another_name_of_the_same_storage_is_no_mismatch(document: Document) -> None:
    assert validated(document | {"location": "s3a://lake/sales/orders/"})


@pytest.mark.parametrize("changes", [
    {"properties": {"write.data.path": "s3://other/x"}},
    {"snapshots": [SNAPSHOT | {"manifest-list": "s3://other/x.avro"}], "refs": {}},
    {"statistics": [{"statistics-path": "s3://other/x.puffin"}]},
])  # fmt: skip
def test_files_outside_of_what_the_catalog_allows_are_refused(document: Document, changes: Document) -> None:
    assert code_of(document | changes) is QuarantineCode.OUTSIDE_ALLOWED
    assert validated(document | changes, allowed=("s3://lake", "s3://other"))


def test_a_location_outside_of_what_the_catalog_allows_is_refused(document: Document) -> None:
    assert code_of(document, allowed=("s3://lake/web",)) is QuarantineCode.OUTSIDE_ALLOWED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 30) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["snapshot-id", "schema-id", "timestamp-ms"]), inner)
    ),
    max_leaves=6,
)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_shape_of_a_document_breaks_the_validation(document: Document, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(document)), min_size=1, max_size=3))
    changed = document | {name: data.draw(JSON) for name in names}

    with suppress(UnfitError):
        validated(changed)
