"""Local files by other names: where a folder is a link, a file lies in a place under a path that no version may name."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator

from headwater.lake_files.file_columns import LiveFiles, live_files

_LOCAL = "file://"
_MOST_FOLDERS = 65_536


class LinkedPaths:
    """Adds to live files of local disks the names that links give them: that without links, and those below places that are links.

    A file that is a link itself is taken for what it is: only folders are looked at.
    """

    def __init__(self, places: Iterable[str]) -> None:
        local = [place for place in places if place.startswith(_LOCAL)]
        real = {place: self._real(place) for place in local}
        self._places = [(place, folder) for place, folder in real.items() if folder != place]
        self._folders: dict[str, tuple[str, ...]] = {}

    def with_links(self, live: Iterable[LiveFiles]) -> Iterator[LiveFiles]:
        """The live files, and what else they are called; that need not exist."""
        for files in live:
            yield files
            if any(self._others(folder) for folder in files.all_folders() if folder.startswith(_LOCAL)):
                yield live_files(list(self._other_names(files.keys.to_pylist())), must_exist=False)

    def _other_names(self, keys: Iterable[str]) -> Iterator[str]:
        for key in keys:
            folder, _, name = key.rpartition("/")
            if folder.startswith(_LOCAL):
                yield from (f"{other}/{name}" for other in self._others(folder))

    def _others(self, folder: str) -> tuple[str, ...]:
        try:
            return self._folders[folder]
        except KeyError:
            pass
        if len(self._folders) >= _MOST_FOLDERS:
            self._folders.clear()
        found = tuple(self._names_of(folder))
        self._folders[folder] = found
        return found

    def _names_of(self, folder: str) -> Iterator[str]:
        real = self._real(folder)
        if real != folder:
            yield real
        for place, root in self._places:
            if f"{real}/".startswith(f"{root}/") and (name := place + real[len(root) :]) != folder:
                yield name

    def _real(self, folder: str) -> str:
        return f"{_LOCAL}{os.path.realpath(folder.removeprefix(_LOCAL))}"
