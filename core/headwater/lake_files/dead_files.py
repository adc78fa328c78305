"""The search for dead files: what is live in the whole store, what is there in the places of one catalog, and what only is there.

    1  the heads of all references are noted, and the places surveyed
    2  every stored version of every table and view is read, past all caches: what is live
    3  the places are listed, which begins after that
    4  both are compared, bucket by bucket
    5  what was found out says which places yield nothing; markers move on, and the run is recorded

Whatever is committed after 1 is no matter of this search: whoever commits takes care of what was marked.

Where no reference has moved and no collection of garbage has run since the last run, and the listing is the same, file for file, so is
the result, and that is read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Any, Protocol
from uuid import UUID

import msgspec
import structlog

from headwater.catalogs.catalog_definition import CatalogDefinition
from headwater.catalogs.file_marks import FILE_MARKS, FILE_PLACES
from headwater.clock import Micros
from headwater.commits import read_collection
from headwater.errors import CorruptionError
from headwater.iceberg.table_storage import TableStorage
from headwater.lake_files.document_files import hint_in
from headwater.lake_files.file_columns import LiveFiles, live_in_columns
from headwater.lake_files.file_comparison import BucketResult, ReasonCount
from headwater.lake_files.file_engine import ComparisonGround, FileEngine, ListFiles, ProcessEngine
from headwater.lake_files.file_reasons import FileReason, PlaceReason
from headwater.lake_files.file_runs import DeadRuns
from headwater.lake_files.foreign_metadata import ForeignMetadata
from headwater.lake_files.held_paths import HeldPaths, pack_held, unpack_held
from headwater.lake_files.lake_file_values import BlockedPlace, DeadFile, LiveFile, TablePlace
from headwater.lake_files.linked_paths import LinkedPaths
from headwater.lake_files.listed_places import PlaceListing
from headwater.lake_files.listing_digest import ListingDigest
from headwater.lake_files.place_index import EVERYWHERE, PlaceIndex
from headwater.lake_files.place_markers import MarkerState, PlaceMarkers, RunRecord, read_run, write_run
from headwater.lake_files.place_survey import survey_places
from headwater.lake_files.stored_versions import StoredContent, StoredVersion, VersionScan
from headwater.lake_files.work_folder import WorkFile, WorkFolder
from headwater.realms import RealmRegistry
from headwater.store import ObjectId, RealmStore, ScanSplit, Store, id_text
from headwater.store.ids import SYSTEM_KEY
from headwater.store.store_identity import read_identity
from headwater.throttle import Fence, ProgressCallback, no_progress
from headwater.typed_values import decode_msgpack

_log = structlog.get_logger()
OWN_REFERENCES = frozenset({FILE_PLACES, FILE_MARKS})
"""References that a search, and what follows it, moves itself: no file is live by them."""
_NEVER = Micros(0)
_RULES = 1
"""Another number where another release comes to another result."""
_MOST_KEPT = 200_000
"""Dead files that are kept for the next run, at most."""
_UNMARKED = frozenset(
    {
        PlaceReason.GUEST,
        PlaceReason.POLICY_OFF,
        PlaceReason.PLACE_SHARED,
        PlaceReason.LISTING_INCOMPLETE,
        PlaceReason.MARKER_DIFFERS,
    }
)
"""Places in which no marker is written: somebody else's, or ones of which the listing may lack a marker."""
_UNLISTED = frozenset({PlaceReason.GUEST, PlaceReason.POLICY_OFF})

Heads = tuple[tuple[int, str, ObjectId | None], ...]
Counts = dict[str, dict[FileReason, ReasonCount]]


class LiveReading(Protocol):
    """The live files that versions reach. Iterate once; then ``blocked`` has the places that yield nothing because of what was read."""

    @property
    def blocked(self) -> Sequence[BlockedPlace]: ...
    def __iter__(self) -> Iterator[LiveFiles]: ...


ReadLive = Callable[[Iterable[StoredVersion]], LiveReading]
"""Reads what versions reach: documents, lists and manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearch:
    """What a search is about, and by what it reads.

    is_home       whether a table of the catalog is its own (``find_homes``)
    read_live     what versions reach
    prefixes      what ``spec.files.places`` gives to the catalog
    blocks        places that yield nothing for reasons of policy
    blocks_of     such ones among the places of the search
    listing       the files of all places, where another program lists them; it begins anew with every call
    is_dry        nothing is written, so that the next run knows nothing of this one
    """

    store: Store
    rows: RealmStore
    definition: CatalogDefinition
    is_home: Callable[[UUID], bool]
    read_live: ReadLive
    storage: TableStorage = field(default_factory=TableStorage)
    prefixes: Sequence[str] = ()
    blocks: Sequence[BlockedPlace] = ()
    blocks_of: Callable[[Sequence[TablePlace]], Sequence[BlockedPlace]] = lambda places: ()
    listing: ListFiles | None = None
    is_dry: bool = False
    engine: FileEngine = field(default_factory=ProcessEngine)
    fence: Fence = lambda: None
    progress: ProgressCallback = no_progress


@dataclass(slots=True, kw_only=True)
class DeadFilesResult:
    """What a search found. Use it in a ``with`` block: it removes its temporary files.

    run           the number of this run over the catalog, from 1
    started       when it began: what was committed later was not looked at
    listed        when its listings began
    heads         the references of the store's realms that the search has seen: realm key and name, and the commit
    places        those that were looked at, by location
    blocked       the places among them that yield nothing, by location, each with the first reason
    blocks        all reasons, of these places and of whatever else was met
    place_counts  by place and reason, the files that are not strictly live, also of places that yield nothing
    live          paths that stored versions name; some of them more than once
    there, there_bytes    what is there
    kept, kept_bytes      what is there, and strictly live
    outside       live files that lie where the catalog may have files, and in none of its places
    requests      by what was asked of the storage
    is_reused     nothing has changed since the last run, whose result this is
    """

    run: int
    started: Micros
    heads: dict[str, str]
    places: tuple[TablePlace, ...]
    listed: Micros = _NEVER
    blocked: tuple[BlockedPlace, ...] = ()
    blocks: list[BlockedPlace] = field(default_factory=list)
    place_counts: Counts = field(default_factory=dict)
    live: int = 0
    there: int = 0
    there_bytes: int = 0
    kept: int = 0
    kept_bytes: int = 0
    outside: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    is_reused: bool = False
    dead: DeadRuns = field(default_factory=DeadRuns)

    def files(self) -> Iterator[DeadFile]:
        """The dead files of places that yield something, sorted by place and path; reported ones included. As often as asked."""
        blocked = self.blocked_locations()
        return (file for file in self.dead if file.place not in blocked)

    @property
    def other_counts(self) -> dict[str, int]:
        """How many files there are of the reasons that make no dead file."""
        beside = (FileReason.LOOSELY_LIVE, FileReason.OWN_FILE)
        return {str(FileReason.LIVE): self.kept} | {str(reason): self.total(reason).files for reason in beside}

    def __enter__(self) -> DeadFilesResult:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.dead.close()

    def total(self, reason: FileReason) -> ReasonCount:
        """How many files of a reason there are in the places that yield something."""
        blocked = self.blocked_locations()
        counts = [found[reason] for place, found in self.place_counts.items() if place not in blocked and reason in found]
        return ReasonCount(sum(count.files for count in counts), sum(count.bytes for count in counts))

    def block(self, blocks: Iterable[BlockedPlace], places: PlaceIndex) -> None:
        """Let places yield nothing; the first reason stays."""
        self.blocks = list(dict.fromkeys([*self.blocks, *blocks]))
        first = places.blocked_by(self.blocks)
        self.blocked = tuple(msgspec.structs.replace(first[location], location=location) for location in sorted(first))

    def blocked_locations(self) -> frozenset[str]:
        return frozenset(block.location for block in self.blocked)


def find_dead_files(search: FileSearch) -> DeadFilesResult:
    """Search the places of a catalog for files that no stored version of the whole store refers to. Deletes none.

    raises        UnavailableError when the storage or the store does not answer; ConflictError when another search of the catalog
                  ended meanwhile; what the fence and the progress raise
    """
    run = _SearchRun(search)
    try:
        return run.search_places()
    except BaseException:
        run.result.dead.close()
        raise


class _SearchRun:
    """One search. ``places`` are those of the catalog, guests and all."""

    def __init__(self, search: FileSearch) -> None:
        self._search = search
        self._rows = search.rows
        self._seen = read_run(search.rows, search.definition.id)
        self._folder = WorkFolder.of_catalog(search.definition, search.storage, realm=search.rows.realm)
        started, self._heads = search.store.clock.now(), _heads(search.store)
        survey = survey_places(search.store, search.rows, search.definition, is_home=search.is_home, prefixes=search.prefixes)
        self._places = survey.make_index(search.definition.places)
        self.result = DeadFilesResult(
            run=self._seen.number + 1,
            started=started,
            heads={f"{key:x}/{name}": id_text(head) for key, name, head in self._heads if head is not None},
            places=tuple(place for _, place in sorted(self._places.places.items())),
        )
        self.result.block([*survey.blocked, *search.blocks, *search.blocks_of(self.result.places)], self._places)
        self._foreign: list[str] = []
        self._moving: dict[str, list[str]] = {}

    def search_places(self) -> DeadFilesResult:
        digest = ListingDigest()
        inputs = self._inputs()
        if self._seen.inputs.startswith(inputs):
            digest.read_all(self._listing()())
            if self._seen.inputs == inputs + digest.hexdigest() and self._is_whole() and self._reuse():
                self._end(digest.markers, self._seen.held, self._seen.inputs)
                return self.result
            digest = ListingDigest()
        markers, held = self._compare(digest)
        is_certain = not any(block.code in _PASSING for block in self.result.blocks)
        self._end(markers, held, inputs + digest.hexdigest() if is_certain else "")
        return self.result

    def _inputs(self) -> str:
        """A digest of all that the result depends on, but for the listing.

        What was held is not in it: with equal live files and an equal listing, none of the dead ones became held since.
        """
        result = self.result
        given = (
            _RULES,
            [(key, name, head) for key, name, head in self._heads if name not in OWN_REFERENCES],
            _collections(self._search.store),
            result.places,
            [(block.location, block.code, block.detail) for block in result.blocks],
        )
        return hashlib.blake2b(msgspec.json.encode(given), digest_size=16).hexdigest() + "-"

    def _listing(self) -> ListFiles:
        self.result.listed = self._search.store.clock.now()
        if self._search.listing is not None:
            return self._search.listing
        # Of guests nothing is listed, unless they lie within a place of another.
        unlisted = {block.location for block in self.result.blocked if block.code in _UNLISTED}
        places = PlaceIndex([place for location, place in self._places.places.items() if location not in unlisted]).outermost()
        self._listed = PlaceListing(places, self._search.storage.lake)
        return lambda: self._search.engine.list_places(self._listed)

    def _is_whole(self) -> bool:
        return self._search.listing is not None or not self._listed.blocked

    def _compare(self, digest: ListingDigest) -> tuple[list[str], WorkFile | None]:
        """Fill the result. Returns the markers that are there, and the file of what is held from now on."""
        search, result = self._search, self.result
        strangers = _Strangers(search, self._places)
        scan = VersionScan(search.store, on_content=strangers.look_at, fence=search.fence, progress=search.progress)
        live = search.read_live(scan)
        compared = search.engine.compare(
            LinkedPaths(self._places.places).with_links(strangers.with_contents(live)),
            lambda: digest.pass_on(self._listing()()),
            ComparisonGround(self._places, self._held(), self._is_whole, self._seen.files),
        )
        found = _Found(result)
        metadata = ForeignMetadata(self._rows, search.definition, self._places, search.storage.lake)
        held = []
        for bucket in compared.results:
            search.fence()
            found.add_bucket(bucket)
            result.block(metadata.blocks(bucket.metadata), self._places)
            held.append(bucket.held)
        result.live, result.there, result.there_bytes = compared.live, compared.listed, compared.listed_bytes
        others = (count.bytes for found_there in result.place_counts.values() for count in found_there.values())
        result.kept_bytes = result.there_bytes - sum(others)
        listing_blocks = [] if search.listing is not None else self._listed.blocked
        blocks = [*scan.blocked, *live.blocked, *strangers.blocked, *_odd(compared.odd), *listing_blocks, *found.blocks()]
        result.block(blocks, self._places)
        result.requests["metadata files read"] = metadata.read
        return found.markers, self._write("held", pack_held(held))

    def _held(self) -> HeldPaths:
        """What was held. Without the file nothing was: then files are only reported."""
        if self._seen.held is None:
            return HeldPaths()
        try:
            return unpack_held(self._folder.load_file(self._seen.held))
        except CorruptionError as fault:
            _log.warning("what was held is lost: files are only reported until they were live again", fault=str(fault))
            return HeldPaths()

    def _reuse(self) -> bool:
        """Take the result of the last run over. Returns False where it is not there any more."""
        if self._seen.result is None:
            return False
        try:
            kept = decode_msgpack(self._folder.load_file(self._seen.result), _KeptResult)
        except CorruptionError:
            return False
        result = self.result
        result.is_reused = True
        result.place_counts = kept.counts
        result.live, result.there, result.there_bytes, result.kept, result.kept_bytes, result.outside = kept.totals
        result.dead.add_dead(kept.dead)
        result.block(kept.blocks, self._places)
        return True

    def _end(self, markers: Sequence[str], held: WorkFile | None, inputs: str) -> None:
        """Judge and move on the markers, and record the run."""
        result, search = self.result, self._search
        self._judge_markers(markers)
        if search.is_dry:
            return
        kept = self._seen.result if result.is_reused else (self._keep_result() if inputs else None)
        self._move_markers()
        record = RunRecord(
            number=result.run,
            files=max(result.live, result.there),
            time=search.store.clock.now(),
            held=held,
            inputs="" if kept is None else inputs,
            result=kept,
        )
        write_run(self._rows, search.definition.id, self._seen, record, fence=search.fence)
        recorded = {file.name for file in (held, kept) if file is not None}  # others are of earlier runs, or of some that died
        self._folder.delete_names([name for name in self._folder.names_in(self._searches) if name not in recorded])

    @property
    def _searches(self) -> str:
        """Below the work folder; catalogs may have one base location."""
        return f"searches/{self._search.definition.id}"

    def _keep_result(self) -> WorkFile | None:
        result = self.result
        dead = list(islice(result.dead, _MOST_KEPT + 1))
        if len(dead) > _MOST_KEPT:
            return None
        totals = (result.live, result.there, result.there_bytes, result.kept, result.kept_bytes, result.outside)
        blocks = [block for block in result.blocks if block.code is not PlaceReason.MARKER_DIFFERS]
        kept = _KeptResult(counts=result.place_counts, totals=totals, blocks=blocks, dead=dead)
        return self._write("result", msgspec.msgpack.encode(kept))

    def _write(self, kind: str, data: bytes) -> WorkFile | None:
        if self._search.is_dry:
            return None
        name = f"{self.result.run:08d}-{kind}-{id_text(self._search.store.new_id())}"
        return self._folder.store_file(f"{self._searches}/{name}", data)

    def _judge_markers(self, paths: Sequence[str]) -> None:
        """Judge the markers that are there, and note which places are to be moved on, and which objected to."""
        search, result = self._search, self.result
        self._markers = PlaceMarkers(self._rows, search.definition.id, search.storage)
        found: dict[str, list[str]] = {}
        for path in paths:
            place, _, name = path.rpartition("/")
            found.setdefault(place, []).append(name)
        dead = {place for place, counts in result.place_counts.items() if FileReason.IN_GRACE in counts}
        dead -= self._places.blocked_by([block for block in result.blocks if block.code in _UNMARKED]).keys()
        for folder in sorted(
            {*found, *(dead & self._places.places.keys())}
        ):  # what is a folder to us may be a place to another store
            state, why = self._markers.judge(folder, found.get(folder, ()))
            if state is not MarkerState.SOUND:
                self._block([folder], why)
            if state is MarkerState.FOREIGN and self._places.find_place(f"{folder}/x") in dead:
                self._foreign.append(folder)
            elif folder in dead:
                self._moving[folder] = found.get(folder, [])

    def _move_markers(self) -> None:
        search, result = self._search, self.result
        self._markers.identity = read_identity(search.store)
        for place, why in self._markers.advance(self._moving, result.run, fence=search.fence).items():
            self._block([place], why)
        self._markers.object_to(self._foreign, result.run, fence=search.fence)
        result.requests["markers written"] = len(self._moving) + len(self._foreign)

    def _block(self, places: Sequence[str], why: str) -> None:
        blocks = [BlockedPlace(location=place, code=PlaceReason.MARKER_DIFFERS, detail=why) for place in places]
        self.result.block(blocks, self._places)


_PASSING = frozenset({PlaceReason.REFERRER_UNREADABLE, PlaceReason.LISTING_INCOMPLETE})
"""Reasons that may be gone with the next run although nothing was committed."""


class _KeptResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run, for the next one."""

    counts: Counts
    totals: tuple[int, int, int, int, int, int]
    blocks: list[BlockedPlace]
    dead: list[DeadFile]


@dataclass(slots=True)
class _Found:
    """Adds up what buckets have."""

    result: DeadFilesResult
    markers: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    signs: dict[str, str] = field(default_factory=dict)

    def add_bucket(self, bucket: BucketResult) -> None:
        result = self.result
        result.dead.add_dead(bucket.dead)
        result.kept += bucket.kept
        result.outside += bucket.outside
        self.markers += bucket.markers
        for place, by_reason in bucket.counts.items():
            counts = result.place_counts.setdefault(place, {})
            for reason, count in by_reason.items():
                sum_ = counts.setdefault(reason, ReasonCount())
                sum_.files += count.files
                sum_.bytes += count.bytes
        for place, paths in bucket.missing.items():
            self.missing[place] = min(self.missing.get(place, paths[0]), paths[0])
        for place, path in bucket.signs.items():
            self.signs[place] = min(self.signs.get(place, path), path)

    def blocks(self) -> list[BlockedPlace]:
        missing = [
            BlockedPlace(location=place, code=PlaceReason.LIVE_NOT_LISTED, detail=f"{path} is live, and its listing lacks it")
            for place, path in sorted(self.missing.items())
        ]
        signs = [
            BlockedPlace(location=path, code=PlaceReason.WRITTEN_ELSEWHERE, detail=f"{path} is of another table format")
            for path in sorted(self.signs.values())
        ]
        return [*missing, *signs]


class _Strangers:
    """Looks at all contents of the store while they are scanned: their metadata files are live, and in our places they are ours."""

    def __init__(self, search: FileSearch, places: PlaceIndex) -> None:
        self._key = search.rows.key
        self._places = places
        self._live: list[LiveFile] = []
        self.blocked: list[BlockedPlace] = []

    def look_at(self, content: StoredContent) -> None:
        # The file may be gone: engines delete old metadata files, and rows that no commit reaches are met, too.
        self._live += [
            LiveFile(content.metadata_location, must_exist=False),
            *hint_in(content.metadata_location.rpartition("/")[0]),
        ]
        if content.realm != self._key and (place := self._places.find_place(content.metadata_location)) is not None:
            detail = f"a table of another realm has {content.metadata_location}"
            self.blocked.append(BlockedPlace(location=place, code=PlaceReason.PLACE_SHARED, detail=detail))

    def with_contents(self, live: Iterable[LiveFiles]) -> Iterator[LiveFiles]:
        """The live files, and those of contents as they are met."""
        for files in live:
            yield from self._taken()
            yield files
        yield from self._taken()

    def _taken(self) -> Iterator[LiveFiles]:
        taken, self._live = self._live, []
        return live_in_columns(taken)


def _odd(paths: Sequence[str]) -> list[BlockedPlace]:
    """A live path that is no location: which file it is depends on who reads it."""
    code = PlaceReason.REFERRER_UNREADABLE
    return [
        BlockedPlace(location=EVERYWHERE, code=code, detail=f"a stored version names {path!r}, which is no location")
        for path in paths[:1]
    ]


def _collections(store: Store) -> list[tuple[int, str]]:
    """The state of each realm's record of collections: what one has deleted makes fewer files live."""
    found: list[tuple[int, str]] = []
    for realm in RealmRegistry(store).list_realms():
        record = read_collection(store.rows(realm.id, realm.key))
        found.append((realm.key, "" if record is None else str(record.token)))
    return found


def _heads(store: Store) -> Heads:
    """Where the references of all realms point now. Tombstones included: their commits are still stored."""
    heads: list[tuple[int, str, ObjectId | None]] = []
    after: Any = None
    while page := store.backend.scan_references(ScanSplit(), after, 600):
        after = page[-1].position
        heads += [(row.realm, row.name, row.pointer) for row in page if row.realm != SYSTEM_KEY]
    return tuple(sorted(heads, key=lambda head: head[:2]))
