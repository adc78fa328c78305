"""The listing of places: every file below them, as the storage tells it now, and the folders that it does not tell of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headwater.clock import Micros
from headwater.errors import RefusedError, UnavailableError
from headwater.iceberg.file_drivers import NO_TEXT, NOWHERE, DirectoryEntry, utf8_path
from headwater.iceberg.filesystem import STORAGE, LakeStorage
from headwater.iceberg.location import canonical_location
from headwater.lake_files.file_columns import NO_NAME, ListedFiles, listed_in_columns
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace, ListedFile, TablePlace


@dataclass(slots=True)
class PlaceListing:
    """Lists places one after the other; iterate once.

    places        none within another
    blocked       folders that may not be listed, known once the iteration is over
    """

    places: Iterable[TablePlace]
    lake: LakeStorage = STORAGE
    blocked: list[BlockedPlace] = field(default_factory=list)
    listed: int = 0

    def __iter__(self) -> Iterator[ListedFiles]:
        return listed_in_columns(self._files())

    def _files(self) -> Iterator[ListedFile]:
        for place in self.places:
            for entry in list_place(self.lake, place.location):
                if isinstance(entry, BlockedPlace):
                    self.blocked.append(entry)
                else:
                    yield entry
            self.listed += 1


def list_place(lake: LakeStorage, place: str) -> Iterator[ListedFile | BlockedPlace]:
    """List the files below a place, and the folders that may not be listed.

    raises        UnavailableError
    """
    if NO_NAME in place:
        yield _unlisted(place, NO_TEXT)
        return
    system, root = lake.open_system(place)
    try:
        for entry in system.list_below(root):
            location = _location(place, root, entry)
            if entry.fault:
                yield _unlisted(location, entry.fault)
            elif not entry.is_folder:
                yield ListedFile(location, max(entry.size, 0), Micros(entry.mtime if entry.size != NOWHERE else 0))
    except FileNotFoundError:
        return  # nothing was written there yet, or a listing on an object store that has no folders
    except PermissionError as fault:
        yield _unlisted(place, str(fault))
    except OSError as fault:
        raise UnavailableError(f"cannot list {place}: {fault}") from fault


def _unlisted(location: str, why: str) -> BlockedPlace:
    code = PlaceReason.LISTING_INCOMPLETE
    return BlockedPlace(location=location, code=code, detail=f"{location} cannot be listed: {why}")


def _location(place: str, root: str, entry: DirectoryEntry) -> str:
    """The location of what is listed, to the letter: of ``t//x`` in a bucket, ``x`` in the place ``t`` is another file."""
    inner = utf8_path(entry.path.removeprefix(root)).removeprefix("/")
    try:
        return canonical_location(f"{place}/{inner}") if inner else place
    except RefusedError:  # ``.`` and ``..`` are names like any in a bucket
        return f"{place}/{inner}"
