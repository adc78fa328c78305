"""Every version of a table or view that is stored anywhere in a store: what decides which files are live.

One scan of all rows, past every cache. Whatever a commit row that is still stored reaches is an object row itself, so it is met, in
whatever state its realm or catalog is, and whether or not a branch leads to it. Rows that no commit reaches are given, too: more files
stay then, and none too few. A commit that is made while the scan is on is not promised to be met.

    iceberg-metadata           a version, with the document
    iceberg-table, -view       a file that is live, and is read where a commit says that its document is not stored
    commit                     says that of what it put; the oldest that are stored, of all that they hold
    delta-table, udf           files that are live; what they refer to is not known, so that a table's folder yields nothing
    types that are not known   all places on the buckets of their realm's catalogs yield nothing
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from headwater.catalogs.content import (
    ContentType,
    ContentValue,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Udf,
)
from headwater.catalogs.content_operations import CONTENT
from headwater.catalogs.registry import BY_ID, listed_definitions
from headwater.catalogs.stored_metadata import IcebergMetadata, read_metadata
from headwater.catalogs.table_claims import BY_LOCATION, CLAIMS
from headwater.commits import Commit, Head, read_head
from headwater.errors import CorruptionError, ExpiredError, HeadwaterError
from headwater.gc.live_set import LiveSet
from headwater.gc.retention import KeepReason
from headwater.gc.shared_scan import hold_scan_lock
from headwater.iceberg.metadata_json import join_metadata
from headwater.index import IndexValue
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace
from headwater.lake_files.path_keys import strict_key
from headwater.lake_files.place_index import EVERYWHERE
from headwater.realms import RealmRegistry
from headwater.store import ObjectId, ObjectKey, RealmKey, RealmStore, ScanSplit, Store, StoredObject, id_text
from headwater.store.ids import SYSTEM_KEY
from headwater.store.stored_objects import registered_type
from headwater.throttle import Fence, ProgressCallback, Throttle, no_progress

_SCAN_ROWS = 600
_READ_AT_ONCE = 300
_DOCUMENTS_AT_ONCE = 30
_REMEMBERED_BYTES = 16 * 1024 * 1024
"""Versions of one table share large pieces, and lie side by side."""
_EXACT_BYTES = 32 * 1024 * 1024
_OWNER = "file report"
_MOST_SCANS = 2
"""So many times commits are scanned again, where collections delete the oldest ones meanwhile."""
_HELD = frozenset({"iceberg-table", "iceberg-view", "iceberg-metadata", "commit", "delta-table", "udf"})


class StoredVersion(NamedTuple):
    """A version of a table or view.

    version_id    names this version for ever, in every store: the realm's key and the object's id
    read_text     reads the stored document, as JSON; None: it is not stored, and has to be read at ``metadata_location``. Raises
                  CorruptionError
    metadata_location  the metadata file; None where only the document is known, which does not say it
    """

    version_id: str
    realm: RealmKey
    read_text: Callable[[], bytes] | None = None
    metadata_location: str | None = None


class StoredContent(NamedTuple):
    """A content object: its metadata file is live."""

    realm: RealmKey
    metadata_location: str


@dataclass(slots=True)
class VersionScan:
    """One scan of a store for its versions. Iterate once, then ask for what is beside them.

    on_content    called with every table and view, reached or not
    blocked       places that yield nothing, known once the iteration is over
    rows          how many rows were scanned
    """

    store: Store
    on_content: Callable[[StoredContent], None] = lambda content: None
    fence: Fence = lambda: None
    progress: ProgressCallback = no_progress
    blocked: list[BlockedPlace] = field(default_factory=list)
    rows: int = 0
    _realms: dict[RealmKey, _RealmVersions | None] = field(default_factory=dict)

    def __iter__(self) -> Iterator[StoredVersion]:
        pacing = Throttle(self.store.settings, self.store.clock, self.fence)
        self._realms = self._open_realms()
        with self._lock(pacing) as lock:
            for page in self._pages(pacing, lock):
                yield from self._versions_in(page)
            torn = yield from self._finish(self._known())
            for _ in range(_MOST_SCANS if torn else 0):
                for page in self._pages(pacing, lock):
                    yield from self._versions_in([key for key in page if key.type == "commit" and key.realm in torn])
                torn = yield from self._finish(torn)
        for versions in torn.values():
            versions.note_torn()
        for versions in self._known().values():
            self.blocked += versions.blocked()

    def _pages(self, pacing: Throttle, lock: Any) -> Iterator[Sequence[ObjectKey]]:
        after = None
        while page := self.store.backend.scan_objects(ScanSplit(), after, _SCAN_ROWS):
            after = page[-1].position
            self.rows += len(page)
            yield page
            if lock is not None:
                lock.heartbeat()
            pacing.before_scanning_on(len(page))
            self.progress(self.rows, 0, "rows read")

    def _known(self) -> dict[RealmKey, _RealmVersions]:
        return {key: versions for key, versions in self._realms.items() if versions is not None}

    def _finish(self, realms: dict[RealmKey, _RealmVersions]) -> Generator[StoredVersion, None, dict[RealmKey, _RealmVersions]]:
        """What the oldest commits hold. Returns the realms in which one was collected since it was met: theirs are to be met anew."""
        for versions in realms.values():
            yield from versions.oldest_contents()
        return {key: versions for key, versions in realms.items() if versions.is_torn}

    def _lock(self, pacing: Throttle) -> AbstractContextManager[Any]:
        """Where keys are in no order, one scan of a store runs at a time."""
        if self.store.backend.capabilities.ordered_keys:
            return nullcontext()
        return hold_scan_lock(self.store, _OWNER, pacing.watch)

    def _open_realms(self) -> dict[RealmKey, _RealmVersions | None]:
        registry = RealmRegistry(self.store)
        realms = registry.list_realms()
        self.blocked += [
            BlockedPlace(location=EVERYWHERE, code=PlaceReason.REFERRER_UNREADABLE, detail=str(row))
            for row in realms.unreadable
        ]
        opened: dict[RealmKey, _RealmVersions | None] = {
            realm.key: _RealmVersions(self._handle(realm.id, realm.key), self.on_content) for realm in realms
        }
        # What late writers left under the key of a deleted realm belongs to nobody, and the collector takes it away.
        return opened | dict.fromkeys([SYSTEM_KEY, *registry.purged_keys()])

    def _handle(self, realm_id: Any, key: RealmKey) -> RealmStore:
        return self.store.rows(realm_id, key).without_cache(budget_bytes=_REMEMBERED_BYTES)

    def _versions_in(self, page: Sequence[ObjectKey]) -> Iterator[StoredVersion]:
        by_realm: dict[RealmKey, list[ObjectKey]] = {}
        for key in page:
            by_realm.setdefault(key.realm, []).append(key)
        for realm, keys in by_realm.items():
            if realm not in self._realms:
                self._realms[realm] = self._found_meanwhile(realm)
            versions = self._realms[realm]
            if versions is not None:
                yield from versions.look_at(keys)

    def _found_meanwhile(self, key: RealmKey) -> _RealmVersions | None:
        """A realm that was created since the scan began, or one whose entry was lost: then its tables are unknown."""
        realm = next((realm for realm in RealmRegistry(self.store).list_realms() if realm.key == key), None)
        if realm is not None:
            return _RealmVersions(self._handle(realm.id, key), self.on_content)
        detail = f"there are rows under the realm key {key}, and no such realm is listed: run `headwater fsck`"
        self.blocked.append(BlockedPlace(location=EVERYWHERE, code=PlaceReason.REFERRER_UNREADABLE, detail=detail))
        return None


class _RealmVersions:
    """The versions of one realm, row by row."""

    def __init__(self, rows: RealmStore, on_content: Callable[[StoredContent], None]) -> None:
        self._rows = rows
        self._on_content = on_content
        self._commits = LiveSet(1 << 62)
        self._waiting: dict[ObjectId, ObjectId] = {}
        """Commits whose parent was not met yet, with it: those of which that stays so are the oldest."""
        self._read = LiveSet(_EXACT_BYTES)
        self._faults: dict[PlaceReason, str] = {}
        self._deltas: dict[str, str] = {}
        self.is_torn = False

    def look_at(self, keys: Sequence[ObjectKey]) -> Iterator[StoredVersion]:
        by_type: dict[str, list[ObjectId]] = {}
        for key in keys:
            if key.part == 0:
                by_type.setdefault(key.type, []).append(key.id)
        for type_name, ids in by_type.items():
            if type_name in _HELD:
                yield from self._objects(type_name, ids)
            elif registered_type(type_name) is None:
                self._note(
                    PlaceReason.REFERRER_TOO_NEW,
                    f"object {id_text(ids[0])} is of the type {type_name!r}, which this release does not know: upgrade",
                )

    def _objects(self, type_name: str, ids: Sequence[ObjectId]) -> Iterator[StoredVersion]:
        if type_name == "iceberg-metadata":
            for start in range(0, len(ids), _DOCUMENTS_AT_ONCE):
                some = ids[start : start + _DOCUMENTS_AT_ONCE]
                self._rows.read_each(some, StoredObject)  # in one trip; whoever reads their texts next finds them in memory
                yield from map(self._document, some)
            return
        kept = self._rows.without_cache()  # each of them is needed once
        for start in range(0, len(ids), _READ_AT_ONCE):
            some = ids[start : start + _READ_AT_ONCE]
            for object_id, value in zip(some, kept.read_each(some, StoredObject), strict=True):
                if isinstance(value, CorruptionError):
                    self._note(PlaceReason.REFERRER_UNREADABLE, str(value))
                elif isinstance(value, Commit):
                    yield from self._commit(object_id, value)
                elif value is not None:
                    self._content(value)

    def oldest_contents(self) -> Iterator[StoredVersion]:
        """What the oldest commits hold that no stored commit put."""
        waiting, commits = self._waiting, self._commits
        self._waiting, self._commits, self.is_torn = {}, LiveSet(1 << 62), False
        for commit_id, parent in waiting.items():
            if not commits.is_exact(parent):
                yield from self._oldest(commit_id)

    def note_torn(self) -> None:
        """Note that collections were faster than every scan."""
        detail = "collections of garbage deleted its oldest commits while these were read: run it again"
        self._note(PlaceReason.REFERRER_UNREADABLE, detail)

    def blocked(self) -> list[BlockedPlace]:
        deltas = [
            BlockedPlace(location=folder, code=PlaceReason.WRITTEN_ELSEWHERE, detail=f"a Delta Lake table lies there: {path}")
            for folder, path in self._deltas.items()
        ]
        if not self._faults:
            return deltas
        buckets = realm_buckets(self._rows)
        return deltas + [
            BlockedPlace(location=bucket, code=code, detail=f"realm {self._rows.realm!r}: {detail}")
            for code, detail in self._faults.items()
            for bucket in buckets
        ]

    def _note(self, code: PlaceReason, detail: str) -> None:
        self._faults.setdefault(code, detail)

    def _document(self, object_id: ObjectId) -> StoredVersion:
        return StoredVersion(f"{self._rows.key:x}-{id_text(object_id)}", self._rows.key, partial(self._text, object_id))

    def _text(self, object_id: ObjectId) -> bytes:
        stored = self._rows.read_object(object_id, IcebergMetadata)
        if stored.unknown:
            self._note(PlaceReason.REFERRER_TOO_NEW, f"object {id_text(object_id)} was written by a later release: upgrade")
        return join_metadata(read_metadata(self._rows, object_id))

    def _content(self, value: StoredObject) -> None:
        if value.unknown:
            self._note(PlaceReason.REFERRER_TOO_NEW, f"a {value.type_name} was written by a later release: upgrade")
        if isinstance(value, IcebergTable | IcebergView | Udf):
            self._on_content(StoredContent(self._rows.key, value.metadata_location))
        elif isinstance(value, DeltaLakeTable):
            paths = [*value.metadata_location_history, *value.checkpoint_location_history, value.last_checkpoint or ""]
            for path in filter(None, paths):
                self._deltas.setdefault(path.partition("/_delta_log")[0].rstrip("/"), path)

    def _commit(self, commit_id: ObjectId, commit: Commit) -> Iterator[StoredVersion]:
        self._commits.mark(commit_id, KeepReason.HEAD)
        if commit.tail and not self._commits.is_exact(commit.tail[0]):
            self._waiting[commit_id] = commit.tail[0]
        if commit.unknown:
            self._note(PlaceReason.REFERRER_TOO_NEW, f"commit {id_text(commit_id)} was written by a later release: upgrade")
        put = [op.value for op in commit.operations if op.index == CONTENT and op.value is not None]
        yield from self._undocumented(put)

    def _oldest(self, commit_id: ObjectId) -> Iterator[StoredVersion]:
        commit = self._rows.find_object(commit_id, Commit)
        if commit is None:
            self.is_torn = True  # its children hold what it held, and their own operations do not tell of it
            return
        head = Head(commit_id, commit, self._rows)
        try:
            if CONTENT in head.names:
                values: list[IndexValue] = []
                for _, value in head.index(CONTENT).range():
                    values.append(value)
                    if len(values) >= _READ_AT_ONCE:
                        yield from self._undocumented(values)
                        values = []
                yield from self._undocumented(values)
        except (ExpiredError, CorruptionError) as fault:
            if head.is_collected():
                self.is_torn = True
            else:
                self._note(PlaceReason.REFERRER_UNREADABLE, str(fault))

    def _undocumented(self, values: Sequence[IndexValue]) -> Iterator[StoredVersion]:
        """The tables and views among these whose documents are not stored."""
        wanted = []
        for value in values:
            try:
                content = ContentValue.from_value(value)
            except CorruptionError as fault:
                self._note(PlaceReason.REFERRER_UNREADABLE, str(fault))
                continue
            if not isinstance(content.type, ContentType):
                self._note(PlaceReason.REFERRER_TOO_NEW, f"there is content of type {content.type}: upgrade")
            elif content.type in (ContentType.ICEBERG_TABLE, ContentType.ICEBERG_VIEW) and not content.has_metadata:
                wanted.append(content.object_id)
        wanted = self._read.unmarked(wanted)
        if not self._read.is_full:
            self._read.mark_many(wanted, KeepReason.HEAD)
        for object_id, stored in zip(wanted, self._rows.read_each(wanted, StoredObject), strict=True):
            if isinstance(stored, CorruptionError):
                self._note(PlaceReason.REFERRER_UNREADABLE, str(stored))
            elif isinstance(stored, IcebergTable | IcebergView):
                version_id = f"{self._rows.key:x}-{id_text(object_id)}"
                yield StoredVersion(version_id, self._rows.key, None, stored.metadata_location)


def realm_buckets(rows: RealmStore) -> list[str]:
    """The buckets on which a realm's catalogs may have files; ``EVERYWHERE`` where that cannot be read."""
    try:
        definitions = listed_definitions(rows, index=BY_ID)
        claims = read_head(rows, CLAIMS, fresh=True)
        claimed = [] if claims is None else [key.decode() for key, _ in claims.index(BY_LOCATION).range()]
    except HeadwaterError:
        return [EVERYWHERE]
    if definitions.unreadable:
        return [EVERYWHERE]
    places = [place for definition in definitions for place in definition.places]
    buckets = {bucket_of(place) for place in [*places, *claimed]}
    return [EVERYWHERE] if None in buckets or not buckets else sorted(bucket for bucket in buckets if bucket)


def bucket_of(location: str) -> str | None:
    """The bucket of a location, as ``s3://lake``; all local files are one. None for what is no location."""
    key = strict_key(location)
    return None if key is None else "/".join(key.split("/", 3)[:3])
