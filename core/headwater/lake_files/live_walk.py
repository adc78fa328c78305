"""From stored versions to live files: documents, manifest lists, manifests, and the files that these hold. Each is read once.

    documents     as they come; what they name themselves is live, their lists and manifests are noted in a temporary file
    lists         read several at a time, and their manifests noted
    manifests     those that are remembered and as they were; the others are read
    tables        what each table's reading named, for the next report; what could not be read wholly blocks

A referrer that cannot be read wholly blocks every place that its last whole reading named, and without one everything on its bucket.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

from headwater.errors import CorruptionError, RefusedError
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.layout import FileInfo
from headwater.iceberg.location import canonical_location
from headwater.iceberg.manifest_entries import (
    UNKNOWN,
    ListedManifest,
    ManifestEntries,
    read_manifest_entries,
    read_manifest_list,
)
from headwater.iceberg.metadata_json import unpack_metadata
from headwater.iceberg.survey_outcomes import RejectedTable
from headwater.lake_files.document_files import DocumentFiles, document_files
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace, LiveFile
from headwater.lake_files.manifest_memory import KnownManifest, ManifestMemory
from headwater.lake_files.place_index import EVERYWHERE
from headwater.lake_files.stored_versions import StoredVersion, bucket_of
from headwater.store import RealmKey
from headwater.throttle import Fence

_READERS = 16
_AT_ONCE = 8 * _READERS
_MOST_FOLDERS = 100
"""Of one table, outside of its places; beyond that the buckets are remembered."""
_SHOWN = 3
_SCHEMA = """
create table lists (path text primary key, owner integer) without rowid;
create table manifests (path text primary key, length integer, total integer, owner integer, done integer default 0) without rowid;
create table owners (path text, owner integer, primary key (path, owner)) without rowid;
"""

StorageOf = Callable[[RealmKey, str], LakeStorage]
"""The storage by which a realm reaches a location."""
T = TypeVar("T")
R = TypeVar("R")


class _Fault(NamedTuple):
    code: PlaceReason
    detail: str


@dataclass(slots=True)
class _TableReading:
    """What this report learnt of a table.

    places        its own
    folders       where else it has files
    """

    realm: RealmKey
    name: str
    places: dict[str, None] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)
    faults: list[_Fault] = field(default_factory=list)
    blocks: list[_Fault] = field(default_factory=list)

    @property
    def key(self) -> str:
        """What the memory knows it by."""
        return f"{self.realm:x}/{self.name}"

    def named(self) -> list[str]:
        """The places that this reading named."""
        if len(self.folders) <= _MOST_FOLDERS:
            return [*self.places, *self.folders]
        return [*self.places, *dict.fromkeys(bucket_of(folder) or EVERYWHERE for folder in self.folders)]


class LiveWalk:
    """The live files of stored versions. Iterate once; then ``blocked`` has the places that yield nothing because of what was read.

    lists, manifests  how many were read; ``remembered``: manifests that were not, because they are as they were
    """

    def __init__(
        self, versions: Iterable[StoredVersion], *, storage_of: StorageOf, memory: ManifestMemory, fence: Fence = lambda: None
    ) -> None:
        self._versions = versions
        self._storage_of = storage_of
        self._memory = memory
        self._fence = fence
        self._tables: list[_TableReading] = []
        self._by_name: dict[tuple[RealmKey, str], int] = {}
        self._unknown: list[BlockedPlace] = []
        self.blocked: Sequence[BlockedPlace] = ()
        self.documents = self.lists = self.manifests = self.remembered = 0

    def __iter__(self) -> Iterator[LiveFile]:
        with closing(
            sqlite3.connect("", isolation_level=None)
        ) as rows:  # a temporary file of its own, removed when it is closed
            rows.executescript(_SCHEMA)
            rows.execute("begin")
            yield from self._walk_documents(rows)
            yield from self._walk_lists(rows)
            yield from self._walk_manifests(rows)
        self._finish()
        self._memory.keep(fence=self._fence)

    def _walk_documents(self, rows: sqlite3.Connection) -> Iterator[LiveFile]:
        for number, version in enumerate(self._versions):
            if number % 100 == 0:
                self._fence()
            self.documents += 1
            found = self._document(version)
            if found is None:
                continue
            owner = self._table_of(version.realm, found)
            if found.block is not None:
                code, why = found.block
                table, is_told = self._tables[owner], code is PlaceReason.GC_DISABLED
                (table.blocks if is_told else table.faults).append(_Fault(code, f"{self._name(table)}: {why}"))
            rows.executemany("insert or ignore into lists values (?, ?)", ((path, owner) for path in found.lists))
            for path in found.manifests:
                self._note(rows, ListedManifest(path, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, False), owner)
            self._note_folders(owner, [file.path for file in found.files if file.must_exist])
            yield from found.files
            yield from (LiveFile(path) for path in found.lists)

    def _document(self, version: StoredVersion) -> DocumentFiles | None:
        """What a version names; None, and noted, where it cannot be read."""
        try:
            if version.read_text is not None:
                return document_files(version.read_text(), version.metadata_location)
            assert version.metadata_location is not None
            return document_files(self._read_metadata(version.realm, version.metadata_location), version.metadata_location)
        except (CorruptionError, RefusedError, RejectedTable) as fault:
            where = version.metadata_location
            bucket = EVERYWHERE if where is None else bucket_of(where) or EVERYWHERE
            detail = f"{where or f'version {version.version_id}'} cannot be read: {fault}"
            self._unknown.append(BlockedPlace(location=bucket, code=PlaceReason.REFERRER_UNREADABLE, detail=detail))
            return None

    def _read_metadata(self, realm: RealmKey, location: str) -> bytes:
        return unpack_metadata(self._read(realm, location), path=location)

    def _walk_lists(self, rows: sqlite3.Connection) -> Iterator[LiveFile]:
        lists = rows.execute("select path, owner from lists order by path")
        for (_, owner), read in self._each(lists, lambda entry: self._read_list(*entry)):
            if isinstance(read, _Fault):
                self._tables[owner].faults.append(read)
                continue
            self.lists += 1
            for listed in read:
                if listed.is_encrypted:
                    detail = f"{self._name(self._tables[owner])}: manifest {listed.path} is encrypted"
                    self._tables[owner].faults.append(_Fault(PlaceReason.REFERRER_ENCRYPTED, detail))
                self._note(rows, listed, owner)
            yield from (LiveFile(listed.path) for listed in read)

    def _read_list(self, path: str, owner: int) -> list[ListedManifest] | _Fault:
        try:
            return read_manifest_list(self._read(self._tables[owner].realm, path))
        except (RejectedTable, RefusedError, ValueError) as fault:
            return self._fault(owner, f"manifest list {path}", fault)

    def _note(self, rows: sqlite3.Connection, listed: ListedManifest, owner: int) -> None:
        rows.execute(
            "insert into manifests (path, length, total, owner) values (?, ?, ?, ?) on conflict (path) do update set"
            " length = iif(length = excluded.length or excluded.length = -1, length, iif(length = -1, excluded.length, -2)),"
            " total = iif(total = excluded.total or excluded.total = -1, total, iif(total = -1, excluded.total, -2))",
            (listed.path, listed.length_bytes, listed.total, owner),
        )
        rows.execute("insert or ignore into owners values (?, ?)", (listed.path, owner))

    def _walk_manifests(self, rows: sqlite3.Connection) -> Iterator[LiveFile]:
        yield from self._recall(rows)
        unread = rows.execute("select path, length, total, owner from manifests where not done order by path")
        for (path, length, total, owner), read in self._each(unread, lambda entry: self._read_manifest(entry[0], entry[3])):
            fault = read if isinstance(read, _Fault) else self._contradiction(path, length, total, owner, read)
            if isinstance(read, _Fault) or fault is not None:
                assert fault is not None
                self._blame(rows, path, fault)
            if isinstance(read, _Fault):
                continue
            self.manifests += 1
            if fault is None:
                self._memory.add(read)
            self._note_folders_of(rows, path, read.paths)
            yield from map(LiveFile, read.paths)

    def _recall(self, rows: sqlite3.Connection) -> Iterator[LiveFile]:
        """What is remembered of manifests that are still as they were."""

        def is_wanted(path: str) -> bool:
            found = rows.execute("select 1 from manifests where path = ?", (path,)).fetchone()
            return found is not None

        remembered = self._memory.known(is_wanted)
        while some := list(islice(remembered, _AT_ONCE)):
            self._fence()
            wanted = [
                rows.execute("select length, total, owner from manifests where path = ?", (each.path,)).fetchone()
                for each in some
            ]
            entries = list(zip(some, wanted, strict=True))
            for (known, (length, total, owner)), is_same in self._each(
                entries, lambda entry: self._is_same(entry[0], entry[1][2])
            ):
                if not is_same or self._contradiction(known.path, length, total, owner, known) is not None:
                    continue
                rows.execute("update manifests set done = 1 where path = ?", (known.path,))
                self.remembered += 1
                self._note_folders_of(rows, known.path, known.paths)
                yield from map(LiveFile, known.paths)

    def _is_same(self, known: KnownManifest, owner: int) -> bool:
        """Whether a manifest is as it was when it was read."""
        location = canonical_location(known.path)
        try:
            system, path = self._storage_of(self._tables[owner].realm, location).open_system(location)
            return system.file_facts(path) == (known.length_bytes, known.modified)
        except (OSError, RefusedError):
            return False  # reading it tells why

    def _read_manifest(self, path: str, owner: int) -> KnownManifest | _Fault:
        realm = self._tables[owner].realm
        try:
            location = canonical_location(path)
            storage = self._storage_of(realm, location)
            system, inner = storage.open_system(location)
            try:
                length, modified = system.file_facts(inner)
            except OSError:
                length, modified = 0, 0  # the read tells what is wrong
            data = storage.read_file(FileInfo(location, 0))
            entries: ManifestEntries = read_manifest_entries(data)
            # a file that was replaced between the two is read again next time
            return KnownManifest(path, len(data), modified if length == len(data) else -1, entries.total, entries.paths)
        except (RejectedTable, RefusedError, ValueError) as fault:
            return self._fault(owner, f"manifest {path}", fault)

    def _contradiction(self, path: str, length: int, total: int, owner: int, read: KnownManifest) -> _Fault | None:
        """How a manifest differs from the lists that name it."""
        said = []
        if length > 0 and length != read.length_bytes:
            said.append(f"it has {read.length_bytes} bytes, and {length} in its list")
        if total >= 0 and total != read.total:
            said.append(f"it has {read.total} entries, and {total} in its list")
        if length == -2 or total == -2:
            said.append("two lists say different things of it")
        if not said:
            return None
        return self._fault(owner, f"manifest {path}", ValueError("; ".join(said)))

    def _fault(self, owner: int, what: str, fault: Exception) -> _Fault:
        return _Fault(PlaceReason.REFERRER_UNREADABLE, f"{self._name(self._tables[owner])}: {what} cannot be read: {fault}")

    def _blame(self, rows: sqlite3.Connection, path: str, fault: _Fault) -> None:
        for (owner,) in rows.execute("select owner from owners where path = ?", (path,)).fetchall():
            self._tables[owner].faults.append(fault)

    def _table_of(self, realm: RealmKey, found: DocumentFiles) -> int:
        owner = self._by_name.setdefault((realm, found.table), len(self._tables))
        if owner == len(self._tables):
            self._tables.append(_TableReading(realm, found.table))
        self._tables[owner].places.update(dict.fromkeys(place.rstrip("/") for place in found.places))
        return owner

    def _note_folders_of(self, rows: sqlite3.Connection, manifest: str, paths: Sequence[str]) -> None:
        owners = [owner for (owner,) in rows.execute("select owner from owners where path = ?", (manifest,))]
        for owner in owners:
            self._note_folders(owner, paths)

    def _note_folders(self, owner: int, paths: Sequence[str]) -> None:
        """Note the folders of files that lie outside of their table's places."""
        table = self._tables[owner]
        places = tuple(f"{place}/" for place in table.places)
        for path in paths:
            if not path.startswith(places) and len(table.folders) <= _MOST_FOLDERS:
                table.folders[path.rpartition("/")[0]] = None

    def _finish(self) -> None:
        blocked = list(self._unknown)
        for table in self._tables:
            named = table.named()
            blocked += [
                BlockedPlace(location=place, code=code, detail=detail) for code, detail in table.blocks[:1] for place in named
            ]
            if not table.faults:
                self._memory.tables[table.key] = named
                continue
            known = self._memory.tables.get(table.key)
            where = known if known is not None else dict.fromkeys(bucket_of(place) or EVERYWHERE for place in named)
            # what it is known to name now is blocked, too: its last whole reading may not have had it
            for code, detail in table.faults[:_SHOWN]:
                blocked += [BlockedPlace(location=place, code=code, detail=detail) for place in dict.fromkeys((*where, *named))]
        self.blocked = blocked

    def _each(self, entries: Iterable[T], read: Callable[[T], R]) -> Iterator[tuple[T, R]]:
        """Read several at a time, in order."""
        with ThreadPoolExecutor(_READERS, thread_name_prefix="live") as pool:
            rest = iter(entries)
            while some := list(islice(rest, _AT_ONCE)):
                self._fence()
                yield from zip(some, pool.map(read, some), strict=True)

    def _read(self, realm: RealmKey, path: str) -> bytes:
        location = canonical_location(path)
        return self._storage_of(realm, location).read_file(FileInfo(location, 0))

    def _name(self, table: _TableReading) -> str:
        return f"table {table.name} at {next(iter(table.places), '?')}"
