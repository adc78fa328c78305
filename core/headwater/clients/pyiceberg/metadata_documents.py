"""Metadata documents of tables and views: as text, as files in their storage, and as what a catalog holds of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID

import structlog
from pydantic import ValidationError as PydanticError
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.serializers import Compressor
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataV1, TableMetadataV2, TableMetadataV3
from pyiceberg.utils.config import Config
from pyiceberg.view.metadata import ViewMetadata

from headwater.catalogs import IcebergTable, IcebergView
from headwater.errors import RefusedError
from headwater.iceberg import PATH_PROPERTIES
from headwater.iceberg.metadata_json import named_files, unpack_metadata
from headwater.iceberg.survey_outcomes import RejectedTable

_log = structlog.get_logger()
_FIELDS = frozenset(
    field.alias or name
    for model in (TableMetadataV1, TableMetadataV2, TableMetadataV3, ViewMetadata)
    for name, field in model.model_fields.items()
)
"""The fields of the formats, by name: what else a text has in the place of a name is its own."""


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
    told = given if isinstance(given, PydanticError) else fault
    names = {str(name) for error in told.errors() for name in error["loc"]} if isinstance(told, PydanticError) else set()
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
    version = next(one for one in metadata.versions if one.version_id == metadata.current_version_id)
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
        *(one.statistics_path for one in metadata.statistics),
        *(one.statistics_path for one in metadata.partition_statistics),
    }


def document_files(text: bytes) -> list[str]:
    """The files that a table's metadata document itself names: manifest lists, statistics, manifests of version 1."""
    return [path for _, path in named_files(json.loads(text))]
