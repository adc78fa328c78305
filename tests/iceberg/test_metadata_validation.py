from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.iceberg import AcceptedTable, ChoiceRule, FileInfo, QuarantineCode, TableFiles
from headwater.iceberg.import_rules import accept_metadata
from headwater.iceberg.latest_metadata import MetadataChoice
from headwater.iceberg.survey_outcomes import RejectedTable
from metadata_fixtures import view

DIRECTORY = "s3://lake/sales/orders"
Document = dict[str, Any]


def validated(document: Document, *, allowed: tuple[str, ...] = ("s3://lake",)) -> AcceptedTable:
    file = FileInfo(f"{DIRECTORY}/metadata/v2.metadata.json", 1)
    table = TableFiles(directory=DIRECTORY, key=("sales", "orders"), metadata=(file,))
    return accept_metadata(document, MetadataChoice(file, ChoiceRule.ONLY_FILE, ("1 metadata file",)), table, allowed)


def code_of(document: Document, **options: Any) -> QuarantineCode:
    with pytest.raises(RejectedTable) as unfit:
        validated(document, **options)
    assert f"{DIRECTORY}/metadata/v2.metadata.json" in str(unfit.value)
    return unfit.value.code


def test_sound_table_gives_what_a_catalog_needs(document: Document) -> None:
    found = validated(document)

    assert (found.key, found.uuid, found.format_version) == (("sales", "orders"), document["table-uuid"], 2)
    assert (found.snapshot_id, found.schema_id, found.spec_id, found.sort_order_id) == (22, 1, 0, 0)
    assert found.metadata_location == f"{DIRECTORY}/metadata/v2.metadata.json"


def test_sound_view_gives_what_a_catalog_needs() -> None:
    found = validated(view())

    assert (found.kind, found.uuid, found.version_id, found.schema_id, found.versions) == (
        "view",
        view()["view-uuid"],
        2,
        0,
        (1, 2),
    )
    assert (found.snapshot_id, found.log) == (None, ())


def test_draft_is_taken_as_it_is(document: Document) -> None:
    found = validated(
        document | {"format-version": 4, "snapshots": [{"root": "metadata/root.avro", "manifest-list": "metadata/a.avro"}]}
    )

    assert (found.format_version, found.uuid, found.snapshot_id) == (4, document["table-uuid"], 22)


def test_draft_may_be_without_a_location(document: Document) -> None:
    del document["location"]

    assert validated(document | {"format-version": 4}).format_version == 4


@pytest.mark.parametrize("path", ["../other/root.avro", "/etc/root.avro", "file:root.avro", "s3://other/root.avro"])
def test_path_of_the_draft_stays_within_the_table(document: Document, path: str) -> None:
    changed = document | {"format-version": 4, "snapshots": [{"manifest-list": path}]}

    assert code_of(changed) is QuarantineCode.OUTSIDE_ALLOWED


def test_log_is_kept_in_one_spelling(document: Document) -> None:
    document["metadata-log"] = [{"metadata-file": "S3://lake/sales/orders/metadata/v1.metadata.json", "timestamp-ms": 1}]

    assert validated(document).log == ("s3://lake/sales/orders/metadata/v1.metadata.json",)


@pytest.mark.parametrize(("changes", "code"), [
    ({"format-version": 5}, QuarantineCode.UNSUPPORTED_VERSION),
    ({"schemas": ["x"]}, QuarantineCode.INVALID),
    ({"current-schema-id": 7}, QuarantineCode.INCONSISTENT),
])  # fmt: skip
def test_fault_becomes_a_code_with_advice(document: Document, changes: Document, code: QuarantineCode) -> None:
    assert code_of(document | changes) is code


@pytest.mark.parametrize(
    "location", ["s3://elsewhere/sales/orders", "s3://lake/sales", "orders", "s3://lake/sales/../sales/orders"]
)
def test_table_recorded_elsewhere_is_not_registered(document: Document, location: str) -> None:
    assert code_of(document | {"location": location}) is QuarantineCode.LOCATION_MISMATCH


def test_another_name_of_the_same_storage_is_no_mismatch(document: Document) -> None:
    assert validated(document | {"location": "s3a://lake/sales/orders/"})


SNAPSHOT = {"snapshot-id": 22, "timestamp-ms": 1, "manifest-list": "s3://lake/x.avro"}


@pytest.mark.parametrize("changes", [
    {"properties": {"write.data.path": "s3://other/x"}},
    {"snapshots": [SNAPSHOT | {"manifest-list": "s3://other/x.avro"}], "refs": {}},
    {"partition-statistics": [{"snapshot-id": 22, "statistics-path": "s3://other/x.parquet", "file-size-in-bytes": 1}]},
])  # fmt: skip
def test_files_outside_of_what_the_catalog_allows_are_refused(document: Document, changes: Document) -> None:
    assert code_of(document | changes) is QuarantineCode.OUTSIDE_ALLOWED
    assert validated(document | changes, allowed=("s3://lake", "s3://other"))


def test_location_outside_of_what_the_catalog_allows_is_refused(document: Document) -> None:
    assert code_of(document, allowed=("s3://lake/web",)) is QuarantineCode.OUTSIDE_ALLOWED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 30) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["snapshot-id", "schema-id", "timestamp-ms"]), inner)
    ),
    max_leaves=6,
)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_shape_of_a_document_breaks_the_validation(document: Document, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(document)), min_size=1, max_size=3))
    changed = document | {name: data.draw(JSON) for name in names}

    with suppress(RejectedTable):
        validated(changed)


def test_paths_that_a_table_writes_to_are_told(document: Document) -> None:
    names = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
    properties = {name: f"s3://lake/{name}" for name in names} | {"write.other.path": "s3://lake/other"}

    assert validated(document | {"properties": properties}).paths == tuple(f"s3://lake/{name}" for name in names)


@pytest.mark.parametrize(
    ("place", "folders"),
    [
        ("s3://lake/sales/lines/metadata", ("s3://lake/sales/lines/metadata",)),
        ("s3a://lake/sales/orders/x", ()),
        ("s3://lake/apart/x", ()),
    ],
)
def test_folders_of_files_elsewhere_are_told(document: Document, place: str, folders: tuple[str, ...]) -> None:
    files = {
        "snapshots": [SNAPSHOT | {"manifest-list": f"{place}/x.avro"}],
        "refs": {},
        "partition-statistics": [{"snapshot-id": 22, "statistics-path": f"{place}/x.parquet", "file-size-in-bytes": 1}],
        "properties": {"write.data.path": "s3://lake/apart"},
    }

    assert validated(document | files).elsewhere == folders


def test_file_in_the_place_of_a_bucket_is_told_so(document: Document) -> None:
    snapshots = [SNAPSHOT | {"manifest-list": "s3://lake"}]

    assert validated(document | {"snapshots": snapshots, "refs": {}}).elsewhere == ("s3://lake",)
