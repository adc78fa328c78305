"""Load: turn an archive into a new realm under its own key, which serves nobody until it was read back and found equal.

A realm that is being loaded has one additional object: the progress of the load, under a fixed id, where a resumed load finds it.
It is deleted at the end.

    archive checked as a whole -> CREATED -> LOADING, progress -> objects -> references -> read back -> file tables -> ACTIVE
    -> no progress
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from headwater.backup.archive_format import (
    BlockKind,
    CheckedArchive,
    RealmDigest,
    SealedObject,
    check_archive,
    file_table_counts,
    ids_until,
    open_archive,
    read_blocks,
    read_objects,
    realm_fields,
)
from headwater.backup.file_table_load import check_room, load_file_tables
from headwater.backup.realm_export import sealed_objects
from headwater.catalogs.file_marks import take_up_realm
from headwater.clock import as_text
from headwater.errors import (
    CorruptionError,
    DamagedFileError,
    FencedError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
)
from headwater.files import FILE_TABLES, parse_tree_reference
from headwater.realms import Realm, RealmClosedError, RealmRegistry, RealmState
from headwater.store import (
    ROW_BYTES,
    ObjectRow,
    RealmStore,
    ReferenceRow,
    Store,
    StoredObject,
    Versioned,
    checked_realm_id,
    fixed_id,
    object_type,
)
from headwater.store.store_identity import RELEASE, RELEASE_NAME, check_may_maintain, raise_least_release
from headwater.throttle import Fence, FenceWatch, ProgressCallback, no_progress

_REFERENCES = 200
_TRIES = 20
_SERVING = (RealmState.ACTIVE, RealmState.INACTIVE)
_REASONS = {
    RealmState.INITIALIZING: "it is INITIALIZING, a bootstrap fills it",
    RealmState.ACTIVE: "it is ACTIVE and has content of its own",
    RealmState.INACTIVE: "it is INACTIVE and has content of its own",
    RealmState.PURGING: "it is PURGING, everything in it is being deleted",
    RealmState.PURGED: "it is PURGED; delete it first",
}


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load."""

    realm: Realm
    file: Path
    checked: CheckedArchive

    def as_plain(self) -> dict[str, Any]:
        end, manifest = self.checked.end, self.checked.manifest
        return {
            "file": str(self.file),
            "realm": self.realm.id,
            "state": self.realm.state.value,
            "exportedRealm": manifest.realm,
            "asOf": as_text(manifest.as_of),
            "references": end.references,
            "objects": end.objects,
            "types": dict(end.types),
            "objectBytes": end.size_bytes,
            **file_table_counts(end),
            "digest": end.digest,
        }


def load_realm(
    store: Store,
    realm_id: str,
    file: Path,
    *,
    is_active: bool = True,
    fence: Fence = lambda: None,
    progress: ProgressCallback = no_progress,
) -> LoadResult:
    """Load an archive into a new realm. After an interruption the same call continues where the earlier one stopped.

    is_active     whether the realm serves users once it is loaded; otherwise it is INACTIVE
    raises        RefusedError: no archive, another format, ids ahead of the clock, a realm in another state or loaded from another
                  file · DamagedFileError: no realm was created · CorruptionError: what was written reads
                  back otherwise (the realm stays LOADING) · SwapConflictError: the realm was changed in the meantime
    """
    checked_realm_id(realm_id)

    def looked(objects: int) -> None:
        fence()
        progress(objects, 0, "objects checked")

    try:
        checked = check_archive(file, looked)
    except CorruptionError as fault:
        raise DamagedFileError(str(fault)) from fault
    loading = _RealmLoad(store, realm_id, file, checked, fence, progress)
    return LoadResult(loading.load(RealmState.ACTIVE if is_active else RealmState.INACTIVE), file, checked)


def check_loadable(realm: Realm | None) -> None:
    """Pass if a load may start or resume: there is no such realm yet, it is CREATED without a manager, or LOADING.

    raises        RefusedError that says what it is
    """
    if realm is None or realm.state is RealmState.LOADING:
        return
    if realm.state is not RealmState.CREATED or realm.manager is not None:
        reason = _REASONS.get(realm.state, "a resource manages it, and will fill it")
        raise RefusedError(f"realm {realm.id!r} cannot be imported: {reason}. An import makes a new realm: name another id")


def delete_load_progress(store: Store, realm_id: str) -> None:
    """Delete the progress of a finished load from its realm. Idempotent, and without effect in every other realm."""
    realm = RealmRegistry(store).find_realm(realm_id)
    if realm is None or realm.state not in _SERVING:
        return
    rows = RealmRegistry(store).open_realm_for(realm_id, realm.state)
    progress = rows.find_versioned(LOAD_PROGRESS_ID, LoadProgress)
    if progress is not None:
        rows.delete_object(progress)


@dataclass(slots=True)
class _RealmLoad:
    store: Store
    realm_id: str
    file: Path
    checked: CheckedArchive
    fence: Fence
    progress: ProgressCallback

    def load(self, to: RealmState) -> Realm:
        realms = RealmRegistry(self.store)
        self._check_release()
        self._check_clock()
        if self.checked.end.file_tables:
            check_room(self.store, str(self.file))
        realm = self._made(realms)
        if realm.state in _SERVING:
            return realm  # an earlier attempt came this far
        rows = realms.open_realm_for(realm.id, RealmState.LOADING)
        self._write_objects(rows, self._begun(rows))
        self._take_up_marks(realms)
        self._write_references(rows)
        self._verify(rows)
        if self.checked.end.file_tables:
            load_file_tables(self.store, rows, self.file, fence=self.fence)
        protected = bool(self.checked.manifest.definition.get("deletion_protection"))
        self.fence()
        now = realms.read_realm(realm.id)
        if now.key != realm.key:
            raise SwapConflictError(
                f"realm {realm.id!r} was purged and created anew while it was loaded: nothing of the archive is in it"
            )
        now = realms.update_realm(now, deletion_protection=protected)
        return realms.move_realm(now, to, fence=self.fence)

    def _check_release(self) -> None:
        """Pass if this release may maintain the store, and what the archive brings into it."""
        check_may_maintain(self.store, "an import")
        manifest = self.checked.manifest
        if manifest.least_release > RELEASE:
            raise RefusedError(
                f"archive {str(self.file)!r} has references ({', '.join(manifest.extensions[:3])}) that only release"
                f" {manifest.least_name or 'a later one'} or a later one may maintain (number {manifest.least_release}; this release has"
                f" {RELEASE}): import it with that one"
            )

    def _take_up_marks(self, realms: RealmRegistry) -> None:
        """Take up all marks of files in the store: what the archive names may have been marked, once nothing else named it any more."""
        for realm in realms.list_realms().complete():
            self._take_up_marks_of(realms, realm)

    def _take_up_marks_of(self, realms: RealmRegistry, realm: Realm) -> None:
        """Take up the marks of one realm. It may be deactivated, purged or deleted meanwhile: once it serves nobody, it has none."""
        seen: Realm | None = realm
        for _ in range(_TRIES):
            if seen is None or seen.state not in _SERVING:
                return
            self.fence()
            try:
                take_up_realm(realms.open_realm_for(seen.id, seen.state))
                return
            except RealmClosedError:
                seen = realms.find_realm(seen.id)
            except NotFoundError:
                before, seen = seen, realms.find_realm(seen.id)
                if seen == before:
                    raise
        raise UnavailableError(f"realm {realm.id!r} changes its state again and again: the import goes on by itself")

    def _made(self, realms: RealmRegistry) -> Realm:
        """The realm in LOADING, or in a later state if an earlier attempt already finished."""
        # deletion protection is set at the end: a realm that fails to load must be purgeable
        fields = realm_fields(self.checked.manifest, str(self.file)) | {
            "deletion_protection": False,
            "loaded_until": ids_until(self.checked.end),
        }
        self.fence()
        realm = realms.find_realm(self.realm_id) or realms.create_realm(self.realm_id, **fields)
        if realm.state in _SERVING and self._is_mine(realms.open_realm_for(realm.id, realm.state)):
            return realm
        if realm.state is RealmState.LOADING:
            return realm
        check_loadable(realm)
        realm = realms.update_realm(realm, **fields)
        return realms.move_realm(realm, RealmState.LOADING, fence=self.fence)

    def _is_mine(self, rows: RealmStore) -> bool:
        progress = rows.find_versioned(LOAD_PROGRESS_ID, LoadProgress)
        return progress is not None and progress.value.archive == self.checked.end.before

    def _begun(self, rows: RealmStore) -> Versioned[LoadProgress]:
        """Start a load, or read the progress of an earlier attempt."""
        progress = rows.find_versioned(LOAD_PROGRESS_ID, LoadProgress)
        if progress is None:
            if not rows.is_empty():
                raise RefusedError(
                    f"realm {rows.realm!r} is LOADING, and has rows of which no import tells: purge it and import under another id"
                )
            self.fence()
            return rows.insert_object(LOAD_PROGRESS_ID, LoadProgress(archive=self.checked.end.before))
        if progress.value.archive != self.checked.end.before:
            raise RefusedError(
                f"realm {rows.realm!r} is being loaded from another archive than {str(self.file)!r}: go on with that one, or purge the"
                " realm and begin anew"
            )
        return progress

    def _check_clock(self) -> None:
        """Check that the clock is ahead of every id in the archive: otherwise this process could generate one of them again.

        A process whose clock is behind is kept from that by the guards of the realm, which is told the time.
        """
        if self.store.clock.now() < ids_until(self.checked.end):
            raise RefusedError(
                f"archive {str(self.file)!r} has objects whose ids are ahead of this machine's clock: it can be imported from"
                f" {as_text(ids_until(self.checked.end) + 999_999)} on"
            )

    def _write_objects(self, rows: RealmStore, state: Versioned[LoadProgress]) -> None:
        total, done = self.checked.end.objects, 0
        with open_archive(self.file) as file:
            for block in read_blocks(file, str(self.file)):
                if block.kind is not BlockKind.OBJECTS:
                    continue
                objects = [sealed for sealed, _ in read_objects(block.body)]
                done += len(objects)
                if block.number > state.value.block:
                    self.fence()
                    rows.check_write()
                    rows.store.backend.write_objects([row for sealed in objects for row in _rows_of(rows, sealed)])
                    state = rows.update_object(state, msgspec.structs.replace(state.value, block=block.number))
                self.progress(done, total, "objects loaded")

    def _write_references(self, rows: RealmStore) -> None:
        """Create the references. Those that an earlier attempt created are taken over by raising their versions.

            an attempt that was stopped         the next one                       somebody else
            makes a reference, and sleeps
                                                finds it, raises its version, ends
                                                                                   deletes the branch
            wakes, finds that it was taken
            over: takes back what it made, if
            it is still as it was made

        If the first attempt pauses before it creates the reference, nobody has raised the version, and it removes what it creates:
        no name comes back after its deletion.
        """
        manifest = self.checked.manifest
        if manifest.extensions:  # before the first of them is there
            raise_least_release(self.store, max(manifest.least_release, RELEASE), manifest.least_name or RELEASE_NAME)
        for batch in _batches(sorted(self.checked.pointers, key=str.encode)):
            waiting = batch
            for _ in range(_TRIES):
                self.fence()
                waiting = [name for name in self._make(rows, waiting) if not self._take_over(rows, name)]
                if not waiting:
                    break
            else:
                raise UnavailableError(
                    f"references {waiting!r} of realm {rows.realm!r} come and go: the import goes on by itself"
                )

    def _make(self, rows: RealmStore, names: Sequence[str]) -> list[str]:
        """Create references. Returns the names of those that existed already."""
        rows.check_write()
        now, versions = rows.clock.now(), rows.new_ids(len(names))
        wanted = [
            ReferenceRow(realm=rows.key, name=name, pointer=self.checked.pointers[name], version=version, created=now)
            for name, version in zip(names, versions, strict=True)
        ]
        made = rows.store.backend.create_references(wanted)
        try:
            self.fence()
        except FencedError:
            for row in (row for row, is_made in zip(wanted, made, strict=True) if is_made):
                with suppress(SwapConflictError):
                    rows.store.backend.remove_reference(row)
            raise
        return [row.name for row, is_made in zip(wanted, made, strict=True) if not is_made]

    def _take_over(self, rows: RealmStore, name: str) -> bool:
        """Take over an existing reference; returns whether it worked. SwapConflictError when it differs from the archive."""
        reference = rows.find_row(name)
        if reference is None:
            return False
        if reference.deleted is not None or reference.pointer != self.checked.pointers[name]:
            raise SwapConflictError(f"reference {name!r} of realm {rows.realm!r} was changed while the realm was loaded")
        try:
            rows.raise_version(reference)
        except SwapConflictError:
            return False
        return True

    def _verify(self, rows: RealmStore) -> None:
        """Read everything back from the database, starting at the references as users do."""
        digest = RealmDigest()
        for names in _batches([key.name for key in rows.scan_references()]):
            self.fence()
            for row in rows.find_rows(names):
                if row is not None and row.deleted is None and not _is_of_file_tables(row.name):
                    digest.pointers[row.name] = row.pointer
        total, still_mine = self.checked.end.objects, FenceWatch(self.fence, rows.clock).check_now_and_then
        for sealed in sealed_objects(rows, [pointer for pointer in digest.pointers.values() if pointer is not None]):
            digest.add_object(sealed, sealed.record())
            still_mine()
            self.progress(digest.objects, total, "objects read back")
        if digest.digest() != self.checked.end.digest:
            raise CorruptionError(
                f"realm {rows.realm!r} does not read back as archive {str(self.file)!r} has it ({digest.objects} objects of"
                f" {total}, {len(digest.pointers)} references of {self.checked.end.references}): it stays LOADING; purge it"
            )


def _is_of_file_tables(reference: str) -> bool:
    """Whether an earlier attempt has made a reference after everything else was read back."""
    return reference == FILE_TABLES or parse_tree_reference(reference) is not None


def _rows_of(rows: RealmStore, sealed: SealedObject) -> Iterator[ObjectRow]:
    token = secrets.token_hex(8) if sealed.is_updateable else None
    now, size = rows.clock.now(), len(sealed.envelope)
    starts = range(0, size, ROW_BYTES)
    for part, start in enumerate(starts):
        yield ObjectRow(
            realm=rows.key,
            id=sealed.id,
            part=part,
            type=sealed.type,
            value=sealed.envelope[start : start + ROW_BYTES],
            created=now,
            token=token,
            parts=len(starts),
        )


def _batches(names: Sequence[str]) -> Iterator[list[str]]:
    remaining = iter(names)
    while batch := list(islice(remaining, _REFERENCES)):
        yield batch


LOAD_PROGRESS_ID = fixed_id(3)
"""The fixed id under which a realm that is being loaded keeps its progress."""


@object_type("load-progress", updateable=True)
class LoadProgress(StoredObject, frozen=True, kw_only=True):
    """The progress of a load.

    archive       SHA-256 of the archive up to its last block, which identifies the archive
    block         number of the last block whose objects were written; 0: none, for that one has none
    """

    archive: str
    block: int = 0
