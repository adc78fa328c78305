"""Listing and deleting below a location, on every kind of file system."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow.fs
import pytest

from headwater.errors import UnavailableError
from headwater.iceberg import LakeFolder
from servers.s3 import access_to, s3_server

NAMES = {"data/a.parquet", "data/[ab]*.parquet", "data/day=1/ü b%20.parquet", "metadata/v1.metadata.json"}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of a server that speaks S3's protocol."""
    with s3_server() as url:
        yield url


@pytest.fixture(params=["local", "fsspec", "s3"])
def table(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The location of a folder with four files, beside another one whose name begins the same."""
    paths = [f"table/{name}" for name in NAMES] + ["table2/data/b.parquet"]
    if request.param == "s3":
        server = request.getfixturevalue("s3")
        for name, value in access_to(server).items():
            monkeypatch.setenv(name, value)
        system, _ = pyarrow.fs.FileSystem.from_uri("s3://lake?allow_bucket_creation=true")
        system.create_dir("lake")
        for path in paths:
            system.open_output_stream(f"lake/{path}").close()
        return "s3a://lake/table"
    root = f"memory://{tmp_path.name}" if request.param == "fsspec" else tmp_path.as_uri()
    for path in paths:
        with fsspec.open(f"{root}/{path}", "wb") as stream:
            stream.write(b"")
    return f"{root}/table"


def names(folder: LakeFolder) -> set[str]:
    return {one.location.removeprefix(f"{folder.location}/") for one in folder.list_files()}


@pytest.mark.long
def test_files_of_a_folder_are_listed_and_deleted(table: str) -> None:
    folder, beside = LakeFolder(table), LakeFolder(f"{table}2")
    assert names(folder) == NAMES

    folder.delete_files([one.path for one in folder.list_files() if "[" in one.path])  # which is no pattern
    assert names(folder) == {name for name in NAMES if "[" not in name}
    folder.delete_files([one.path for one in folder.list_files()])

    assert names(folder) == set()
    assert names(beside) == {"data/b.parquet"}


def test_file_that_is_gone_is_as_good_as_deleted(table: str) -> None:
    folder = LakeFolder(table)
    paths = [one.path for one in folder.list_files()]
    folder.delete_files(paths)

    folder.delete_files(paths)
    assert names(folder) == set()


def test_folder_that_is_no_file_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()

    with pytest.raises(UnavailableError, match="cannot delete"):
        LakeFolder(tmp_path.as_uri()).delete_files([str(tmp_path / "data")])

    assert (tmp_path / "data").is_dir()
