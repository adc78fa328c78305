"""Where a table's or view's document says that files lie, and whether it may say so."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import RefusedError
from headwater.iceberg import check_allowed, check_change, check_files_inside, stated_files, stated_places

LAKE = ["s3://lake"]
PATHS = ["write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"]


def changed(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return copy.deepcopy(document) | {name.replace("_", "-"): value for name, value in fields.items()}


def check(before: dict[str, Any] | None, after: dict[str, Any], allowed: list[str] = LAKE) -> None:
    check_change(before, after, allowed, of="table sales.orders", catalog="lake")


def snapshot(manifest_list: str, number: int = 33) -> dict[str, Any]:
    return {"snapshot-id": number, "sequence-number": 3, "timestamp-ms": 3, "summary": {}, "manifest-list": manifest_list}


def test_places_are_the_location_and_what_is_written_besides(document: dict[str, Any]) -> None:
    properties = {name: f"s3://lake/{name}" for name in PATHS} | {"owner": "s3://lake/ann"}

    places = stated_places(changed(document, properties=properties))

    assert places == ("s3://lake/sales/orders", *(f"s3://lake/{name}" for name in PATHS))


@pytest.mark.parametrize("properties", [None, 5, [], {}, {"write.data.path": ""}, {"write.data.path": 5}])
def test_value_that_is_no_text_is_no_place(document: dict[str, Any], properties: object) -> None:
    assert stated_places(changed(document, properties=properties)) == ("s3://lake/sales/orders",)


def test_files_are_lists_and_statistics(document: dict[str, Any]) -> None:
    statistics = [{"snapshot-id": 22, "statistics-path": "s3://lake/a.puffin"}]
    parts = [{"snapshot-id": 22, "statistics-path": "s3://lake/b.parquet"}]

    files = stated_files(changed(document, statistics=statistics, partition_statistics=parts))

    assert files == {
        *(f"s3://lake/sales/orders/metadata/snap-{number}.avro" for number in (11, 22)),
        "s3://lake/a.puffin",
        "s3://lake/b.parquet",
    }


def test_manifests_named_inline_are_files_too(document: dict[str, Any]) -> None:
    inline = snapshot("s3://lake/x.avro") | {"manifests": ["s3://lake/m1.avro", 5]}

    assert stated_files(changed(document, snapshots=[inline])) == {"s3://lake/x.avro", "s3://lake/m1.avro"}


def test_new_table_in_its_place_is_fine(document: dict[str, Any]) -> None:
    check(None, document)


@pytest.mark.parametrize(
    "place",
    [
        "s3://other/orders",
        "s3://lakes/orders",
        "s3://lake/../other",
        "s3://lake/a/%2e%2e/b",
        "s3://lake/a%2fb",
        "s3://lake//a",
        "s3://lake/a?b",
        "s3://lake/a#b",
        "s3://lake/a\tb",
        "s3://lake/a\\..\\b",
        "file:///etc",
        "relative",
    ],
)
def test_place_elsewhere_or_of_two_readings_is_refused(document: dict[str, Any], place: str) -> None:
    with pytest.raises(RefusedError):
        check(None, changed(document, location=place, snapshots=[]))
    for name in PATHS:
        with pytest.raises(RefusedError):
            check(document, changed(document, properties={name: place}))


def test_place_that_was_there_before_stays(document: dict[str, Any]) -> None:
    before = changed(document, properties={"write.data.path": "s3://other/data"})

    check(before, changed(before, last_updated_ms=9))


@pytest.mark.parametrize("field", ["snapshots", "statistics", "partition_statistics"])
def test_added_file_of_another_table_is_refused(document: dict[str, Any], field: str) -> None:
    theirs = "s3://lake/sales/victim/metadata/snap-1.avro"
    entry = snapshot(theirs) if field == "snapshots" else {"snapshot-id": 22, "statistics-path": theirs}
    more = [*document.get(field, []), entry]

    with pytest.raises(RefusedError, match="outside the table's own places"):
        check(document, changed(document, **{field: more}))


def test_added_file_in_a_place_of_its_own_is_fine(document: dict[str, Any]) -> None:
    after = changed(document, properties={"write.metadata.path": "s3://lake/about"})
    after["snapshots"].append(snapshot("s3://lake/about/snap-33.avro"))

    check(document, after)


def test_file_of_a_place_that_the_change_takes_away_is_fine(document: dict[str, Any]) -> None:
    before = changed(document, properties={"write.metadata.path": "s3://lake/about"})
    after = changed(document)
    after["snapshots"].append(snapshot("s3://lake/about/snap-33.avro"))

    check(before, after)


def test_file_that_an_import_brought_stays(document: dict[str, Any]) -> None:
    before = changed(document, snapshots=[*document["snapshots"], snapshot("s3://other/elsewhere.avro")])

    check(before, changed(before, last_updated_ms=9))


@pytest.mark.parametrize("file", ["s3://lake/sales/orders/../victim/x.avro", "s3://lake/sales/orders/%2e%2e/victim/x.avro"])
def test_file_that_leaves_its_place_is_refused(document: dict[str, Any], file: str) -> None:
    with pytest.raises(RefusedError, match="outside the table's own places"):
        check_files_inside([file], ["s3://lake/sales/orders"], of="table sales.orders")


def test_local_place_behind_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "lake" / "link").symlink_to(tmp_path / "outside")
    lake = (tmp_path / "lake").as_uri()

    check_allowed([f"{lake}/plain"], [lake], of="table sales.orders", catalog="lake")
    with pytest.raises(RefusedError, match="through a symbolic link"):
        check_allowed([f"{lake}/link/orders"], [lake], of="table sales.orders", catalog="lake")
    with pytest.raises(RefusedError, match="through a symbolic link"):
        check_files_inside([f"{lake}/link/x.avro"], [lake], of="table sales.orders")


def test_allowed_locations_are_told(document: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match=r"catalog 'lake' allows \(s3://a, s3://b\)"):
        check(None, document, ["s3://a", "s3://b"])
