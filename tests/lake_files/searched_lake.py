"""A catalog whose files are searched: tables with documents that name files, on a local disk, without manifests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from headwater.catalogs import Catalog, Catalogs, ContentKey, Delete, IcebergTable, Put
from headwater.catalogs.content import derive_content_id
from headwater.catalogs.known_metadata import own_name
from headwater.catalogs.table_claims import TableClaim, TableClaims
from headwater.iceberg.metadata_json import decode_metadata, logged_files, named_files, split_metadata
from headwater.lake_files.dead_files import DeadFilesResult, FileSearch, find_dead_files
from headwater.lake_files.file_columns import LiveFiles, live_in_columns
from headwater.lake_files.file_reasons import FileReason, PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace, LiveFile
from headwater.lake_files.stored_versions import StoredVersion
from headwater.store import ObjectId, RealmStore, Store
from lakes import rows_of

OLD = 1_750_000_000


@dataclass(slots=True)
class DocumentReading:
    """The files that documents themselves name, and those that cannot be read."""

    versions: Iterable[StoredVersion]
    blocked: list[BlockedPlace] = field(default_factory=list)
    read: int = 0

    def __iter__(self) -> Iterator[LiveFiles]:
        return live_in_columns(self._files())

    def _files(self) -> Iterator[LiveFile]:
        for version in self.versions:
            self.read += 1
            try:
                text = self._text(version)
            except OSError as fault:
                self.blocked.append(BlockedPlace(location="file://", code=PlaceReason.REFERRER_UNREADABLE, detail=str(fault)))
                continue
            document = decode_metadata(text, path=version.version_id)
            yield from (LiveFile(path) for _, path in named_files(document))
            yield from (LiveFile(path, must_exist=False) for path in logged_files(document))

    def _text(self, version: StoredVersion) -> bytes:
        if version.read_text is not None:
            return version.read_text()
        assert version.metadata_location is not None
        return Path(version.metadata_location.removeprefix("file://")).read_bytes()


class SearchedLake:
    """A lake in a folder. Files are named relative to it."""

    def __init__(self, store: Store, folder: Path, *, name: str = "lake", rows: RealmStore | None = None) -> None:
        self.store, self.folder = store, folder
        self.rows = rows_of(store) if rows is None else rows
        Catalogs(self.rows).create_catalog(name, base_location=f"file://{folder}")
        self.catalog: Catalog = Catalogs(self.rows).open_catalog(name)
        self.guests: set[UUID] = set()
        self.readings: list[DocumentReading] = []

    def location(self, name: str) -> str:
        return f"file://{self.folder}/{name}"

    def write(self, *names: str, time: int = OLD) -> list[str]:
        """Write files; returns their locations."""

        for name in names:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
            os.utime(path, (time, time))
        return [self.location(name) for name in names]

    def put_table(
        self,
        name: str,
        files: Sequence[str] = (),
        *,
        claims: bool = True,
        is_stored: bool = True,
        branch: str | None = None,
        log: Sequence[str] = (),
        metadata: str | None = None,
        **fields: Any,
    ) -> str:
        """Commit a version of a table that names files, and write its metadata file; returns that."""
        uuid = UUID(int=int.from_bytes(name.encode()[:14], "big"))
        content_id = derive_content_id(uuid)
        document = {
            "format-version": 2,
            "table-uuid": str(uuid),
            "location": self.location(name),
            "statistics": [{"snapshot-id": 1, "statistics-path": path} for path in files],
            "metadata-log": [{"timestamp-ms": 1, "metadata-file": path} for path in log],
            **fields,
        }
        metadata = metadata or f"{name}/metadata/{own_name(self.catalog.definition.id, 1)}"
        self.write(metadata)
        (self.folder / metadata).write_text(json.dumps(document))
        if claims:
            claim = TableClaim(self.catalog.definition.id, content_id, self.location(name), uuid)
            assert not TableClaims(self.rows).take_claims([claim])
        key = ContentKey.of(name.replace("/", "."))
        there = self.catalog.get_content(branch, key)
        table = IcebergTable(metadata_location=self.location(metadata), table_uuid=str(uuid))
        if there is not None:
            table = msgspec.structs.replace(table, id=there.id)
        parts = split_metadata(json.dumps(document).encode()) if is_stored else None
        ids = {key: content_id} if there is None else None
        self.catalog.commit(branch, [Put(key, table, metadata=parts)], content_ids=ids)
        return self.location(metadata)

    def drop_table(self, name: str) -> ObjectId | None:
        return self.catalog.commit(None, [Delete(ContentKey.of(name))]).commit_id

    def content_id(self, name: str) -> UUID:
        return derive_content_id(UUID(int=int.from_bytes(name.encode()[:14], "big")))

    def search(self, **options: Any) -> DeadFilesResult:
        return find_dead_files(
            FileSearch(
                store=self.store,
                rows=self.rows,
                definition=self.catalog.definition,
                is_home=lambda content_id: content_id not in self.guests,
                read_live=self._read,
                **options,
            )
        )

    def _read(self, versions: Iterable[StoredVersion]) -> DocumentReading:
        self.readings.append(DocumentReading(versions))
        return self.readings[-1]

    def dead(self, **options: Any) -> dict[str, FileReason]:
        """The dead files of one search, by their names, with their codes."""
        with self.search(**options) as result:
            return {file.path.removeprefix(f"file://{self.folder}/"): file.code for file in result.files()}

    def blocked(self, **options: Any) -> dict[str, PlaceReason]:
        """The places that yield nothing, by name."""
        with self.search(**options) as result:
            return {block.location.removeprefix(f"file://{self.folder}/"): block.code for block in result.blocked}
