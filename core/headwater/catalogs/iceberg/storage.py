"""Listing and reading, on every file system that is reached, with the reasons of this room for what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.catalogs.iceberg.documents import MAX_BYTES
from headwater.catalogs.iceberg.grouping import File
from headwater.catalogs.iceberg.locations import canonical
from headwater.catalogs.iceberg.names import parse_name
from headwater.catalogs.iceberg.outcomes import QuarantineCode, UnfitError
from headwater.catalogs.iceberg.systems import NO_TEXT, NOWHERE, Entry, NoFileError, as_text, open_system
from headwater.errors import MissingError, RefusedError, UnavailableError

__all__ = ["STORAGE", "Storage", "divide"]

_STRANGE = "\ufffd"
"""In the place of what is no text in a name."""


class Storage:
    """Reads what lies at canonical locations. Keeps nothing, so that it is as good on an executor as here."""

    def list_files(self, folder: str) -> Iterator[File]:
        """Every file below a folder, in no order, and in the place of folders that may not be listed one with that fault; none where
        there is no folder.

        raises        UnavailableError when the storage does not answer
        """
        if _STRANGE in folder:
            yield File(folder, 0, fault=NO_TEXT)
            return
        system, root = open_system(folder)
        try:
            for entry in system.below(root):
                if _is_worth_naming(entry):
                    yield _file(folder, root, entry)
        except FileNotFoundError:
            return
        except OSError as fault:
            raise UnavailableError(f"cannot list {folder}: {fault}") from fault

    def list_metadata(self, directory: str) -> list[File]:
        """The files right in the metadata folder of a table; none where there is no such folder.

        raises        as ``list_folder`` does
        """
        return self.list_folder(f"{directory}/metadata")

    def list_folder(self, folder: str) -> list[File]:
        """The files directly in a folder; none if the folder does not exist.

        raises        UnfitError with NO_ACCESS; UnavailableError when the storage does not answer
        """
        system, root = open_system(folder)
        try:
            return [
                _file(folder, root, entry) for entry in system.children(root) if not entry.is_folder and _is_worth_naming(entry)
            ]
        except FileNotFoundError:
            return []
        except PermissionError as fault:
            raise UnfitError(
                QuarantineCode.NO_ACCESS, f"{folder} may not be listed ({fault}): grant the worker read access"
            ) from fault
        except OSError as fault:
            raise UnavailableError(f"cannot list {folder}: {fault}") from fault

    def read(self, file: File) -> bytes:
        """The content of a listed file.

        raises        UnfitError with BAD_LOCATION, VANISHED, CORRUPT for what is no file or a link to nowhere, NO_ACCESS or
                      TOO_LARGE; UnavailableError when the storage does not answer
        """
        if _STRANGE in file.path:
            raise UnfitError(QuarantineCode.BAD_LOCATION, f"{file.path} has a name that is no UTF-8: rename it")
        if file.size == NOWHERE:
            raise UnfitError(
                QuarantineCode.CORRUPT, f"{file.path} is a link to nowhere: restore what it leads to, or remove it"
            )
        if file.size > MAX_BYTES:
            raise UnfitError(
                QuarantineCode.TOO_LARGE, f"{file.path} has {file.size} bytes: expire snapshots of the table first"
            )
        system, path = open_system(file.path)
        try:
            return system.content(path)
        except FileNotFoundError as fault:
            raise UnfitError(
                QuarantineCode.VANISHED, f"{file.path} went away while it was read: run the import again"
            ) from fault
        except NoFileError as fault:
            raise UnfitError(
                QuarantineCode.CORRUPT, f"{file.path} is no regular file: restore it from a backup, or remove it"
            ) from fault
        except RefusedError as fault:
            raise UnfitError(QuarantineCode.BAD_LOCATION, f"{file.path} cannot be read ({fault}): rename it") from fault
        except PermissionError as fault:
            raise UnfitError(
                QuarantineCode.NO_ACCESS, f"{file.path} may not be read ({fault}): grant the worker read access"
            ) from fault
        except OSError as fault:
            raise UnavailableError(f"cannot read {file.path}: {fault}") from fault

    def has(self, location: str) -> bool:
        """Whether there is a file.

        raises        UnfitError with BAD_LOCATION or NO_ACCESS; UnavailableError when the storage does not answer
        """
        system, path = open_system(location)
        try:
            system.size(path)
        except (FileNotFoundError, NoFileError):
            return False
        except RefusedError as fault:
            raise UnfitError(QuarantineCode.BAD_LOCATION, f"{location} cannot be looked at ({fault}): rename it") from fault
        except PermissionError as fault:
            raise UnfitError(
                QuarantineCode.NO_ACCESS, f"{location} may not be looked at ({fault}): grant the worker read access"
            ) from fault
        except OSError as fault:
            raise UnavailableError(f"cannot look at {location}: {fault}") from fault
        return True


STORAGE = Storage()


def divide(location: str) -> list[str]:
    """The folders of a location that can be surveyed apart from each other, sorted: no table reaches over two of them.

    These are the folders right below it, or, where the location is a table itself, the location alone.

    raises        MissingError when the location is no folder, UnavailableError when the storage does not answer
    """
    system, root = open_system(location)
    try:
        if not system.is_folder(root):
            raise MissingError(
                f"there is no folder {location}: correct the import's locations, or, of an object store, which bucket is meant and"
                " at which endpoint"
            )
        folders = sorted(_uri(location, root, entry.path) for entry in system.children(root) if entry.is_folder)
    except PermissionError as fault:
        raise UnavailableError(f"{location} may not be listed: grant the worker read access to it ({fault})") from fault
    except OSError as fault:
        raise UnavailableError(f"cannot list {location}: {fault}") from fault
    return [location] if f"{location}/metadata" in folders else folders


def _is_worth_naming(entry: Entry) -> bool:
    """Links to nowhere are no files; but one in the place of metadata must not be passed over for the version before it."""
    return entry.size != NOWHERE or parse_name(entry.path.rpartition("/")[2]) is not None


def _file(base: str, root: str, entry: Entry) -> File:
    return File(_uri(base, root, entry.path), entry.size, entry.mtime, entry.fault)


def _uri(base: str, root: str, path: str) -> str:
    """The location of a path below a root, which is the location ``base``."""
    return canonical(f"{base.rstrip('/')}/{as_text(path.removeprefix(root)).lstrip('/')}".rstrip("/"))
