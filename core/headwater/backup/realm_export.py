"""Export: write the state of a realm at one moment to a file that appears as a whole or not at all.

The archive has the references of a snapshot (see ``realm_snapshot``), their pinned commits, and every object that they reach.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import structlog

from headwater.backup.archive_format import (
    ARCHIVE_FORMAT,
    EXTENSIONS_FORMAT,
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
    ids_until,
    open_sealed,
    realm_definition,
)
from headwater.backup.archived_tables import pack_record, table_records
from headwater.backup.realm_snapshot import (
    RealmSnapshot,
    check_exportable_time,
    check_newest_exportable,
    take_snapshot,
)
from headwater.clock import Micros, as_text
from headwater.commits import (
    hold_pins,
    unpin_commits,
)
from headwater.durability import publish
from headwater.errors import CorruptionError, FencedError, HeadwaterError, RefusedError, UnavailableError
from headwater.files import FileScope, FileTable, FileTableDefinition, FileTableState, list_file_tables
from headwater.files.open_references import open_file_references
from headwater.gc.live_set import LiveSet
from headwater.gc.retention import KeepReason, open_scope
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import ObjectId, RealmStore, Store, id_text
from headwater.store.realm_objects import load_object
from headwater.store.store_identity import read_least_release
from headwater.throttle import Fence, FenceWatch, ProgressCallback, no_progress

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrder:
    """What to export, and which task does it.

    time          the requested moment; None: now, or the newest that can be read (see ``take_snapshot``)
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
    """The contents of a written archive.

    importable_from  the first time at which it can be imported, where that lies ahead: it has ids of a clock that was ahead
    """

    file: Path
    manifest: ArchiveManifest
    end: ArchiveEnd
    file_bytes: int
    importable_from: Micros | None = None

    @classmethod
    def of(cls, rows: RealmStore, file: Path, manifest: ArchiveManifest, end: ArchiveEnd, file_bytes: int) -> ExportResult:
        until = ids_until(end)
        return cls(file, manifest, end, file_bytes, until if until > rows.credible_until(rows.clock.now()) else None)

    def as_plain(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "realm": self.manifest.realm,
            "asOf": as_text(self.manifest.as_of),
            **({} if self.importable_from is None else {"importableFrom": as_text(self.importable_from + 999_999)}),
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
    progress: ProgressCallback = no_progress,
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
            done = _written_before(rows, order)
            _let_go(rows, order, fence)
            return done
    _check_listed(store, realm.id)
    try:
        snapshot = take_snapshot(rows, order.time, owner=order.task, fence=fence)
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
    rows = store.rows(realm.id, realm.key).without_cache()
    _check_listed(store, realm.id)
    if time is None:
        check_newest_exportable(rows)
    else:
        check_exportable_time(rows, time)


def _check_listed(store: Store, realm_id: str) -> None:
    """Pass if every living reference stands in a list: an archive has what the lists name, and would leave any other out silently.

    raises        RefusedError that names them
    """
    scope = open_scope(store, realm_id)
    unlisted = [entry.name for entry in scope.find_unlisted()]
    living = [row.name for row in scope.rows.find_rows(unlisted) if row is not None and row.deleted is None]
    if living:
        shown = ", ".join(map(repr, living[:3])) + (", ..." if len(living) > 3 else "")
        raise RefusedError(
            f"realm {realm_id!r} has references that no list names ({shown}): an archive would lack them and what they hold, so nothing is"
            " exported. `headwater fsck` reports what each is and what to do"
        )


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
    least, least_name = read_least_release(store) if snapshot.extensions else (0, "")
    contents, still_mine = RealmDigest(pointers=dict(snapshot.pointers)), FenceWatch(fence, rows.clock).check_now_and_then
    manifest = ArchiveManifest(
        realm=realm.id,
        as_of=snapshot.time,
        exported=rows.clock.now(),
        task=id_text(order.task),
        definition=realm_definition(realm),
        extensions=sorted(snapshot.extensions),
        least_release=least,
        least_name=least_name,
    )
    with _file_faults(order.file), _temporary(order) as (file, temporary):
        tables = archived_tables(rows)
        plain = FILE_TABLES_FORMAT if tables else ARCHIVE_FORMAT
        blocks = BlockWriter(file, archive_format=EXTENSIONS_FORMAT if snapshot.extensions else plain)
        blocks.add_record(BlockKind.MANIFEST, msgspec.json.encode(manifest))
        for name in sorted(snapshot.pointers, key=str.encode):
            blocks.add_record(BlockKind.REFERENCES, ArchivedReference(name, snapshot.pointers[name]).record())
        for sealed in sealed_objects(rows, snapshot.commits):
            record = sealed.record()
            contents.add_object(sealed, record)
            if blocks.add_record(BlockKind.OBJECTS, record):
                fence()
            still_mine()
            progress(contents.objects, 0, "objects written")
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
    return ExportResult.of(rows, order.file, manifest, end, blocks.size_bytes)


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


def _written_before(rows: RealmStore, order: ExportOrder) -> ExportResult:
    """The archive that an earlier attempt of this task put in place before it died without recording it; None if there is none."""
    with contextlib.suppress(HeadwaterError):
        checked = check_archive(order.file)
        if checked.manifest.task == id_text(order.task):
            return ExportResult.of(rows, order.file, checked.manifest, checked.end, order.file.stat().st_size)
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
