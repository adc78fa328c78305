"""Documents, manifest lists and manifests on a local disk, written by hand, and walks from them to live files."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import fastavro

from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.table_storage import TableStorage
from headwater.lake_files.lake_file_values import BlockedPlace, LiveFile
from headwater.lake_files.live_walk import LiveWalk
from headwater.lake_files.manifest_memory import ManifestMemory
from headwater.lake_files.place_index import EVERYWHERE
from headwater.lake_files.stored_versions import StoredVersion
from headwater.lake_files.table_names import LakeTableNames
from headwater.lake_files.work_folder import WorkFolder
from headwater.store import RealmKey, RealmStore, Store
from lakes import rows_of

EXISTING, ADDED, DELETED = 0, 1, 2
_ENTRY = fastavro.parse_schema(
    {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int"},
            {
                "name": "data_file",
                "type": {"type": "record", "name": "r2", "fields": [{"name": "file_path", "type": "string"}]},
            },
        ],
    }
)
COUNTS = ("added_files_count", "existing_files_count", "deleted_files_count")
_LISTED = fastavro.parse_schema(
    {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            {"name": "manifest_path", "type": "string"},
            {"name": "manifest_length", "type": "long"},
            *({"name": name, "type": "int"} for name in COUNTS),
            {"name": "key_metadata", "type": ["null", "bytes"], "default": None},
        ],
    }
)


class CountingStorage(LakeStorage):
    """Counts what is read, by its name."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def read_file(self, file: Any) -> bytes:
        self.read.append(file.path.rpartition("/")[2])
        return super().read_file(file)


@dataclass(slots=True)
class Walked:
    """A walk that is over. Files and places are named relative to the lake."""

    walk: LiveWalk
    files: list[LiveFile]
    blocks: list[BlockedPlace]
    read: list[str]

    @property
    def paths(self) -> set[str]:
        return {file.path for file in self.files}

    @property
    def blocked(self) -> dict[str, str]:
        return {block.location: str(block.code) for block in self.blocks}


@dataclass(slots=True)
class WalkedLake:
    """Everything is named relative to the folder, but for locations elsewhere, which are only named."""

    folder: Path
    store: Store
    versions: list[StoredVersion] = field(default_factory=list)

    @property
    def rows(self) -> RealmStore:
        return rows_of(self.store)

    def location(self, name: str) -> str:
        return name if "://" in name else f"file://{self.folder}/{name}"

    def name(self, location: str) -> str:
        return location.removeprefix(f"file://{self.folder}/")

    def write(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return self.location(name)

    def write_manifest(self, name: str, entries: Mapping[str, int]) -> str:
        """A manifest of files with their statuses."""
        records = [{"status": status, "data_file": {"file_path": self.location(path)}} for path, status in entries.items()]
        return self.write(name, _avro(_ENTRY, records))

    def write_list(self, name: str, *manifests: str, **changes: Any) -> str:
        """A list that says of its manifests what is true, but for the changes."""
        return self.write(name, _avro(_LISTED, [self._listed(manifest) | changes for manifest in manifests]))

    def _listed(self, manifest: str) -> dict[str, Any]:
        data = (self.folder / manifest).read_bytes()
        statuses = [record["status"] for record in fastavro.reader(io.BytesIO(data))] if data.startswith(b"Obj") else []
        counts = {name: statuses.count(status) for name, status in zip(COUNTS, (ADDED, EXISTING, DELETED), strict=True)}
        return {"manifest_path": self.location(manifest), "manifest_length": len(data), **counts}

    def write_snapshot(self, name: str, *paths: str) -> str:
        """A manifest and its list, of files that are added; returns the list's name."""
        self.write_manifest(f"{name}/metadata/m.avro", dict.fromkeys(paths, ADDED))
        self.write_list(f"{name}/metadata/snap.avro", f"{name}/metadata/m.avro")
        return f"{name}/metadata/snap.avro"

    def document(self, name: str, *lists: str, **fields: Any) -> dict[str, Any]:
        snapshots = [{"snapshot-id": number, "manifest-list": self.location(path)} for number, path in enumerate(lists, 1)]
        return {
            "format-version": 2,
            "table-uuid": str(uuid5(NAMESPACE_URL, name)),
            "location": self.location(name),
            "snapshots": snapshots,
            **fields,
        }

    def put(self, name: str, *lists: str, realm: int = 1, **fields: Any) -> StoredVersion:
        """A stored version of a table."""
        return self.put_text(json.dumps(self.document(name, *lists, **fields)).encode(), realm=realm)

    def put_text(self, text: bytes, *, realm: int = 1) -> StoredVersion:
        return self.add(StoredVersion(f"{realm}-{len(self.versions)}", RealmKey(realm), lambda: text))

    def put_file(self, name: str, text: bytes | None = None, *, realm: int = 1) -> StoredVersion:
        """A version whose document is not stored; None: its file does not exist."""
        if text is not None:
            self.write(name, text)
        return self.add(StoredVersion(f"{realm}-{name}", RealmKey(realm), None, self.location(name)))

    def add(self, version: StoredVersion) -> StoredVersion:
        self.versions.append(version)
        return version

    def memory(self, catalog_id: str = "0123456789abcdef", **options: Any) -> ManifestMemory:
        return ManifestMemory(self.rows, catalog_id, WorkFolder(f"file://{self.folder}", TableStorage()), **options)

    def begin(self, memory: ManifestMemory | None = None, *, storage_of: Any = None) -> LiveWalk:
        return LiveWalk(
            self.versions,
            storage_of=storage_of or (lambda realm, location: LakeStorage()),
            memory=self.memory() if memory is None else memory,
            names=LakeTableNames(self.store),
        )

    def walk(self, memory: ManifestMemory | None = None, *, storage_of: Any = None) -> Walked:
        storage = CountingStorage()
        walk = self.begin(memory, storage_of=storage_of or (lambda realm, location: storage))
        files = [LiveFile(self.name(key), each.must_exist) for each in walk for key in (*each.keys.to_pylist(), *each.odd)]
        blocks = [
            BlockedPlace(location=self.name(b.location) if b.location else EVERYWHERE, code=b.code, detail=b.detail)
            for b in walk.blocked
        ]
        return Walked(walk, files, blocks, storage.read)


def _avro(schema: Any, records: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, schema, records, codec="deflate")
    return file.getvalue()
