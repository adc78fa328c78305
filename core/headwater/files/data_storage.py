"""Where data files lie: writing, reading and deleting single files, on every file system that the library reaches.

A storage that asks its callers to slow down is asked again after a pause, a bounded number of times.
"""

from __future__ import annotations

import errno
import io
import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from headwater.durability import make_folder, sync_folder
from headwater.errors import ConflictError, ExpiredError, RefusedError, UnavailableError
from headwater.iceberg import canonical_location
from headwater.iceberg.file_drivers import NotAFileError, open_file_system

Result = TypeVar("Result")

ATTEMPTS = 10
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 15.0
_SLOW = re.compile(
    r"slow[ _]?down|reduce your request rate|too many requests|throttl|(status|code|error)\W{0,3}(429|503)", re.I
)
_LOCAL = "file://"


def is_slow_down(fault: BaseException) -> bool:
    """Whether an error, or what caused it, is a storage that asks for fewer requests: drivers have no common class for that."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, OSError) and (cause.errno == errno.EBUSY or _SLOW.search(str(cause))):
            return True
        cause = cause.__cause__
    return False


def with_patience(
    operation: Callable[[], Result],
    *,
    sleep: Callable[[float], None] | None = None,
    jitter: Callable[[], float] = random.random,
    attempts: int = ATTEMPTS,
) -> Result:
    """Call an operation again, after a pause with full jitter, while the storage asks to slow down; then let its error pass.

    operation     may be called several times
    """
    ceiling = _FIRST_PAUSE_SECONDS
    for attempt in range(1, attempts + 1):
        try:
            return operation()
        except OSError as fault:
            if attempt == attempts or not is_slow_down(fault):
                raise
        (sleep or time.sleep)(ceiling * jitter())
        ceiling = min(ceiling * 2, _LONGEST_PAUSE_SECONDS)
    raise AssertionError("unreachable: the last attempt returns or raises")


@contextmanager
def new_data_file(location: str) -> Iterator[str]:
    """Yield a local path to write to; at the end, the file is stored at the location. After an error nothing is left, if possible.

    On local disks that path is the file itself: no reader looks at a file before it is tracked, and what a killed writer leaves is
    found under the one name that it has.

    raises        ConflictError when the file exists; RefusedError when it may not be written; UnavailableError
    """
    location = canonical_location(location)
    if not location.startswith(_LOCAL):
        with _spool() as path:
            yield path
            with storage_errors("store", location):
                system, target = open_file_system(location)
                with_patience(lambda: system.put_file(path, target))
        return
    path = location.removeprefix(_LOCAL)
    with storage_errors("write", location):
        make_folder(Path(path).parent)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError as fault:
            raise ConflictError(f"there is a file {location} already: data files need new names") from fault
    try:
        with storage_errors("write", location):
            yield path
            with open(path, "rb") as file:  # noqa: PTH123  # a descriptor is all that is needed
                os.fsync(file.fileno())
            sync_folder(Path(path).parent)
    except BaseException:
        with suppress(OSError):
            Path(path).unlink()
        raise


@contextmanager
def _spool() -> Iterator[str]:
    handle, path = tempfile.mkstemp(prefix="headwater-", suffix=".parquet")
    os.close(handle)
    try:
        yield path
    finally:
        with suppress(OSError):
            Path(path).unlink()


@contextmanager
def open_data_file(location: str) -> Iterator[Any]:
    """Open a data file for pyarrow: a path on local disks, elsewhere a file object that reads ranges.

    raises        ExpiredError when it is gone; RefusedError when it may not be read; UnavailableError
    """
    location = canonical_location(location)
    with storage_errors("read", location):
        system, path = open_file_system(location)
        if location.startswith(_LOCAL):
            system.file_size(path)  # raises for what is no file: opening a pipe would wait for a writer
            yield path
            return
        with RangeInput(system, path) as source:
            yield source


def delete_data_file(location: str) -> None:
    """Delete a file; one that is gone already counts as deleted. Raises RefusedError and UnavailableError."""
    with storage_errors("delete", location), suppress(FileNotFoundError):
        system, path = open_file_system(canonical_location(location))
        with_patience(lambda: system.delete_file(path))


class RangeInput(io.RawIOBase):
    """A file of a storage as a seekable stream, each read of which is one request, repeated where the storage asks to slow down."""

    def __init__(self, system: Any, path: str) -> None:
        self._system, self._path = system, path
        self._size: int = with_patience(lambda: int(system.file_size(path)))
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readall(self) -> bytes:
        return self._read_next(self._size)

    def readinto(self, buffer: Any) -> int:
        data = self._read_next(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read_next(self, size: int) -> bytes:
        start, length = self._position, max(0, min(size, self._size - self._position))
        if not length:
            return b""
        data: bytes = with_patience(lambda: bytes(self._system.read_range(self._path, start, length)))
        self._position += len(data)
        return data


@contextmanager
def storage_errors(deed: str, location: str) -> Iterator[None]:
    """Turn what a file system raises about a data file into errors of our own."""
    try:
        yield
    except (FileNotFoundError, NotAFileError) as fault:
        if deed == "delete":
            raise
        raise ExpiredError(
            f"data file {location} is gone: it was collected since this read began, or somebody deleted it; read again, and raise"
            " HEADWATER_FILES_DELETE_DELAY if reads take longer than that"
        ) from fault
    except PermissionError as fault:
        raise RefusedError(f"cannot {deed} {location} ({fault}): grant the process that right") from fault
    except OSError as fault:
        slow = "the storage asks to slow down, again and again: " if is_slow_down(fault) else ""
        raise UnavailableError(f"cannot {deed} {location}: {slow}{fault}") from fault
