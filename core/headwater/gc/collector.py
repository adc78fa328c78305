"""One collection of a realm's garbage: mark, publish, mark what came between, save, sweep, clean up.

``headwater.commits.ref_updates`` is the other side of the handshake: it refuses to point a reference at an old commit during a sweep.

1. Fix the cut-offs: no row younger than the writers' grace is touched, and what was HEAD within the readers' grace stays.
2. Mark from every listed reference. Plan by a scan that deletes nothing.
3. Note what commits tell of metadata files, which has to outlive the commits; see ``headwater.catalogs.known_metadata``.
   Publish "sweeping". Raise the version of every listed reference and mark what is new: whoever read a reference before that loses
   the swap now.
4. Save the live set. From here on an interrupted run is resumed with the same live set and the same cut-offs.
5. Sweep: delete the rows that are unmarked, or left-over parts of what is marked, and unchanged since they were scanned.
   Withdraw the flag.

A run that crashed leaves the flag on, which harms nobody but those who want to point at an old commit. While it is on, nothing that was
garbage can come back, and what was written since is younger than the cut-off: however late a sweep is resumed, its live set is right.

The flag is part of the realm's collection record. Every change of the record is a swap of what this run wrote last, so a run that was
overtaken by another one finds out and stops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import structlog

from headwater.catalogs import note_all_known, release_claims
from headwater.clock import Micros
from headwater.commits import COLLECTION_ID, CollectionRecord, HistoryCuts, SweepState, SweptSplit, read_collection
from headwater.errors import (
    CorruptionError,
    FencedError,
    HeadwaterError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.gc.classifier import RowClassifier
from headwater.gc.collection_result import CollectionResult, PhaseTimer
from headwater.gc.live_set import LiveSet, load_live_set, save_live_set
from headwater.gc.mark_phase import LiveMarker, check_not_ahead
from headwater.gc.retention import CollectionScope, ScopeEntry, open_scope
from headwater.gc.sweep import (
    RealmSweep,
    ScanLandmarks,
    collect_purged_keys,
    finish_catalog_deletions,
    release_pins,
    remove_tombstones,
)
from headwater.gc.throttle import Fence, FenceWatch, ProgressCallback, Throttle
from headwater.settings import duration_text
from headwater.store import ObjectId, ObjectKey, RealmKey, RealmStore, Reference, Store, Versioned, check_clock
from headwater.tasks import TaskStoppedError

_TRIES = 100
_created = attrgetter("created")


def collect_realm(
    store: Store,
    realm_id: str,
    *,
    fence: Fence = lambda: None,
    progress: ProgressCallback = lambda done, total, unit: None,
    owner: str = "",
    dry_run: bool = False,
) -> CollectionResult:
    """Collect the garbage of one realm, or of ``::system::``; or go on with a sweep that was interrupted.

    owner         who does it, as text: stands in the realm's record while it sweeps
    dry_run       mark and plan, and change nothing
    raises        RefusedError and CorruptionError before anything was deleted, with the reason why nothing may be ·
                  UnavailableError when the marks' filter turned out too small, or another run is at it · FencedError when the
                  task was taken over
    """
    return Collector(store, open_scope(store, realm_id), fence=fence, progress=progress, owner=owner).collect(dry_run=dry_run)


def open_marker(scope: CollectionScope, *, trace: bool = False) -> LiveMarker:
    """A marker with the cut-offs of now."""
    settings, now = scope.rows.settings, scope.rows.clock.now()
    record = read_collection(scope.rows)
    marked = 0 if record is None else record.value.marked
    before = 0 if record is None else record.value.reader_cutoff
    return LiveMarker(
        scope=scope,
        now=now,
        # never before the last run's, also by a clock that is behind its: what that let go may be deleted
        reader_cutoff=Micros(max(now - round(settings.reader_grace_seconds * 1_000_000), before)),
        writer_cutoff=Micros(now - round(settings.writer_grace_seconds * 1_000_000)),
        previous=None if record is None else record.value,
        trace=trace,
        expected=marked + marked // 10,
    )


class Collector:
    """One run. ``result`` counts while it runs, and tells of a run that fails how far it came."""

    def __init__(self, store: Store, scope: CollectionScope, *, fence: Fence, progress: ProgressCallback, owner: str) -> None:
        self._store = store
        self._scope = scope
        self._rows = scope.rows
        self._progress = progress
        self._owner = owner
        self._pacing = Throttle(store.settings, store.clock, fence)
        self._watch = self._pacing.watch
        self._published = PublishedSweep(self._rows, read_collection(self._rows), self._watch)
        self._marker = open_marker(scope)
        self._marker.look = self._watch.check_now_and_then
        self._landmarks = ScanLandmarks()
        self._judge: RowClassifier | None = None
        self._start(
            CollectionResult(
                realm=self._rows.realm,
                dry_run=False,
                writer_cutoff=self._marker.writer_cutoff,
                reader_cutoff=self._marker.reader_cutoff,
            )
        )

    def _start(self, result: CollectionResult) -> None:
        self.result = result
        self.phases = PhaseTimer(self._store.clock, result.seconds)

    @property
    def key(self) -> RealmKey:
        """What the rows of its realm carry."""
        return self._rows.key

    def so_far(self) -> dict[str, Any]:
        """What was counted until now, by this attempt and those before it."""
        return self.result.as_plain()

    def collect(self, *, dry_run: bool = False) -> CollectionResult:
        """Do it, once: go on with what was interrupted, or begin."""
        self.result.dry_run = dry_run
        if not dry_run and self.resume():
            return self.result
        self.mark()
        with self.phases.time_phase("plan"):
            for batch in self._rows.scan_objects():
                self.plan_batch(batch)
                self._pacing.before_scanning_on(len(batch))
        if not dry_run:
            splits = self.publish_sweep(self._landmarks.cut(self._splits))
            self.finish_sweep(lambda: self._sweep(splits))
        return self.result

    def mark(self) -> None:
        """Mark."""
        self._check_clock()
        self._note_circumstances()
        with self.phases.time_phase("mark"):
            found = self._scope.find_references()
            self._scope.check_complete(found)
            self.result.references = sum(row.deleted is None for _, row in found)
            self._mark(found)
        self._require_room()

    def _check_clock(self) -> None:
        """Delete nothing by a clock that may be ahead: each grace and each retention would be over too early."""
        try:
            check_clock(self._store)
        except HeadwaterError as fault:
            if not self.result.dry_run:
                raise
            self.result.notes.append(f"a collection would delete nothing: {fault}")

    # marking and planning

    def _note_circumstances(self) -> None:
        settings = self._rows.settings
        if settings.unsafe_short_graces:
            self.result.notes.append(
                f"UNSAFE: graces are {duration_text(settings.writer_grace_seconds)} (writers) and"
                f" {duration_text(settings.reader_grace_seconds)} (readers), by the setting unsafe_short_graces"
            )
        record = self._published.value
        if record is not None and record.sweeping and record.sweep is None:
            self.result.notes.append(f"the collection of {_owner_of(record)} was interrupted before its sweep: marked anew")

    def _mark(self, found: Sequence[tuple[ScopeEntry, Reference]]) -> None:
        """Mark; where something is missing, see first whether another run deleted it meanwhile, by a later cut-off than ours."""
        try:
            self._marker.mark(found)
        except CorruptionError as fault:
            record = read_collection(self._rows)
            if record is None or record.value == self._published.value:
                raise
            raise UnavailableError(
                f"another collection of realm {self._rows.realm!r} ({_owner_of(record.value)}) ran meanwhile: try again after it"
            ) from fault

    def _count_marks(self) -> None:
        marks = self._marks
        self.result.marks, self.result.filter_bytes, self.result.filter_fpp = len(marks), marks.filter_bytes, marks.fpp

    def _require_room(self) -> None:
        """Refuse to delete by a filter that keeps too much by mistake; the next run is sized by what this one has counted."""
        self._count_marks()
        limit = self._rows.settings.filter_refuse_fpp
        if not self._marks.is_overfull:
            return
        said = (
            f"realm {self._rows.realm!r} has more objects than the last run marked ({self.result.marks}, about): the filter would keep"
            f" {self.result.filter_fpp:.0e} of the garbage by mistake, and more than {limit:.0e} are not accepted"
        )
        if self.result.dry_run:
            self.result.notes.append(f"{said}; a collection would delete nothing, and size the next one right")
            return
        before = self._published.value or CollectionRecord()
        self._published.write_record(
            CollectionRecord(
                owner=self._owner,
                reader_cutoff=before.reader_cutoff,
                kept_since=before.kept_since,
                writer_cutoff=before.writer_cutoff,
                cuts=before.cuts,
                marked=self.result.marks,
                scanned=before.scanned,
            )
        )
        raise UnavailableError(f"{said}: nothing was deleted; the next run is sized right")

    def plan_batch(self, batch: Sequence[ObjectKey]) -> None:
        """Count of a batch what stays and why, and what would go; and see that no row's time makes its age meaningless."""
        if self._judge is None:
            self._judge = self._new_judge()
        judged, left_over = self._judge.classify(batch)
        latest = max(batch, key=_created)
        check_not_ahead(latest.created, self._marker.now, self._scope, f"a row of type {latest.type!r}")
        self.result.count_scanned(batch, judged)
        self.result.leftover_parts += left_over
        self._landmarks.pass_by(batch)
        self._progress(0, self.result.garbage, "rows")

    @property
    def _marks(self) -> LiveSet:
        return self._marker.marks

    def _new_judge(self) -> RowClassifier:
        return RowClassifier(self._rows, self._marks, self.result.writer_cutoff)

    # deleting

    @property
    def _splits(self) -> int:
        is_parallel = self._store.backend.capabilities.parallel_scans
        return self._rows.settings.sweep_splits if is_parallel else 1

    def publish_sweep(self, splits: tuple[SweptSplit, ...]) -> tuple[SweptSplit, ...]:
        """Say that a sweep is on, mark what came between, and save all that the sweep needs. Returns the splits."""
        self._note_known()
        self._published.write_record(self._record())
        try:
            with self.phases.time_phase("raise"):
                listed = self._scope.list_references()
                raised = [(entry, row) for entry in listed if (row := self._raise_version(entry)) is not None]
                self._marker.mark(raised)
            self._require_room()
            self._release_claims()
            with self.phases.time_phase("save"):
                chunks = save_live_set(self._rows, self._marks, self._watch)
            self._published.write_record(self._record(chunks, splits))
        except FencedError:
            raise  # the flag belongs to whoever took over
        except HeadwaterError:
            self._published.withdraw_flag()
            raise
        return splits

    def finish_sweep(self, sweep: Callable[[], None]) -> None:
        """Sweep, and end. What may pass leaves the record as it is, for the next attempt to go on with."""
        try:
            sweep()
            remove_tombstones(self._scope, self._scope.find_references(), self._watch, self.result)
            if not self._scope.is_system:
                finish_catalog_deletions(self._scope, self._watch)
                release_pins(self._store, self._scope, self._watch, self.result)
            collect_purged_keys(self._store, self._pacing, self.result)
        except (FencedError, TaskStoppedError, UnavailableError, UnknownOutcomeError):
            raise
        except HeadwaterError:
            self._published.withdraw_flag()
            raise
        self._watch.check_fence()
        self._published.withdraw_flag()

    def sweeper(self) -> RealmSweep:
        """What deletes by the marks."""
        return RealmSweep(self._rows, self._new_judge, self._pacing, self.result, self.phases, self._save)

    def _sweep(self, splits: Sequence[SweptSplit]) -> None:
        with self.phases.time_phase("sweep"):
            self.sweeper().sweep(splits, self._progress)

    def _save(self, splits: Sequence[SweptSplit]) -> None:
        record = self._published.value
        assert record is not None and record.sweep is not None
        self._published.write_record(self._swept(record, splits))

    def _swept(self, record: CollectionRecord, splits: Sequence[SweptSplit]) -> CollectionRecord:
        assert record.sweep is not None
        sweep = SweepState(record.sweep.started, record.sweep.marks, tuple(splits), self.result.saved())
        return msgspec.structs.replace(record, sweep=sweep, owner=self._owner)

    def _record(self, chunks: Sequence[ObjectId] = (), splits: Sequence[SweptSplit] = ()) -> CollectionRecord:
        """The cuts as they are by now; with the chunks of the marks, a sweep that can be gone on with."""
        self._watch.check_fence()
        cuts = self._rows.new_id()
        self._rows.write_objects([(cuts, HistoryCuts(lines=self._marker.cuts))], are_new=True)
        sweep = SweepState(self._marker.now, tuple(chunks), tuple(splits), self.result.saved()) if chunks else None
        return CollectionRecord(
            sweeping=True,
            owner=self._owner,
            reader_cutoff=self.result.reader_cutoff,
            kept_since=self._marker.kept_since,
            writer_cutoff=self.result.writer_cutoff,
            cuts=cuts,
            sweep=sweep,
            marked=self.result.marks,
            scanned=self.result.scanned,
        )

    def _raise_version(self, entry: ScopeEntry) -> Reference | None:
        """The reference as it is under its new version; a listed name without a row gets a tombstone.

        A name that every realm has is never created on an existing commit: it needs none.
        """
        for _ in range(_TRIES):
            self._watch.check_fence()
            row = self._rows.find_row(entry.name)
            if row is None and entry.listed == 0:
                return None
            try:
                return self._rows.bury_reference(entry.name) if row is None else self._rows.raise_version(row)
            except SwapConflictError:
                continue
        raise SwapConflictError(
            f"reference {entry.name!r} of realm {self._rows.realm!r} changes too fast to be collected: try again later"
        )

    def _note_known(self) -> None:
        """Before anything goes that tells of it; and after all that may refuse: then nothing is written."""
        if self._scope.is_system:
            return
        with self.phases.time_phase("note"):
            self._watch.check_fence()
            note_all_known(self._rows, fence=self._watch.check_fence)

    def _release_claims(self) -> None:
        """Of tables that no kept commit holds. Before the sweep: who goes on with that does not know what commits hold."""
        if self._scope.is_system:
            return
        cutoff = min(self.result.reader_cutoff, self.result.writer_cutoff)
        self._watch.check_fence()
        self.result.claims_released = release_claims(
            self._rows, self._marker.content, older_than=cutoff, fence=self._watch.check_fence
        )

    # going on

    def resume(self) -> bool:
        """Go on with an interrupted sweep, if there is one that can be: by its marks and its cut-offs, to the end."""
        record = self._published.value
        if record is None or not record.sweeping or record.sweep is None:
            return False
        self._check_clock()
        sweep = record.sweep
        try:
            marks, counted = load_live_set(self._rows, sweep.marks), CollectionResult.restored(sweep.counts)
        except CorruptionError as fault:
            self.result.notes.append(
                f"the sweep of {_owner_of(record)} was interrupted, and cannot be gone on with: {fault}: marked anew"
            )
            return False
        counted.resumed += 1
        counted.notes.append(
            f"the sweep of {_owner_of(record)} was interrupted: gone on with, by its marks and cut-offs;"
            " what it deleted after it last wrote down how far it was is not counted"
        )
        self._start(counted)
        self._marker.marks = marks
        self._published.write_record(self._swept(record, sweep.splits))
        self.finish_sweep(lambda: self._sweep(sweep.splits))
        return True


def _owner_of(record: CollectionRecord) -> str:
    return record.owner or "an earlier run"


_log = structlog.get_logger()


class PublishedSweep:
    """Every change is a swap of what this run wrote last: who was overtaken by another run finds out, and stops."""

    def __init__(self, rows: RealmStore, seen: Versioned[CollectionRecord] | None, watch: FenceWatch) -> None:
        self._rows = rows
        self._seen = seen
        self._watch = watch

    @property
    def value(self) -> CollectionRecord | None:
        """The record as it was seen or written last."""
        return None if self._seen is None else self._seen.value

    def write_record(self, record: CollectionRecord) -> None:
        """Write the record.

        raises        UnavailableError when another run has changed it since; FencedError
        """
        self._watch.check_fence()
        try:
            if self._seen is None:
                self._seen = self._rows.insert_object(COLLECTION_ID, record)
            else:
                self._seen = self._rows.update_object(self._seen, record)
        except SwapConflictError as beaten:
            found = self._rows.find_versioned(COLLECTION_ID, CollectionRecord)
            owner = "" if found is None else found.value.owner
            raise UnavailableError(
                f"another collection of realm {self._rows.realm!r} is under way or went on with this one"
                f" ({owner or 'no owner named'}): try again after it"
            ) from beaten

    def withdraw_flag(self) -> None:
        """Take the flag away. When that fails it stays on until the next run, which harms only those who want an old commit."""
        if self._seen is None:
            return
        try:
            self._seen = self._rows.update_object(self._seen, _ended(self._seen.value))
        except HeadwaterError as fault:
            _log.warning("the sweep's flag stays on until the next run", realm=self._rows.realm, fault=str(fault))


def abandon_sweep(rows: RealmStore, owner: str) -> None:
    """Withdraw the flag of a sweep that nobody is to go on with; another owner's stays."""
    found = rows.find_versioned(COLLECTION_ID, CollectionRecord)
    if found is not None and found.value.sweeping and found.value.owner == owner:
        rows.update_object(found, _ended(found.value))


def _ended(record: CollectionRecord) -> CollectionRecord:
    return msgspec.structs.replace(record, sweeping=False, sweep=None)
