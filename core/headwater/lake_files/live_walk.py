"""From stored versions to live files: documents, manifest lists, manifests, and the files that these hold. Each is read once.

    documents     as they come; what they name themselves is live, their lists and manifests are noted in a temporary file
    lists         read several at a time, and their manifests noted
    manifests     those that are remembered and as they were; the others are read
    tables        what each table's reading named, for the next report; what could not be read wholly blocks

A referrer that cannot be read wholly blocks every place that its last whole reading named, and without one everything on its bucket.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from headwater.errors import CorruptionError, NotFoundError, RefusedError, UnavailableError
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.location import canonical_location
from headwater.iceberg.manifest_entries import (
    UNKNOWN,
    ListedManifest,
    read_manifest_list,
    unlisted_manifest,
)
from headwater.iceberg.metadata_json import unpack_metadata
from headwater.iceberg.survey_outcomes import RejectedTable
from headwater.lake_files.document_files import DocumentFiles, document_files
from headwater.lake_files.file_columns import LiveFiles, live_in_columns, weighed_batches
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace, LiveFile
from headwater.lake_files.manifest_memory import KnownManifest, ManifestMemory
from headwater.lake_files.manifest_reader import (
    DECODERS,
    SILENT,
    ReadManifest,
    ReadManifests,
    StorageAnswers,
    Unanswered,
    UnansweredError,
    known_manifests,
    read_lake_file,
    read_lake_manifest,
)
from headwater.lake_files.path_keys import StrictKeys, strict_key
from headwater.lake_files.place_index import EVERYWHERE
from headwater.lake_files.stored_versions import StoredVersion, bucket_of
from headwater.lake_files.table_names import LakeTableNames
from headwater.store import RealmKey
from headwater.throttle import Fence

_READERS = 16
_AHEAD = 2 * _READERS
_MOST_AHEAD = 64 * 1024 * 1024
"""Bytes of manifests."""
_PACK = 8
"""So many manifests are looked at together."""
_BETWEEN_FENCES = 100
_NOTED_AT_ONCE = 1000
_READ_ELSEWHERE = 1024
_MOST_FOLDERS = 100
"""Of one table, outside of its places; beyond that the buckets are remembered."""
_MOST_RECENT = 100_000
_PATH_BYTES = 200
_MET = -1
_DIFFERS = -2
"""In the place of a number that two lists say differently."""
_SHOWN = 3
_SCHEMA = """
create table lists (path text primary key, owner integer) without rowid;
create table manifests (path text primary key, length integer, held integer, total integer, owner integer, done integer default 0)
    without rowid;
create table owners (path text, owner integer, primary key (path, owner)) without rowid;
"""


def _agreed(number: str) -> str:
    """The SQL for a number that several lists say of a manifest."""
    said = f"excluded.{number}"
    return f"{number} = iif({number} = {said} or {said} = {UNKNOWN}, {number}, iif({number} = {UNKNOWN}, {said}, {_DIFFERS}))"


_NOTE = (
    "insert into manifests (path, length, held, total, owner) values (?, ?, ?, ?, ?) on conflict (path) do update set"
    f" {_agreed('length')}, {_agreed('held')}, {_agreed('total')}"
)
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
    folders       where else it has files; ``buckets`` of those that are too many
    lists         digests of its manifest lists
    is_unknown    a list or manifest could not be read that its last whole reading had not: it may name anything
    """

    realm: RealmKey
    name: str
    places: dict[str, None] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)
    buckets: dict[str, None] = field(default_factory=dict)
    faults: list[_Fault] = field(default_factory=list)
    blocks: list[_Fault] = field(default_factory=list)
    lists: set[str] = field(default_factory=set)
    is_unknown: bool = False

    @property
    def key(self) -> str:
        """What the memory knows it by."""
        return f"{self.realm:x}/{self.name}"

    def named(self) -> list[str]:
        """The places that this reading named."""
        if not self.buckets:
            return [*self.places, *self.folders]
        return [*self.places, *dict.fromkeys([*self.buckets, *(bucket_of(folder) or EVERYWHERE for folder in self.folders)])]

    def note_folders(self, folders: Iterable[str]) -> None:
        """Note the folders of files, as in strict keys, that lie outside of the table's places."""
        places = tuple(f"{place}/" for place in self.places)
        for folder in folders:
            if folder in self.folders or f"{folder}/".startswith(places):
                continue
            if len(self.folders) < _MOST_FOLDERS:
                self.folders[folder] = None
            else:
                self.buckets[bucket_of(folder) or EVERYWHERE] = None


class _Recent(Generic[T]):
    """What was met lately: versions of a table lie side by side, and have most of their files in common, as snapshots have."""

    def __init__(self) -> None:
        self._met: set[T] = set()

    def new(self, things: Iterable[T]) -> list[T]:
        """Those that were not met lately, each once."""
        new = list(dict.fromkeys(thing for thing in things if thing not in self._met))
        if len(self._met) > _MOST_RECENT:
            self._met.clear()
        self._met.update(new)
        return new


class _Noted(NamedTuple):
    """What the lists say of a manifest.

    owner         the table by whose realm it is read
    done          0: it was never read before, as far as is known; _MET: it was, and is read again; 1: it is as it was
    owners        all tables that have it
    """

    path: str
    length: int
    held: int
    total: int
    owner: int
    done: int
    owners: str


_SAID = "path, length, held, total, owner, done, (select group_concat(owner) from owners where owners.path = manifests.path)"


class LiveWalk:
    """The live files of stored versions. Iterate once; then ``blocked`` has the places that yield nothing because of what was read.

    manifest_reader   asked once the first manifest is to be read: who reads them elsewhere; None: this process
    lists, manifests  how many were read; ``remembered``: manifests that were not, because they are as they were
    """

    def __init__(
        self,
        versions: Iterable[StoredVersion],
        *,
        storage_of: StorageOf,
        memory: ManifestMemory,
        names: LakeTableNames,
        fence: Fence = lambda: None,
        manifest_reader: Callable[[], ReadManifests | None] = lambda: None,
    ) -> None:
        self._manifest_reader = manifest_reader
        self._versions = versions
        self._storage_of = storage_of
        self._memory = memory
        self._names = names
        self._fence = fence
        self._tables: list[_TableReading] = []
        self._by_name: dict[tuple[RealmKey, str], int] = {}
        self._answers = StorageAnswers()
        self._keys = StrictKeys()
        self._unknown: list[BlockedPlace] = []
        self._versions_read: dict[str, str] = {}
        self._named = _Recent[LiveFile]()
        self._listed = _Recent[tuple[str, int]]()
        self._noted = _Recent[tuple[ListedManifest, int]]()
        self.blocked: Sequence[BlockedPlace] = ()
        self.documents = self.lists = self.manifests = self.remembered = 0

    def __iter__(self) -> Iterator[LiveFiles]:
        with closing(
            sqlite3.connect("", isolation_level=None)
        ) as rows:  # a temporary file of its own, removed when it is closed
            rows.executescript(_SCHEMA)
            rows.execute("begin")
            yield from live_in_columns(self._walk_documents(rows))
            yield from live_in_columns(self._walk_lists(rows))
            yield from self._walk_manifests(rows)
        self._finish()
        self._memory.keep(fence=self._fence)

    def _walk_documents(self, rows: sqlite3.Connection) -> Iterator[LiveFile]:
        for number, version in enumerate(self._versions):
            if number % _BETWEEN_FENCES == 0:
                self._fence()
            self.documents += 1
            found = self._document(version)
            if found is None:
                continue
            owner = self._table_of(version.realm, found)
            if found.block is not None:
                code, why = found.block
                table, is_told = self._tables[owner], code is PlaceReason.GC_DISABLED
                (table.blocks if is_told else table.faults).append(_Fault(code, why))
            lists = self._listed.new((path, owner) for path in found.lists)
            rows.executemany("insert or ignore into lists values (?, ?)", lists)
            rows.executemany("insert or ignore into owners values (?, ?)", lists)
            self._tables[owner].lists.update(_digest(path) for path, _ in lists)
            self._note(rows, [unlisted_manifest(path) for path in found.manifests], [owner])
            files = [*found.files, *map(LiveFile, found.manifests), *(LiveFile(path) for path, _ in lists)]
            self._tables[owner].note_folders(self._folders_of([file.path for file in files if file.must_exist]))
            yield from self._named.new(files)

    def _document(self, version: StoredVersion) -> DocumentFiles | None:
        """What a version names; None, and noted, where it cannot be read."""
        try:
            if version.read_text is not None:
                return document_files(version.read_text(), version.metadata_location)
            assert version.metadata_location is not None
            found = document_files(self._read_metadata(version.realm, version.metadata_location), version.metadata_location)
            self._versions_read[version.version_id] = found.table
            return found
        except (CorruptionError, NotFoundError, RefusedError, RejectedTable, UnansweredError) as fault:
            self._note_unread(version, fault)
            return None

    def _note_unread(self, version: StoredVersion, fault: Exception) -> None:
        """Note that a version was not read: what its table is known to name is blocked, and its bucket, for it may have changed."""
        where = version.metadata_location
        bucket = EVERYWHERE if where is None else bucket_of(where) or EVERYWHERE
        detail = f"{where or f'version {version.version_id}'} cannot be read: {fault}"
        named = f"{self._names.realm(version.realm)}: {detail}"
        self._unknown.append(BlockedPlace(location=bucket, code=PlaceReason.REFERRER_UNREADABLE, detail=named))
        table = self._memory.versions.get(version.version_id)
        if table is not None:
            self._versions_read[version.version_id] = table
            self._tables[self._reading_of(version.realm, table)].faults.append(_Fault(PlaceReason.REFERRER_UNREADABLE, detail))

    def _read_metadata(self, realm: RealmKey, location: str) -> bytes:
        return unpack_metadata(self._read(realm, location), path=location)

    def _walk_lists(self, rows: sqlite3.Connection) -> Iterator[LiveFile]:
        lists = rows.execute("select path, owner from lists order by path")
        for (path, _), read in self._each(lists, lambda entry: self._read_list(*entry)):
            if isinstance(read, _Fault):
                for owner in self._owners(rows, path):
                    table = self._tables[owner]
                    self._blame(table, read, is_unknown=_digest(path) not in self._memory.lists.get(table.key, ""))
                continue
            self.lists += 1
            owners = self._owners(rows, path)
            for listed in read:
                if listed.is_encrypted:
                    fault = _Fault(PlaceReason.REFERRER_ENCRYPTED, f"manifest {listed.path} is encrypted")
                    for owner in owners:
                        self._blame(self._tables[owner], fault, is_unknown=True)
            new = self._note(rows, read, owners)
            folders = self._folders_of(new)
            for owner in owners:
                self._tables[owner].note_folders(folders)
            yield from map(LiveFile, new)

    def _folders_of(self, paths: Sequence[str]) -> dict[str, None]:
        keys = zip(self._keys.strict_keys(paths), paths, strict=True)
        return {(key or path).rpartition("/")[0]: None for key, path in keys}

    def _read_list(self, path: str, owner: int) -> list[ListedManifest] | _Fault:
        try:
            data = self._read(self._tables[owner].realm, path)
            with DECODERS:
                return read_manifest_list(data)
        except (RejectedTable, RefusedError, ValueError, UnansweredError) as fault:
            return _unreadable(f"manifest list {path}", fault)

    def _note(self, rows: sqlite3.Connection, listed: Sequence[ListedManifest], owners: Sequence[int]) -> list[str]:
        """Note that tables have these manifests; returns the paths of those of which just that was not noted lately."""
        new = self._noted.new((manifest, owner) for manifest in listed for owner in owners)
        said = ((each.path, each.length_bytes, each.held, each.total, owner) for each, owner in new)
        rows.executemany(_NOTE, said)
        rows.executemany("insert or ignore into owners values (?, ?)", ((each.path, owner) for each, owner in new))
        return [each.path for each, _ in new]

    def _walk_manifests(self, rows: sqlite3.Connection) -> Iterator[LiveFiles]:
        yield from self._recall(rows)
        unread = rows.execute(f"select {_SAID} from manifests where done < 1 order by path")
        for said, read in self._read_all(map(_Noted._make, unread)):
            fault = read if isinstance(read, _Fault) else self._contradiction(said, read)
            if fault is not None:
                for owner in self._owners(rows, said.path):
                    self._blame(self._tables[owner], fault, is_unknown=said.done != _MET)
            if isinstance(read, _Fault):
                continue
            self.manifests += 1
            if fault is None:
                self._memory.remember(read)
            self._note_held(said, read)
            yield read.files

    def _recall(self, rows: sqlite3.Connection) -> Iterator[LiveFiles]:
        """What is remembered of manifests that are still as they were."""
        found: dict[str, _Noted] = {}

        def wanted_of(paths: Sequence[str]) -> Collection[str]:
            places = ", ".join("?" * len(paths))
            said = rows.execute(f"select {_SAID} from manifests where path in ({places})", paths)
            found.clear()
            found.update((noted.path, noted) for noted in map(_Noted._make, said))
            rows.execute(f"update manifests set done = {_MET} where path in ({places})", paths)
            return found

        wanted = ((known, found[known.path]) for known in self._memory.known(wanted_of))
        packs = iter(lambda: list(islice(wanted, _PACK)), [])
        sound: list[tuple[str]] = []
        for pack, same in self._each(packs, lambda entries: [self._is_same(*entry) for entry in entries], _weight):
            for (known, said), is_same in zip(pack, same, strict=True):
                self._note_held(said, known)  # if it cannot be read now, what it named when it could is blocked
                if is_same and not self._contradiction(said, known):
                    sound.append((said.path,))
                    yield known.files
            if len(sound) >= _NOTED_AT_ONCE:
                self._note_sound(rows, sound)
                sound = []
        self._note_sound(rows, sound)

    def _note_sound(self, rows: sqlite3.Connection, paths: Sequence[tuple[str]]) -> None:
        rows.executemany("update manifests set done = 1 where path = ?", paths)
        self.remembered += len(paths)

    def _note_held(self, said: _Noted, read: KnownManifest) -> None:
        for owner in map(int, said.owners.split(",")):
            self._tables[owner].note_folders(read.files.all_folders())

    def _is_same(self, known: KnownManifest, said: _Noted) -> bool:
        """Whether a manifest is as it was when it was read."""
        try:
            location = canonical_location(known.path)
            system, path = self._storage_of(self._tables[said.owner].realm, location).open_system(location)
            return known.modified > 0 and system.file_facts(path) == (known.length_bytes, known.modified)
        except (OSError, RefusedError, UnavailableError):
            return False  # reading it tells why

    def _read_all(self, noted: Iterator[_Noted]) -> Iterator[tuple[_Noted, KnownManifest | _Fault]]:
        """Read manifests: by threads, or by who can read more of them at once."""
        elsewhere = self._manifest_reader()
        if elsewhere is None:
            yield from self._in_columns(self._each(noted, self._read_here, lambda said: max(said.length, 0)))
            return
        while some := list(islice(noted, _READ_ELSEWHERE)):
            self._fence()
            for said, read in zip(some, elsewhere([self._wanted(said) for said in some]), strict=True):
                yield said, self._as_read(said, read)

    def _wanted(self, said: _Noted) -> tuple[LakeStorage, str]:
        return self._storage_of(self._tables[said.owner].realm, said.path), said.path

    def _in_columns(
        self, read: Iterable[tuple[_Noted, ReadManifest | _Fault]]
    ) -> Iterator[tuple[_Noted, KnownManifest | _Fault]]:
        """What was read, in columns of many manifests at a time."""
        for some in weighed_batches(read, lambda entry: 0 if isinstance(entry[1], _Fault) else len(entry[1].paths)):
            known = known_manifests([each for _, each in some if not isinstance(each, _Fault)])
            for said, each in some:
                yield said, each if isinstance(each, _Fault) else next(known)

    def _read_here(self, said: _Noted) -> ReadManifest | _Fault:
        is_silent = self._answers.is_silent(said.path)
        return self._as_read(said, SILENT if is_silent else read_lake_manifest(self._wanted(said)))

    def _as_read(self, said: _Noted, read: R | str) -> R | _Fault:
        self._answers.note_answer(said.path, read)
        return _unreadable(f"manifest {said.path}", read) if isinstance(read, str) else read

    def _contradiction(self, said: _Noted, read: KnownManifest) -> _Fault | None:
        """How a manifest differs from the lists that name it."""
        faults = []
        if said.length > 0 and said.length != read.length_bytes:
            faults.append(f"it has {read.length_bytes} bytes, and {said.length} in its list")
        if said.total >= 0 and said.total != read.total:
            faults.append(f"it has {read.total} entries, and {said.total} in its list")
        if said.held >= 0 and said.held != read.files.size:
            faults.append(f"it holds {read.files.size} files, and {said.held} in its list")
        if _DIFFERS in (said.length, said.held, said.total):
            faults.append("two manifest lists name it with different lengths or counts")
        if not faults:
            return None
        return _Fault(PlaceReason.REFERRER_UNREADABLE, f"manifest {said.path} contradicts its list: {'; '.join(faults)}")

    def _blame(self, table: _TableReading, fault: _Fault, *, is_unknown: bool) -> None:
        table.faults.append(fault)
        table.is_unknown |= is_unknown

    def _owners(self, rows: sqlite3.Connection, path: str) -> list[int]:
        """The tables that name a list or manifest."""
        return [owner for (owner,) in rows.execute("select owner from owners where path = ?", (path,))]

    def _table_of(self, realm: RealmKey, found: DocumentFiles) -> int:
        owner = self._reading_of(realm, found.table)
        places = (place.rstrip("/") for place in found.places)
        self._tables[owner].places.update({strict_key(place) or place: None for place in places})
        return owner

    def _reading_of(self, realm: RealmKey, table: str) -> int:
        owner = self._by_name.setdefault((realm, table), len(self._tables))
        if owner == len(self._tables):
            self._tables.append(_TableReading(realm, table))
        return owner

    def _finish(self) -> None:
        """Say what is blocked, and remember what tables named that were read wholly."""
        blocked = list(self._unknown)
        for table in self._tables:
            named = table.named()
            if not table.faults:
                known: Iterable[str] = named
                self._memory.tables[table.key] = named
                self._memory.lists[table.key] = " ".join(sorted(table.lists))
            else:
                whole = None if table.is_unknown else self._memory.tables.get(table.key)
                known = whole or [bucket_of(place) or EVERYWHERE for place in named]
            faults = [*table.faults[:_SHOWN], *table.blocks[:1]]
            who = self._names.describe(table.realm, table.name, next(iter(table.places), "?")) if faults else ""
            # what it is known to name now is blocked, too: its last whole reading may not have had it
            where = dict.fromkeys((*known, *named))
            blocked += [
                BlockedPlace(location=place, code=code, detail=f"{who}: {why}") for code, why in faults for place in where
            ]
        self.blocked = blocked
        self._memory.versions = self._versions_read
        if not self._unknown:  # what was not read may be of any table
            self._memory.forget_tables(kept={table.key for table in self._tables})

    def _each(
        self, entries: Iterable[T], read: Callable[[T], R], weigh: Callable[[T], int] = lambda entry: 0
    ) -> Iterator[tuple[T, R]]:
        """Read several at a time, in order, and few ahead: large manifests have a hundred thousand paths each."""
        ahead: deque[tuple[T, Future[R]]] = deque()
        weight = 0
        with ThreadPoolExecutor(_READERS, thread_name_prefix="live") as pool:
            try:
                for number, entry in enumerate(entries):
                    if number % _BETWEEN_FENCES == 0:
                        self._fence()
                    ahead.append((entry, pool.submit(read, entry)))
                    weight += weigh(entry)
                    while len(ahead) >= _AHEAD or (weight >= _MOST_AHEAD and len(ahead) > 1):
                        first, future = ahead.popleft()
                        weight -= weigh(first)
                        yield first, future.result()
                while ahead:
                    first, future = ahead.popleft()
                    yield first, future.result()
            finally:
                for _, future in ahead:
                    future.cancel()

    def _read(self, realm: RealmKey, path: str) -> bytes:
        if self._answers.is_silent(path):
            raise UnansweredError(SILENT)
        try:
            data = read_lake_file(self._storage_of(realm, path), path)
        except UnavailableError as fault:
            raise UnansweredError(self._answers.note_answer(path, Unanswered(str(fault)))) from fault
        return self._answers.note_answer(path, data)


def _weight(pack: Iterable[tuple[KnownManifest, _Noted]]) -> int:
    """What remembered manifests weigh in memory, where their paths are already."""
    return sum(max(known.length_bytes, _PATH_BYTES * known.files.size) for known, _ in pack)


def _digest(path: str) -> str:
    """A short text for a manifest list."""
    return hashlib.blake2b(path.encode(errors="surrogatepass"), digest_size=6).hexdigest()


def _unreadable(what: str, fault: Exception | str) -> _Fault:
    return _Fault(PlaceReason.REFERRER_UNREADABLE, f"{what} cannot be read: {fault}")
