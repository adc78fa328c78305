"""File tables in an archive: records of their definitions, of the splits of their trees, and of their references.

A table's own record comes first; its splits and references follow it. References of one file stand in one record. Job assignments and
files without references are left out: the jobs belong to the exported store, and nobody needs the files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from headwater.clock import Micros
from headwater.errors import CorruptionError
from headwater.files import (
    FileReference,
    FileSnapshot,
    FileTableColumn,
    FileTableDefinition,
    FileTableState,
    PartitionId,
    PartitionTree,
    RowKeyType,
    TrackedFile,
    group_references,
)
from headwater.typed_values import msgpack_decoder

_LENGTH = struct.Struct(">I")
_TOGETHER = 1000
"""How many splits, or files, one record has."""


class ArchivedTable(msgspec.Struct, frozen=True, kw_only=True, tag="table"):
    """The definition of a file table, and when its references were read.

    columns       name, type and whether it may be null
    """

    id: str
    name: str
    location: str
    key_column: str
    key_type: RowKeyType
    sort_columns: tuple[str, ...]
    columns: tuple[tuple[str, str, bool], ...]
    created: Micros
    taken: Micros

    @classmethod
    def of(cls, definition: FileTableDefinition, *, taken: Micros) -> ArchivedTable:
        return cls(
            id=definition.id,
            name=definition.name,
            location=definition.location,
            key_column=definition.key_column,
            key_type=definition.key_type,
            sort_columns=definition.sort_columns,
            columns=tuple((column.name, column.type, column.nullable) for column in definition.columns),
            created=definition.created,
            taken=taken,
        )

    def as_definition(self, table_id: str) -> FileTableDefinition:
        """The definition of the imported table, under an id of its own: not complete yet, and its files belong to another store."""
        return FileTableDefinition(
            id=table_id,
            name=self.name,
            state=FileTableState.CREATING,
            location=self.location,
            key_column=self.key_column,
            key_type=self.key_type,
            sort_columns=self.sort_columns,
            columns=tuple(FileTableColumn(name=name, type=kind, nullable=nullable) for name, kind, nullable in self.columns),
            created=self.created,
            source=self.id,
            is_foreign=True,
        )


class ArchivedSplits(msgspec.Struct, frozen=True, tag="splits"):
    """Some splits of the tree: partition and split point."""

    splits: tuple[tuple[str, bytes], ...]


class ArchivedReferences(msgspec.Struct, frozen=True, tag="references"):
    """Some references: filename, partition, rows, whether that is an estimate, whether they are all rows of the file."""

    references: tuple[tuple[str, str, int, bool, bool], ...]

    def as_files(self) -> list[TrackedFile]:
        return group_references(
            FileReference(
                filename=filename,
                partition=PartitionId(partition),
                rows=rows,
                is_estimate=is_estimate,
                is_whole_file=is_whole_file,
            )
            for filename, partition, rows, is_estimate, is_whole_file in self.references
        )


TableRecord = ArchivedTable | ArchivedSplits | ArchivedReferences


def table_records(
    definition: FileTableDefinition, snapshot: FileSnapshot, tree: PartitionTree, *, taken: Micros
) -> Iterator[TableRecord]:
    """The records of a table, in their order."""
    yield ArchivedTable.of(definition, taken=taken)
    splits = sorted(tree.splits.items())
    for start in range(0, len(splits), _TOGETHER):
        yield ArchivedSplits(tuple((str(partition), point) for partition, point in splits[start : start + _TOGETHER]))
    files = group_references(snapshot.references)
    for start in range(0, len(files), _TOGETHER):
        yield ArchivedReferences(
            tuple(
                (each.filename, str(each.partition), each.rows, each.is_estimate, each.is_whole_file)
                for file in files[start : start + _TOGETHER]
                for each in file.references
            )
        )


def pack_record(record: TableRecord) -> bytes:
    body = msgspec.msgpack.encode(record)
    return _LENGTH.pack(len(body)) + body


_decoder = msgpack_decoder(TableRecord)


def read_table_records(body: bytes) -> Iterator[TableRecord]:
    """Yield the records of a block; raises CorruptionError for bytes that are none."""
    at = 0
    while at < len(body):
        try:
            (length,) = _LENGTH.unpack_from(body, at)
            at += _LENGTH.size
            if at + length > len(body):
                raise CorruptionError(f"a file table's record ends {at + length - len(body)} bytes behind its block")
            yield _decoder.decode(body[at : at + length])
        except (struct.error, msgspec.MsgspecError) as fault:
            raise CorruptionError(f"a file table's record at byte {at} of its block cannot be read: {fault}") from fault
        at += length
