"""A catalog's storage on local disks and through fsspec's drivers: bounded reads, files that are never overwritten, and quiet errors."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest

from headwater.errors import ConflictError, CorruptionError, HeadwaterError, RefusedError
from headwater.iceberg import FileInfo, MissingFileError, TableStorage


@pytest.fixture
def storage() -> TableStorage:
    return TableStorage()


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The location of a table's folder that does not exist yet."""
    if request.param == "file":
        yield f"{tmp_path.as_uri()}/lake/orders"
        return
    yield f"memory://lake/{tmp_path.name}"
    fsspec.filesystem("memory").store.clear()


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def test_written_file_is_read_back(storage: TableStorage, place: str) -> None:
    storage.write_new(f"{place}/metadata/v1.json", b"text")

    assert storage.read_bytes(f"{place}/metadata/v1.json") == b"text"
    assert storage.exists(f"{place}/metadata/v1.json")


def test_written_file_is_never_overwritten(storage: TableStorage, place: str) -> None:
    storage.write_new(f"{place}/v1.json", b"text")

    with pytest.raises(ConflictError, match="nothing is overwritten"):
        storage.write_new(f"{place}/v1.json", b"else")
    assert storage.read_bytes(f"{place}/v1.json") == b"text"


def test_repeated_write_of_equal_content_is_fine(storage: TableStorage, place: str) -> None:
    for _ in range(2):
        storage.write_new(f"{place}/v1.json", b"text")

    assert storage.read_bytes(f"{place}/v1.json") == b"text"


def test_deleted_file_is_gone(storage: TableStorage, place: str) -> None:
    storage.write_new(f"{place}/v1.json", b"text")
    for _ in range(2):
        storage.delete(f"{place}/v1.json")

    assert not storage.exists(f"{place}/v1.json")


def test_missing_file_is_told_as_damage(storage: TableStorage, place: str) -> None:
    """To a reader of a table it is one; whoever was given the place by a user knows better."""
    with pytest.raises(MissingFileError, match=r"orders|lake") as error:
        storage.read_bytes(f"{place}/v1.json")
    assert isinstance(error.value, CorruptionError)


def test_file_beyond_the_limit_is_not_read(storage: TableStorage, place: str) -> None:
    storage.write_new(f"{place}/v1.json", b"12345")

    assert storage.read_bytes(f"{place}/v1.json", limit=5) == b"12345"
    with pytest.raises(RefusedError, match="has 5 bytes: at most 4 are read"):
        storage.read_bytes(f"{place}/v1.json", limit=4)


def test_packed_metadata_is_unpacked(storage: TableStorage, place: str) -> None:
    storage.write_new(f"{place}/v1.json", gzip.compress(b"{}"))
    storage.write_new(f"{place}/v2.json", gzip.compress(b"hunter2 " * 99)[:-9])

    assert storage.read_metadata(f"{place}/v1.json") == b"{}"
    with pytest.raises(RefusedError) as refusal:
        storage.read_metadata(f"{place}/v2.json")
    assert "hunter2" not in str(refusal.value)


def test_walk_through_a_table_uses_the_same_storage(storage: TableStorage, place: str) -> None:
    storage.write_new(f"{place}/metadata/v1.metadata.json", b"text")

    assert storage.lake.read_file(FileInfo(f"{place}/metadata/v1.metadata.json", 4)) == b"text"
    assert [file.path for file in storage.lake.list_metadata(place)] == [f"{place}/metadata/v1.metadata.json"]


@pytest.mark.parametrize("location", ["relative/v1.json", "s3://b/../c", "file:///a/./b", ""])
def test_text_that_is_no_place_is_refused(storage: TableStorage, location: str) -> None:
    for use in (storage.read_bytes, storage.exists, storage.delete, lambda place: storage.write_new(place, b"")):
        with pytest.raises(RefusedError):
            use(location)


def test_chain_of_file_systems_is_refused(storage: TableStorage, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="chain of file systems"):
        storage.read_bytes(f"memory://x::file://{tmp_path}")


def test_scheme_without_a_driver_is_refused(storage: TableStorage) -> None:
    with pytest.raises(RefusedError, match="no file system for nosuch://a"):
        storage.read_bytes("nosuch://a/b")


# local disks


@pytest.fixture
def local(tmp_path: Path) -> str:
    return f"{tmp_path.as_uri()}/lake/orders"


def test_writers_of_one_name_leave_one_whole_file(storage: TableStorage, local: str) -> None:
    texts = [bytes([65 + number]) * 100_000 for number in range(8)]
    start = threading.Barrier(len(texts))

    def write(text: bytes) -> str:
        start.wait()
        try:
            storage.write_new(f"{local}/v1.json", text)
        except ConflictError:
            return "late"
        return "written"

    with ThreadPoolExecutor(len(texts)) as pool:
        outcomes = list(pool.map(write, texts))

    assert outcomes.count("written") == 1
    assert storage.read_bytes(f"{local}/v1.json") == texts[outcomes.index("written")]
    assert os.listdir(path_of(local)) == ["v1.json"]  # noqa: PTH208  # hidden files, too


def test_file_is_readable_by_engines_of_other_users(storage: TableStorage, local: str) -> None:
    storage.write_new(f"{local}/metadata/v1.json", b"text")

    modes = [oct(path_of(f"{local}/{name}").stat().st_mode & 0o777) for name in ("metadata", "metadata/v1.json")]
    assert modes == ["0o755", "0o644"]


def test_folder_is_made_for_engines_that_make_none(storage: TableStorage, local: str) -> None:
    for _ in range(2):
        storage.make_folder(f"{local}/data")
    storage.make_folder("s3://bucket/orders/data")

    assert path_of(f"{local}/data").is_dir()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_path_that_is_no_file_is_refused(storage: TableStorage, tmp_path: Path, make: object) -> None:
    make(tmp_path / "strange")  # type: ignore[operator]  # both take a path
    location = (tmp_path / "strange").as_uri()

    with pytest.raises(RefusedError, match="cannot read"):
        storage.read_bytes(location)
    with pytest.raises(ConflictError):
        storage.write_new(location, b"text")
    assert not storage.exists(location)


def test_file_below_a_file_is_refused(storage: TableStorage, local: str) -> None:
    storage.write_new(f"{local}/v1.json", b"text")

    with pytest.raises(HeadwaterError):
        storage.write_new(f"{local}/v1.json/v2.json", b"text")
    with pytest.raises(MissingFileError):
        storage.read_bytes(f"{local}/v1.json/v2.json")


def test_error_keeps_nothing_of_the_driver(storage: TableStorage, local: str) -> None:
    with pytest.raises(RefusedError, match="name too long") as error:
        storage.write_new(f"{local}/{'x' * 300}.json", b"hunter2")

    assert error.value.__suppress_context__ and error.value.__cause__ is None
    assert "hunter2" not in str(error.value)
