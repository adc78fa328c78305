"""The files of tables and views, as a client reaches them: where they may lie, and their metadata documents as text and as content.

A place is judged by its text alone (``plain_location`` says which texts mean the same to every driver), before a byte of it is
read; local files also by the links below the allowed location, of which none is followed. No property of a table or view is used,
so that none can choose the code, the address or the credentials by which files are reached.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

import structlog
from pydantic import ValidationError as PydanticError
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.serializers import Compressor
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataV1, TableMetadataV2, TableMetadataV3
from pyiceberg.utils.config import Config
from pyiceberg.view.metadata import ViewMetadata

from headwater.catalogs import PURGING, ClaimOwner, ContentKey, IcebergTable, IcebergView, Namespace
from headwater.catalogs.known_metadata import own_name
from headwater.errors import RefusedError, UnavailableError
from headwater.iceberg import (
    PATH_PROPERTIES,
    FileInfo,
    QuarantineCode,
    RejectedTable,
    is_through_link,
    is_within,
    plain_location,
)
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.metadata_json import named_files, unpack_metadata
from headwater.iceberg_catalog.branch_session import BranchSession, BranchState

_log = structlog.get_logger()
_FIELDS = frozenset(
    field.alias or name
    for model in (TableMetadataV1, TableMetadataV2, TableMetadataV3, ViewMetadata)
    for name, field in model.model_fields.items()
)
"""The fields of the formats, by name: what else a text has in the place of a name is its own."""
LOCATION = "location"
"""The property of a namespace that says where its tables lie."""
_UNFIT = re.compile(r"[^\w.=@+-]|^\.+$")


OpenIO = Callable[[str], FileIO]
"""Access to the files of a location, as the client is configured."""


class FileAccess:
    def __init__(self, branch: BranchSession, open_io: OpenIO) -> None:
        self._branch = branch
        self.io = open_io

    def check_location(self, key: ContentKey, places: Iterable[str]) -> None:
        """Check that the catalog allows a place, because a collector may one day delete files there; raises RefusedError.

        Allowed are its base location, its allowed locations, and those of its imports.
        """
        definition = self._branch.catalog.definition
        allowed = definition.places
        for place in places:
            spelled = plain_location(place)
            if not any(is_within(spelled, outer) and not is_through_link(spelled, outer) for outer in allowed):
                raise RefusedError(
                    f"{key} cannot have files at {place}: it is outside the locations that catalog {definition.name!r} allows"
                    f" ({', '.join(allowed) or 'none'}), or is reached through a symbolic link. Add the location to the catalog's"
                    " allowed locations, or use the path without the link"
                )

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


def _folder(element: str) -> str:
    """A key's element as the name of a folder, valid in every storage and every kind of URL."""
    return _UNFIT.sub("_", element)


def metadata_file(catalog_id: str, location: str, properties: Mapping[str, str], version: int = 0) -> str:
    """A new name for a metadata file of a table or view, in pyiceberg's form; no code that a table chooses is called.

    The name tells an import of this catalog that the file is not another writer's, even if its commit never happened.
    """
    folder = properties.get(TableProperties.WRITE_METADATA_PATH) or f"{location.rstrip('/')}/metadata"
    return f"{folder.rstrip('/')}/{own_name(catalog_id, version)}"


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


@dataclass(frozen=True, slots=True)
class MetadataDocument:
    """A metadata document and the file for it, of a name that no other should have."""

    io: FileIO
    location: str
    text: bytes

    def write_file(self) -> MetadataDocument:
        """Write the file, packed as its name says; raises what the storage raises, and leaves a file that is there as it is."""
        packed = Compressor.get_compressor(self.location).bytes_compressor()(self.text)
        try:
            with self.io.new_output(self.location).create() as stream:
                stream.write(packed)
        except FileExistsError:
            raise
        except BaseException:
            self.remove_file()
            raise
        return self

    def remove_file(self) -> None:
        """Remove the file again. Best effort: if it stays, its name shows an import that no commit has named it."""
        try:
            self.io.delete(self.location)
        except Exception as fault:  # noqa: BLE001  whatever a driver raises; the commit's own error is what counts
            _log.debug("a metadata file of a commit that did not happen was left", location=self.location, fault=str(fault))


def read_document(io: FileIO, location: str) -> bytes:
    """Read the JSON text of a metadata file, unpacked; gzip is detected by the content.

    raises        RefusedError for what is packed in another way, broken or too large; what the storage raises
    """
    with io.new_input(location).open() as stream:
        data = stream.read()
    try:
        return unpack_metadata(data, path=location)
    except RejectedTable as fault:
        raise RefusedError(str(fault)) from fault


def parse_table(text: bytes, location: str) -> TableMetadata:
    """Parse a table's metadata.

    raises        RefusedError for what pyiceberg cannot read, with no text of the document, which is untrusted
    """
    try:
        return TableMetadataUtil.parse_raw(text.decode())
    except (ValidationError, ValueError) as fault:
        raise RefusedError(f"{location} is no metadata of a table as pyiceberg reads it{_where(fault)}") from None


def parse_view(text: bytes, location: str) -> ViewMetadata:
    """Parse a view's metadata. pyiceberg itself accepts a view without its current version.

    raises        RefusedError as ``parse_table`` does
    """
    try:
        metadata = ViewMetadata.model_validate_json(text)
    except ValueError as fault:
        raise RefusedError(f"{location} is no metadata of a view as pyiceberg reads it{_where(fault)}") from None
    if metadata.current_version_id not in {version.version_id for version in metadata.versions}:
        raise RefusedError(f"{location} has no version {metadata.current_version_id}, which is to be its current one")
    return metadata


def _where(fault: Exception) -> str:
    """The fields of the format that are at fault."""
    given = fault.args[0] if fault.args else fault
    failure = given if isinstance(given, PydanticError) else fault
    names = {str(name) for error in failure.errors() for name in error["loc"]} if isinstance(failure, PydanticError) else set()
    known = sorted(names & _FIELDS)
    return f": look at {', '.join(known)}" if known else ""


def table_text(metadata: TableMetadata) -> bytes:
    """Serialize a table's metadata as pyiceberg would, with its own setting about tables without a snapshot."""
    keeps_none = bool(Config().get_bool("legacy-current-snapshot-id"))
    return metadata.model_dump_json(exclude_none=not keeps_none).encode()


def view_text(metadata: ViewMetadata) -> bytes:
    return metadata.model_dump_json(exclude_none=True).encode()


def table_content(
    metadata: TableMetadata, location: str, *, content_id: UUID | None = None, has_uuid: bool = True
) -> IcebergTable:
    """The catalog's content for a version of a table.

    has_uuid      False for v1 tables without a uuid: pyiceberg invents one, and it must not be stored
    """
    return IcebergTable(
        id=content_id,
        metadata_location=location,
        snapshot_id=-1 if metadata.current_snapshot_id is None else metadata.current_snapshot_id,
        schema_id=metadata.current_schema_id,
        spec_id=metadata.default_spec_id,
        sort_order_id=metadata.default_sort_order_id,
        table_uuid=str(metadata.table_uuid) if has_uuid else None,
    )


def view_content(metadata: ViewMetadata, location: str) -> IcebergView:
    version = next(version for version in metadata.versions if version.version_id == metadata.current_version_id)
    return IcebergView(
        metadata_location=location,
        version_id=version.version_id,
        schema_id=version.schema_id,
        view_uuid=metadata.view_uuid,
    )


def paths_of(metadata: TableMetadata | ViewMetadata) -> tuple[str, ...]:
    """The further places, besides its location, for files of a table or view."""
    return tuple(metadata.properties[name] for name in PATH_PROPERTIES if metadata.properties.get(name))


def document_places(metadata: TableMetadata | ViewMetadata) -> set[str]:
    """The places that a document names for files of its table or view."""
    return {metadata.location, *paths_of(metadata)}


def files_in(metadata: TableMetadata) -> set[str]:
    """The files that a table's metadata itself names."""
    return {
        *(snapshot.manifest_list for snapshot in metadata.snapshots),
        *(statistics.statistics_path for statistics in metadata.statistics),
        *(statistics.statistics_path for statistics in metadata.partition_statistics),
    }


def document_files(text: bytes) -> list[str]:
    """The files that a table's metadata document itself names: manifest lists, statistics, manifests of version 1."""
    return [path for _, path in named_files(json.loads(text))]
