"""The files of a table's snapshot by size, as a resource: read from its manifests, of which a request reads a bounded part.

A document may name manifests anywhere that the server reaches. Only those are read that lie in the table's own places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from headwater.errors import HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.iceberg.manifest_entries import UNKNOWN, ListedManifest, read_manifest_list, unlisted_manifest
from headwater.iceberg.snapshot_sizes import SIZE_BOUNDS, FileContent, FileTotals, SnapshotSizes
from headwater.iceberg.table_places import check_files_inside, stated_places
from headwater.iceberg_catalog.lake_privileges import READ_PRIVILEGES
from headwater_server.call import Answer, Call
from headwater_server.management.contents.contents_reader import open_reader
from headwater_server.management.contents.table_reader import ReadTable, find_table, number_of, text_of_number
from headwater_server.management.contents.table_shapes import FilesOfSize, FilesTotal, SnapshotFiles, SnapshotFilesQuery
from headwater_server.management.route_parts import READ_ERRORS, TABLE_PATH
from headwater_server.route_table import Route

MANIFESTS_LIMIT: Final = 500
BYTES_LIMIT: Final = 64 << 20
"""Manifests, and bytes of them, that one request reads at most."""
_SECONDS_LIMIT: Final = 15.0


def table_file_routes() -> list[Route]:
    """Make the route of a table's files."""
    return [
        Route(
            method="GET",
            template=f"{TABLE_PATH}/files",
            handler=answer_snapshot_files,
            name="readSnapshotFiles",
            needs="TABLE_READ_DATA on the table",
            summary="Tell how many files a snapshot has, and how large they are, by its manifests.",
            query=SnapshotFilesQuery,
            answers={200: SnapshotFiles},
            errors=READ_ERRORS,
        )
    ]


def answer_snapshot_files(call: Call[SnapshotFilesQuery, None]) -> Answer:
    """Tell how large the files of a snapshot are; raises NotFoundError for a snapshot that the table does not have."""
    read = find_table(open_reader(call), call.path["key"], READ_PRIVILEGES)
    wanted = read.current_snapshot if call.query.snapshot is None else int(call.query.snapshot)
    snapshot = next((each for each in read.objects("snapshots") if number_of(each.get("snapshot-id")) == wanted), None)
    if snapshot is None and call.query.snapshot is not None:
        raise NotFoundError(f"{read.key} on {read.reader.ref!r} has no snapshot {call.query.snapshot}")
    reading = _SizeReading(read)
    if snapshot is not None:
        reading.read_snapshot(snapshot)
    return Answer(body=reading.body(wanted))


class _SizeReading:
    """Reads the manifests of one snapshot, as far as a request may."""

    def __init__(self, read: ReadTable) -> None:
        self._read = read
        self._storage = read.reader.session.lake.storage
        self._clock = read.reader.session.rows.clock
        self._places = stated_places(read.document)
        self._sizes = SnapshotSizes()
        self._left_bytes = BYTES_LIMIT
        self._manifests = self._read_count = 0
        self._why: str | None = None

    def read_snapshot(self, snapshot: dict[str, Any]) -> None:
        """Read the manifests of a snapshot until a bound is reached."""
        manifests = self._listed(snapshot)
        self._manifests = len(manifests)
        until = self._clock.monotonic() + _SECONDS_LIMIT
        for number, manifest in enumerate(manifests):
            if number == MANIFESTS_LIMIT or self._left_bytes <= 0 or self._clock.monotonic() > until:
                self._note(
                    f"a request reads {MANIFESTS_LIMIT} manifests, {BYTES_LIMIT >> 20} MiB or {_SECONDS_LIMIT:.0f} seconds"
                )
                return
            if manifest.is_encrypted:
                self._note(f"{manifest.path} is encrypted")
            elif self._try(manifest.path, self._sizes.add_manifest, length=manifest.length_bytes):
                self._read_count += 1

    def body(self, snapshot: int | None) -> SnapshotFiles:
        """What was read so far."""
        contents = {content: _total(totals) for content, totals in self._sizes.contents.items()}
        bounds = [0, *SIZE_BOUNDS, None]
        return SnapshotFiles(
            snapshot_id=text_of_number(snapshot),
            is_complete=self._why is None,
            why=self._why,
            manifests=self._manifests,
            manifests_read=self._read_count,
            data=contents[FileContent.DATA],
            position_deletes=contents[FileContent.POSITION_DELETES],
            equality_deletes=contents[FileContent.EQUALITY_DELETES],
            sizes=[
                FilesOfSize(bounds[number] or 0, bounds[number + 1], totals.files, totals.bytes, totals.records)
                for number, totals in enumerate(self._sizes.classes)
            ],
        )

    def _listed(self, snapshot: dict[str, Any]) -> Sequence[ListedManifest]:
        listed = snapshot.get("manifest-list")
        if isinstance(listed, str):
            found: list[ListedManifest] = []
            self._try(listed, lambda data: found.extend(read_manifest_list(data)))
            return found
        named = snapshot.get("manifests")
        return [unlisted_manifest(path) for path in named if isinstance(path, str)] if isinstance(named, list) else []

    def _try(self, path: str, use: Callable[[bytes], None], *, length: int = UNKNOWN) -> bool:
        """Read a file and use it; whatever is wrong with it is noted, and nobody is told what it holds."""
        if length > self._left_bytes:
            self._note(f"{path} has {length} bytes, and a request reads {BYTES_LIMIT >> 20} MiB")
            return False
        try:
            check_files_inside([path], self._places, of=str(self._read.key))
            data = self._storage.read_bytes(path, limit=max(self._left_bytes, 1))
            self._left_bytes -= len(data)
            use(data)
        except (RefusedError, UnavailableError) as fault:
            self._note(str(fault))
        except HeadwaterError:
            self._note(f"{path} is missing")
        except ValueError:
            self._note(f"{path} is no manifest, or broken")
        else:
            return True
        return False

    def _note(self, why: str) -> None:
        """Keep the first reason."""
        self._why = self._why or why


def _total(totals: FileTotals) -> FilesTotal:
    return FilesTotal(totals.files, totals.bytes, totals.records)
