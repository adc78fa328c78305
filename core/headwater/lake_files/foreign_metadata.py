"""Metadata files that are in a place, and that no stored version names: whose are they?

Of a client of this catalog, whose commit did not happen (told by the name), or of a version that this store knew once (told by the notes
of ``known_metadata``): then they are files like any. So is one of this very table that says it was written before this store knew anything
of its folder: a table that was imported and adopted has had a life before. Otherwise something else writes there, and what that keeps is
nothing that we know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import islice

from headwater.catalogs.catalog_definition import CatalogDefinition
from headwater.catalogs.known_metadata import KnownMetadata, is_own_name
from headwater.clock import Micros
from headwater.iceberg import FileInfo, RejectedTable
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.metadata_json import decode_metadata
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace
from headwater.lake_files.place_index import PlaceIndex
from headwater.store import RealmStore

_AT_ONCE = 1000
_MOST_READ = 2000
"""Metadata files that a search reads to learn how old they are, at most."""


class ForeignMetadata:
    """Tells metadata files of others. Reads the catalog's notes with the first file that needs them."""

    def __init__(self, rows: RealmStore, definition: CatalogDefinition, places: PlaceIndex, lake: LakeStorage) -> None:
        self._rows = rows
        self._definition = definition
        self._places = places
        self._lake = lake
        self.read = 0

    def blocks(self, paths: Iterable[str]) -> list[BlockedPlace]:
        """The blocks of places in which one of these metadata files lies that is another's."""
        rest = (path for path in paths if not is_own_name(self._definition.id, path.rpartition("/")[2]))
        blocks: dict[str, BlockedPlace] = {}
        while some := list(islice(rest, _AT_ONCE)):
            known = self._known.find_many(some)
            for path in some:
                place = self._places.find_place(path)
                if place is not None and place not in blocks and path not in known and not self._is_former(path, place):
                    detail = f"{path} is metadata that this store neither wrote nor knew"
                    blocks[place] = BlockedPlace(location=path, code=PlaceReason.WRITTEN_ELSEWHERE, detail=detail)
        return list(blocks.values())

    @cached_property
    def _known(self) -> KnownMetadata:
        return KnownMetadata(self._rows, self._definition)

    def _is_former(self, path: str, place: str) -> bool:
        """Whether a file is this very table's, and says that it was written before the first one that is noted of its folder."""
        folder = self._known.known_folder(path.rpartition("/")[0])
        noted = min((origin.time for origin in folder.files.values()), default=folder.forgotten)
        if not noted or self.read >= _MOST_READ:
            return False
        self.read += 1
        try:
            document = decode_metadata(self._lake.read_file(FileInfo(path, 0)), path=path)
        except RejectedTable:
            return False
        is_of_table = _is_of(document, self._places.places[place].table_uuid)
        return is_of_table and _written(document) <= max(folder.forgotten, noted)


def _is_of(document: Mapping[str, object], table_uuid: str | None) -> bool:
    uuid = document.get("table-uuid", document.get("view-uuid"))
    return table_uuid is not None and isinstance(uuid, str) and uuid.lower() == table_uuid.lower()


def _written(document: Mapping[str, object]) -> Micros:
    millis = document.get("last-updated-ms")
    return Micros(millis * 1000 if isinstance(millis, int) else 1 << 62)
