"""Manifests remembered between reports: one that is as it was is not read again.

Each report writes what it read anew into a segment, a Parquet file in the catalog's work folder; the store has the segments' digests, in
the index ``memories`` of the reference ``file-marks``. A manifest is known again by its path, its length, and the time that its storage
tells. Small segments are joined when there are many, and a segment of which nobody names the half any more is written anew.

What is missing, damaged or of another release is not remembered, and is read again.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import structlog

from headwater.catalogs.file_marks import FILE_MARKS, ensure_marks, read_marks
from headwater.commits import Transaction, commit_change
from headwater.errors import CorruptionError, HeadwaterError, RefusedError
from headwater.index import IndexValue
from headwater.lake_files.file_columns import LiveFiles, digest_type
from headwater.lake_files.work_folder import WorkFile, WorkFolder
from headwater.store import RealmStore, StoredObject, id_text, object_type
from headwater.throttle import Fence
from headwater.typed_values import decode_json

if TYPE_CHECKING:
    import pyarrow as pa

MEMORIES = "memories"
_FORM = 3
"""Another number for another form of segments."""
_SMALL_BYTES = 2 << 20
_MOST_SMALL = 12
_SEGMENT_PATHS = 150_000
"""So many paths wait in memory until a segment is written."""
_ROWS = 500
"""Manifests that are decoded or written at once."""
_FACTS = ("path", "length_bytes", "modified", "total")
_COLUMNS = ("keys", "numbers", "digests")
_log = structlog.get_logger()
T = TypeVar("T")


class KnownManifest(NamedTuple):
    """A manifest as it was read.

    length_bytes, modified   as its storage told them then; 0 where it tells no time
    total                    how many entries it has
    files                    those that it holds
    """

    path: str
    length_bytes: int
    modified: int
    total: int
    files: LiveFiles


@object_type("manifest-memory")
class ManifestSegments(StoredObject, frozen=True, kw_only=True):
    """What a catalog's reports remember.

    segments      files of manifests
    tables        a file of what the last whole reading of each table named, and of whose table a version is
    """

    form: int = _FORM
    segments: tuple[WorkFile, ...] = ()
    tables: WorkFile | None = None


class _KnownTables(msgspec.Struct, frozen=True):
    tables: dict[str, list[str]]
    versions: dict[str, str]
    lists: dict[str, str] = {}


class ManifestMemory:
    """What one report remembers, and adds. For one report at a time.

    folder        None: nothing is remembered
    tables        the places that the last whole reading of each table named
    versions      the table of each version whose document is not stored
    lists         short digests of the manifest lists that the last whole reading of each table read, joined as text
    """

    def __init__(self, rows: RealmStore, catalog_id: str, folder: WorkFolder | None, *, is_dry: bool = False) -> None:
        self._rows = rows
        self._catalog_id = catalog_id
        self._folder = folder
        self._is_dry = is_dry
        self._seen = self._stored()
        self._used: list[WorkFile] = []
        self._added: list[WorkFile] = []
        self._waiting: list[KnownManifest] = []
        self._paths = 0
        known = self._read_tables()
        self.tables, self.versions, self.lists = known.tables, known.versions, known.lists

    def known(self, wanted_of: Callable[[Sequence[str]], Collection[str]]) -> Iterator[KnownManifest]:
        """What is remembered of the wanted manifests. Unwanted ones are forgotten once they are half of a segment, or segments are joined.

        wanted_of     asked for the wanted ones of some manifests
        """
        joined = self._joined()
        for segment in self._seen.segments:
            used: set[str] = set()
            try:
                for some in self._manifests(segment):
                    wanted = wanted_of([manifest.path for manifest in some])
                    for manifest in some:
                        if manifest.path in wanted:
                            used.add(manifest.path)
                            yield manifest
                if segment in joined or 2 * len(used) < segment.rows:
                    self._take_over(segment, used)
                else:
                    self._used.append(segment)
            except (CorruptionError, RefusedError) as fault:
                _log.info("manifests are read again, for what was remembered of them is lost", fault=str(fault))

    def _joined(self) -> list[WorkFile]:
        """The segments that are to become one: small ones, when they are many."""
        small = [segment for segment in self._seen.segments if segment.size_bytes < _SMALL_BYTES]
        return small if len(small) >= _MOST_SMALL else []

    def _take_over(self, segment: WorkFile, used: Collection[str]) -> None:
        """Remember what is used of a segment anew."""
        for some in self._manifests(segment):
            for manifest in some:
                if manifest.path in used:
                    self.remember(manifest)

    def remember(self, manifest: KnownManifest) -> None:
        """Remember a manifest that was read."""
        if self._folder is None or self._is_dry:
            return
        self._waiting.append(manifest)
        self._paths += manifest.files.size
        if self._paths >= _SEGMENT_PATHS:
            self._write_segment()

    def forget_tables(self, *, kept: set[str]) -> None:
        """Forget what tables named that no version has any more."""
        self.tables = {key: places for key, places in self.tables.items() if key in kept}
        self.lists = {key: lists for key, lists in self.lists.items() if key in kept}

    def keep(self, *, fence: Fence) -> None:
        """Write what was added, and forget the segments that are not used any more."""
        if self._folder is None or self._is_dry:
            return
        self._write_segment()
        segments = (*self._used, *self._added)
        text = msgspec.json.encode(_KnownTables(self.tables, self.versions, self.lists))
        tables = self._seen.tables
        if tables is None or self._tables_text != text:
            tables = self._folder.store_file(self._name("tables", "json"), text)
        new = ManifestSegments(segments=segments, tables=tables)
        if new == self._seen:
            return
        ensure_marks(self._rows)

        def change(tx: Transaction) -> None:
            tx.index(MEMORIES).put(self._catalog_id.encode(), IndexValue(tx.add_object(new)))

        commit_change(self._rows, FILE_MARKS, change, message="remember manifests", fence=fence)
        self._tidy_up({file.name for file in (*segments, tables)})

    def _tidy_up(self, kept: set[str]) -> None:
        """Delete what no record names any more, and what a report wrote that did not live to record it."""
        assert self._folder is not None
        with suppress(HeadwaterError):  # what stays takes room, and nothing else
            self._folder.delete_names([name for name in self._folder.names_in(self._place) if name not in kept])

    @property
    def _place(self) -> str:
        """Below the work folder; catalogs may have one base location."""
        return f"manifests/{self._catalog_id}"

    def _stored(self) -> ManifestSegments:
        marks = None if self._folder is None else read_marks(self._rows, fresh=True)
        value = None if marks is None else marks.index(MEMORIES).get(self._catalog_id.encode())
        if value is None or value.object_id is None or marks is None:
            return ManifestSegments()
        stored = marks.rows.read_object(value.object_id, ManifestSegments)
        return stored if stored.form == _FORM else ManifestSegments()

    def _read_tables(self) -> _KnownTables:
        self._tables_text = b""
        if self._folder is None or self._seen.tables is None:
            return _KnownTables({}, {})
        try:
            self._tables_text = self._folder.load_file(self._seen.tables)
            return decode_json(self._tables_text, _KnownTables)
        except (CorruptionError, RefusedError, msgspec.MsgspecError) as fault:
            _log.info("what tables named is not remembered any more", fault=str(fault))
            return _KnownTables({}, {})

    def _manifests(self, segment: WorkFile) -> Iterator[list[KnownManifest]]:
        from pyarrow import ArrowException

        try:
            for batch in _one_ahead(self._batches(segment)):
                yield list(_decoded(batch))
        except (ArrowException, KeyError, ValueError) as fault:
            raise CorruptionError(f"{segment.name} cannot be read: {fault}") from fault

    def _batches(self, segment: WorkFile) -> Iterator[pa.RecordBatch]:
        from pyarrow.parquet import ParquetFile

        assert self._folder is not None
        with ParquetFile(io.BytesIO(self._folder.load_file(segment))) as table:
            yield from table.iter_batches(_ROWS)

    def _write_segment(self) -> None:
        if not self._waiting or self._folder is None:
            return
        data = _encoded(self._waiting)
        self._added.append(self._folder.store_file(self._name("manifests", "parquet"), data, rows=len(self._waiting)))
        self._waiting, self._paths = [], 0

    def _name(self, kind: str, ending: str) -> str:
        return f"{self._place}/{kind}-{id_text(self._rows.new_ids(1)[0])}.{ending}"


def _one_ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, each of which is made while the one before is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="memory") as pool:
        waiting = pool.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield item


def _encoded(manifests: Sequence[KnownManifest]) -> bytes:
    """A segment of these manifests, each in a row."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    files = [manifest.files for manifest in manifests]
    starts = pa.array(accumulate((len(each.keys) for each in files), initial=0), pa.int32())
    plain = [[getattr(manifest, name) for manifest in manifests] for name in _FACTS]
    columns: list[Sequence[Any]] = [*plain, [each.folders for each in files], [each.odd for each in files]]
    schema = _segment_schema()
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=False)]
    for name in _COLUMNS:
        arrays.append(pa.ListArray.from_arrays(starts, pa.concat_arrays([getattr(each, name) for each in files])))
    buffer = io.BytesIO()
    table = pa.Table.from_arrays(arrays, schema=schema)
    write_table(table, buffer, compression="zstd", row_group_size=_ROWS, use_dictionary=False, write_statistics=False)
    return buffer.getvalue()


def _decoded(batch: pa.RecordBatch) -> Iterator[KnownManifest]:
    """The manifests of some rows; their files are slices of the rows' columns."""
    rows = zip(*(batch.column(name).to_pylist() for name in (*_FACTS, "folders", "odd")), strict=True)
    columns = [batch.column(name).flatten() for name in _COLUMNS]
    sizes = batch.column(_COLUMNS[0]).value_lengths().to_pylist()
    at = 0
    for (path, length, modified, total, folders, odd), size in zip(rows, sizes, strict=True):
        keys, numbers, digests = (column.slice(at, size) for column in columns)
        files = LiveFiles(keys, numbers, digests, None if folders is None else tuple(folders), tuple(odd))
        yield KnownManifest(path, length, modified, total, files)
        at += size


def _segment_schema() -> pa.Schema:
    import pyarrow as pa

    facts = {"path": pa.string(), "length_bytes": pa.int64(), "modified": pa.int64(), "total": pa.int64()}
    texts = {"folders": pa.list_(pa.string()), "odd": pa.list_(pa.string())}
    columns = {"keys": pa.string(), "numbers": pa.uint32(), "digests": digest_type()}
    return pa.schema([*facts.items(), *texts.items(), *((name, pa.list_(kind)) for name, kind in columns.items())])
