from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from headwater.errors import NotFoundError, RefusedError
from headwater.iceberg import (
    AcceptedTable,
    FileInfo,
    InventoryPart,
    SurveyScope,
    inventory_parts,
    read_inventory_part,
    survey_in_process,
)

MakeTable = Callable[..., Path]
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOON_MICROS = round(NOON.timestamp() * 1_000_000)
ORDERS = FileInfo("s3://lake/sales/orders/metadata/v1.metadata.json", 100, NOON_MICROS)


def read(file: Path, *columns: str) -> list[FileInfo]:
    return list(read_inventory_part(InventoryPart(file.as_uri(), columns)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("time", [NOON.isoformat(), "2026-01-02T12:00:00Z", str(NOON_MICROS)])
def test_csv_with_a_header_is_read(tmp_path: Path, pack: Callable[[bytes], bytes], time: str) -> None:
    file = tmp_path / "list.csv"
    file.write_bytes(pack(f"Size,Path,mtime,etag\n100,s3a://lake/sales/orders/metadata/v1.metadata.json,{time},x\n".encode()))

    (found,) = read(file)

    assert (found.path.partition("://")[2], found.size, found.mtime) == (ORDERS.path[5:], 100, NOON_MICROS)


def test_list_may_be_silent_about_times(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("path,size\n/lake/a,1\n\n")

    assert read(tmp_path / "list.csv") == [FileInfo("file:///lake/a", 1, 0)]


def test_parquet_list_is_read(tmp_path: Path) -> None:
    table = pa.table({"path": [ORDERS.path], "size": [100], "mtime": [NOON], "owner": ["x"]})
    pyarrow.parquet.write_table(table, tmp_path / "list")

    assert read(tmp_path / "list") == [ORDERS]


def test_lists_of_s3_inventory_are_read_by_their_manifest(tmp_path: Path) -> None:
    columns = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate"
    key = "sales/my+orders%3D1/metadata/v1.metadata.json"
    lines = [
        f'"lake","{key}","1","true","false","100","2026-01-02T12:00:00.000Z"',
        f'"lake","{key}","0","false","false","50","2026-01-01T12:00:00.000Z"',
        '"lake","gone","2","true","true","","2026-01-02T12:00:00.000Z"',
    ]
    part = InventoryPart((tmp_path / "data.csv.gz").as_uri(), tuple(name.strip().lower() for name in columns.split(",")))
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    manifest = {"fileFormat": "CSV", "fileSchema": columns, "files": [{"key": "inv/data.csv.gz", "size": 1}]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))

    (listed,) = inventory_parts((tmp_path / "manifest.json").as_uri())

    assert listed.columns == part.columns
    assert listed.url.endswith("/inv/data.csv.gz")
    assert list(read_inventory_part(part)) == [
        FileInfo("s3://lake/sales/my orders=1/metadata/v1.metadata.json", 100, NOON_MICROS)
    ]


def test_parquet_list_of_s3_inventory_is_read(tmp_path: Path) -> None:
    row = {"bucket": ["lake"], "key": ["a%20b"], "size": [7], "last_modified_date": [NOON], "is_latest": [True]}
    pyarrow.parquet.write_table(pa.table(row), tmp_path / "list.parquet")

    assert read(tmp_path / "list.parquet") == [FileInfo("s3://lake/a%20b", 7, NOON_MICROS)]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"a,b\n1,2\n", "columns a, b"),
        (b"", "columns of none"),
        (b"path,size\n/lake/a,1\nrelative,2\n", "row 2"),
        (b"path,size\n/lake/a,many\n", "row 1"),
        (b"path,size\n/lake/a,1" + b"0" * 30 + b"\n", "row 1"),
        (b"path,size,mtime\n/lake/a,1,yesterday\n", "row 1"),
        (b"PAR1 but no Parquet", "no Parquet"),
        (b"\x1f\x8b broken", "broken gzip"),
        (b"path,size\n\xff,1\n", "no text"),
    ],
)
def test_list_that_is_none_is_refused_with_its_place(tmp_path: Path, content: bytes, fault: str) -> None:
    (tmp_path / "list.csv").write_bytes(content)

    with pytest.raises(RefusedError, match=fault):
        read(tmp_path / "list.csv")


def test_list_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        read(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("manifest", [b"{}", b"[]", json.dumps({"files": [], "fileFormat": "ORC"}).encode()])
def test_manifest_that_cannot_be_followed_is_refused(tmp_path: Path, manifest: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(manifest)

    with pytest.raises(RefusedError):
        inventory_parts((tmp_path / "manifest.json").as_uri())


@pytest.mark.parametrize("location", ["", "sales/orders"])
def test_survey_by_inventory_says_what_one_by_listing_says(tmp_path: Path, make_table: MakeTable, location: str) -> None:
    make_table("sales/orders", {"v1.metadata.json": {}, "v2.metadata.json": {}, "version-hint.text": b"2"})
    make_table("web/eu/views", {"v1.metadata.json": b"broken"})
    (tmp_path / "web" / "gone" / "data").mkdir(parents=True)
    (tmp_path / "web" / "gone" / "data" / "1.parquet").touch()
    lake = tmp_path / location if location else tmp_path
    inventory = tmp_path.with_name("list.csv")
    lines = [f"{file},{file.stat().st_size}" for file in tmp_path.rglob("*") if file.is_file()]
    inventory.write_text("\n".join(["path,size", *lines, "/elsewhere/t/metadata/v1.metadata.json,1"]))

    by_listing = survey_in_process(SurveyScope(locations=[str(lake)], allowed=[str(lake)]).checked())
    by_inventory = survey_in_process(
        SurveyScope(locations=[str(lake)], allowed=[str(lake)], inventory=str(inventory)).checked()
    )

    assert list(by_inventory) == list(by_listing)
    assert len(by_listing) == (1 if location else 3)


def test_file_that_is_listed_twice_is_one_file(tmp_path: Path, make_table: MakeTable) -> None:
    metadata = make_table("sales/orders", {"v1.metadata.json": {}}) / "metadata" / "v1.metadata.json"
    line = f"{metadata.as_uri()},{metadata.stat().st_size},"
    (tmp_path / "list.csv").write_text("\n".join(["path,size,mtime", line + "1750000000000000", line + "1", line]))

    (outcome,) = survey_in_process(
        SurveyScope(locations=[str(tmp_path)], allowed=[str(tmp_path)], inventory=str(tmp_path / "list.csv")).checked()
    )
    assert isinstance(outcome, AcceptedTable)
