"""The places of a search by location: in which a file lies, and which of them yield nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace, TablePlace
from headwater.lake_files.path_keys import strict_key

EVERYWHERE = ""
"""The location of a block that concerns every place there is."""
_SUBTREE = frozenset({PlaceReason.GUEST, PlaceReason.POLICY_OFF})
"""Codes that concern files below their location alone: a guest's neighbors may well be looked at."""
_EXACT = frozenset({PlaceReason.LIVE_NOT_LISTED})
"""Codes that are told of each place that they concern, and of no table that lies within it besides."""
_MOST_FOLDERS = 65_536


class PlaceIndex:
    """Places by location; they may lie within each other, and a file belongs to the innermost. Plain values: it can be sent around.

    territory     where the catalog may have files at all
    """

    def __init__(self, places: Iterable[TablePlace], territory: Iterable[str] = ()) -> None:
        self.places = {location: place for place in places if (location := strict_key(place.location)) is not None}
        self._territory = tuple(
            f"{location.rstrip('/')}/" for place in territory if (location := strict_key(place)) is not None
        )
        self._folders: dict[str, str | None] = {}

    def is_in_territory(self, path: str) -> bool:
        """Whether a file lies where the catalog may have files, by its strict key."""
        return path.startswith(self._territory)

    def find_place(self, path: str) -> str | None:
        """The location of the innermost place in which a file lies, by its strict key; None: it lies in none."""
        folder = path.rpartition("/")[0]
        try:
            return self._folders[folder]
        except KeyError:
            pass
        if len(self._folders) >= _MOST_FOLDERS:
            self._folders.clear()
        location = next((above for above in folders_above(folder) if above in self.places), None)
        self._folders[folder] = location
        return location

    def roots(self) -> list[str]:
        """Beginnings of paths: what begins otherwise lies in no place, and not where the catalog may have files."""
        places = [f"{location}/" for location in self._outermost()]
        return [*self._territory, *(place for place in places if not place.startswith(self._territory))]

    def around(self, path: str) -> list[str]:
        """All places in which a file lies, innermost first."""
        return [above for above in folders_above(path.rpartition("/")[0]) if above in self.places]

    def outermost(self) -> list[TablePlace]:
        """The places that lie in no other one, by location: together they hold every file of all."""
        return [self.places[location] for location in self._outermost()]

    def _outermost(self) -> list[str]:
        return [location for location in sorted(self.places) if not self.around(f"{location.rpartition('/')[0]}/x")]

    def blocked_by(self, blocked: Sequence[BlockedPlace]) -> dict[str, BlockedPlace]:
        """The places that yield nothing, by location, each with the first block that says so.

        A block holds for a place in which it lies, and for those that lie within it, or are the same. That of a guest holds for what
        lies within it alone.
        """
        found: dict[str, BlockedPlace] = {}
        for block in blocked:
            for location in self._concerned(block):
                found.setdefault(location, block)
        return found

    def _concerned(self, block: BlockedPlace) -> Iterable[str]:
        if block.location == EVERYWHERE:
            return list(self.places)
        where = strict_key(block.location) or block.location
        where = where.rstrip("/")
        if block.code in _EXACT:
            return [where] if where in self.places else []
        if block.code not in _SUBTREE and "://" in where:
            outer = [above for above in folders_above(where) if above in self.places]
        else:
            outer = [where] if where in self.places else []
        inner = [location for location in self.places if location.startswith(f"{where}/")]
        return [*outer, *inner]


def folders_above(folder: str) -> Iterable[str]:
    """A folder and those around it, innermost first, down to ``scheme://bucket``."""
    root = folder.find("://") + 3
    while len(folder) > root:
        yield folder
        folder = folder[: max(folder.rfind("/", root), 0)] if "/" in folder[root:] else ""
