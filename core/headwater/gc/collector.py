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

from headwater.catalogs import drop_old_requests, finish_deletions, note_all_known, release_claims
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
from headwater.files import bury_trees
from headwater.gc.live_set import LiveSet, RowClassifier, load_live_set, save_live_set
from headwater.gc.mark_phase import LiveMarker, check_not_ahead
from headwater.gc.retention import CollectionScope, ScopeEntry, open_scope
from headwater.gc.sweep import (
    CollectionResult,
    PhaseTimer,
    RealmSweep,
    ScanLandmarks,
    collect_purged_keys,
    release_pins,
    remove_tombstones,
)
from headwater.policies import release_policies
from headwater.settings import duration_text
from headwater.store import ObjectId, ObjectKey, RealmKey, RealmStore, Reference, Store, Versioned, check_clock
from headwater.store.store_identity import check_may_maintain
from headwater.tasks import TaskStoppedError
from headwater.throttle import Fence, FenceWatch, ProgressCallback, Throttle, no_progress

_TRIES = 100
_created = attrgetter("created")


def collect_realm(
    store: Store,
    realm_id: str,
    *,
    fence: Fence = lambda: None,
    progress: ProgressCallback = no_progress,
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


_TELL_SECONDS = 0.2


def open_marker(scope: CollectionScope, *, trace: bool = False) -> LiveMarker:
    """Returns a marker whose cut-offs count from now."""
    settings, now = scope.rows.settings, scope.rows.clock.now()
    record = read_collection(scope.rows)
    marked = 0 if record is None else record.value.marked
    before = 0 if record is None else record.value.reader_cutoff
    return LiveMarker(
        scope=scope,
        now=now,
        # Never before the last run's cut-off, even when this clock is behind: what that run let go may be deleted already.
        reader_cutoff=Micros(max(now - round(settings.reader_grace_seconds * 1_000_000), before)),
        writer_cutoff=Micros(now - round(settings.writer_grace_seconds * 1_000_000)),
        previous=None if record is None else record.value,
        trace=trace,
        expected=marked + marked // 10,
    )


class Collector:
    """One collection of one realm. ``result`` counts while it runs, so a run that fails shows how far it came."""

    def __init__(self, store: Store, scope: CollectionScope, *, fence: Fence, progress: ProgressCallback, owner: str) -> None:
        self._store = store
        self._scope = scope
        self._rows = scope.rows
        self._progress = progress
        self._owner = owner
        self._pacing = Throttle(store.settings, store.clock, fence)
        self._watch = self._pacing.watch
        # Read before the marker fixes its cut-offs: a record that another run writes from here on makes our next swap fail.
        self._published = PublishedSweep(self._rows, read_collection(self._rows), self._watch)
        self._marker = open_marker(scope)
        self._marker.look = self._look
        self._told_at = store.clock.monotonic()
        self._landmarks = ScanLandmarks()
        # Invariant: made after the marking, and used by the planning scan alone; the sweep makes one for each split.
        self._classifier: RowClassifier | None = None
        self._start(
            CollectionResult(
                realm=self._rows.realm,
                dry_run=False,
                writer_cutoff=self._marker.writer_cutoff,
                reader_cutoff=self._marker.reader_cutoff,
            )
        )

    def _look(self) -> None:
        """Between two steps of the marking, of which there are many a millisecond."""
        self._watch.check_now_and_then()
        # Not each time: the filter estimates how many it holds by counting its bits.
        now = self._store.clock.monotonic()
        if now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            self._progress(len(self._marks), 0, "objects marked")

    def _start(self, result: CollectionResult) -> None:
        self.result = result
        self.phases = PhaseTimer(self._store.clock, result.seconds)

    @property
    def key(self) -> RealmKey:
        """The key that the realm's rows carry."""
        return self._rows.key

    def so_far(self) -> dict[str, Any]:
        """The counts until now, of this attempt and those before it."""
        return self.result.as_plain()

    def collect(self, *, dry_run: bool = False) -> CollectionResult:
        """Run the collection: resume an interrupted sweep, or begin a new one. Call it once."""
        self.result.dry_run = dry_run
        if not dry_run and self.resume():
            return self.result
        self.mark()
        # The plan scans every row and deletes none: what makes ages meaningless must refuse the run before its first deletion.
        with self.phases.time_phase("plan"):
            for batch in self._rows.scan_objects():
                self.plan_batch(batch)
                self._pacing.before_scanning_on(len(batch))
        if not dry_run:
            splits = self.publish_sweep(self._landmarks.cut(self._splits))
            self.finish_sweep(lambda: self._sweep(splits))
        return self.result

    def mark(self) -> None:
        """Mark every object that a listed reference keeps.

        raises        CorruptionError, RefusedError or UnavailableError with the reason why nothing may be deleted
        """
        self._check_allowed()
        self._note_circumstances()
        with self.phases.time_phase("mark"):
            references = self._scope.find_references()
            self._scope.check_complete(references)  # a lost reference would make garbage of all that it alone held
            self.result.references = sum(row.deleted is None for _, row in references)
            self._mark(references)
        self._require_room()

    def _check_allowed(self) -> None:
        """Refuse to collect a store that only a later release may maintain; and by a clock that may be ahead, for then each grace and
        each retention would end too early.
        """
        try:
            check_may_maintain(self._store, "a collection")
            check_clock(self._store)
        except HeadwaterError as fault:
            if not self.result.dry_run:
                raise
            self.result.notes.append(f"a collection would delete nothing: {fault}")

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

    def _mark(self, references: Sequence[tuple[ScopeEntry, Reference]]) -> None:
        """Mark what the references keep.

        raises        CorruptionError: something is missing · UnavailableError: it is, because another collection ran meanwhile
        """
        try:
            self._marker.mark(references)
        except CorruptionError as fault:
            # Another run with a later cut-off may have deleted what this one still keeps. It left its record: that is no damage.
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
        """Refuse to delete by a filter that keeps too much by mistake; the next run sizes its filter by this one's count."""
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
        # Only the count is new: nothing was deleted, so cut-offs and cuts stay as they stand in the record.
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
        """Count which rows of a batch stay and why, and which would go. Refuses a row whose time lies ahead: its age means nothing."""
        if self._classifier is None:
            self._classifier = self._new_classifier()
        reasons, left_over = self._classifier.classify(batch)
        latest = max(batch, key=_created)
        check_not_ahead(latest.created, self._marker.now, self._scope, f"a row of type {latest.type!r}")
        self.result.count_scanned(batch, reasons)
        self.result.leftover_parts += left_over
        self._landmarks.pass_by(batch)
        self._progress(self.result.scanned, 0, "rows scanned")

    @property
    def _marks(self) -> LiveSet:
        return self._marker.marks

    def _new_classifier(self) -> RowClassifier:
        return RowClassifier(self._rows, self._marks, self.result.writer_cutoff)

    @property
    def _splits(self) -> int:
        is_parallel = self._store.backend.capabilities.parallel_scans
        return self._rows.settings.sweep_splits if is_parallel else 1

    def publish_sweep(self, splits: tuple[SweptSplit, ...]) -> tuple[SweptSplit, ...]:
        """Say that a sweep is on, mark what came between, and save all that the sweep needs. Returns the splits.

        Whoever points a reference at an existing commit reads the reference, then the flag, then swaps (see ``ref_updates``). The
        collector goes the other way round, so that no interleaving lets a reference point at what is swept (docs/develop/decisions/0003).
        """
        # After all that may refuse the run, and before anything goes: the notes must outlive the commits that tell the same.
        self._note_known()
        # "sweeping" is durable before the first version is raised. A mover that reads its reference after the raise then reads the
        # flag as well, and takes only a live HEAD as its target. Raised first, it could read the new version, find no flag, and swap
        # to a commit that is not marked. The record carries the cuts: what lies before them is no legal target from here on.
        self._published.write_record(self._record())
        try:
            # Asked again behind the flag: a later release raises the number before it makes its first reference, and reads the flag after.
            check_may_maintain(self._store, "a collection")
            with self.phases.time_phase("raise"):
                # Listed again, after the flag: a mover lists its new name before it reads the flag, so it is in this list or saw it.
                # Those without a list are found by their rows: no release but a later one makes them so, and that is refused by its number.
                listed = self._scope.all_references()
                # Each version is raised before its row is marked. A swap that came before the raise is in the row that the raise
                # returns; one that comes after it expects the old version, and fails.
                raised = [(entry, row) for entry in listed if (row := self._raise_version(entry)) is not None]
                # Marked from the raised rows, not from a read before the raise: a target put in between would be swept.
                self._marker.mark(raised)
            self._require_room()  # again: the second marking has added to the filter
            # Before the marks are saved: a resumed run has the saved marks, and not the ids of the content that commits hold.
            self._release_claims()
            # Saved last, when nothing can be added any more. A resumed run neither raises nor marks again, so it may find only a
            # complete live set; a record without chunks, as the one above, makes it mark anew.
            with self.phases.time_phase("save"):
                chunks = save_live_set(self._rows, self._marks, self._watch.check_fence)
            # The record names the chunks only when all of them are written. From here on rows are deleted.
            self._published.write_record(self._record(chunks, splits))
        except FencedError:
            raise  # the flag belongs to the run that took over
        except HeadwaterError:
            # No row is deleted yet, so the flag protects nothing.
            self._published.withdraw_flag()
            raise
        return splits

    def finish_sweep(self, sweep: Callable[[], None]) -> None:
        """Sweep, clean up, and withdraw the flag. After a fault that may pass the record stays, for the next attempt to resume."""
        try:
            sweep()
            # References are read again: a tombstone is removed only as it is now, by its version.
            remove_tombstones(self._scope, self._scope.find_references(), self._watch, self.result)
            if not self._scope.is_system:
                finish_deletions(self._rows, fence=self._watch.check_fence)
                drop_old_requests(self._rows, fence=self._watch.check_fence)
                bury_trees(self._rows, fence=self._watch.check_fence)
                release_pins(self._store, self._scope, self._watch, self.result)
            collect_purged_keys(self._store, self._pacing, self.result)
        except (FencedError, TaskStoppedError, UnavailableError, UnknownOutcomeError):
            raise  # the flag and the saved live set stay: rows may be deleted already, and the next attempt resumes
        except HeadwaterError:
            # A resumed run would meet the same fault. Without the flag the next one marks anew; what went was garbage by the cuts.
            self._published.withdraw_flag()
            raise
        # Last of all: while rows may still be deleted, only live HEADs are legal targets.
        self._watch.check_fence()
        self._published.withdraw_flag()

    def sweeper(self) -> RealmSweep:
        """Returns the sweep of this realm, which deletes the rows that are not in the live set."""
        return RealmSweep(self._rows, self._new_classifier, self._pacing, self.result, self.phases, self._save)

    def _sweep(self, splits: Sequence[SweptSplit]) -> None:
        with self.phases.time_phase("sweep"):
            self.sweeper().sweep(splits, self._progress)

    def _save(self, splits: Sequence[SweptSplit]) -> None:
        record = self._published.value
        assert record is not None and record.sweep is not None, "a sweep is saved after its record was published"
        self._published.write_record(self._swept(record, splits))

    def _swept(self, record: CollectionRecord, splits: Sequence[SweptSplit]) -> CollectionRecord:
        assert record.sweep is not None
        sweep = SweepState(record.sweep.started, record.sweep.marks, tuple(splits), self.result.saved())
        return msgspec.structs.replace(record, sweep=sweep, owner=self._owner)

    def _record(self, chunks: Sequence[ObjectId] = (), splits: Sequence[SweptSplit] = ()) -> CollectionRecord:
        """The record that says "sweeping", with the cuts of the marking so far. With ``chunks`` it is a sweep that can be resumed."""
        self._watch.check_fence()
        # The cuts are written before the record that names them, under a new id each time: no reader of an older record sees them change.
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
        """Returns the reference under a raised version. A listed name without a row gets a tombstone.

        A name that every realm has is never created on an existing commit, so it needs no tombstone.
        """
        for _ in range(_TRIES):
            self._watch.check_fence()
            row = self._rows.find_row(entry.name)
            if row is None and entry.listed == 0:
                return None
            # A row that appears out of nothing could not be beaten by a version: the tombstone takes its place first.
            try:
                return self._rows.bury_reference(entry.name) if row is None else self._rows.raise_version(row)
            except SwapConflictError:
                continue  # it moved: read it again, for only the row that the raise returns is sure to be the current one
        raise SwapConflictError(
            f"reference {entry.name!r} of realm {self._rows.realm!r} changes too fast to be collected: try again later"
        )

    def _note_known(self) -> None:
        """Note the metadata files that commits tell of, before those commits may be deleted."""
        if self._scope.is_system:
            return
        with self.phases.time_phase("note"):
            self._watch.check_fence()
            note_all_known(self._rows, fence=self._watch.check_fence)

    def _release_claims(self) -> None:
        """Release the claims and the policies of tables that no kept commit holds, and the policies of catalogs that are gone."""
        if self._scope.is_system:
            return
        # By the earlier of both: a younger claim may be of a commit that is being written, or that somebody still reads.
        cutoff = min(self.result.reader_cutoff, self.result.writer_cutoff)
        self._watch.check_fence()
        self.result.claims_released = release_claims(
            self._rows, self._marker.content, older_than=cutoff, fence=self._watch.check_fence
        )
        release_policies(self._rows, self._marker.content, older_than=cutoff, fence=self._watch.check_fence)

    def resume(self) -> bool:
        """Resume an interrupted sweep with its live set and its cut-offs. Returns False when there is none that can be resumed."""
        record = self._published.value
        if record is None or not record.sweeping or record.sweep is None:
            return False  # a sweep that saved no live set has deleted nothing: mark anew
        self._check_allowed()
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
        self._start(counted)  # with the cut-offs of the run that marked: what was written since is younger, and stays
        self._marker.marks = marks
        # Taken over before the first deletion: if the earlier run still lives, its next save fails and ends it.
        self._published.write_record(self._swept(record, sweep.splits))
        self.finish_sweep(lambda: self._sweep(sweep.splits))
        return True


def _owner_of(record: CollectionRecord) -> str:
    return record.owner or "an earlier run"


_log = structlog.get_logger()


class PublishedSweep:
    """The realm's collection record, as this run writes it. A run that was overtaken by another one fails at its next write."""

    def __init__(self, rows: RealmStore, record: Versioned[CollectionRecord] | None, watch: FenceWatch) -> None:
        self._rows = rows
        # Invariant: what this run has read or written last. Every write is a swap of exactly that.
        self._seen = record
        self._watch = watch

    @property
    def value(self) -> CollectionRecord | None:
        """The record as this run read or wrote it last."""
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
            other = self._rows.find_versioned(COLLECTION_ID, CollectionRecord)
            owner = "" if other is None else other.value.owner
            raise UnavailableError(
                f"another collection of realm {self._rows.realm!r} is under way or went on with this one"
                f" ({owner or 'no owner named'}): try again after it"
            ) from beaten

    def withdraw_flag(self) -> None:
        """Withdraw the flag. If that fails it stays on until the next run, and refuses old targets, nothing else."""
        if self._seen is None:
            return
        try:
            # A swap, too: a run that was overtaken must not withdraw the flag of the one that sweeps now.
            self._seen = self._rows.update_object(self._seen, _ended(self._seen.value))
        except HeadwaterError as fault:
            _log.warning("the sweep's flag stays on until the next run", realm=self._rows.realm, fault=str(fault))


def abandon_sweep(rows: RealmStore, owner: str) -> None:
    """Withdraw the flag of an owner's sweep that nobody will resume. The flag of another owner stays."""
    record = rows.find_versioned(COLLECTION_ID, CollectionRecord)
    if record is not None and record.value.sweeping and record.value.owner == owner:
        rows.update_object(record, _ended(record.value))


def _ended(record: CollectionRecord) -> CollectionRecord:
    return msgspec.structs.replace(record, sweeping=False, sweep=None)
