"""Export: write the state of a realm at one moment to a file that appears as a whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import structlog

from headwater.backup.archive_format import ArchivedReference, BlockKind, BlockWriter, RealmDigest
from headwater.backup.archive_manifest import (
    ArchiveEnd,
    ArchiveManifest,
    check_archive,
    end_record,
    manifest_record,
    realm_definition,
)
from headwater.backup.realm_snapshot import RealmSnapshot, check_exportable_time, newest_readable, sealed_objects, take_snapshot
from headwater.clock import Micros, as_text
from headwater.commits import unpin_commits
from headwater.durability import publish
from headwater.errors import CorruptionError, FencedError, HeadwaterError, RefusedError, UnavailableError
from headwater.gc import Fence, ProgressCallback
from headwater.gc.sweep import paced_fence
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import ObjectId, RealmStore, Store, id_text

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrder:
    """What to export, and which task does it.

    time          the requested moment; None: the newest readable one
    task          the task whose pins keep what is being read
    """

    realm: str
    file: Path
    time: Micros | None
    task: ObjectId
    attempt: int = 1
    realm_key: int = 0


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
            _unpin(rows, order, fence)
            return done
    time = newest_readable(store.clock.now(), store.settings) if order.time is None else order.time
    try:
        snapshot = take_snapshot(rows, time, owner=order.task, fence=fence)
        done = _write(rows, realm, order, snapshot, fence=fence, progress=progress)
    except HeadwaterError as fault:
        if isinstance(fault, CorruptionError):
            # the realm may have been purged meanwhile: then nothing is damaged
            _exportable(realms.read_realm(realm.id), realm.key)
        if _may_tidy_up(fence):
            _unpin(rows, order, fence)
        raise
    _unpin(rows, order, fence)
    return done


def check_exportable(store: Store, realm_id: str, time: Micros | None) -> None:
    """Pass if a realm can be exported now as of a moment (None: the newest). Raises RefusedError as ``export_realm`` does."""
    realm = _exportable(RealmRegistry(store).read_realm(realm_id), 0)
    moment = newest_readable(store.clock.now(), store.settings) if time is None else time
    check_exportable_time(store.rows(realm.id, realm.key).without_cache(), moment)


def _write(
    rows: RealmStore, realm: Realm, order: ExportOrder, snapshot: RealmSnapshot, *, fence: Fence, progress: ProgressCallback
) -> ExportResult:
    contents, still_mine = RealmDigest(pointers=dict(snapshot.pointers)), paced_fence(fence, rows.clock)
    manifest = ArchiveManifest(
        realm=realm.id,
        as_of=snapshot.time,
        exported=rows.clock.now(),
        task=id_text(order.task),
        definition=realm_definition(realm),
    )
    with _file_faults(order.file), _temporary(order) as (file, temporary):
        blocks = BlockWriter(file)
        blocks.add_record(BlockKind.MANIFEST, manifest_record(manifest))
        for name in sorted(snapshot.pointers, key=str.encode):
            blocks.add_record(BlockKind.REFERENCES, ArchivedReference(name, snapshot.pointers[name]).record())
        for sealed in sealed_objects(rows, snapshot.commits):
            record = sealed.record()
            contents.add_object(sealed, record)
            if blocks.add_record(BlockKind.OBJECTS, record):
                fence()
            still_mine()
            progress(contents.objects, 0, "objects")
        blocks.close_block()
        end = ArchiveEnd.from_digest(contents, blocks=blocks.number, before=blocks.digest())
        blocks.add_record(BlockKind.END, end_record(end))
        blocks.close_block()
        file.flush()
        os.fsync(file.fileno())
        fence()
        _publish(temporary, order.file)
    return ExportResult(order.file, manifest, end, blocks.size_bytes)


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


def _unpin(rows: RealmStore, order: ExportOrder, fence: Fence) -> None:
    try:
        unpin_commits(rows, order.task, fence=fence)
    except HeadwaterError as fault:
        _log.warning("the commits stay pinned until the next collection", realm=rows.realm, fault=str(fault))
