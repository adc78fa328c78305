"""Data files in an object store, by pyarrow's client: a server that speaks S3's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs
import pytest
from row_tables import LONGS, rows_of, table_of

from headwater.errors import ExpiredError
from headwater.files import ReadCounts, RowKeyRange, RowKeyType, delete_data_file, read_data_file
from headwater.files import data_files as written
from headwater.files.data_files import new_sorted_file, read_file_sketch
from headwater.iceberg.file_drivers import open_file_system
from servers.s3 import access_to, s3_server

pytestmark = pytest.mark.long
FILE = "s3://lake/orders 1/data/0000000000000001-0.parquet"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in access_to(server).items():
        monkeypatch.setenv(name, value)
    system, _ = pyarrow.fs.FileSystem.from_uri("s3://lake?allow_bucket_creation=true")
    system.create_dir("lake")


def test_data_file_in_a_bucket_gives_its_rows_again(bucket: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "ROW_GROUP_ROWS", 100)
    with new_sorted_file(LONGS, FILE) as writer:
        writer.write_rows(table_of(LONGS, [(number, "a", 0.5) for number in range(1000)]))
    counts = ReadCounts()
    keys = RowKeyRange(RowKeyType.LONG.encode_key(250), RowKeyType.LONG.encode_key(253))

    rows = rows_of(read_data_file(LONGS, FILE, keys, counts=counts))

    assert [row[0] for row in rows] == [250, 251, 252] and counts.groups_read == 1
    assert read_file_sketch(FILE).rows == 1000
    delete_data_file(FILE)
    delete_data_file(FILE)
    with pytest.raises(ExpiredError):
        list(read_data_file(LONGS, FILE))


@pytest.mark.parametrize("place", ["file://{folder}/new/a b", "s3://lake/ranges/a b", "memory://ranges/a b"])
def test_parts_of_a_stored_file_are_read(bucket: None, tmp_path: Path, place: str) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(200)))
    system, path = open_file_system(place.format(folder=tmp_path))

    system.put_file(str(source), path)

    assert system.file_size(path) == 200
    assert system.read_range(path, 150, 20) == bytes(range(150, 170))
    system.delete_file(path)
    with pytest.raises(FileNotFoundError):
        system.read_range(path, 0, 1)
