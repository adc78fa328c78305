"""The metadata files of tables and views, as a client of pyiceberg reaches and reads them.

They are reached by the client's own properties alone: no property of a table or view chooses the code, the address or the credentials.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pydantic import ValidationError as PydanticError
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataV1, TableMetadataV2, TableMetadataV3
from pyiceberg.utils.config import Config
from pyiceberg.view.metadata import ViewMetadata

from headwater.errors import RefusedError, UnavailableError
from headwater.iceberg import FileInfo, QuarantineCode, RejectedTable
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.metadata_json import unpack_metadata

_FIELDS = frozenset(
    field.alias or name
    for model in (TableMetadataV1, TableMetadataV2, TableMetadataV3, ViewMetadata)
    for name, field in model.model_fields.items()
)
"""The fields of the formats, by name: what else a text has in the place of a name is its own."""

OpenIO = Callable[[str], FileIO]
"""Access to the files of a location, as the client is configured."""


class ClientStorage(LakeStorage):
    """Reads files with the client's own configuration, and the errors of the package ``iceberg``. Thread-safe.

    For a walk it opens a file system once for each bucket or host, and keeps it: use one object for one walk through a table's files.
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

    @property
    def lake(self) -> LakeStorage:
        """How one walk through a table's files reaches the same storage."""
        return ClientStorage(self._open_io)

    def read_metadata(self, location: str) -> bytes:
        """Read the text of a metadata file, unpacked; gzip is detected by the content.

        raises        RefusedError for what is packed in another way, broken or too large; what the driver raises
        """
        with self._open_io(location).new_input(location).open() as stream:
            data = stream.read()
        try:
            return unpack_metadata(data, path=location)
        except RejectedTable as fault:
            raise RefusedError(str(fault)) from fault

    def write_new(self, location: str, data: bytes) -> None:
        """Write a new file; raises what the driver raises, FileExistsError where there is one."""
        with self._open_io(location).new_output(location).create() as stream:
            stream.write(data)

    def delete(self, location: str) -> None:
        self._open_io(location).delete(location)


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
