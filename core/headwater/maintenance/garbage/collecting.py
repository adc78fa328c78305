"""Collection: mark, publish, look again, sweep. See ``headwater.commits.ref_updates`` for the other side of the handshake.

1. The cut-offs are fixed: no row younger than the writer's grace is touched, and what was HEAD within the reader's grace stays.
2. Mark from every listed reference; plan, by a scan that deletes nothing.
3. Note what commits tell of metadata files, which has to outlive them; see ``headwater.catalogs.known_metadata``.
   Publish "sweeping". Raise the version of every listed reference, and mark what is new: whoever looked before is beaten now.
4. Save the marks. From here on a run that crashes is gone on with, by the same marks and cut-offs.
5. Sweep: delete the rows that are unmarked, or left-over parts of what is marked, and unchanged since they were scanned.
   Withdraw the flag.

A run that crashed leaves the flag on, which harms nobody but those who want to point at an old commit. While it is on, nothing
that was garbage can come back, and what was written since is younger than the cut-off: however late a sweep goes on, its marks hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from headwater.catalogs import note_all_known, release_claims
from headwater.clock import Micros
from headwater.commits import CollectionRecord, HistoryCuts, SweepState, SweptSplit, read_collection
from headwater.errors import BeatenError, FencedError, HeadwaterError, UnavailableError, UnknownOutcomeError, UnreadableError
from headwater.maintenance.garbage.counts import Collected, Phases
from headwater.maintenance.garbage.judging import Judge
from headwater.maintenance.garbage.listing import Listed, Scope, scope_of
from headwater.maintenance.garbage.marking import Marker, check_time
from headwater.maintenance.garbage.marks import Marks
from headwater.maintenance.garbage.pacing import Fence, Pacing, Progress
from headwater.maintenance.garbage.publishing import Published
from headwater.maintenance.garbage.releasing import bury, collect_purged_keys, finish_catalogs, release_pins
from headwater.maintenance.garbage.saving import load_marks, save_marks
from headwater.maintenance.garbage.sweeping import Landmarks, Sweeper
from headwater.settings import duration_text
from headwater.store import ObjectId, ObjectKey, RealmKey, Reference, Store, check_clock
from headwater.tasks import StoppedError

__all__ = ["Collected", "Collecting", "Fence", "Progress", "collect", "marker_for"]

_TRIES = 100
_created = attrgetter("created")


def collect(
    store: Store,
    realm_id: str,
    *,
    fence: Fence = lambda: None,
    progress: Progress = lambda done, total, unit: None,
    owner: str = "",
    dry_run: bool = False,
) -> Collected:
    """Collect the garbage of one realm, or of ``::system::``; or go on with a sweep that was interrupted.

    owner         who does it, as text: stands in the realm's record while it sweeps
    dry_run       mark and plan, and change nothing
    raises        RefusedError and UnreadableError before anything was deleted, with the reason why nothing may be ·
                  UnavailableError when the marks' filter turned out too small, or another run is at it · FencedError when the
                  task was taken over
    """
    return Collecting(store, scope_of(store, realm_id), fence=fence, progress=progress, owner=owner).run(dry_run=dry_run)


def marker_for(scope: Scope, *, trace: bool = False) -> Marker:
    """A marker with the cut-offs of now."""
    settings, now = scope.rows.settings, scope.rows.clock.now()
    record = read_collection(scope.rows)
    marked = 0 if record is None else record.value.marked
    before = 0 if record is None else record.value.reader_cutoff
    return Marker(
        scope=scope,
        now=now,
        # never before the last run's, also by a clock that is behind its: what that let go may be deleted
        reader_cutoff=Micros(max(now - round(settings.reader_grace_seconds * 1_000_000), before)),
        writer_cutoff=Micros(now - round(settings.writer_grace_seconds * 1_000_000)),
        previous=None if record is None else record.value,
        trace=trace,
        expected=marked + marked // 10,
    )


class Collecting:
    """One run. ``result`` counts while it runs, and tells of a run that fails how far it came."""

    def __init__(self, store: Store, scope: Scope, *, fence: Fence, progress: Progress, owner: str) -> None:
        self._store = store
        self._scope = scope
        self._rows = scope.rows
        self._progress = progress
        self._owner = owner
        self._pacing = Pacing(store.settings, store.clock, fence)
        self._watch = self._pacing.watch
        self._published = Published(self._rows, read_collection(self._rows), self._watch)
        self._marker = marker_for(scope)
        self._marker.look = self._watch.look
        self._landmarks = Landmarks()
        self._judge: Judge | None = None
        self._start(
            Collected(
                realm=self._rows.realm,
                dry_run=False,
                writer_cutoff=self._marker.writer_cutoff,
                reader_cutoff=self._marker.reader_cutoff,
            )
        )

    def _start(self, result: Collected) -> None:
        self.result = result
        self.phases = Phases(self._store.clock, result.seconds)

    @property
    def key(self) -> RealmKey:
        """What the rows of its realm carry."""
        return self._rows.key

    def so_far(self) -> dict[str, Any]:
        """What was counted until now, by this attempt and those before it."""
        return self.result.as_plain()

    def run(self, *, dry_run: bool = False) -> Collected:
        """Do it, once: go on with what was interrupted, or begin."""
        self.result.dry_run = dry_run
        if not dry_run and self.go_on():
            return self.result
        self.begin()
        with self.phases.phase("plan"):
            for batch in self._rows.scan_objects():
                self.plan(batch)
                self._pacing.before_scanning_on(len(batch))
        if not dry_run:
            splits = self.publish(self._landmarks.cut(self._splits))
            self.finish(lambda: self._sweep(splits))
        return self.result

    def begin(self) -> None:
        """Mark."""
        self._check_clock()
        self._note_circumstances()
        with self.phases.phase("mark"):
            found = self._scope.found()
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
            self.result.notes.append(f"the collection of {_named(record)} was interrupted before its sweep: marked anew")

    def _mark(self, found: Sequence[tuple[Listed, Reference]]) -> None:
        """Mark; where something is missing, see first whether another run deleted it meanwhile, by a later cut-off than ours."""
        try:
            self._marker.mark(found)
        except UnreadableError as fault:
            record = read_collection(self._rows)
            if record is None or record.value == self._published.value:
                raise
            raise UnavailableError(
                f"another collection of realm {self._rows.realm!r} ({_named(record.value)}) ran meanwhile: try again after it"
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
        self._published.replace(
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

    def plan(self, batch: Sequence[ObjectKey]) -> None:
        """Count of a batch what stays and why, and what would go; and see that no row's time makes its age meaningless."""
        if self._judge is None:
            self._judge = self._new_judge()
        judged, left_over = self._judge.judge(batch)
        latest = max(batch, key=_created)
        check_time(latest.created, self._marker.now, self._scope, f"a row of type {latest.type!r}")
        self.result.count(batch, judged)
        self.result.leftover_parts += left_over
        self._landmarks.pass_by(batch)
        self._progress(0, self.result.garbage, "rows")

    @property
    def _marks(self) -> Marks:
        return self._marker.marks

    def _new_judge(self) -> Judge:
        return Judge(self._rows, self._marks, self.result.writer_cutoff)

    # deleting

    @property
    def _splits(self) -> int:
        is_parallel = self._store.backend.capabilities.parallel_scans
        return self._rows.settings.sweep_splits if is_parallel else 1

    def publish(self, splits: tuple[SweptSplit, ...]) -> tuple[SweptSplit, ...]:
        """Say that a sweep is on, mark what came between, and save all that the sweep needs. Returns the splits."""
        self._note_known()
        self._published.replace(self._record())
        try:
            with self.phases.phase("raise"):
                listed = self._scope.listed()
                raised = [(entry, row) for entry in listed if (row := self._raise_version(entry)) is not None]
                self._marker.mark(raised)
            self._require_room()
            self._release_claims()
            with self.phases.phase("save"):
                chunks = save_marks(self._rows, self._marks, self._watch)
            self._published.replace(self._record(chunks, splits))
        except FencedError:
            raise  # the flag belongs to whoever took over
        except HeadwaterError:
            self._published.withdraw()
            raise
        return splits

    def finish(self, sweep: Callable[[], None]) -> None:
        """Sweep, and end. What may pass leaves the record as it is, for the next attempt to go on with."""
        try:
            sweep()
            bury(self._scope, self._scope.found(), self._watch, self.result)
            if not self._scope.is_system:
                finish_catalogs(self._scope, self._watch)
                release_pins(self._store, self._scope, self._watch, self.result)
            collect_purged_keys(self._store, self._pacing, self.result)
        except (FencedError, StoppedError, UnavailableError, UnknownOutcomeError):
            raise
        except HeadwaterError:
            self._published.withdraw()
            raise
        self._watch.check()
        self._published.withdraw()

    def sweeper(self) -> Sweeper:
        """What deletes by the marks."""
        return Sweeper(self._rows, self._new_judge, self._pacing, self.result, self.phases, self._save)

    def _sweep(self, splits: Sequence[SweptSplit]) -> None:
        with self.phases.phase("sweep"):
            self.sweeper().sweep(splits, self._progress)

    def _save(self, splits: Sequence[SweptSplit]) -> None:
        record = self._published.value
        assert record is not None and record.sweep is not None
        self._published.replace(self._swept(record, splits))

    def _swept(self, record: CollectionRecord, splits: Sequence[SweptSplit]) -> CollectionRecord:
        assert record.sweep is not None
        sweep = SweepState(record.sweep.started, record.sweep.marks, tuple(splits), self.result.saved())
        return msgspec.structs.replace(record, sweep=sweep, owner=self._owner)

    def _record(self, chunks: Sequence[ObjectId] = (), splits: Sequence[SweptSplit] = ()) -> CollectionRecord:
        """The cuts as they are by now; with the chunks of the marks, a sweep that can be gone on with."""
        self._watch.check()
        cuts = self._rows.new_id()
        self._rows.write([(cuts, HistoryCuts(lines=self._marker.cuts))], are_new=True)
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

    def _raise_version(self, entry: Listed) -> Reference | None:
        """The reference as it is under its new version; a listed name without a row gets a tombstone.

        A name that every realm has is never created on an existing commit: it needs none.
        """
        for _ in range(_TRIES):
            self._watch.check()
            row = self._rows.find_row(entry.name)
            if row is None and entry.listed == 0:
                return None
            try:
                return self._rows.bury_reference(entry.name) if row is None else self._rows.raise_version(row)
            except BeatenError:
                continue
        raise BeatenError(
            f"reference {entry.name!r} of realm {self._rows.realm!r} changes too fast to be collected: try again later"
        )

    def _note_known(self) -> None:
        """Before anything goes that tells of it; and after all that may refuse: then nothing is written."""
        if self._scope.is_system:
            return
        with self.phases.phase("note"):
            self._watch.check()
            note_all_known(self._rows, fence=self._watch.check)

    def _release_claims(self) -> None:
        """Of tables that no kept commit holds. Before the sweep: who goes on with that does not know what commits hold."""
        if self._scope.is_system:
            return
        cutoff = min(self.result.reader_cutoff, self.result.writer_cutoff)
        self._watch.check()
        self.result.claims_released = release_claims(
            self._rows, self._marker.content, older_than=cutoff, fence=self._watch.check
        )

    # going on

    def go_on(self) -> bool:
        """Go on with an interrupted sweep, if there is one that can be: by its marks and its cut-offs, to the end."""
        record = self._published.value
        if record is None or not record.sweeping or record.sweep is None:
            return False
        self._check_clock()
        sweep = record.sweep
        try:
            marks, counted = load_marks(self._rows, sweep.marks), Collected.restored(sweep.counts)
        except UnreadableError as fault:
            self.result.notes.append(
                f"the sweep of {_named(record)} was interrupted, and cannot be gone on with: {fault}: marked anew"
            )
            return False
        counted.resumed += 1
        counted.notes.append(
            f"the sweep of {_named(record)} was interrupted: gone on with, by its marks and cut-offs;"
            " what it deleted after it last wrote down how far it was is not counted"
        )
        self._start(counted)
        self._marker.marks = marks
        self._published.replace(self._swept(record, sweep.splits))
        self.finish(lambda: self._sweep(sweep.splits))
        return True


def _named(record: CollectionRecord) -> str:
    return record.owner or "an earlier run"
