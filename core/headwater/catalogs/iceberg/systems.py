"""The file systems that a location may be on, behind one small face: local files, fsspec's drivers, and pyarrow's where those lack.

Paths are those of the file system itself, without scheme. What goes wrong is an ``OSError``; ``FileNotFoundError``, ``NoFileError``
and ``PermissionError`` where it is certain.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import fsspec
from fsspec.asyn import AsyncFileSystem

from headwater.catalogs.iceberg.locations import canonical
from headwater.errors import RefusedError, UnavailableError

__all__ = ["NOWHERE", "NO_TEXT", "Entry", "NoFileError", "System", "as_text", "is_text", "is_through_link", "open_system"]

_LONE = re.compile("[\ud800-\udfff]")
_GENERIC_FINDS = (fsspec.AbstractFileSystem.find, AsyncFileSystem._find)
_ARROW = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss")
_ARROW_OPTIONS = dict.fromkeys(("gs", "gcs"), "?retry_limit_seconds=60")
"""Without it, a call to GCS goes on for 15 minutes where there are no credentials, and says nothing."""
_ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""What is said of paths that lead to nothing: a link to itself is one to nowhere, too."""
_NO_FILE = (errno.EISDIR, errno.ENXIO)

NOWHERE = -1
"""The size of a link that leads to nothing."""


class NoFileError(OSError):
    """There is something of this name, and it is no file: a folder, a pipe, a socket or a device."""


class Entry(NamedTuple):
    """One name in a listing; ``mtime`` in microseconds since 1970, 0 where the file system does not say.

    size          in bytes; NOWHERE: it is a link that leads to nothing
    fault         of a folder that cannot be listed: why
    """

    path: str
    is_folder: bool
    size: int = 0
    mtime: int = 0
    fault: str = ""


NO_TEXT = "its name is no UTF-8, so rename it"


def is_text(path: str) -> bool:
    """Whether a path can be written down: names of local files are bytes, and Python puts lone surrogates for those that are no UTF-8."""
    return path.isascii() or not _LONE.search(path)


def as_text(path: str) -> str:
    """A path that can be written down, and leads nowhere where the true one is no text."""
    return path if is_text(path) else _LONE.sub("\ufffd", path)


def is_through_link(place: str, outer: str) -> bool:
    """Whether the way from one local folder to what lies within it leads through a link; of other storages it never does.

    place, outer   locations, the first within the second
    """
    scheme, _, path = canonical(place).partition("://")
    if scheme != "file":
        return False
    base = canonical(outer).partition("://")[2] or "/"
    straight = os.path.normpath(os.path.join(os.path.realpath(base), os.path.relpath(path or "/", base)))  # noqa: PTH118
    return os.path.realpath(path or "/") != straight


class System(Protocol):
    """What imports and purges ask of a file system. Every answer comes from the storage, none from a cache."""

    def is_folder(self, path: str) -> bool: ...

    def children(self, path: str) -> Iterator[Entry]:
        """What lies right in a folder."""

    def below(self, path: str) -> Iterator[Entry]:
        """All files below a folder, in no order, and the folders that may not be listed, with the fault. One that went away meanwhile
        is empty; any other failure raises."""

    def size(self, path: str) -> int:
        """The size of a file in bytes; FileNotFoundError for a path that leads nowhere, NoFileError where something else is,
        RefusedError for one that cannot be asked for."""

    def content(self, path: str) -> bytes:
        """What is in a file; fails as ``size`` does."""

    def remove(self, path: str) -> None:
        """Delete one file: of exactly this name, which is no pattern."""


def open_system(location: str) -> tuple[System, str]:
    """The file system of a canonical location, and the location's path on it.

    raises        RefusedError when nothing here reaches it; UnavailableError when the storage does not answer
    """
    scheme, _, rest = location.partition("://")
    if scheme == "file":
        return _LOCAL, rest
    if "::" in location:  # fsspec would open what stands behind it by another driver
        raise RefusedError(f"{location} contains '::', which drivers read as a chain of file systems: rename it")
    try:
        system, path = fsspec.core.url_to_fs(location)
    except (ImportError, ValueError) as fault:
        if scheme in _ARROW:
            return _arrow(scheme, rest, fault)
        raise RefusedError(f"no file system for {location}: {fault}") from fault
    except OSError as fault:
        told = str(fault).partition("\n")[0]  # of Hadoop's library there follow all the places where it is not
        if told.startswith("Unable to load"):
            raise RefusedError(f"no file system for {location}: {told}, so install it") from fault
        raise UnavailableError(f"cannot open {location}: {told}") from fault
    return _Fsspec(system), path


class _Local:
    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def children(self, path: str) -> Iterator[Entry]:
        with os.scandir(path) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    yield Entry(entry.path, True, fault="" if is_text(entry.path) else NO_TEXT)
                    continue
                try:
                    status = entry.stat()
                except OSError as fault:
                    if fault.errno not in _LEADS_NOWHERE:
                        raise
                    if entry.is_symlink():
                        yield Entry(entry.path, False, NOWHERE)
                    continue  # else it went away since it was listed
                yield Entry(entry.path, False, status.st_size, status.st_mtime_ns // 1000)

    def below(self, path: str) -> Iterator[Entry]:
        return _walk(self, path)

    def size(self, path: str) -> int:
        return _status(path).st_size

    def content(self, path: str) -> bytes:
        _status(path)  # to open a pipe would wait for who writes, and to open a device may do anything
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # a Path and a buffer take as long as the read itself
            return file.readall()

    def remove(self, path: str) -> None:
        Path(path).unlink()


_LOCAL = _Local()


def _status(path: str) -> os.stat_result:
    """Of a local file."""
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, "no name has a zero byte in it", path)
    with _path_errors(path):
        status = os.stat(path)  # noqa: PTH116  # a Path takes as long again
    if not stat.S_ISREG(status.st_mode):
        raise NoFileError(errno.EINVAL, "not a regular file", path)
    return status


class _Fsspec:
    def __init__(self, system: Any) -> None:
        system.invalidate_cache()
        self._system = system

    def is_folder(self, path: str) -> bool:
        return bool(self._system.isdir(path))

    def children(self, path: str) -> Iterator[Entry]:
        for info in self._system.ls(path, detail=True):
            yield _entry(info)

    def below(self, path: str) -> Iterator[Entry]:
        """Storages with a listing of their own give it in few calls, and raise when it fails. fsspec's walk for all others passes
        over folders that it cannot list, by which tables would seem to be gone; so these are walked here."""
        if (getattr(type(self._system), "_find", None) or type(self._system).find) in _GENERIC_FINDS:
            return _walk(self, path)
        return (_entry(info) for info in self._system.find(path, detail=True).values())

    def size(self, path: str) -> int:
        with _path_errors(path):
            info = self._system.info(path)
        if info.get("type") == "directory":
            raise NoFileError(errno.EISDIR, "a folder", path)
        return int(info.get("size") or 0)

    def content(self, path: str) -> bytes:
        with _path_errors(path):
            return bytes(self._system.cat_file(path))

    def remove(self, path: str) -> None:
        self._system.rm_file(path)  # ``rm`` would take ``*`` and ``[`` in a name for a pattern


class _Arrow:
    def __init__(self, system: Any) -> None:
        self._system = system

    def is_folder(self, path: str) -> bool:
        with _arrow_errors():
            return not self._info(path).is_file and self._info(path).type.name == "Directory"

    def children(self, path: str) -> Iterator[Entry]:
        return self._select(path, recursive=False)

    def below(self, path: str) -> Iterator[Entry]:
        return (entry for entry in self._select(path, recursive=True) if not entry.is_folder)

    def size(self, path: str) -> int:
        with _arrow_errors():
            info = self._info(path)
        if not info.is_file:
            raise FileNotFoundError(path)
        return int(info.size)

    def content(self, path: str) -> bytes:
        with _arrow_errors(), self._system.open_input_file(path) as file:
            return bytes(file.readall())

    def remove(self, path: str) -> None:
        with _arrow_errors():
            self._system.delete_file(path)

    def _info(self, path: str) -> Any:
        return self._system.get_file_info(path)

    def _select(self, path: str, *, recursive: bool) -> Iterator[Entry]:
        from pyarrow.fs import FileSelector

        with _arrow_errors():
            found = self._system.get_file_info(FileSelector(path, recursive=recursive))
        for info in found:
            yield Entry(info.path, not info.is_file, info.size or 0, (info.mtime_ns or 0) // 1000)


def _arrow(scheme: str, rest: str, lacking: Exception) -> tuple[System, str]:
    """pyarrow's own client for an object store: it is configured by the environment, as fsspec's are.

    Only the bucket is given to it as a URI: it would refuse a space in a path, and decode what is not encoded.
    """
    bucket, slash, path = rest.partition("/")
    try:
        from pyarrow.fs import FileSystem

        system, base = FileSystem.from_uri(f"{_ARROW_SCHEMES.get(scheme, scheme)}://{bucket}{_ARROW_OPTIONS.get(scheme, '')}")
    except ImportError as fault:
        raise RefusedError(
            f"no file system for {scheme}://{rest}: {lacking}; and pyarrow is not installed: pip install 'headwater[lake]'"
        ) from fault
    except (ValueError, OSError) as fault:
        raise RefusedError(f"no file system for {scheme}://{rest}: {lacking}; and pyarrow: {fault}") from fault
    return _Arrow(system), f"{base.rstrip('/')}{slash}{path}"


@contextmanager
def _arrow_errors() -> Iterator[None]:
    """pyarrow tells what a store answered in the text of its errors alone, and asks none for a name with an empty folder in it."""
    try:
        yield
    except OSError as fault:
        if "ACCESS_DENIED" in str(fault) or "HTTP status 403" in str(fault):
            raise PermissionError(str(fault)) from fault
        if str(fault).startswith("Not a regular file"):
            raise NoFileError(errno.EISDIR, str(fault)) from fault
        raise
    except ValueError as fault:
        raise RefusedError(f"pyarrow does not take its name: {fault}") from fault


@contextmanager
def _path_errors(path: str) -> Iterator[None]:
    """What is wrong with a path itself stays so, however often the storage is asked."""
    try:
        yield
    except OSError as fault:
        if fault.errno in _LEADS_NOWHERE or isinstance(fault, NotADirectoryError):
            raise FileNotFoundError(errno.ENOENT, str(fault), path) from fault
        if fault.errno in _NO_FILE or isinstance(fault, IsADirectoryError):
            raise NoFileError(fault.errno, str(fault), path) from fault
        raise


def _walk(system: System, root: str) -> Iterator[Entry]:
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            for entry in system.children(folder):
                if entry.is_folder and not entry.fault:
                    folders.append(entry.path)
                else:
                    yield entry
        except FileNotFoundError:
            continue  # went away since its parent was listed
        except PermissionError as fault:
            yield Entry(folder, True, fault=f"{fault}, so grant the worker read access")


def _entry(info: Mapping[str, Any]) -> Entry:
    return Entry(info["name"], info["type"] == "directory", info.get("size") or 0, _mtime(info))


def _mtime(info: Mapping[str, Any]) -> int:
    """Microseconds since 1970, or 0: drivers call it by different names, as a number, a datetime or a text."""
    value = next((info[name] for name in ("mtime", "LastModified", "last_modified", "updated", "created") if info.get(name)), 0)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return 0
    seconds = value.timestamp() if isinstance(value, datetime) else float(value)
    return round(seconds * 1_000_000)
