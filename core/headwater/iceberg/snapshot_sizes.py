"""How large the files of a snapshot are, by its manifests: numbers, bytes and records of data files and of delete files.

source        Apache Iceberg, table specification, "Manifests"
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from headwater.iceberg.avro_codecs import AvroFileError
from headwater.iceberg.avro_projection import read_avro_fields

_DELETED: Final = 2
_FIELDS: Final = ("status", "data_file.content", "data_file.file_size_in_bytes", "data_file.record_count")
_MIB: Final = 1 << 20
SIZE_BOUNDS: Final = (_MIB, 8 * _MIB, 32 * _MIB, 128 * _MIB, 512 * _MIB, 1024 * _MIB)
"""Where the classes of sizes end, in bytes; the last class has no end."""


class FileContent(IntEnum):
    """What a file of a snapshot holds, by its number in manifests; version 1 knows data alone."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


@dataclass(slots=True)
class FileTotals:
    """So many files, of so many bytes and records together."""

    files: int = 0
    bytes: int = 0
    records: int = 0

    def add_file(self, size_bytes: int, records: int) -> None:
        self.files += 1
        self.bytes += size_bytes
        self.records += records


@dataclass(slots=True)
class SnapshotSizes:
    """The files of the manifests that were read.

    classes       data files by size, one more than there are bounds
    """

    contents: dict[FileContent, FileTotals] = field(default_factory=lambda: {content: FileTotals() for content in FileContent})
    classes: list[FileTotals] = field(default_factory=lambda: [FileTotals() for _ in range(len(SIZE_BOUNDS) + 1)])

    def add_manifest(self, data: bytes) -> None:
        """Add the files that a manifest holds.

        raises        ValueError, with no text of the file, where it is broken or is no manifest; nothing of it was added then
        """
        for content, size_bytes, records in list(_held_files(data)):
            self.contents[content].add_file(size_bytes, records)
            if content is FileContent.DATA:
                self.classes[bisect_right(SIZE_BOUNDS, size_bytes)].add_file(size_bytes, records)


def _held_files(data: bytes) -> Iterator[tuple[FileContent, int, int]]:
    for statuses, contents, sizes, counts in read_avro_fields(data, _FIELDS, optional=("data_file.content",)):
        for status, content, size_bytes, records in zip(statuses, contents, sizes, counts, strict=True):
            if status == _DELETED:
                continue
            if not isinstance(size_bytes, int) or not isinstance(records, int):
                raise AvroFileError("an entry of it has no size, or no number of records")
            yield FileContent(int(content or 0)), size_bytes, records
