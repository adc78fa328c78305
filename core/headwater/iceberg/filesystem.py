"""The file systems on which a location may lie: listing, reading, writing and deleting, behind one interface.

``LakeStorage`` lists and reads for surveys, and turns what goes wrong with one table into a ``RejectedTable``. ``LakeFolder``
lists and deletes for purges. Both use a ``FileSystem``: local files, fsspec's drivers, or pyarrow's where fsspec has none. Its
paths are those of the file system itself, without scheme. Its failures are an ``OSError``: ``FileNotFoundError``,
``NotAFileError`` and ``PermissionError`` where that is certain.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import fsspec
from fsspec.asyn import AsyncFileSystem

from headwater.durability import make_folder, replacing, sync_folder
from headwater.errors import NotFoundError, RefusedError, UnavailableError
from headwater.iceberg.layout import FileInfo, parse_metadata_name
from headwater.iceberg.location import canonical_location
from headwater.iceberg.metadata_json import MAX_BYTES
from headwater.iceberg.survey_outcomes import QuarantineCode, RejectedTable

_STRANGE = "\ufffd"
"""In the place of what is no text in a name."""


class LakeStorage:
    """Reads files at canonical locations. Keeps no state, so it works in any process, such as a Spark executor."""

    def list_files(self, folder: str) -> Iterator[FileInfo]:
        """List every file below a folder, unordered; none if there is no folder.

        A folder that may not be listed is represented by an entry with that fault.

        raises        UnavailableError when the storage does not answer
        """
        if _STRANGE in folder:
            yield FileInfo(folder, 0, fault=NO_TEXT)
            return
        system, root = open_file_system(folder)
        try:
            for entry in system.list_below(root):
                if _is_worth_naming(entry):
                    yield _file_info(folder, root, entry)
        except FileNotFoundError:
            return
        except OSError as fault:
            raise UnavailableError(f"cannot list {folder}: {fault}") from fault

    def list_metadata(self, directory: str) -> list[FileInfo]:
        """List the files directly in a table's metadata folder; none if there is no such folder.

        raises        as ``list_folder`` does
        """
        return self.list_folder(f"{directory}/metadata")

    def list_folder(self, folder: str) -> list[FileInfo]:
        """List the files directly in a folder; none if the folder does not exist.

        raises        RejectedTable with NO_ACCESS; UnavailableError when the storage does not answer
        """
        system, root = open_file_system(folder)
        try:
            return [
                _file_info(folder, root, entry)
                for entry in system.list_children(root)
                if not entry.is_folder and _is_worth_naming(entry)
            ]
        except FileNotFoundError:
            return []
        except PermissionError as fault:
            raise RejectedTable(
                QuarantineCode.NO_ACCESS, f"{folder} may not be listed ({fault}): grant the worker read access"
            ) from fault
        except OSError as fault:
            raise UnavailableError(f"cannot list {folder}: {fault}") from fault

    def read_file(self, file: FileInfo) -> bytes:
        """Read a listed file.

        raises        RejectedTable with BAD_LOCATION, VANISHED, CORRUPT for what is no file or a link to nowhere, NO_ACCESS or
                      TOO_LARGE; UnavailableError when the storage does not answer
        """
        if _STRANGE in file.path:
            raise RejectedTable(QuarantineCode.BAD_LOCATION, f"{file.path} has a name that is no UTF-8: rename it")
        if file.size == NOWHERE:
            raise RejectedTable(
                QuarantineCode.CORRUPT, f"{file.path} is a link to nowhere: restore what it leads to, or remove it"
            )
        if file.size > MAX_BYTES:
            raise RejectedTable(
                QuarantineCode.TOO_LARGE, f"{file.path} has {file.size} bytes: expire snapshots of the table first"
            )
        system, path = open_file_system(file.path)
        try:
            with _table_faults(file.path, "read", "read"):
                return system.read_bytes(path)
        except FileNotFoundError as fault:
            raise RejectedTable(
                QuarantineCode.VANISHED, f"{file.path} went away while it was read: run the import again"
            ) from fault
        except NotAFileError as fault:
            raise RejectedTable(
                QuarantineCode.CORRUPT, f"{file.path} is no regular file: restore it from a backup, or remove it"
            ) from fault

    def has_file(self, location: str) -> bool:
        """True if a file exists.

        raises        RejectedTable with BAD_LOCATION or NO_ACCESS; UnavailableError when the storage does not answer
        """
        system, path = open_file_system(location)
        try:
            with _table_faults(location, "look at", "looked at"):
                system.file_size(path)
        except (FileNotFoundError, NotAFileError):
            return False
        return True


STORAGE = LakeStorage()


@contextmanager
def _table_faults(path: str, deed: str, done: str) -> Iterator[None]:
    """Turn what a file system raises about a file into the RejectedTable of its table, or an UnavailableError.

    FileNotFoundError and NotAFileError pass: what they mean depends on what was asked for.
    """
    try:
        yield
    except (FileNotFoundError, NotAFileError):
        raise
    except RefusedError as fault:
        raise RejectedTable(QuarantineCode.BAD_LOCATION, f"{path} cannot be {done} ({fault}): rename it") from fault
    except PermissionError as fault:
        message = f"{path} may not be {done} ({fault}): grant the worker read access"
        raise RejectedTable(QuarantineCode.NO_ACCESS, message) from fault
    except OSError as fault:
        raise UnavailableError(f"cannot {deed} {path}: {fault}") from fault


def divide_location(location: str) -> list[str]:
    """Divide a location into folders that can be surveyed independently, sorted: no table reaches over two of them.

    These are the folders directly below it, or, where the location is a table itself, the location alone.

    raises        NotFoundError when the location is no folder, UnavailableError when the storage does not answer
    """
    system, root = open_file_system(location)
    try:
        if not system.is_folder(root):
            raise NotFoundError(
                f"there is no folder {location}: correct the import's locations, or, of an object store, which bucket is meant and"
                " at which endpoint"
            )
        folders = sorted(
            _location_of_path(location, root, entry.path) for entry in system.list_children(root) if entry.is_folder
        )
    except PermissionError as fault:
        raise UnavailableError(f"{location} may not be listed: grant the worker read access to it ({fault})") from fault
    except OSError as fault:
        raise UnavailableError(f"cannot list {location}: {fault}") from fault
    return [location] if f"{location}/metadata" in folders else folders


def _is_worth_naming(entry: DirectoryEntry) -> bool:
    """True for a file, and for a dangling link with the name of metadata: the version before it must not be taken instead."""
    return entry.size != NOWHERE or parse_metadata_name(entry.path.rpartition("/")[2]) is not None


def _file_info(base: str, root: str, entry: DirectoryEntry) -> FileInfo:
    return FileInfo(_location_of_path(base, root, entry.path), entry.size, entry.mtime, entry.fault)


def _location_of_path(base: str, root: str, path: str) -> str:
    """Convert a path below a root to a location; the root is the location ``base``."""
    return canonical_location(f"{base.rstrip('/')}/{utf8_path(path.removeprefix(root)).lstrip('/')}".rstrip("/"))


_DELETED_AT_ONCE = 16


class FolderFile(NamedTuple):
    """A file: its location, and its path on the file system."""

    location: str
    path: str


class LakeFolder:
    """Lists and deletes the files of a folder. A listing never follows links to other folders, so its files do lie in this one."""

    def __init__(self, location: str) -> None:
        self.location = canonical_location(location)
        self._system, self._root = open_file_system(self.location)

    def list_files(self) -> Iterator[FolderFile]:
        """List every file, unordered; none if there is no folder.

        raises        RefusedError where it may not be listed; UnavailableError when the storage does not answer
        """
        try:
            for entry in self._system.list_below(self._root):
                if entry.size == NOWHERE:
                    continue
                inner = entry.path.removeprefix(self._root).lstrip("/")
                yield FolderFile(canonical_location(f"{self.location}/{inner}"), entry.path)
        except FileNotFoundError:
            return
        except PermissionError as fault:
            raise RefusedError(f"{self.location} may not be listed ({fault}): grant the worker access, and retry") from fault
        except OSError as fault:
            raise UnavailableError(f"cannot list {self.location}: {fault}") from fault

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete files, by the paths of a listing. A file that is gone already counts as deleted.

        raises        RefusedError where that is not allowed; UnavailableError when the storage does not answer: others may be deleted
        """
        with ThreadPoolExecutor(_DELETED_AT_ONCE, thread_name_prefix="remove") as pool:
            for _ in pool.map(self._remove, paths):
                continue

    def _remove(self, path: str) -> None:
        try:
            self._system.delete_file(path)
        except FileNotFoundError:
            return
        except PermissionError as fault:
            raise RefusedError(f"{path} may not be deleted ({fault}): grant the worker that right, and retry") from fault
        except OSError as fault:
            raise UnavailableError(f"cannot delete {path}: {fault}") from fault


_LONE = re.compile("[\ud800-\udfff]")
_GENERIC_FINDS = (fsspec.AbstractFileSystem.find, AsyncFileSystem._find)
_ARROW_READS = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss")
_ARROW_OPTIONS = dict.fromkeys(("gs", "gcs"), "?retry_limit_seconds=60")
"""Without it, a call to GCS goes on for 15 minutes where there are no credentials, and says nothing."""
_ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""What is said of paths that lead to nothing: a link to itself is one to nowhere, too."""
_NO_FILE = (errno.EISDIR, errno.ENXIO)

NOWHERE = -1
"""The size of a link that leads to nothing."""


class NotAFileError(OSError):
    """The path exists and is no file: a folder, a pipe, a socket or a device."""


class DirectoryEntry(NamedTuple):
    """One name in a listing; ``mtime`` in microseconds since 1970, 0 where the file system does not say.

    size          in bytes; NOWHERE: it is a dangling link
    fault         why a folder cannot be listed
    """

    path: str
    is_folder: bool
    size: int = 0
    mtime: int = 0
    fault: str = ""


NO_TEXT = "its name is no UTF-8, so rename it"


def is_utf8_path(path: str) -> bool:
    """True if a path is valid UTF-8: Python decodes other bytes in local file names to lone surrogates, which cannot be encoded."""
    return path.isascii() or not _LONE.search(path)


def utf8_path(path: str) -> str:
    """A path that can be encoded; for a true path that is not valid text, it leads nowhere."""
    return path if is_utf8_path(path) else _LONE.sub("\ufffd", path)


def is_through_link(place: str, outer: str) -> bool:
    """True if the way from a local folder to a place within it goes through a link; always False for other storages.

    place, outer   locations, the first within the second
    """
    scheme, _, path = canonical_location(place).partition("://")
    if scheme != "file":
        return False
    base = canonical_location(outer).partition("://")[2] or "/"
    straight = os.path.normpath(os.path.join(os.path.realpath(base), os.path.relpath(path or "/", base)))  # noqa: PTH118
    return os.path.realpath(path or "/") != straight


class FileSystem(Protocol):
    """The operations of a file system that imports and purges need. Every answer comes from the storage, none from a cache."""

    def is_folder(self, path: str) -> bool: ...

    def list_children(self, path: str) -> Iterator[DirectoryEntry]:
        """List the entries directly in a folder."""

    def list_below(self, path: str) -> Iterator[DirectoryEntry]:
        """List all files below a folder, unordered, and the folders that may not be listed, with the fault.

        A folder that disappeared meanwhile is empty; any other failure raises.
        """

    def file_size(self, path: str) -> int:
        """The size of a file in bytes.

        raises        FileNotFoundError for a path that leads nowhere; NotAFileError for something else than a file; RefusedError for a
                      path that the storage cannot be asked for
        """

    def read_bytes(self, path: str) -> bytes:
        """Read a file; raises what ``file_size`` raises."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Read a part of a file; raises what ``file_size`` raises."""

    def put_file(self, source: str, path: str) -> None:
        """Store a local file under a new name. Where the storage allows, others see it whole or not at all."""

    def delete_file(self, path: str) -> None:
        """Delete one file of exactly this name, which is not taken as a pattern."""


def open_file_system(location: str) -> tuple[FileSystem, str]:
    """Open the file system of a canonical location; returns it with the location's path on it.

    raises        RefusedError when no driver reaches it; UnavailableError when the storage does not answer
    """
    scheme, _, rest = location.partition("://")
    if scheme == "file":
        return _LOCAL, rest
    if "::" in location:  # "a::b" is a chained URL: fsspec would open b with another driver
        raise RefusedError(f"{location} contains '::', which drivers read as a chain of file systems: rename it")
    try:
        system, path = fsspec.core.url_to_fs(location)
    except (ImportError, ValueError) as fault:
        if scheme in _ARROW_READS:
            return _open_arrow(scheme, rest, fault)
        raise RefusedError(f"no file system for {location}: {fault}") from fault
    except OSError as fault:
        message = str(fault).partition("\n")[0]  # Hadoop's message goes on with every path where the library is not
        if message.startswith("Unable to load"):
            raise RefusedError(f"no file system for {location}: {message}, so install it") from fault
        raise UnavailableError(f"cannot open {location}: {message}") from fault
    return _FsspecFiles(system), path


class _LocalFiles:
    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def list_children(self, path: str) -> Iterator[DirectoryEntry]:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield DirectoryEntry(entry.path, True, fault="" if is_utf8_path(entry.path) else NO_TEXT)
                    continue
                try:
                    status = entry.stat()
                except OSError as fault:
                    if fault.errno not in _LEADS_NOWHERE:
                        raise
                    if entry.is_symlink():
                        yield DirectoryEntry(entry.path, False, NOWHERE)
                    continue  # otherwise it disappeared since it was listed
                yield DirectoryEntry(entry.path, False, status.st_size, status.st_mtime_ns // 1000)

    def list_below(self, path: str) -> Iterator[DirectoryEntry]:
        return _walk(self, path)

    def file_size(self, path: str) -> int:
        return _status(path).st_size

    def read_bytes(self, path: str) -> bytes:
        _status(path)  # opening a pipe would wait for a writer, and opening a device may do anything
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # a Path and a buffer take as long as the read itself
            return file.readall()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        _status(path)
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return os.pread(file.fileno(), length, offset)

    def put_file(self, source: str, path: str) -> None:
        target = Path(path)
        make_folder(target.parent)
        with replacing(target) as part:
            shutil.copyfile(source, part)
            with part.open("rb") as file:
                os.fsync(file.fileno())
        sync_folder(target.parent)

    def delete_file(self, path: str) -> None:
        Path(path).unlink()


_LOCAL = _LocalFiles()


def _status(path: str) -> os.stat_result:
    """The ``os.stat`` result of a local file."""
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, "no name has a zero byte in it", path)
    with _path_errors(path):
        status = os.stat(path)  # noqa: PTH116  # a Path takes as long again
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError(errno.EINVAL, "not a regular file", path)
    return status


class _FsspecFiles:
    def __init__(self, system: Any) -> None:
        system.invalidate_cache()
        self._system = system

    def is_folder(self, path: str) -> bool:
        return bool(self._system.isdir(path))

    def list_children(self, path: str) -> Iterator[DirectoryEntry]:
        for info in self._system.ls(path, detail=True):
            yield _fsspec_entry(info)

    def list_below(self, path: str) -> Iterator[DirectoryEntry]:
        """List all files below a folder.

        Storages with a recursive listing give it in few calls, and raise when it fails. For others this walks the folders itself,
        because fsspec's walk skips folders that it cannot list, and their tables would seem to be gone.
        """
        if (getattr(type(self._system), "_find", None) or type(self._system).find) in _GENERIC_FINDS:
            return _walk(self, path)
        return (_fsspec_entry(info) for info in self._system.find(path, detail=True).values())

    def file_size(self, path: str) -> int:
        with _path_errors(path):
            info = self._system.info(path)
        if info.get("type") == "directory":
            raise NotAFileError(errno.EISDIR, "a folder", path)
        return int(info.get("size") or 0)

    def read_bytes(self, path: str) -> bytes:
        with _path_errors(path):
            return bytes(self._system.cat_file(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with _path_errors(path):
            return bytes(self._system.cat_file(path, start=offset, end=offset + length))

    def put_file(self, source: str, path: str) -> None:
        self._system.put_file(source, path)

    def delete_file(self, path: str) -> None:
        self._system.rm_file(path)  # ``rm`` would take ``*`` and ``[`` in a name for a pattern


class _ArrowFiles:
    def __init__(self, system: Any) -> None:
        self._system = system

    def is_folder(self, path: str) -> bool:
        with _arrow_errors():
            return not self._info(path).is_file and self._info(path).type.name == "Directory"

    def list_children(self, path: str) -> Iterator[DirectoryEntry]:
        return self._select(path, recursive=False)

    def list_below(self, path: str) -> Iterator[DirectoryEntry]:
        return (entry for entry in self._select(path, recursive=True) if not entry.is_folder)

    def file_size(self, path: str) -> int:
        with _arrow_errors():
            info = self._info(path)
        if not info.is_file:
            raise FileNotFoundError(path)
        return int(info.size)

    def read_bytes(self, path: str) -> bytes:
        with _arrow_errors(), self._system.open_input_file(path) as file:
            return bytes(file.readall())

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with _arrow_errors(), self._system.open_input_file(path) as file:
            return bytes(file.read_at(length, offset))

    def put_file(self, source: str, path: str) -> None:
        with _arrow_errors(), open(source, "rb") as file, self._system.open_output_stream(path) as output:  # noqa: PTH123
            shutil.copyfileobj(file, output, 1 << 20)

    def delete_file(self, path: str) -> None:
        with _arrow_errors():
            self._system.delete_file(path)

    def _info(self, path: str) -> Any:
        return self._system.get_file_info(path)

    def _select(self, path: str, *, recursive: bool) -> Iterator[DirectoryEntry]:
        from pyarrow.fs import FileSelector

        with _arrow_errors():
            infos = self._system.get_file_info(FileSelector(path, recursive=recursive))
        for info in infos:
            yield DirectoryEntry(info.path, not info.is_file, info.size or 0, (info.mtime_ns or 0) // 1000)


def _open_arrow(scheme: str, rest: str, lacking: Exception) -> tuple[FileSystem, str]:
    """Open pyarrow's own client for an object store, configured by the environment as fsspec's clients are.

    Only the bucket is passed as a URI: with a whole URI, pyarrow refuses a space in a path, and decodes what is not encoded.
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
    return _ArrowFiles(system), f"{base.rstrip('/')}{slash}{path}"


@contextmanager
def _arrow_errors() -> Iterator[None]:
    """Convert pyarrow's errors: only their text gives the store's answer, and a ValueError is a name that pyarrow refuses."""
    try:
        yield
    except OSError as fault:
        if "ACCESS_DENIED" in str(fault) or "HTTP status 403" in str(fault):
            raise PermissionError(str(fault)) from fault
        if str(fault).startswith("Not a regular file"):
            raise NotAFileError(errno.EISDIR, str(fault)) from fault
        raise
    except ValueError as fault:
        raise RefusedError(f"pyarrow does not take its name: {fault}") from fault


@contextmanager
def _path_errors(path: str) -> Iterator[None]:
    """Convert errors of the path itself to FileNotFoundError or NotAFileError: a retry never helps."""
    try:
        yield
    except OSError as fault:
        if fault.errno in _LEADS_NOWHERE or isinstance(fault, NotADirectoryError):
            raise FileNotFoundError(errno.ENOENT, str(fault), path) from fault
        if fault.errno in _NO_FILE or isinstance(fault, IsADirectoryError):
            raise NotAFileError(fault.errno, str(fault), path) from fault
        raise


def _walk(system: FileSystem, root: str) -> Iterator[DirectoryEntry]:
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            for entry in system.list_children(folder):
                if entry.is_folder and not entry.fault:
                    folders.append(entry.path)
                else:
                    yield entry
        except FileNotFoundError:
            continue  # disappeared since its parent was listed
        except PermissionError as fault:
            yield DirectoryEntry(folder, True, fault=f"{fault}, so grant the worker read access")


def _fsspec_entry(info: Mapping[str, Any]) -> DirectoryEntry:
    return DirectoryEntry(info["name"], info["type"] == "directory", info.get("size") or 0, _mtime(info))


def _mtime(info: Mapping[str, Any]) -> int:
    """Microseconds since 1970, or 0: drivers give it under different names, as a number, a datetime or a text."""
    value = next((info[name] for name in ("mtime", "LastModified", "last_modified", "updated", "created") if info.get(name)), 0)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return 0
    seconds = value.timestamp() if isinstance(value, datetime) else float(value)
    return round(seconds * 1_000_000)
