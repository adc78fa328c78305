"""The files below one location, listed and deleted by what the file system itself calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from headwater.catalogs.iceberg.locations import canonical
from headwater.catalogs.iceberg.systems import NOWHERE, open_system
from headwater.errors import RefusedError, UnavailableError

__all__ = ["Folder", "Listed"]

_AT_ONCE = 16


class Listed(NamedTuple):
    """A file: where it lies, and its path on the file system."""

    location: str
    path: str


class Folder:
    """A listing never goes through links to other folders, so what it names does lie here."""

    def __init__(self, location: str) -> None:
        self.location = canonical(location)
        self._system, self._root = open_system(self.location)

    def files(self) -> Iterator[Listed]:
        """Every file, in no order; none where there is no folder.

        raises        RefusedError where it may not be listed; UnavailableError when the storage does not answer
        """
        try:
            for entry in self._system.below(self._root):
                if entry.size == NOWHERE:
                    continue
                inner = entry.path.removeprefix(self._root).lstrip("/")
                yield Listed(canonical(f"{self.location}/{inner}"), entry.path)
        except FileNotFoundError:
            return
        except PermissionError as fault:
            raise RefusedError(f"{self.location} may not be listed ({fault}): grant the worker access, and retry") from fault
        except OSError as fault:
            raise UnavailableError(f"cannot list {self.location}: {fault}") from fault

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files, by the paths of a listing. One that is gone already is as good.

        raises        RefusedError where that is not allowed; UnavailableError when the storage does not answer: others may be deleted
        """
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="remove") as pool:
            for _ in pool.map(self._remove, paths):
                continue

    def _remove(self, path: str) -> None:
        _told(lambda: self._system.remove(path), path)


def _told(work: Callable[[], None], path: str) -> None:
    try:
        work()
    except FileNotFoundError:
        return
    except PermissionError as fault:
        raise RefusedError(f"{path} may not be deleted ({fault}): grant the worker that right, and retry") from fault
    except OSError as fault:
        raise UnavailableError(f"cannot delete {path}: {fault}") from fault
