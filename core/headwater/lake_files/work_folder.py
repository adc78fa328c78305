"""A catalog's own folder below its base location, where reports keep what is too large for the store. Nothing else writes there.

A file has a name that is never used twice, and whoever refers to it has its digest: what is missing, damaged or somebody else's is
noticed, and never used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress

from headwater.catalogs import CatalogDefinition
from headwater.errors import CorruptionError, HeadwaterError, RefusedError
from headwater.iceberg.location import canonical_location
from headwater.iceberg.table_storage import MissingFileError, TableStorage
from headwater.store import StoredPart

FOLDER = "_headwater"
_MOST_BYTES = 1 << 30


class WorkFile(StoredPart, frozen=True, kw_only=True):
    """A file in the folder, as whoever wrote it refers to it.

    name          its path below the folder
    sha256        of its bytes, as 64 hex digits
    rows          what it has, where it is a table
    """

    known_by = ("name",)

    name: str
    sha256: str
    size_bytes: int
    rows: int = 0


class WorkFolder:
    """The folder of one catalog."""

    def __init__(self, base_location: str, storage: TableStorage) -> None:
        self.location = f"{canonical_location(base_location)}/{FOLDER}"
        self._storage = storage

    @classmethod
    def of_catalog(cls, definition: CatalogDefinition, storage: TableStorage, *, realm: str) -> WorkFolder:
        """Open a catalog's folder.

        raises        RefusedError for a catalog without a base location
        """
        if not definition.base_location:
            raise RefusedError(
                f"catalog {definition.name!r} of realm {realm!r} has no base location, below which reports of its files are kept: give it"
                " one (spec.storage.baseLocation)"
            )
        return cls(definition.base_location, storage)

    def store_file(self, name: str, data: bytes, *, rows: int = 0) -> WorkFile:
        """Write a new file; raises as ``TableStorage.write_new`` does."""
        self._storage.write_new(f"{self.location}/{name}", data)
        return WorkFile(name=name, sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data), rows=rows)

    def load_file(self, file: WorkFile) -> bytes:
        """Read a file.

        raises        CorruptionError for one that is missing, or not as it was written; RefusedError; UnavailableError
        """
        where = f"{self.location}/{file.name}"
        try:
            data = self._storage.read_bytes(where, limit=_MOST_BYTES)
        except MissingFileError as fault:
            raise CorruptionError(
                f"{where} is gone: somebody deleted it; run `headwater files report --run` to make it anew"
            ) from fault
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise CorruptionError(f"{where} is not as it was written: run `headwater files report --run` to make it anew")
        return data

    def names_in(self, folder: str) -> Iterator[str]:
        """The names, below the work folder, of all files in one of its folders."""
        for info in self._storage.lake.list_files(f"{self.location}/{folder}"):
            if not info.fault:
                yield info.path.removeprefix(f"{self.location}/")

    def delete_names(self, names: Iterable[str]) -> None:
        """Delete files by their names; what stays takes room, and nothing else."""
        for name in names:
            with suppress(HeadwaterError):
                self._storage.delete(f"{self.location}/{name}")
