"""How a client reaches files: by its own properties alone, and only where the catalog allows.

No properties of a table or a view come in here, so that none can choose the code, the address or the credentials by which files are
reached; and a place is judged by its name before a byte of it is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from uuid import UUID

from pyiceberg.io import FileIO

from headwater.catalogs import PURGING, ContentKey, IcebergTable, IcebergView, Owner
from headwater.catalogs.iceberg import File, QuarantineCode, UnfitError
from headwater.catalogs.iceberg.storage import Storage
from headwater.clients.pyiceberg.committing import Branch
from headwater.clients.pyiceberg.documents import read_document
from headwater.clients.pyiceberg.places import check_allowed, check_own
from headwater.clients.pyiceberg.states import State
from headwater.errors import RefusedError, UnavailableError

__all__ = ["ClientStorage", "FileAccess", "OpenIO"]

OpenIO = Callable[[str], FileIO]
"""Access to the files of a location, as the client is configured."""


class ClientStorage(Storage):
    """Reads files as the client is configured to, with the reasons of the room ``iceberg`` for what goes wrong. Thread-safe.

    Opens a file system once for each bucket or host, and keeps it: so it is for one walk through a table's files.
    """

    def __init__(self, open_io: OpenIO) -> None:
        self._open_io = open_io
        self._opened: dict[tuple[str, str], FileIO] = {}
        self._opening = threading.Lock()

    def _io(self, path: str) -> FileIO:
        scheme, _, rest = path.partition("://")
        where = scheme, rest.partition("/")[0]
        with self._opening:
            if where not in self._opened:
                self._opened[where] = self._open_io(path)
            return self._opened[where]

    def read(self, file: File) -> bytes:
        try:
            with self._io(file.path).new_input(file.path).open() as stream:
                return stream.read()
        except FileNotFoundError as fault:
            raise UnfitError(QuarantineCode.VANISHED, f"{file.path} is not there") from fault
        except PermissionError as fault:
            raise UnfitError(QuarantineCode.NO_ACCESS, f"{file.path} may not be read") from fault
        except OSError as fault:
            raise UnavailableError(f"cannot read {file.path}: {fault}") from fault


class FileAccess:
    def __init__(self, branch: Branch, open_io: OpenIO) -> None:
        self._branch = branch
        self.io = open_io

    def check(self, key: ContentKey, places: Iterable[str]) -> None:
        """Pass, or raise RefusedError for a place that the catalog does not allow."""
        check_allowed(self._branch.catalog.definition, key, places)

    def check_own(self, key: ContentKey, files: Iterable[str], places: Iterable[str]) -> None:
        """Pass, or raise RefusedError for a file that does not lie in one of the places of its table."""
        check_own(key, files, places)

    def check_in_catalog(self, key: ContentKey, file: str) -> None:
        """Pass, or raise RefusedError for a file in a place of another catalog's table: what may be asked before it is read."""
        self._check_holders(key, [file], lambda owner: owner.catalog_id == self._branch.id)

    def check_not_anothers(self, key: ContentKey, files: Iterable[str], *, location: str, uuid: UUID | None) -> None:
        """Pass, or raise RefusedError for a file in a place that another table has.

        location, uuid    of the table at hand, by which its own claims are found
        """
        claims = self._branch.claims
        owner = (claims.find([uuid]).get(uuid) if uuid else None) or claims.find_holders([location]).get(location)
        mine = None if owner is None else (owner.catalog_id, owner.content_id)
        self._check_holders(key, files, lambda holder: (holder.catalog_id, holder.content_id) == mine)

    def _check_holders(self, key: ContentKey, files: Iterable[str], is_mine: Callable[[Owner], bool]) -> None:
        for file, owner in self._branch.claims.find_holders(sorted(set(files))).items():
            if owner.catalog_id == PURGING:
                raise RefusedError(f"{key} cannot have {file}: what lies there is being purged")
            if not is_mine(owner):
                raise RefusedError(f"{key} cannot have {file}: it lies in a place of another table")

    def read(self, key: ContentKey, location: str) -> bytes:
        """The JSON text of a metadata file.

        raises        RefusedError, before a byte is read, where the catalog does not allow it; what the storage raises
        """
        self.check(key, [location])
        return read_document(self.io(location), location)

    def document(self, state: State, key: ContentKey, content: IcebergTable | IcebergView) -> bytes:
        """The metadata of a table or view: as it is stored in the catalog, otherwise from its file."""
        text = None if content.id is None else state.find_metadata(content.id)
        return self.read(key, content.metadata_location) if text is None else text
