"""Export: write the state of a realm at one moment to a file that appears as a whole or not at all.

The snapshot of a realm at one moment has its references, their pinned commits, and every object that they reach.
A moment is readable once no commit of that time can appear any more, and while deletions and moves since then are still recorded.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import structlog

from headwater.backup.archive_format import (
    ARCHIVE_FORMAT,
    FILE_TABLES_FORMAT,
    ArchivedReference,
    ArchiveEnd,
    ArchiveManifest,
    BlockKind,
    BlockWriter,
    RealmDigest,
    SealedObject,
    check_archive,
    file_table_counts,
    open_sealed,
    realm_definition,
)
from headwater.backup.archived_tables import pack_record, table_records
from headwater.catalogs import reference_text
from headwater.catalogs.registry import (
    CATALOGS,
    OwnRefKind,
    catalog_ids_at,
    own_reference,
    own_references_at,
    ref_references_at,
    relisted_since,
)
from headwater.clock import Micros, as_text
from headwater.commits import (
    AbsentReference,
    Head,
    hold_pins,
    no_state_error,
    pin_commits,
    read_collection,
    state_as_of,
    unpin_commits,
)
from headwater.durability import publish
from headwater.errors import CorruptionError, ExpiredError, FencedError, HeadwaterError, RefusedError, UnavailableError
from headwater.files import FileScope, FileTable, FileTableDefinition, FileTableState, list_file_tables
from headwater.files.open_references import open_file_references
from headwater.gc.live_set import LiveSet
from headwater.gc.retention import KeepReason
from headwater.realms import FILLED_REFERENCES, REALM_REFERENCES, Realm, RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, Store, id_text
from headwater.store.realm_objects import load_object
from headwater.throttle import Fence, FenceWatch, ProgressCallback

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrder:
    """What to export, and which task does it.

    time          the requested moment; None: the newest readable one
    task          the task whose pins keep what is being read
    held_until    until then everything that the archive names stays, in the store and in the lake; None: no longer than the export takes
    """

    realm: str
    file: Path
    time: Micros | None
    task: ObjectId
    attempt: int = 1
    realm_key: int = 0
    held_until: Micros | None = None


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The contents of a written archive."""

    file: Path
    manifest: ArchiveManifest
    end: ArchiveEnd
    file_bytes: int

    def as_plain(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "realm": self.manifest.realm,
            "asOf": as_text(self.manifest.as_of),
            "references": self.end.references,
            "objects": self.end.objects,
            "types": dict(self.end.types),
            "objectBytes": self.end.size_bytes,
            **file_table_counts(self.end),
            "fileBytes": self.file_bytes,
            "digest": self.end.digest,
        }


def export_realm(
    store: Store,
    order: ExportOrder,
    *,
    fence: Fence = lambda: None,
    progress: ProgressCallback = lambda done, total, unit: None,
) -> ExportResult:
    """Write the archive. After an interruption it starts over and removes what the earlier attempt had written.

    raises        RefusedError: the file exists, the realm is in another state, the moment cannot be read ·
                  UnavailableError: a collection sweeps, or the disk is full · CorruptionError: an object of the realm is damaged
    """
    realms = RealmRegistry(store)
    realm = _exportable(realms.read_realm(order.realm), order.realm_key)
    rows = realms.open_realm_for(realm.id, realm.state)
    with _file_faults(order.file):
        _remove_leftovers(order)
        if order.file.exists():
            done = _written_before(order)
            _let_go(rows, order, fence)
            return done
    time = newest_readable(store.clock.now(), store.settings) if order.time is None else order.time
    try:
        snapshot = take_snapshot(rows, time, owner=order.task, fence=fence)
        done = _write(store, rows, realm, order, snapshot, fence=fence, progress=progress)
    except HeadwaterError as fault:
        if isinstance(fault, CorruptionError):
            # the realm may have been purged meanwhile: then nothing is damaged
            _exportable(realms.read_realm(realm.id), realm.key)
        if _may_tidy_up(fence):
            _unpin(rows, order, fence)
        raise
    _let_go(rows, order, fence)
    return done


def check_exportable(store: Store, realm_id: str, time: Micros | None) -> None:
    """Pass if a realm can be exported now as of a moment (None: the newest). Raises RefusedError as ``export_realm`` does."""
    realm = _exportable(RealmRegistry(store).read_realm(realm_id), 0)
    moment = newest_readable(store.clock.now(), store.settings) if time is None else time
    check_exportable_time(store.rows(realm.id, realm.key).without_cache(), moment)


def _write(
    store: Store,
    rows: RealmStore,
    realm: Realm,
    order: ExportOrder,
    snapshot: RealmSnapshot,
    *,
    fence: Fence,
    progress: ProgressCallback,
) -> ExportResult:
    contents, still_mine = RealmDigest(pointers=dict(snapshot.pointers)), FenceWatch(fence, rows.clock).check_now_and_then
    manifest = ArchiveManifest(
        realm=realm.id,
        as_of=snapshot.time,
        exported=rows.clock.now(),
        task=id_text(order.task),
        definition=realm_definition(realm),
    )
    with _file_faults(order.file), _temporary(order) as (file, temporary):
        tables = archived_tables(rows)
        blocks = BlockWriter(file, archive_format=FILE_TABLES_FORMAT if tables else ARCHIVE_FORMAT)
        blocks.add_record(BlockKind.MANIFEST, msgspec.json.encode(manifest))
        for name in sorted(snapshot.pointers, key=str.encode):
            blocks.add_record(BlockKind.REFERENCES, ArchivedReference(name, snapshot.pointers[name]).record())
        for sealed in sealed_objects(rows, snapshot.commits):
            record = sealed.record()
            contents.add_object(sealed, record)
            if blocks.add_record(BlockKind.OBJECTS, record):
                fence()
            still_mine()
            progress(contents.objects, 0, "objects")
        for table in tables:
            _write_table(store, rows, table, blocks, contents)
            fence()
        blocks.close_block()
        end = ArchiveEnd.from_digest(contents, blocks=blocks.number, before=blocks.digest())
        blocks.add_record(BlockKind.END, msgspec.json.encode(end))
        blocks.close_block()
        file.flush()
        os.fsync(file.fileno())
        fence()
        _publish(temporary, order.file)
    return ExportResult(order.file, manifest, end, blocks.size_bytes)


def _write_table(
    store: Store, rows: RealmStore, definition: FileTableDefinition, blocks: BlockWriter, contents: RealmDigest
) -> None:
    """Write a file table as it is now: of its references no earlier state is known."""
    with closing(open_file_references(store, FileScope(rows.key, definition.id))) as references:
        taken = rows.clock.now()
        snapshot, tree = FileTable(rows, definition, references).read_both()
    contents.file_tables += 1
    contents.file_references += len(snapshot.references)
    for record in table_records(definition, snapshot, tree, taken=taken):
        blocks.add_record(BlockKind.FILE_TABLES, pack_record(record))


def archived_tables(rows: RealmStore) -> list[FileTableDefinition]:
    """The file tables that an archive gets: those that can be read.

    raises        CorruptionError when a definition cannot be read
    """
    tables = list_file_tables(rows).complete()
    return [table for table in tables if table.state in (FileTableState.ACTIVE, FileTableState.READ_ONLY)]


def _exportable(realm: Realm, key: int) -> Realm:
    if key not in (0, realm.key):
        raise RefusedError(f"realm {realm.id!r} was created anew since this export was asked for: ask again")
    if realm.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        raise RefusedError(f"realm {realm.id!r} is {realm.state}: only an ACTIVE or INACTIVE realm can be exported")
    return realm


def _written_before(order: ExportOrder) -> ExportResult:
    """The archive that an earlier attempt of this task put in place before it died without recording it; None if there is none."""
    with contextlib.suppress(HeadwaterError):
        checked = check_archive(order.file)
        if checked.manifest.task == id_text(order.task):
            return ExportResult(order.file, checked.manifest, checked.end, order.file.stat().st_size)
    raise RefusedError(f"there is a file {str(order.file)!r} already: nothing is overwritten, name another one or take it away")


@contextmanager
def _temporary(order: ExportOrder) -> Iterator[tuple[BinaryIO, Path]]:
    """Create a temporary file next to the target, readable only by its owner, because an archive has the hashes of credentials.
    Always removed.
    """
    path = order.file.with_name(f".{order.file.name}.{id_text(order.task)}-{order.attempt}.partial")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file, path
    finally:
        path.unlink(missing_ok=True)


def _remove_leftovers(order: ExportOrder) -> None:
    pattern = f".{glob.escape(order.file.name)}.{id_text(order.task)}-*.partial"
    for leftover in order.file.parent.glob(pattern):
        leftover.unlink(missing_ok=True)


def _publish(temporary: Path, target: Path) -> None:
    try:
        publish(temporary, target)
    except FileExistsError as exists:
        raise RefusedError(f"there is a file {str(target)!r} by now: nothing is overwritten, name another one") from exists
    except FileNotFoundError as gone:
        raise FencedError(f"{str(temporary)!r} was taken away: a later attempt writes {str(target)!r}") from gone


@contextmanager
def _file_faults(path: Path) -> Iterator[None]:
    """Map a wrong path to RefusedError, for a person to fix, and a full or absent disk to UnavailableError, which may pass."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as fault:
        raise RefusedError(f"{str(path)!r} cannot be written: {fault.strerror}") from fault
    except OSError as fault:
        raise UnavailableError(f"{str(path)!r} cannot be written: {fault.strerror}") from fault


def _may_tidy_up(fence: Fence) -> bool:
    """Whether this attempt still holds its task and was not asked to stop."""
    try:
        fence()
    except HeadwaterError:
        return False
    return True


def _let_go(rows: RealmStore, order: ExportOrder, fence: Fence) -> None:
    """Release the pins of an export that is done, or hold them for as long as it was asked for."""
    if order.held_until is not None:
        hold_pins(rows, order.task, order.held_until, fence=fence)
    else:
        _unpin(rows, order, fence)


def _unpin(rows: RealmStore, order: ExportOrder, fence: Fence) -> None:
    try:
        unpin_commits(rows, order.task, fence=fence)
    except HeadwaterError as fault:
        _log.warning("the commits stay pinned until the next collection", realm=rows.realm, fault=str(fault))


_REMEMBERED_BYTES = 32 * 1024 * 1024
_NAMES = 500


@dataclass(frozen=True, slots=True)
class RealmSnapshot:
    """``pointers`` maps each reference that existed at ``time`` to its newest commit by then."""

    time: Micros
    pointers: Mapping[str, ObjectId | None]

    @property
    def commits(self) -> dict[ObjectId, list[str]]:
        """The commits, each with the references that pointed to it."""
        names: dict[ObjectId, list[str]] = {}
        for name, commit in self.pointers.items():
            if commit is not None:
                names.setdefault(commit, []).append(name)
        return names


def take_snapshot(rows: RealmStore, time: Micros, *, owner: ObjectId, fence: Callable[[], None]) -> RealmSnapshot:
    """Determine the state at ``time`` and pin it for the task ``owner``.

    rows          a handle that may write, because it writes the pins
    raises        RefusedError for a time that is too late or undetermined; NotFoundError for one before the realm was filled;
                  ExpiredError for one that is no longer recorded; UnavailableError while a collection sweeps; CorruptionError for damage
    """
    looked = rows.without_cache(budget_bytes=_REMEMBERED_BYTES)
    snapshot = _SnapshotReader(looked, time, FenceWatch(fence, rows.clock).check_now_and_then).read_snapshot()
    fence()
    pin_commits(rows, owner, snapshot.commits, fence=fence)
    check_remembered(rows, time, now=rows.clock.now())
    return snapshot


@dataclass(slots=True)
class _SnapshotReader:
    rows: RealmStore
    time: Micros
    fence: Callable[[], None]
    pointers: dict[str, ObjectId | None] = field(default_factory=dict)

    def read_snapshot(self) -> RealmSnapshot:
        check_exportable_time(self.rows, self.time)
        heads = self._look_at(REALM_REFERENCES)
        if any(name not in heads for name in FILLED_REFERENCES):
            raise no_state_error(
                self.rows.realm, "the whole", self.time, "it was filled later, its bootstrap was under way; name a later time"
            )
        catalogs = heads.get(CATALOGS)
        if catalogs is not None:
            heads = self._look_at(own_references_at(catalogs))
            for catalog_id in catalog_ids_at(catalogs):
                refs = heads.get(own_reference(catalog_id, OwnRefKind.REFS))
                if refs is not None:
                    self._look_at_names(refs, catalog_id)
        return RealmSnapshot(self.time, self.pointers)

    def _look_at_names(self, refs: Head, catalog_id: str) -> None:
        newest = self.rows.find_row(own_reference(catalog_id, OwnRefKind.REFS))
        again = {}
        if newest is not None and newest.pointer is not None:
            again = dict(relisted_since(self.rows, newest.pointer, catalog_id, since=self.time))
        self._look_at(ref_references_at(refs, catalog_id), again)

    def _look_at(self, names: list[str] | tuple[str, ...], again: Mapping[str, Micros] | None = None) -> dict[str, Head]:
        """Record where these references pointed; returns the commits of those that had one."""
        heads = {}
        for start in range(0, len(names), _NAMES):
            some = names[start : start + _NAMES]
            for name, row in zip(some, self.rows.find_rows(some), strict=True):
                self.fence()
                what, since = partial(reference_text, self.rows, name), (again or {}).get(name)
                head = state_as_of(self.rows, row, self.time, what=what, relisted=since, fence=self.fence)
                if isinstance(head, AbsentReference):
                    continue
                self.pointers[name] = None if head is None else head.id
                if head is not None:
                    heads[name] = head
        return heads


def is_sweeping(rows: RealmStore) -> bool:
    """Whether a collection of the realm is sweeping, or was interrupted during its sweep."""
    record = read_collection(rows)
    return record is not None and record.value.sweeping


def check_exportable_time(rows: RealmStore, time: Micros) -> None:
    """Pass if a moment is past on every process, and the realm was filled by then.

    raises        RefusedError with the time from which it is possible · NotFoundError: the realm was filled later · ExpiredError:
                  the moment is no longer recorded
    """
    now, settings = rows.clock.now(), rows.settings
    ready = readable_from(time, settings)
    if now < ready:
        raise RefusedError(
            f"realm {rows.realm!r} as of {as_text(time)} can be read from {as_text(ready + 999_999)} on (--wait waits): until then a"
            " commit of that time may still be under way"
        )
    references = rows.find_rows(REALM_REFERENCES)
    born = max((row.created for row in references if row is not None), default=Micros(0))
    if born > time:
        filled = as_text(readable_from(born, settings) + 999_999)
        why = f"it was filled later, at {as_text(born)}, and can be exported from {filled} on (--wait waits)"
        raise no_state_error(rows.realm, "the whole", time, why)
    check_remembered(rows, time, now=now)


_SECOND = 1_000_000


def readable_from(time: Micros, settings: Settings) -> Micros:
    """The time after which no process can add a commit at or before ``time``."""
    return Micros(time + round((settings.commit_timeout_seconds + settings.clock_bound_seconds) * _SECOND))


def newest_readable(now: Micros, settings: Settings) -> Micros:
    """The newest moment that is readable now."""
    return Micros(now - (readable_from(Micros(0), settings)))


def check_remembered(rows: RealmStore, time: Micros, *, now: Micros) -> None:
    """Pass if everything at ``time`` is still recorded. Call it after reading and pinning: a collection may have begun meanwhile.

    raises        ExpiredError that names the oldest moment that is still recorded
    """
    settings = rows.settings
    record = read_collection(rows)
    grace = max(settings.reader_grace_seconds, settings.writer_grace_seconds)
    oldest = max(now - round(grace * _SECOND), 0 if record is None else record.value.reader_cutoff)
    if time < oldest:
        why = f"what was deleted and moved is remembered since {as_text(oldest + _SECOND - 1)} only"
        raise no_state_error(rows.realm, "the whole", time, why, kind=ExpiredError)


_BATCH = 100
_EXACT_BYTES = 1 << 40
"""An exact set without an upper bound, nine bytes an object: a probabilistic filter would leave objects out."""


def sealed_objects(rows: RealmStore, roots: Iterable[ObjectId]) -> Iterator[SealedObject]:
    """Yield the roots and everything they reach, each once, read from the database. Children follow soon after their parents.

    raises        CorruptionError when one is missing, damaged, or of a type that this release cannot walk
    """
    reached = LiveSet(_EXACT_BYTES)
    waiting = [root for root in roots if reached.mark(root, KeepReason.HEAD)]
    while waiting:
        batch = waiting[-_BATCH:]
        del waiting[-_BATCH:]
        read = {
            row.id: SealedObject(row.id, row.type, row.token is not None, envelope)
            for row, envelope in load_object(rows.store.backend, rows.realm, rows.key, batch)
        }
        for object_id in batch:
            sealed = read.pop(object_id, None)
            if sealed is None:
                raise CorruptionError(
                    f"object {id_text(object_id)} of realm {rows.realm!r} is referred to, but not there: run `headwater fsck`"
                )
            waiting += [
                target for target in open_sealed(sealed, rows.realm).points_to() if reached.mark(target, KeepReason.HEAD)
            ]
            yield sealed
