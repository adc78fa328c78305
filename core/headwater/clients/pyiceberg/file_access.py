"""Access to files: default locations, the locations that a catalog allows, and the storage that a client is configured for.

A place is judged by its text alone (``plain_location`` says which texts mean the same to every driver), before a byte of it is
read; local files also by the links below the allowed location, of which none is followed. No property of a table or view is used,
so that none can choose the code, the address or the credentials by which files are reached.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from pyiceberg.io import FileIO
from pyiceberg.table import TableProperties

from headwater.catalogs import PURGING, CatalogDefinition, ClaimOwner, ContentKey, IcebergTable, IcebergView, Namespace
from headwater.catalogs.known_metadata import own_name
from headwater.clients.pyiceberg.branch_state import BranchState, ClientBranch
from headwater.clients.pyiceberg.metadata_documents import read_document
from headwater.errors import RefusedError, UnavailableError
from headwater.iceberg import FileInfo, QuarantineCode, RejectedTable, is_through_link, is_within, plain_location
from headwater.iceberg.filesystem import LakeStorage

LOCATION = "location"
"""The property of a namespace that says where its tables lie."""
_UNFIT = re.compile(r"[^\w.=@+-]|^\.+$")


def default_location(state: BranchState, key: ContentKey, *, unique: UUID, warehouse: str) -> str:
    """A unique place for a new table, below the nearest namespace's location, or else below the warehouse.

    A new table in the place of a dropped or renamed one would share its files.

    unique        of the table
    """
    base, rest = warehouse, key.elements
    namespaces = state.find_many(list(key.ancestors()))
    for ancestor in key.ancestors():
        namespace = namespaces.get(ancestor)
        if isinstance(namespace, Namespace) and namespace.properties.get(LOCATION):
            base, rest = namespace.properties[LOCATION], key.elements[len(ancestor.elements) :]
            break
    return "/".join([base.rstrip("/"), *map(_folder, rest)]) + f"_{unique.hex}"


def check_allowed(definition: CatalogDefinition, key: ContentKey, places: Iterable[str]) -> None:
    """Check that the catalog allows a place, because a collector may one day delete files there; raises RefusedError.

    Allowed are its base location, its allowed locations, and those of its imports.
    """
    allowed = definition.places
    for place in places:
        spelled = plain_location(place)
        if not any(is_within(spelled, outer) and not is_through_link(spelled, outer) for outer in allowed):
            raise RefusedError(
                f"{key} cannot have files at {place}: it is outside the locations that catalog {definition.name!r} allows"
                f" ({', '.join(allowed) or 'none'}), or is reached through a symbolic link. Add the location to the catalog's allowed"
                " locations, or use the path without the link"
            )


def check_own(key: ContentKey, files: Iterable[str], places: Iterable[str]) -> None:
    """Check that a file lies in one of a table's own, allowed places; raises RefusedError."""
    own = sorted(places)
    for file in files:
        if not any(_lies_plainly_in(file, place) for place in own):
            raise RefusedError(
                f"{key} cannot have {file}: it is outside the table's own places ({', '.join(own)}), or is reached through a symbolic"
                " link. Write it to one of them, without a link"
            )


def _lies_plainly_in(file: str, place: str) -> bool:
    """True if a file lies below a place by a plain path; the place itself, taken by an import, may have unusual spelling."""
    stem = place.rstrip("/") + "/"
    try:
        plain_location(f"s3://own/{file.removeprefix(stem)}" if file.startswith(stem) else file)
    except RefusedError:
        return False
    return is_within(file, place) and not is_through_link(file, place)


def metadata_file(catalog_id: str, location: str, properties: Mapping[str, str], version: int = 0) -> str:
    """A new name for a metadata file of a table or view, in pyiceberg's form; no code that a table chooses is called.

    The name tells an import of this catalog that the file is not another writer's, even if its commit never happened.
    """
    folder = properties.get(TableProperties.WRITE_METADATA_PATH) or f"{location.rstrip('/')}/metadata"
    return f"{folder.rstrip('/')}/{own_name(catalog_id, version)}"


def _folder(element: str) -> str:
    """A key's element as the name of a folder, valid in every storage and every kind of URL."""
    return _UNFIT.sub("_", element)


OpenIO = Callable[[str], FileIO]
"""Access to the files of a location, as the client is configured."""


class ClientStorage(LakeStorage):
    """Reads files with the client's own configuration, and the errors of the package ``iceberg``. Thread-safe.

    It opens a file system once for each bucket or host, and keeps it: use one object for one walk through a table's files.
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

    def read_file(self, file: FileInfo) -> bytes:
        try:
            with self._io(file.path).new_input(file.path).open() as stream:
                return stream.read()
        except FileNotFoundError as fault:
            raise RejectedTable(QuarantineCode.VANISHED, f"{file.path} is not there") from fault
        except PermissionError as fault:
            raise RejectedTable(QuarantineCode.NO_ACCESS, f"{file.path} may not be read") from fault
        except OSError as fault:
            raise UnavailableError(f"cannot read {file.path}: {fault}") from fault


class FileAccess:
    def __init__(self, branch: ClientBranch, open_io: OpenIO) -> None:
        self._branch = branch
        self.io = open_io

    def check_location(self, key: ContentKey, places: Iterable[str]) -> None:
        """Check that the catalog allows a place; raises RefusedError."""
        check_allowed(self._branch.catalog.definition, key, places)

    def check_own(self, key: ContentKey, files: Iterable[str], places: Iterable[str]) -> None:
        """Check that a file lies in one of its table's places; raises RefusedError."""
        check_own(key, files, places)

    def check_in_catalog(self, key: ContentKey, file: str) -> None:
        """Check that a file lies in no place of another catalog's table, before it is read; raises RefusedError."""
        self._check_holders(key, [file], lambda owner: owner.catalog_id == self._branch.id)

    def check_not_anothers(self, key: ContentKey, files: Iterable[str], *, location: str, uuid: UUID | None) -> None:
        """Check that a file lies in no place of another table; raises RefusedError.

        location, uuid    of the table at hand, by which its own claims are found
        """
        claims = self._branch.claims
        owner = (claims.find_by_uuid([uuid]).get(uuid) if uuid else None) or claims.find_holders([location]).get(location)
        mine = None if owner is None else (owner.catalog_id, owner.content_id)
        self._check_holders(key, files, lambda holder: (holder.catalog_id, holder.content_id) == mine)

    def _check_holders(self, key: ContentKey, files: Iterable[str], is_mine: Callable[[ClaimOwner], bool]) -> None:
        for file, owner in self._branch.claims.find_holders(sorted(set(files))).items():
            if owner.catalog_id == PURGING:
                raise RefusedError(f"{key} cannot have {file}: what lies there is being purged")
            if not is_mine(owner):
                raise RefusedError(f"{key} cannot have {file}: it lies in a place of another table")

    def read_text(self, key: ContentKey, location: str) -> bytes:
        """Read the JSON text of a metadata file.

        raises        RefusedError, before a byte is read, where the catalog does not allow it; what the storage raises
        """
        self.check_location(key, [location])
        return read_document(self.io(location), location)

    def document(self, state: BranchState, key: ContentKey, content: IcebergTable | IcebergView) -> bytes:
        """The metadata of a table or view, stored in the catalog or else read from its file."""
        text = None if content.id is None else state.find_metadata(content.id)
        return self.read_text(key, content.metadata_location) if text is None else text
