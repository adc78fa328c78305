"""The drivers by which files are reached: local files, fsspec's drivers, or pyarrow's where fsspec has none, behind one interface.

Paths are those of the file system itself, without scheme. Failures are an ``OSError``: ``FileNotFoundError``, ``FileExistsError``,
``NotAFileError`` and ``PermissionError`` where that is certain.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import fsspec
from fsspec.asyn import AsyncFileSystem

from headwater.durability import make_folder, publish, replacing, sync_folder, temporary_file
from headwater.errors import RefusedError, UnavailableError
from headwater.iceberg.location import canonical_location
from headwater.iceberg.s3_deletion import delete_object
from headwater.iceberg.storage_options import StorageOptions

_LONE = re.compile("[\ud800-\udfff]")
_GENERIC_FINDS = (fsspec.AbstractFileSystem.find, AsyncFileSystem._find)
ARROW_SCHEMES = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss")
_GCS_PATIENCE_SECONDS = 60
_ARROW_OPTIONS = dict.fromkeys(("gs", "gcs"), f"?retry_limit_seconds={_GCS_PATIENCE_SECONDS}")
"""Without it, a call to GCS goes on for 15 minutes where there are no credentials, and says nothing."""
_STORAGE_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""What is said of paths that lead to nothing: a link to itself is one to nowhere, too."""
_NO_FILE = (errno.EISDIR, errno.ENXIO)

_ANY_REGION = "us-east-1"
"""For servers of S3's protocol that have no regions: a request is signed for one."""
FILE_MODE, FOLDER_MODE = 0o644, 0o755
"""Of what is written for tables: engines of other users read it."""

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
    """The operations of a file system that imports, purges and tables need. Every answer comes from the storage, none from a cache."""

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

    def file_facts(self, path: str) -> tuple[int, int]:
        """The size of a file in bytes, and its time as listings have it; raises what ``file_size`` raises."""

    def read_bytes(self, path: str) -> bytes:
        """Read a file; raises what ``file_size`` raises."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Read a part of a file; raises what ``file_size`` raises."""

    def put_file(self, source: str, path: str) -> None:
        """Store a local file under a new name. Where the storage allows, others see it whole or not at all."""

    def write_new(self, path: str, data: bytes) -> None:
        """Store a new file, whole or not at all.

        Certain of local files and of drivers that put conditionally; others look before, so that two writers of one name at the same
        moment would overwrite each other: names are to be unique.

        raises        FileExistsError
        """

    def delete_file(self, path: str) -> None:
        """Delete one file of exactly this name, which is not taken as a pattern; nothing is stored instead.

        raises        FileNotFoundError
        """


def open_file_system(location: str, options: StorageOptions | None = None) -> tuple[FileSystem, str]:
    """Open the file system of a canonical location; returns it with the location's path on it.

    options       how the storage is reached, by pyarrow's client; None: as the environment of the process says, by whichever driver is
                  installed
    raises        RefusedError when no driver reaches it; UnavailableError when the storage does not answer
    """
    scheme, _, rest = location.partition("://")
    if scheme == "file":
        return _LOCAL, rest
    if "::" in location:  # "a::b" is a chained URL: fsspec would open b with another driver
        raise RefusedError(f"{location} contains '::', which drivers read as a chain of file systems: rename it")
    if options is not None:
        return _open_configured(location, options)
    try:
        system, path = fsspec.core.url_to_fs(location)
    except (ImportError, ValueError) as fault:
        if scheme in ARROW_SCHEMES:
            return _open_arrow(scheme, rest, fault)
        raise RefusedError(f"no file system for {location}: {fault}") from fault
    except OSError as fault:
        message = str(fault).partition("\n")[0]  # Hadoop's message goes on with every path where the library is not
        if message.startswith("Unable to load"):
            raise RefusedError(f"no file system for {location}: {message}, so install it") from fault
        raise UnavailableError(f"cannot open {location}: {message}") from fault
    return _FsspecFiles(system), path


def is_reusable(system: FileSystem) -> bool:
    """Whether a file system answers from the storage however long ago it was opened: fsspec's drivers remember listings."""
    return not isinstance(system, _FsspecFiles)


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

    def file_facts(self, path: str) -> tuple[int, int]:
        status = _status(path)
        return status.st_size, status.st_mtime_ns // 1000

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

    def write_new(self, path: str, data: bytes) -> None:
        target = Path(path)
        if not target.parent.is_dir():
            make_folder(target.parent, mode=FOLDER_MODE)
        with temporary_file(target, data) as part:
            part.chmod(FILE_MODE)
            try:
                publish(part, target)  # by a second name: a rename would replace what is there
            except FileExistsError:
                sync_folder(target.parent)  # whoever wrote it may have ended before it did so
                raise

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
        return self.file_facts(path)[0]

    def file_facts(self, path: str) -> tuple[int, int]:
        with _path_errors(path):
            info = self._system.info(path)
        if info.get("type") == "directory":
            raise NotAFileError(errno.EISDIR, "a folder", path)
        return int(info.get("size") or 0), _mtime(info)

    def read_bytes(self, path: str) -> bytes:
        with _path_errors(path):
            return bytes(self._system.cat_file(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with _path_errors(path):
            return bytes(self._system.cat_file(path, start=offset, end=offset + length))

    def put_file(self, source: str, path: str) -> None:
        self._system.put_file(source, path)

    def write_new(self, path: str, data: bytes) -> None:
        _check_absent(self, path)  # a driver that does not know the mode would not say so
        self._system.pipe_file(path, data, mode="create")

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
        return self.file_facts(path)[0]

    def file_facts(self, path: str) -> tuple[int, int]:
        with _arrow_errors():
            info = self._info(path)
        if not info.is_file:
            raise FileNotFoundError(path)
        return int(info.size), (info.mtime_ns or 0) // 1000

    def read_bytes(self, path: str) -> bytes:
        with _arrow_errors(), self._system.open_input_file(path) as file:
            return bytes(file.readall())

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with _arrow_errors(), self._system.open_input_file(path) as file:
            return bytes(file.read_at(length, offset))

    def put_file(self, source: str, path: str) -> None:
        with _arrow_errors(), open(source, "rb") as file, self._system.open_output_stream(path) as output:  # noqa: PTH123
            shutil.copyfileobj(file, output, 1 << 20)

    def write_new(self, path: str, data: bytes) -> None:
        _check_absent(self, path)  # pyarrow's clients have no conditional put
        try:
            with _arrow_errors(), self._system.open_output_stream(path) as output:
                output.write(data)
        except OSError as fault:
            if "NO_SUCH_BUCKET" in str(fault):
                raise FileNotFoundError(errno.ENOENT, str(fault), path) from fault
            raise

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


class _S3Files(_ArrowFiles):
    def __init__(self, system: Any, options: StorageOptions | None) -> None:
        super().__init__(system)
        self._options = options

    def delete_file(self, path: str) -> None:
        self.file_size(path)  # S3 itself does not report that there was none
        delete_object(path, self._options, region=self._system.region)


def _files_of(system: Any, options: StorageOptions | None = None) -> FileSystem:
    return _S3Files(system, options) if system.type_name == "s3" else _ArrowFiles(system)


def _open_arrow(scheme: str, rest: str, lacking: Exception) -> tuple[FileSystem, str]:
    """Open pyarrow's own client for an object store, configured by the environment as fsspec's clients are.

    Only the bucket is passed as a URI: with a whole URI, pyarrow refuses a space in a path, and decodes what is not encoded.
    """
    bucket, slash, path = rest.partition("/")
    try:
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem

        system, base = FileSystem.from_uri(f"{_STORAGE_SCHEMES.get(scheme, scheme)}://{bucket}{_ARROW_OPTIONS.get(scheme, '')}")
    except ImportError as fault:
        raise RefusedError(
            f"no file system for {scheme}://{rest}: {lacking}; and pyarrow is not installed: pip install 'headwater[lake]'"
        ) from fault
    except (ValueError, OSError, ArrowException) as fault:
        raise RefusedError(f"no file system for {scheme}://{rest}: {lacking}; and pyarrow: {fault}") from fault
    return _files_of(system), f"{base.rstrip('/')}{slash}{path}"


def _check_absent(system: FileSystem, path: str) -> None:
    """raises        FileExistsError"""
    try:
        system.file_size(path)
    except FileNotFoundError:
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)


def _open_configured(location: str, options: StorageOptions) -> tuple[FileSystem, str]:
    """Open pyarrow's client for an object store as the options say, and not the environment."""
    authority, _, path = location.partition("://")[2].partition("/")
    bucket, _, host = authority.partition("@")
    try:
        if options.area == "s3":
            system = _s3_client(options, bucket)
        elif options.area == "gs":
            system = _gcs_client(options)
        else:
            system = _azure_client(options, host.partition(".")[0])
    except ImportError:
        raise RefusedError(
            f"no file system for {location} with options: pyarrow is not installed: pip install 'headwater[lake]'"
        ) from None
    except ValueError as fault:  # no cause, here and below: its text may hold what the options have
        raise RefusedError(f"no file system for {location}: {options.without_secrets(str(fault))}") from None
    except OSError as fault:
        raise UnavailableError(f"cannot open {location}: {options.without_secrets(str(fault))}") from None
    return _files_of(system, options), f"{bucket}/{path}" if path else bucket


def _s3_client(options: StorageOptions, bucket: str) -> Any:
    from pyarrow.fs import S3FileSystem, resolve_s3_region

    url = urlsplit(options.endpoint)
    return S3FileSystem(
        access_key=options.access_key_id or None,
        secret_key=options.secret_access_key or None,
        session_token=options.session_token or None,
        anonymous=options.anonymous,
        role_arn=options.role_arn or None,
        external_id=options.external_id or None,
        region=options.region or (_ANY_REGION if options.endpoint else resolve_s3_region(bucket)),
        scheme=url.scheme or None,
        endpoint_override=url.netloc or None,
        force_virtual_addressing=not options.is_path_style,
        allow_delayed_open=True,  # so that a small file is one request
        tls_ca_file_path=options.ca_file or None,
    )


def _gcs_client(options: StorageOptions) -> Any:
    from pyarrow.fs import GcsFileSystem

    url = urlsplit(options.endpoint)
    return GcsFileSystem(
        anonymous=options.anonymous,
        target_service_account=options.service_account or None,
        scheme=url.scheme or None,
        endpoint_override=url.netloc or None,
        retry_time_limit=timedelta(seconds=_GCS_PATIENCE_SECONDS),
    )


def _azure_client(options: StorageOptions, account: str) -> Any:
    from pyarrow.fs import AzureFileSystem

    url = urlsplit(options.endpoint)
    return AzureFileSystem(
        account_name=account,
        account_key=options.account_key or None,
        sas_token=options.sas_token or None,
        tenant_id=options.tenant_id or None,
        client_id=options.client_id or None,
        client_secret=options.client_secret or None,
        blob_storage_authority=url.netloc or None,
        blob_storage_scheme=url.scheme or None,
        dfs_storage_authority=url.netloc or None,
        dfs_storage_scheme=url.scheme or None,
    )


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
    except Exception as fault:
        if type(fault).__module__.partition(".")[0] != "pyarrow":
            raise
        raise OSError(str(fault)) from fault  # what it has no class for, such as a refusal of Azure's client


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
