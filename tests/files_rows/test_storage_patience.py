"""Data files on storages that ask to slow down, and on others than local disks."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from row_tables import LONGS, rows_of, table_of

from headwater.errors import ExpiredError, UnavailableError
from headwater.files import RowKeyRange, RowKeyType, delete_data_file, is_slow_down, read_data_file, with_patience
from headwater.files import data_storage as storage
from headwater.files.data_files import new_sorted_file

FILE = "busy://lake/t/data/a.parquet"


class BusyFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """A storage that answers every call but each third with "slow down"."""

    protocol = "busy"
    calls = 0
    answers_every = 3

    @classmethod
    def check_load(cls) -> None:
        cls.calls += 1
        if cls.calls % cls.answers_every:
            raise OSError(errno.EBUSY, "Please reduce your request rate.")

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        self.check_load()
        return bytes(super().cat_file(path, start=start, end=end, **options))

    def put_file(self, lpath: str, rpath: str, **options: Any) -> None:
        self.check_load()
        super().put_file(lpath, rpath, **options)

    def rm_file(self, path: str) -> None:
        self.check_load()
        super().rm_file(path)


def write(filename: str) -> None:
    with new_sorted_file(LONGS, filename) as writer:
        writer.write_rows(table_of(LONGS, [(number, None, 0.0) for number in range(100)]))


def test_storage_that_is_slow_is_asked_again(pauses: list[float]) -> None:
    write(FILE)

    rows = rows_of(read_data_file(LONGS, FILE, RowKeyRange(RowKeyType.LONG.encode_key(98))))

    assert [row[0] for row in rows] == [98, 99]
    assert pauses and max(pauses) <= 15


def test_storage_that_stays_slow_is_given_up(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BusyFileSystem, "answers_every", 10**9)

    with pytest.raises(UnavailableError, match="the storage asks to slow down, again and again"):
        write(FILE)
    assert len(pauses) == storage.ATTEMPTS - 1


def test_deleted_file_is_gone(pauses: list[float]) -> None:
    write(FILE)

    delete_data_file(FILE)
    delete_data_file(FILE)

    with pytest.raises(ExpiredError):
        list(read_data_file(LONGS, FILE))


def test_other_faults_are_not_repeated(pauses: list[float]) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, "the disk is broken")

    with pytest.raises(OSError, match="broken"):
        with_patience(fail)
    assert pauses == []


@pytest.mark.parametrize(
    "message",
    [
        "AWS Error SLOW_DOWN during PutObject operation: Please reduce your request rate. (HTTP status 503)",
        "An error occurred (SlowDown) when calling the PutObject operation",
        "429 Too Many Requests",
    ],
)
def test_drivers_say_slow_down_in_many_words(message: str) -> None:
    assert is_slow_down(OSError(message))


def test_missing_file_is_not_slow() -> None:
    assert not is_slow_down(FileNotFoundError(errno.ENOENT, "No such file"))


@pytest.fixture(autouse=True)
def busy_storage() -> Iterator[None]:
    fsspec.register_implementation("busy", BusyFileSystem, clobber=True)
    BusyFileSystem.calls = 0
    yield
    BusyFileSystem.store.clear()
    BusyFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, without waiting for them."""
    made: list[float] = []
    monkeypatch.setattr(storage.time, "sleep", made.append)
    return made
