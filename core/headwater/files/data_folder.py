"""The folder of a file table's data files: which of the files in it are the table's by their names, how old they are, and their deletion.

A file's name begins with an id of the store, which tells when it was made, by the clock of the writer that uses the store. The times that a
storage tells are of other clocks, and of copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from headwater.errors import HeadwaterError, UnavailableError
from headwater.files.data_storage import is_slow_down
from headwater.iceberg import canonical_location, is_within
from headwater.iceberg.file_drivers import FileSystem, open_file_system

_DELETED_AT_ONCE = 16
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 30.0
_ROUNDS = 8
"""How often files are tried again while the storage asks to slow down: for two minutes and a half."""


class DeletionResult(StrEnum):
    DELETED = "DELETED"
    MISSING = "MISSING"
    """It was gone already, which is as good."""
    SLOW_DOWN = "SLOW_DOWN"
    FAILED = "FAILED"


class FileDeletion(NamedTuple):
    """What became of the deletion of one file."""

    filename: str
    result: DeletionResult
    reason: str = ""


class DataFolder:
    """The data files of one table. ``location`` is that of the folder, spelled as in the names of the table's files."""

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")

    def has_file(self, filename: str) -> bool:
        """Whether a file lies directly in this folder, by its name."""
        folder, _, name = filename.rpartition("/")
        return folder == self.location and bool(name)

    def overlaps(self, location: str) -> bool:
        """Whether a folder is this one, lies in it, or around it."""
        return is_within(location, self.location) or is_within(self.location, location)

    def list_files(self) -> Iterator[str]:
        """List everything directly in the folder, unordered; nothing if there is no folder.

        raises        UnavailableError when it cannot be listed
        """
        system, root = self._opened
        try:
            for entry in system.list_children(root):
                yield f"{self.location}/{entry.path.rstrip('/').rpartition('/')[2]}"
        except FileNotFoundError:
            return
        except OSError as fault:
            raise UnavailableError(f"{self.location} cannot be listed: {fault}") from fault

    def has_stored(self, filename: str) -> bool:
        """Whether the storage has this file; raises UnavailableError when it does not say."""
        system, root = self._opened
        try:
            system.file_size(f"{root}/{filename.rpartition('/')[2]}")
        except FileNotFoundError:
            return False
        except OSError as fault:
            raise UnavailableError(f"the storage does not say whether there is a file {filename}: {fault}") from fault
        return True

    def delete_files(self, filenames: Sequence[str], *, pause: Callable[[float], None]) -> Iterator[FileDeletion]:
        """Delete files of this folder, and yield what became of each, in any order.

        pause         waits so many seconds, and raises when the work must stop. While the storage asks to slow down, the files that it
                      refused are tried again after a pause, in a bounded number of rounds
        """
        waiting, seconds = list(filenames), _FIRST_PAUSE_SECONDS
        for _ in range(_ROUNDS):
            refused = []
            for deletion in self._delete_once(waiting):
                if deletion.result is DeletionResult.SLOW_DOWN:
                    refused.append(deletion)
                else:
                    yield deletion
            if not refused:
                return
            waiting = [deletion.filename for deletion in refused]
            pause(seconds)
            seconds = min(seconds * 2, _LONGEST_PAUSE_SECONDS)
        for filename, _, reason in refused:
            yield FileDeletion(filename, DeletionResult.FAILED, f"the storage asks to slow down, again and again: {reason}")

    def _delete_once(self, filenames: Sequence[str]) -> Iterator[FileDeletion]:
        with ThreadPoolExecutor(_DELETED_AT_ONCE, thread_name_prefix="delete") as pool:
            yield from pool.map(self._delete_file, filenames)

    def _delete_file(self, filename: str) -> FileDeletion:
        try:
            system, root = self._opened
            system.delete_file(f"{root}/{filename.rpartition('/')[2]}")
        except FileNotFoundError:
            return FileDeletion(filename, DeletionResult.MISSING)
        except (OSError, HeadwaterError) as fault:
            result = DeletionResult.SLOW_DOWN if is_slow_down(fault) else DeletionResult.FAILED
            return FileDeletion(filename, result, f"{type(fault).__name__}: {fault}")
        return FileDeletion(filename, DeletionResult.DELETED)

    @cached_property
    def _opened(self) -> tuple[FileSystem, str]:
        system, root = open_file_system(canonical_location(self.location))
        return system, root.rstrip("/")
