"""Tables as other people's writers leave them, written with fastavro: any format version, any entries, any spelling of paths.

Knows nothing of Headwater. What lies in data files is no matter here, so they are a few bytes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro

EXISTING, ADDED, DELETED = 0, 1, 2
Document = dict[str, Any]
Spelling = Callable[[Path], str]

_PARTITION = {"type": "record", "name": "r102", "fields": []}
_DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        {"name": "content", "type": "int", "default": 0, "field-id": 134},
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "file_format", "type": "string", "field-id": 101},
        {"name": "partition", "type": _PARTITION, "field-id": 102},
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
        {"name": "referenced_data_file", "type": ["null", "string"], "default": None, "field-id": 143},
    ],
}
_ENTRY = fastavro.parse_schema(
    {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int", "field-id": 0},
            {"name": "snapshot_id", "type": ["null", "long"], "default": None, "field-id": 1},
            {"name": "sequence_number", "type": ["null", "long"], "default": None, "field-id": 3},
            {"name": "file_sequence_number", "type": ["null", "long"], "default": None, "field-id": 4},
            {"name": "data_file", "type": _DATA_FILE, "field-id": 2},
        ],
    }
)
_COUNTS = ("added_files_count", "existing_files_count", "deleted_files_count")
_LISTED = fastavro.parse_schema(
    {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            {"name": "manifest_path", "type": "string", "field-id": 500},
            {"name": "manifest_length", "type": "long", "field-id": 501},
            {"name": "partition_spec_id", "type": "int", "field-id": 502},
            {"name": "content", "type": "int", "field-id": 517},
            {"name": "sequence_number", "type": "long", "field-id": 515},
            {"name": "min_sequence_number", "type": "long", "field-id": 516},
            {"name": "added_snapshot_id", "type": "long", "field-id": 503},
            *({"name": name, "type": "int", "field-id": 504 + at} for at, name in enumerate(_COUNTS)),
            *({"name": name, "type": "long", "field-id": 512 + at} for at, name in enumerate(("a_rows", "e_rows", "d_rows"))),
            {"name": "key_metadata", "type": ["null", "bytes"], "default": None, "field-id": 519},
        ],
    }
)


def plain(path: Path) -> str:
    return f"file://{path}"


@dataclass(slots=True)
class ForeignTable:
    """A table in a folder. Each ``add_snapshot`` notes one; ``write`` leaves a version.

    spell         how paths are written into manifests and documents
    """

    folder: Path
    uuid: UUID
    format_version: int = 2
    spell: Spelling = plain
    properties: dict[str, str] = field(default_factory=dict)
    snapshots: list[Document] = field(default_factory=list)
    statistics: list[Document] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    version: int = 0

    def put_file(self, name: str, data: bytes = b"some bytes") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def manifest(self, name: str, entries: Sequence[tuple[int, Path | str, int]]) -> Document:
        """Write a manifest of (status, file, content: 0 data, 1 position deletes, 2 equality deletes); returns its entry for a list."""
        rows = [
            self._entry(status, path if isinstance(path, str) else self.spell(path), content)
            for status, path, content in entries
        ]
        data = _avro(_ENTRY, rows)
        path = self.put_file(f"metadata/{name}-m0.avro", data)
        counts = {
            count: sum(status == at for status, _, _ in entries)
            for count, at in zip(_COUNTS, (ADDED, EXISTING, DELETED), strict=True)
        }
        return {
            "manifest_path": self.spell(path),
            "manifest_length": len(data),
            "partition_spec_id": 0,
            "content": int(any(content for _, _, content in entries)),
            "sequence_number": 1,
            "min_sequence_number": 1,
            "added_snapshot_id": 1,
            **counts,
            "a_rows": 1,
            "e_rows": 0,
            "d_rows": 0,
        }

    def add_snapshot(self, number: int, manifests: Sequence[Document], *, inline: bool = False, **fields: Any) -> None:
        """Add a snapshot: with a manifest list, or as version 1 may have it, with the manifests' paths themselves."""
        snapshot = {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": 1_700_000_000_000 + number,
            "schema-id": 0,
        }
        snapshot |= {"summary": {"operation": "append"}, **fields}
        if inline:
            del snapshot["sequence-number"]
            snapshot["manifests"] = [manifest["manifest_path"] for manifest in manifests]
        else:
            path = self.put_file(f"metadata/snap-{number}-1.avro", _avro(_LISTED, manifests))
            snapshot["manifest-list"] = self.spell(path)
        self.snapshots.append(snapshot)

    def copy_snapshots(self, document: Document, read: Callable[[str], bytes]) -> None:
        """Take over another table's snapshots, as clones do: with manifest lists of its own, and the other's manifests.

        read          reads a manifest list
        """
        self.format_version = max(2, document["format-version"])
        for number, snapshot in enumerate(document.get("snapshots") or (), 1):
            if "manifest-list" in snapshot:
                listed = list(fastavro.reader(io.BytesIO(read(snapshot["manifest-list"]))))
                self.add_snapshot(number, [_listed(each) for each in listed])

    def write(self, name: str | None = None, **fields: Any) -> Path:
        """Write the next metadata file; the ones before stay in its log."""
        self.version += 1
        path = self.folder / "metadata" / (name or f"v{self.version}.metadata.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.document() | fields), encoding="utf-8")
        self.log.append(self.spell(path))
        return path

    def document(self) -> Document:
        schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
        current = self.snapshots[-1]["snapshot-id"] if self.snapshots else None
        document: Document = {
            "format-version": self.format_version,
            "table-uuid": str(self.uuid),
            "location": self.spell(self.folder),
            "last-updated-ms": 1_700_000_000_000 + self.version,
            "last-column-id": 1,
            "schemas": [schema],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": self.properties,
            "current-snapshot-id": current,
            "refs": {} if current is None else {"main": {"snapshot-id": current, "type": "branch"}},
            "snapshots": list(self.snapshots),
            "statistics": [entry for entry in self.statistics if "blob-metadata" in entry],
            "partition-statistics": [entry for entry in self.statistics if "blob-metadata" not in entry],
            "snapshot-log": [],
            "metadata-log": [{"timestamp-ms": 1_700_000_000_000, "metadata-file": path} for path in self.log],
        }
        if self.format_version == 1:
            return document | {"schema": schema, "partition-spec": []}
        document["last-sequence-number"] = max([0, *(snapshot.get("sequence-number", 0) for snapshot in self.snapshots)])
        return document | ({"next-row-id": 0} if self.format_version > 2 else {})

    def add_statistics(self, name: str, snapshot_id: int, *, of_partitions: bool = False) -> Path:
        path = self.put_file(f"metadata/{name}", b"PFA1")
        entry = {
            "snapshot-id": snapshot_id,
            "statistics-path": self.spell(path),
            "file-size-in-bytes": 4,
            **({} if of_partitions else {"file-footer-size-in-bytes": 1}),
        }
        self.statistics.append(entry | ({} if of_partitions else {"blob-metadata": []}))
        return path

    def _entry(self, status: int, path: str, content: int) -> Document:
        kind = "PUFFIN" if path.endswith(".puffin") else "PARQUET"
        file = {
            "content": content,
            "file_path": path,
            "file_format": kind,
            "partition": {},
            "record_count": 1,
            "file_size_in_bytes": 10,
        }
        return {"status": status, "snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1, "data_file": file}


def _listed(entry: Document) -> Document:
    """An entry of a manifest list of any writer, in our schema."""
    known = {"content": 0, "sequence_number": 0, "min_sequence_number": 0, "a_rows": 0, "e_rows": 0, "d_rows": 0}
    renamed = {count: entry.get(count.replace("_files_", "_data_files_")) for count in _COUNTS}
    return known | {count: value for count, value in renamed.items() if value is not None} | entry


def _avro(schema: Any, rows: Sequence[Document]) -> bytes:
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, rows)
    return buffer.getvalue()
