"""The metadata files of tables and views in their storage, for whoever serves a catalog: read, written anew, and deleted again.

How a storage is reached is said by ``StorageFile`` alone, for a realm and a catalog: no table, namespace or request has a say.
Whoever calls has checked the place before (``table_places``). No text of an error has content of a file, or a credential, in it.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headwater.durability import make_folder
from headwater.errors import ConflictError, CorruptionError, RefusedError, UnavailableError
from headwater.iceberg.file_drivers import FOLDER_MODE, FileSystem, NotAFileError, is_reusable, open_file_system
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.location import canonical_location
from headwater.iceberg.metadata_json import MAX_BYTES, unpack_metadata
from headwater.iceberg.storage_options import StorageFile, StorageOptions
from headwater.iceberg.survey_outcomes import RejectedTable

_LOCAL = "file://"
_MOST_OPENED = 256


class MissingFileError(CorruptionError):
    """A file that a request or stored metadata names does not exist."""


class TableStorage:
    """The storage of a catalog's tables. Thread-safe; opens pyarrow's client once for each bucket.

    options       None: how storages are reached is said by the environment of the process alone
    """

    def __init__(self, options: StorageFile | None = None, *, realm: str = "", catalog: str = "") -> None:
        self._options = StorageFile("") if options is None else options
        self._realm = realm
        self._catalog = catalog
        self._opened: dict[tuple[int, str, StorageOptions | None], tuple[FileSystem, str]] = {}
        self._opening = threading.Lock()

    def __reduce__(self) -> tuple[object, tuple[StorageFile, str, str]]:
        """Another process opens its own clients, by its own storage file."""
        return _storage, (self._options, self._realm, self._catalog)

    def read_bytes(self, location: str, *, limit: int = MAX_BYTES) -> bytes:
        """Read a file as it is.

        raises        MissingFileError; RefusedError for what is no file, larger than ``limit`` bytes, or may not be read;
                      UnavailableError
        """
        location = canonical_location(location)
        with self._faults("read", location):
            system, path = self.open_system(location)
            size = system.file_size(path)
            if size > limit:
                raise RefusedError(f"{location} has {size} bytes: at most {limit} are read")
            data = system.read_bytes(path)
        if len(data) > limit:  # it was replaced since
            raise RefusedError(f"{location} has {len(data)} bytes: at most {limit} are read")
        return data

    def read_metadata(self, location: str) -> bytes:
        """Read the text of a metadata file, unpacked where it is gzip, which its content says; it may not be JSON.

        raises        as ``read_bytes`` does; RefusedError for what is packed in another way, or broken
        """
        data = self.read_bytes(location)
        try:
            return unpack_metadata(data, path=location)
        except RejectedTable as fault:
            raise RefusedError(str(fault)) from fault

    def write_new(self, location: str, data: bytes) -> None:
        """Write a new file, whole or not at all; what is there is never overwritten. On local disks it is synced before this returns.

        A file of equal content is accepted: an earlier attempt wrote it, and its answer was lost.

        raises        ConflictError when another file has the name; RefusedError when it may not be written; UnavailableError, and a
                      file may be there: ``delete`` it
        """
        location = canonical_location(location)
        with self._faults("write", location):
            system, path = self.open_system(location)
            try:
                system.write_new(path, data)
            except FileExistsError:
                if not _holds(system, path, data):
                    raise ConflictError(
                        f"there is a file {location} already, and nothing is overwritten: try again with another name"
                    ) from None

    def delete(self, location: str) -> None:
        """Delete a file; one that is gone already counts as deleted.

        raises        RefusedError when it may not be deleted, or is no file; UnavailableError
        """
        location = canonical_location(location)
        with suppress(MissingFileError), self._faults("delete", location):
            system, path = self.open_system(location)
            system.delete_file(path)

    def exists(self, location: str) -> bool:
        """True if there is a file.

        raises        RefusedError when that may not be looked at; UnavailableError
        """
        location = canonical_location(location)
        with self._faults("look at", location):
            system, path = self.open_system(location)
            with suppress(FileNotFoundError, NotAFileError):
                system.file_size(path)
                return True
        return False

    def make_folder(self, location: str) -> None:
        """Create a folder on a local disk, for engines that write into folders and make none; elsewhere there are no folders.

        raises        RefusedError when it may not be created; UnavailableError
        """
        location = canonical_location(location)
        if location.startswith(_LOCAL):
            with self._faults("create", location):
                make_folder(Path(location.removeprefix(_LOCAL)), mode=FOLDER_MODE)

    def client_config(self, location: str) -> dict[str, str]:
        """What clients are told of how to reach the storage of a location: address, region and spelling, never a credential."""
        options = self._options_for(canonical_location(location))
        return {} if options is None else options.client_config()

    @property
    def lake(self) -> LakeStorage:
        """How walks through the files of tables reach the same storage."""
        return _ConfiguredLake(self)

    def open_system(self, location: str) -> tuple[FileSystem, str]:
        """Open the file system of a canonical location; returns it with the location's path on it.

        raises        RefusedError; UnavailableError
        """
        if location.startswith(_LOCAL) or "::" in location:
            return open_file_system(location)
        scheme, _, rest = location.partition("://")
        authority, slash, path = rest.partition("/")
        root = f"{scheme}://{authority}"
        options = self._options_for(location)
        key = (os.getpid(), root, options)  # clients do not survive a fork
        with self._opening:
            opened = self._opened.get(key)
        if opened is None:
            opened = open_file_system(root, options)
            if not is_reusable(opened[0]):
                return open_file_system(location, options)
            with self._opening:
                if len(self._opened) >= _MOST_OPENED:
                    self._opened.clear()
                self._opened[key] = opened
        system, base = opened
        return system, f"{base.rstrip('/')}{slash}{path}"

    def _options_for(self, location: str) -> StorageOptions | None:
        return self._options.options_for(location, realm=self._realm, catalog=self._catalog)

    @contextmanager
    def _faults(self, deed: str, location: str) -> Iterator[None]:
        """Turn what a driver raises into errors of our own, without what a driver may tell of credentials.

        Nothing keeps the driver's error as its cause: a log would show it.
        """
        try:
            yield
        except FileNotFoundError:
            if deed == "write":
                raise RefusedError(f"cannot write {location}: its bucket does not exist") from None
            raise MissingFileError(f"{location} does not exist") from None
        except (NotAFileError, NotADirectoryError, IsADirectoryError):
            raise RefusedError(f"cannot {deed} {location}: what is there, or above it, is no such file or folder") from None
        except PermissionError:
            raise RefusedError(f"cannot {deed} {location}: the storage does not allow it to this process") from None
        except OSError as fault:
            if fault.errno in (errno.ENAMETOOLONG, errno.ELOOP):
                raise RefusedError(f"cannot {deed} {location}: {os.strerror(fault.errno).lower()}") from None
            options = self._options_for(location)
            told = str(fault).partition("\n")[0] if options is None else options.without_secrets(str(fault))
            raise UnavailableError(f"cannot {deed} {location}: {told}") from None


def _storage(options: StorageFile, realm: str, catalog: str) -> TableStorage:
    return TableStorage(options, realm=realm, catalog=catalog)


class _ConfiguredLake(LakeStorage):
    """Reads as surveys and purges do, through a ``TableStorage``."""

    def __init__(self, storage: TableStorage) -> None:
        self._storage = storage

    def open_system(self, location: str) -> tuple[FileSystem, str]:
        return self._storage.open_system(location)


def _holds(system: FileSystem, path: str, data: bytes) -> bool:
    """True if a file has exactly this content."""
    try:
        return system.file_size(path) == len(data) and system.read_bytes(path) == data
    except (FileNotFoundError, NotAFileError):
        return False
