"""Local files by other names: where a folder is a link, a file lies in a place under a path that no version may name."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator

from headwater.lake_files.lake_file_values import LiveFile
from headwater.lake_files.path_keys import strict_key

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

    def with_links(self, live: Iterable[LiveFile]) -> Iterator[LiveFile]:
        """The live files, and what else they are called; that need not exist."""
        for file in live:
            yield file
            if file.path[:5] == "file:" or file.path[:1] == "/":
                folder, _, name = file.path.rpartition("/")
                for other in self._others(folder):
                    yield LiveFile(f"{other}/{name}", must_exist=False)

    def _others(self, folder: str) -> tuple[str, ...]:
        try:
            return self._folders[folder]
        except KeyError:
            pass
        if len(self._folders) >= _MOST_FOLDERS:
            self._folders.clear()
        spelled = strict_key(folder)
        found = () if spelled is None else tuple(self._names_of(spelled))
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
