"""The collection of a file table's files: which may go, in what order they are deleted, and why a file is still there.

A file without references never gets one again, so it can be deleted at any later time. It goes in two stages, at least a delay apart, so
that reads that began before it lost its last reference come to their end::

    strays    files in the table's own folder that nobody tracks, and that are older than the writers' grace, are tracked, without
              references. A writer that comes so late learns that its file exists, and loses cleanly
    stage 1   files without references are marked with the time
    stage 2   files that were marked longer ago than the delay are deleted from the storage, and then no longer tracked

The object goes first and the record second. A collection that dies in between leaves a record of a file that is gone; the next one
deletes the missing file with success. The other way round it would leave a file that nobody knows. So a collection may die at any
moment, and two at once do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from headwater.clock import Micros, as_text
from headwater.errors import NotFoundError, UnavailableError
from headwater.files.collection_clock import CollectionTime, read_collection_time
from headwater.files.data_folder import DataFolder, DeletionResult
from headwater.files.file_errors import FileExistsInTableError, FileNotTrackedError
from headwater.files.file_references import FileReference, TrackedFile, data_file_time
from headwater.files.reference_store import FileReferenceStore
from headwater.settings import Settings, duration_text
from headwater.store import Store
from headwater.throttle import Fence, FenceWatch, ProgressCallback, RowRate, no_progress

BATCH = 10_000
"""Files that are marked, or no longer tracked, in one transaction; and names that are looked up at once."""
_DELETED_BETWEEN_LOOKS = 500
_FAILURES_SHOWN = 20
_JOBS_SHOWN = 20
_OUTCOME_BATCHES = 100
_TRIES = 5
_FOREVER = Micros(1 << 62)


@dataclass(slots=True)
class CollectedFiles:
    """The counts of one collection; each counts files. A plan has the same, of what a collection would do now.

    listed        entries of the table's folder
    unknown       of these, those whose names are not of data files: left alone
    young         of these, files that nobody tracks and that are younger than the writers' grace
    strays        of these, older ones: they were tracked, without references
    marked        files without references that were marked, strays included
    deleted       files that were deleted; a plan counts the missing ones here, too
    missing       files that were gone already
    failed        files that could not be deleted: they stay tracked, and the next collection tries again
    waiting       files without references whose delay is not over
    postponed     files that may be deleted, but are more than one collection deletes
    outside       files that may be deleted, but lie outside of the table's folder: left alone
    outcomes      outcomes of old requests that were deleted
    failures      the first failed files, each with the reason
    jobs          jobs that have had references for long, without an outcome
    """

    listed: int = 0
    unknown: int = 0
    young: int = 0
    strays: int = 0
    marked: int = 0
    deleted: int = 0
    missing: int = 0
    failed: int = 0
    waiting: int = 0
    postponed: int = 0
    outside: int = 0
    outcomes: int = 0
    failures: list[dict[str, str]] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dry_run: bool = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing was done. There may still be notes: what stands in the way of a collection lasts."""
        return not (self.marked or self.deleted or self.missing or self.failed or self.outcomes)

    def as_plain(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "dry_run"}
        return {"dryRun": self.dry_run, **plain}


class FileCollector:
    """Collects the files of one file table.

    folder        where the table's data files are
    neighbors     locations of all other file tables: where one shares the folder, nothing is deleted
    fence         raises when the work must stop; asked before every step that deletes or writes
    progress      called with (files done, 0, unit)
    """

    def __init__(
        self,
        store: Store,
        references: FileReferenceStore,
        folder: DataFolder,
        *,
        neighbors: Iterable[str] = (),
        fence: Fence = lambda: None,
        progress: ProgressCallback = no_progress,
    ) -> None:
        self._store = store
        self._settings: Settings = store.settings
        self._references = references
        self._folder = folder
        self._neighbors = tuple(neighbors)
        self._watch = FenceWatch(fence, store.clock)
        rate = store.settings.delete_files_per_second
        self._rate = RowRate(rate, store.clock)
        self._at_once = min(rate or _DELETED_BETWEEN_LOOKS, _DELETED_BETWEEN_LOOKS)
        self._progress = progress
        self.result = CollectedFiles()

    def collect(self) -> CollectedFiles:
        """Track strays, mark, delete, and forget old outcomes. Interrupted at any moment, the next call goes on.

        raises        DoubtfulClockError, before anything is changed, where the clock is doubtful; what the fence raises; UnavailableError
                      when the database of the references does not answer
        """
        result = self.result
        time = read_collection_time(self._store)
        shared = self._shared_with()
        if shared:
            result.notes.append(shared)
        else:
            for batch in _batches(self._find_strays(time.now), BATCH):
                self._watch.check_fence()
                result.strays += self._track_strays(batch)
        self._watch.check_fence()
        result.marked = self._references.mark_unreferenced(time.now, batch=BATCH)
        if not shared:
            self._delete_marked(time)
        self._count_waiting(time)
        self._forget_outcomes(time)
        self._report_jobs(time)
        return result

    def plan(self) -> CollectedFiles:
        """What a collection would do now. Nothing is changed."""
        result = self.result
        result.dry_run = True
        time = read_collection_time(self._store, is_noted=False)
        shared = self._shared_with()
        if shared:
            result.notes.append(shared)
        else:
            result.strays = sum(1 for _ in self._find_strays(time.now))
        unmarked = sum(file.updated is None for file in self._references.report(_FOREVER).unreferenced)
        result.marked = result.strays + unmarked
        if not shared:
            result.deleted = sum(1 for _ in self._deletable(time))
        self._count_waiting(time)
        result.waiting += result.marked
        self._report_jobs(time)
        return result

    def _shared_with(self) -> str:
        """Why nothing may be deleted in the table's folder; empty where it is its own."""
        for other in self._neighbors:
            if self._folder.overlaps(other):
                return (
                    f"another file table lies at {other}, in or around the folder of this one: nothing is deleted. Two tables must"
                    " never collect one set of files"
                )
        return ""

    def _find_strays(self, now: Micros) -> Iterator[str]:
        """The files in the folder that nobody tracks, and that are older than the writers' grace. A listing that fails has none."""
        grace = round(self._settings.files_writer_grace_seconds * 1_000_000)
        untracked: list[str] = []
        counts = CollectedFiles()
        try:
            for batch in _batches(self._folder.list_files(), BATCH):
                self._watch.check_now_and_then()
                self._progress(counts.listed, 0, "files listed")
                counts.listed += len(batch)
                times = {filename: data_file_time(filename) for filename in batch}
                ours = [filename for filename, time in times.items() if time is not None]
                counts.unknown += len(batch) - len(ours)
                tracked = self._references.find_files(ours)
                for filename in ours:
                    if filename not in tracked:
                        is_young = (times[filename] or 0) > now - grace
                        counts.young += is_young
                        untracked += [] if is_young else [filename]
        except UnavailableError as fault:
            self.result.notes.append(f"files that nobody tracks were not looked for: {fault}")
            return
        for name in ("listed", "unknown", "young"):
            setattr(self.result, name, getattr(counts, name))
        yield from self._without_other_spellings(untracked)

    def _without_other_spellings(self, untracked: Sequence[str]) -> list[str]:
        """Those that are not tracked under another spelling of the folder either: deleting such a file would lose rows."""
        if not untracked:
            return []
        names = {reference.filename.rpartition("/")[2] for reference in self._references.references()}
        strays = [filename for filename in untracked if filename.rpartition("/")[2] not in names]
        if len(strays) < len(untracked):
            self.result.notes.append(
                f"{len(untracked) - len(strays)} files in {self._folder.location} are tracked under another spelling of that folder:"
                " they are left alone"
            )
        return strays

    def _track_strays(self, filenames: Sequence[str]) -> int:
        """Track files without references. Returns how many: a late writer, or another collection, may be faster."""
        waiting = list(filenames)
        for _ in range(_TRIES):
            tracked = self._references.find_files(waiting)
            waiting = [filename for filename in waiting if filename not in tracked]
            try:
                self._references.add_files([TrackedFile(filename=filename) for filename in waiting])
            except FileExistsInTableError:
                continue
            return len(waiting)
        return 0  # the next collection finds them again

    def _deletable(self, time: CollectionTime) -> Iterator[str]:
        """The files that may be deleted by now, as many as one collection deletes."""
        if why := time.why_none(self._settings.files_delete_delay_seconds):
            self.result.notes.append(why)
        before = time.latest_mark(self._settings.files_delete_delay_seconds)
        if not before:
            return iter(())
        return islice(
            filter(self._folder.has_file, self._references.collectable_files(before)), self._settings.files_delete_limit
        )

    def _delete_marked(self, time: CollectionTime) -> None:
        gone: list[str] = []
        for batch in _batches(self._deletable(time), self._at_once):
            self._rate.wait_for(len(batch), self._watch)
            self._watch.check_fence()
            gone += self._delete_files(batch)
            if len(gone) >= BATCH:
                self._forget_files(gone)
                gone = []
            self._progress(self.result.deleted + self.result.missing, 0, "files deleted")
        self._forget_files(gone)

    def _delete_files(self, filenames: Sequence[str]) -> list[str]:
        """Delete files from the storage. Returns those that are gone now."""
        result, gone = self.result, []
        for filename, outcome, reason in self._folder.delete_files(filenames, pause=self._pause):
            if outcome is DeletionResult.FAILED:
                result.failed += 1
                if len(result.failures) < _FAILURES_SHOWN:
                    result.failures.append({"file": filename, "reason": reason})
                continue
            result.deleted += outcome is DeletionResult.DELETED
            result.missing += outcome is DeletionResult.MISSING
            gone.append(filename)
        return gone

    def _pause(self, seconds: float) -> None:
        """Wait, and ask the fence every second."""
        until = self._store.clock.monotonic() + seconds
        while (left := until - self._store.clock.monotonic()) > 0:
            self._watch.check_now_and_then()
            self._store.clock.sleep(min(left, 1.0))

    def _forget_files(self, filenames: Sequence[str]) -> None:
        """Stop tracking files whose objects are gone, those that another collection has not forgotten yet."""
        waiting = list(filenames)
        for _ in range(_TRIES):
            self._watch.check_fence()
            try:
                self._references.forget_files(waiting)
            except FileNotTrackedError:
                tracked = self._references.find_files(waiting)
                waiting = [filename for filename in waiting if filename in tracked]
                continue
            return

    def _count_waiting(self, time: CollectionTime) -> None:
        """Count the marked files that stay, by reason."""
        result = self.result
        before = time.latest_mark(self._settings.files_delete_delay_seconds)
        due = [0, 0]
        for filename in self._references.collectable_files(before) if before else ():
            due[self._folder.has_file(filename)] += 1
        result.outside, inside = due
        everything = sum(1 for _ in self._references.collectable_files(_FOREVER))
        result.waiting = max(everything - sum(due), 0)  # another collection may forget files in between
        result.postponed = max(inside - (result.deleted if result.dry_run else result.failed), 0)

    def _forget_outcomes(self, time: CollectionTime) -> None:
        before = Micros(max(time.now - round(self._settings.files_outcomes_kept_seconds * 1_000_000), 0))
        for _ in range(_OUTCOME_BATCHES):
            self._watch.check_fence()
            forgotten = self._references.forget_outcomes(before, BATCH)
            self.result.outcomes += forgotten
            if forgotten < BATCH:
                return

    def _report_jobs(self, time: CollectionTime) -> None:
        """Note the jobs that hold references for too long: their files are compacted by no other job."""
        before = time.now - round(self._settings.files_job_seconds * 1_000_000)
        jobs = overdue_jobs(self._references, before=Micros(before))
        self.result.jobs = jobs[:_JOBS_SHOWN]
        if jobs:
            self.result.notes.append(
                f"{_some(jobs, 'job')} had references assigned for longer than {duration_text(self._settings.files_job_seconds)}, and"
                " nothing is known of their end: a compaction executes them again"
            )


def overdue_jobs(references: FileReferenceStore, *, before: Micros) -> list[str]:
    """The jobs that references were assigned to before a time, and that have no outcome."""
    assigned: dict[str, Micros] = {}
    for reference in references.references():
        if reference.job is not None and reference.updated is not None and reference.updated < before:
            assigned[reference.job] = min(assigned.get(reference.job, reference.updated), reference.updated)
    known = references.find_outcomes(sorted(assigned))
    return [job for job, _ in sorted(assigned.items(), key=lambda item: item[1]) if job not in known]


def _batches(items: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


@dataclass(frozen=True, slots=True)
class FileExplanation:
    """Why a file is there, and when it may go.

    state         referenced, unreferenced, marked, stray, young, unknown name, or missing
    goes          the first time at which a collection may delete it; None: not known
    """

    filename: str
    state: str
    sentence: str
    references: tuple[FileReference, ...] = ()
    since: Micros | None = None
    goes: Micros | None = None


def explain_file(store: Store, references: FileReferenceStore, folder: DataFolder, name: str) -> FileExplanation:
    """Tell who refers to a file; or since when nobody does, by which rule it goes, and when.

    name          as it is tracked, or its last part
    raises        NotFoundError for a file that is neither tracked nor in the folder
    """
    filename = name if "/" in name else f"{folder.location}/{name}"
    file = references.find_files([filename]).get(filename)
    if file is None:
        return _explain_untracked(store, folder, filename)
    if file.references:
        return _explain_referenced(file)
    return _explain_unreferenced(store, folder, file)


def _explain_referenced(file: TrackedFile) -> FileExplanation:
    partitions = [reference.partition for reference in file.references]
    jobs = sorted({reference.job for reference in file.references if reference.job is not None})
    held = f"; {_some(jobs, 'job')} will replace some of them" if jobs else ""
    sentence = f"{_some(partitions, 'partition')} {'refers' if len(partitions) == 1 else 'refer'} to it: it stays{held}"
    return FileExplanation(file.filename, "referenced", sentence, file.references, since=file.updated)


def _explain_unreferenced(store: Store, folder: DataFolder, file: TrackedFile) -> FileExplanation:
    delay = store.settings.files_delete_delay_seconds
    if not folder.has_file(file.filename):
        sentence = f"nobody refers to it, and it lies outside of {folder.location}: collections leave it alone"
        return FileExplanation(file.filename, "unreferenced", sentence, since=file.updated)
    if file.updated is None:
        sentence = (
            f"nobody refers to it: the next collection marks it, and one that begins {duration_text(delay)} later deletes it"
        )
        return FileExplanation(file.filename, "unreferenced", sentence)
    time = read_collection_time(store, is_noted=False)
    goes = Micros(max(file.updated, time.steady_since) + round(delay * 1_000_000))
    when = "the next collection" if goes < time.now else f"the first collection after {as_text(goes)}"
    sentence = (
        f"a collection found it without references at {as_text(file.updated)}: {when} deletes it ({duration_text(delay)} later)"
    )
    return FileExplanation(file.filename, "marked", sentence, since=file.updated, goes=goes)


def _explain_untracked(store: Store, folder: DataFolder, filename: str) -> FileExplanation:
    if not folder.has_file(filename) or not folder.has_stored(filename):
        raise NotFoundError(
            f"{filename!r} is not tracked, and is no file of {folder.location}: it was collected, or never was there"
        )
    made = data_file_time(filename)
    if made is None:
        sentence = "nobody tracks it, and its name is not that of a data file: collections leave it alone"
        return FileExplanation(filename, "unknown name", sentence)
    settings = store.settings
    tracked = Micros(made + round(settings.files_writer_grace_seconds * 1_000_000))
    goes = Micros(tracked + round(settings.files_delete_delay_seconds * 1_000_000))
    if tracked > read_collection_time(store, is_noted=False).now:
        sentence = (
            f"nobody tracks it yet: its writer may still add it to the table. If it does not, the first collection after"
            f" {as_text(tracked)} marks it"
        )
        return FileExplanation(filename, "young", sentence, since=made, goes=goes)
    delay = duration_text(settings.files_delete_delay_seconds)
    sentence = f"a stray: written at {as_text(made)}, and nobody tracks it. The next collection marks it, and one {delay} later deletes it"
    return FileExplanation(filename, "stray", sentence, since=made)


def _some(names: Sequence[str], noun: str) -> str:
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"{noun} {shown}" if len(names) == 1 else f"{len(names)} {noun}s ({shown})"
