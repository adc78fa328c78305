"""Listing and reading, on every file system that fsspec reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem

from headwater.catalogs.iceberg.documents import MAX_BYTES
from headwater.catalogs.iceberg.grouping import File
from headwater.catalogs.iceberg.locations import canonical
from headwater.catalogs.iceberg.outcomes import QuarantineCode, UnfitError
from headwater.errors import MissingError, RefusedError, UnavailableError

__all__ = ["divide", "list_files", "read"]

_GENERIC_FINDS = (fsspec.AbstractFileSystem.find, AsyncFileSystem._find)


def divide(location: str) -> list[str]:
    """The folders of a location that can be surveyed apart from each other, sorted: no table reaches over two of them.

    These are the folders right below it, or, where the location is a table itself, the location alone.

    raises        MissingError when the location is no folder, UnavailableError when the storage does not answer
    """
    system, root = _open(location)
    try:
        if not system.isdir(root):
            raise MissingError(f"there is no folder {location}")
        entries = system.ls(root, detail=True)
    except OSError as fault:
        raise UnavailableError(f"cannot list {location}: {fault}") from fault
    folders = sorted(_uri(location, root, entry["name"]) for entry in entries if entry["type"] == "directory")
    return [location] if f"{location}/metadata" in folders else folders


def list_files(folder: str) -> Iterator[File]:
    """Every file below a folder, in no order, always from the storage and never from a cache."""
    system, root = _open(folder)
    try:
        for name, info in _listing(system, root):
            yield File(_uri(folder, root, name), info.get("size") or 0, _mtime(info))
    except OSError as fault:
        raise UnavailableError(f"cannot list {folder}: {fault}") from fault


def read(file: File) -> bytes:
    """The content of a listed file.

    raises        UnfitError with VANISHED, NO_ACCESS or TOO_LARGE; UnavailableError when the storage does not answer
    """
    if file.size > MAX_BYTES:
        raise UnfitError(QuarantineCode.TOO_LARGE, f"{file.path} has {file.size} bytes: expire snapshots of the table first")
    system, path = _open(file.path)
    try:
        content = system.cat_file(path)
    except FileNotFoundError as fault:
        raise UnfitError(QuarantineCode.VANISHED, f"{file.path} went away while it was read: run the import again") from fault
    except PermissionError as fault:
        raise UnfitError(
            QuarantineCode.NO_ACCESS, f"{file.path} may not be read ({fault}): grant the worker read access"
        ) from fault
    except OSError as fault:
        raise UnavailableError(f"cannot read {file.path}: {fault}") from fault
    return bytes(content)


def _open(location: str) -> tuple[Any, str]:
    try:
        system, path = fsspec.core.url_to_fs(location)
    except (ImportError, ValueError) as fault:
        raise RefusedError(f"no file system for {location}: {fault}") from fault
    system.invalidate_cache()
    return system, path


def _listing(system: Any, root: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and infos of all files below a folder.

    Storages with a listing of their own (S3, GCS, ABFS) give it in few calls, and raise when it fails. fsspec's walk for all others
    passes over folders that it cannot list, by which tables would seem to be gone; so these are walked here.
    """
    if (getattr(type(system), "_find", None) or type(system).find) not in _GENERIC_FINDS:
        yield from system.find(root, detail=True).items()
        return
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = system.ls(folder, detail=True)
        except FileNotFoundError:
            continue  # went away since its parent was listed
        for info in entries:
            if info["type"] == "directory":
                folders.append(info["name"])
            else:
                yield info["name"], info


def _uri(base: str, root: str, name: str) -> str:
    return canonical(base.rstrip("/") + "/" + name.removeprefix(root).lstrip("/"))


def _mtime(info: Mapping[str, Any]) -> int:
    """Microseconds since 1970, or 0: file systems call it by different names, as a number, a datetime or a text."""
    value = next((info[name] for name in ("mtime", "LastModified", "last_modified", "updated", "created") if info.get(name)), 0)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return 0
    seconds = value.timestamp() if isinstance(value, datetime) else float(value)
    return round(seconds * 1_000_000)
