"""The file systems on which a location may lie: listing, reading, writing and deleting, behind one interface.

``LakeStorage`` lists and reads for surveys, and turns what goes wrong with one table into a ``RejectedTable``. ``LakeFolder``
lists and deletes for purges. Both use a ``FileSystem`` of the module ``file_drivers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from headwater.errors import NotFoundError, RefusedError, UnavailableError
from headwater.iceberg.file_drivers import (
    NO_TEXT,
    NOWHERE,
    DirectoryEntry,
    FileSystem,
    NotAFileError,
    open_file_system,
    utf8_path,
)
from headwater.iceberg.layout import FileInfo, parse_metadata_name
from headwater.iceberg.location import canonical_location
from headwater.iceberg.metadata_json import MAX_BYTES
from headwater.iceberg.survey_outcomes import QuarantineCode, RejectedTable

OpenFileSystem = Callable[[str], tuple[FileSystem, str]]
"""From a canonical location to its file system, and the path on it."""

_STRANGE = "\ufffd"
"""In the place of what is no text in a name."""


class LakeStorage:
    """Reads files at canonical locations. Keeps no state, so it works in any process, such as a Spark executor."""

    def open_system(self, location: str) -> tuple[FileSystem, str]:
        """Open the file system of a location: here as the environment of the process says."""
        return open_file_system(location)

    def list_files(self, folder: str) -> Iterator[FileInfo]:
        """List every file below a folder, unordered; none if there is no folder.

        A folder that may not be listed is represented by an entry with that fault.

        raises        UnavailableError when the storage does not answer
        """
        if _STRANGE in folder:
            yield FileInfo(folder, 0, fault=NO_TEXT)
            return
        system, root = self.open_system(folder)
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
        system, root = self.open_system(folder)
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
        system, path = self.open_system(file.path)
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
        system, path = self.open_system(location)
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

    def __init__(self, location: str, open_system: OpenFileSystem = open_file_system) -> None:
        self.location = canonical_location(location)
        self._system, self._root = open_system(self.location)

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
