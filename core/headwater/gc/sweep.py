"""The sweep: delete garbage rows split by split, each from where it stopped, and only if unchanged since the scan.

The cleanup after it removes tombstones and names, stale pins, and rows under purged realm keys.
``CollectionResult`` has the counts of a collection: rows that it saw, why they stayed, what was deleted, how long each phase took.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import msgspec

from headwater.catalogs import release_name
from headwater.clock import Clock, Micros, as_text
from headwater.commits import SweptSplit, read_pins, release_listed, unpin_commits
from headwater.errors import CorruptionError, NotFoundError, SwapConflictError
from headwater.files import FileScope, release_tree
from headwater.files.open_references import keeps_file_references, list_file_scopes, open_file_references
from headwater.gc.live_set import RowClassifier
from headwater.gc.retention import CollectionScope, KeepReason, ReferenceOrigin, ScopeEntry
from headwater.realms import RealmRegistry, RealmState
from headwater.store import ObjectId, ObjectKey, ObjectPosition, RealmId, RealmKey, RealmStore, Reference, ScanSplit, Store
from headwater.tasks import TaskQueue
from headwater.throttle import FenceWatch, ProgressCallback, Throttle
from headwater.typed_values import convert

_SAVE_BATCHES = 20
_SAVE_SECONDS = 5.0
"""The position is saved after so many batches, or so long: what is repeated after a crash costs a look and deletes nothing."""
_ROWS_PER_SPLIT = 20_000
_MOST_LANDMARKS = 512

Save = Callable[[Sequence[SweptSplit]], None]


class ScanLandmarks:
    """Positions that a full scan passed at equal distances: the next scan is cut there, without another look."""

    def __init__(self) -> None:
        self._passed: list[ObjectPosition] = []
        self._every = 1
        self._batches = 0
        self._rows = 0

    def pass_by(self, batch: Sequence[ObjectKey]) -> None:
        self._rows += len(batch)
        self._batches += 1
        if self._batches % self._every == 0:
            self._passed.append(batch[-1].position)
        if len(self._passed) >= _MOST_LANDMARKS:
            self._passed = self._passed[1::2]
            self._every *= 2

    def cut(self, splits: int) -> tuple[SweptSplit, ...]:
        """Cut the scan into up to ``splits`` splits of about equal size, none smaller than is worth a thread."""
        count = max(1, min(splits, self._rows // _ROWS_PER_SPLIT, len(self._passed)))
        ends = [self._passed[len(self._passed) * number // count - 1] for number in range(1, count)]
        return tuple(SweptSplit(after, until) for after, until in zip([None, *ends], [*ends, None], strict=True))


class RealmSweep:
    """The sweep of one realm.

    new_classifier  makes the classifier of one split
    save          saves the position of every split, and the counts of ``result``; called by one thread at a time
    stopped       set after the first fault of a split
    """

    def __init__(
        self,
        rows: RealmStore,
        new_classifier: Callable[[], RowClassifier],
        pacing: Throttle,
        result: CollectionResult,
        phases: PhaseTimer,
        save: Save,
    ) -> None:
        self._rows = rows
        self._new_classifier = new_classifier
        self._pacing = pacing
        self._result = result
        self._phases = phases
        self._save = save
        self._lock = threading.Lock()
        self.stopped = threading.Event()
        # Invariant: under the lock. All garbage of a split up to its position is deleted; a position never goes back.
        self._splits: list[SweptSplit] = []
        self._unsaved = 0
        self._saved_at = rows.clock.monotonic()
        self.delete_batch = rows.settings.delete_batch

    def set_splits(self, splits: Sequence[SweptSplit], progress: ProgressCallback) -> None:
        """Set the position from which each split is swept."""
        self._splits = list(splits)
        self._progress = progress

    def sweep(self, splits: Sequence[SweptSplit], progress: ProgressCallback) -> None:
        """Sweep all splits side by side. After a fault of one, the others stop before their next batch.

        raises        what ``save``, the fence or the database raise
        """
        self.set_splits(splits, progress)
        left = [number for number, split in enumerate(splits) if not split.is_done]
        if len(left) <= 1:
            for number in left:
                self._sweep_split(number, share=1)
            return
        with ThreadPoolExecutor(len(left), thread_name_prefix="sweep") as threads:
            futures = [threads.submit(self._sweep_side_by_side, number, share=len(left)) for number in left]
            try:
                for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                    future.result()
            except BaseException:  # an interruption of this thread, too: nothing else would stop the others
                self.stopped.set()
                raise

    def split(self, number: int, *, share: int = 1) -> SplitSweep:
        """Returns the sweep of one split, to which the caller gives the batches of a scan."""
        return SplitSweep(self, number, self._new_classifier(), share)

    def _sweep_side_by_side(self, number: int, *, share: int) -> None:
        try:
            self._sweep_split(number, share=share)
        except BaseException:
            self.stopped.set()
            raise

    def _sweep_split(self, number: int, *, share: int) -> None:
        swept, sweep = self._splits[number], self.split(number, share=share)
        realm = self._rows.key if self._rows.store.backend.capabilities.ordered_keys else None
        for batch in self._rows.scan_objects(ScanSplit(realm, swept.after, swept.until)):
            if self.stopped.is_set():
                return
            sweep.sweep_batch(batch, batch[-1].position)
            self._pacing.before_scanning_on(len(batch))
        if not self.stopped.is_set():  # a split that was stopped is not at its end
            sweep.finish()

    def delete_garbage(self, garbage: Sequence[ObjectKey], share: int) -> None:
        """Delete a batch of rows and count those that went."""
        self._pacing.before_deleting(len(garbage))
        with self._phases.time_phase("delete", share=share):
            # On condition of the scanned creation time and token: a row that was written again since the scan is not garbage.
            deleted = self._rows.delete_unchanged(garbage)
        gone = garbage if deleted == len(garbage) else self._gone(garbage, deleted)
        with self._lock:
            self._result.count_deleted(deleted, gone)
            done = self._result.deleted
        self._progress(done, max(self._result.garbage, done), "rows deleted")

    def _gone(self, garbage: Sequence[ObjectKey], deleted: int) -> Sequence[ObjectKey]:
        """Returns the rows that this call deleted, as far as that is certain: none if others deleted some as well."""
        remaining = self._rows.store.backend.read_objects(self._rows.key, [(key.id, key.part) for key in garbage])
        gone = [key for key, row in zip(garbage, remaining, strict=True) if row is None]
        return gone if len(gone) == deleted else ()

    def note_swept(self, number: int, position: ObjectPosition | None, *, batches: int = 1) -> None:
        """Note that a split is swept up to a position; None: to its end. The positions are saved from time to time."""
        now = self._rows.clock.monotonic()
        with self._lock:
            split = self._splits[number]
            is_done = position is None
            self._splits[number] = msgspec.structs.replace(split, after=split.after if is_done else position, is_done=is_done)
            self._unsaved += batches
            if self._unsaved >= _SAVE_BATCHES or now - self._saved_at >= _SAVE_SECONDS:
                # Inside the lock: two threads that save at once would beat each other's swap of the record.
                self._pacing.watch.check_fence()
                self._save(self._splits)
                self._unsaved, self._saved_at = 0, self._rows.clock.monotonic()


class SplitSweep:
    """The sweep of one split, which is given batch after batch."""

    def __init__(self, sweeper: RealmSweep, number: int, classifier: RowClassifier, share: int) -> None:
        self._sweeper = sweeper
        self._number = number
        self._classifier = classifier
        self._share = share
        self._size = sweeper.delete_batch
        # Invariant: in the order of the scan, and beyond the position that was noted: a crash forgets it, and it is scanned again.
        self._garbage: list[ObjectKey] = []

    def sweep_batch(self, batch: Sequence[ObjectKey], position: ObjectPosition) -> None:
        """Sweep rows as they were scanned, perhaps none.

        position      of the last row that the scan has passed, in this realm or another
        """
        if batch:
            reasons, _ = self._classifier.classify(batch)
            self._garbage += [key for key, why in zip(batch, reasons, strict=True) if why is None]
        while len(self._garbage) >= self._size and not self._sweeper.stopped.is_set():
            some, self._garbage = self._garbage[: self._size], self._garbage[self._size :]
            self._sweeper.delete_garbage(some, self._share)
            # After the deletion, and only as far as that went: whoever resumes never looks before this position again.
            self._sweeper.note_swept(self._number, some[-1].position)
        if not self._garbage:
            self._sweeper.note_swept(self._number, position, batches=0)

    def finish(self) -> None:
        """Delete what is left after the last batch, and note that the split is done."""
        if self._garbage:
            self._sweeper.delete_garbage(self._garbage, self._share)
        self._sweeper.note_swept(self._number, None)


_LATE_BATCHES = 2000
"""The limit of batches under one key in one collection: a million rows as shipped."""


def remove_tombstones(
    scope: CollectionScope, references: Iterable[tuple[ScopeEntry, Reference]], watch: FenceWatch, result: CollectionResult
) -> None:
    """Remove tombstones that nobody can read from any more, then their names."""
    # By the earlier cut-off, less the time-out of a commit: a mover that read the name before it was buried is beaten by the
    # tombstone, and a reader may still read what it holds. A name that was listed lately is about to get a row.
    slack = round(scope.rows.settings.commit_timeout_seconds * 1_000_000)
    cutoff = Micros(min(result.reader_cutoff, result.writer_cutoff) - slack)
    for entry, row in references:
        ended = row.deleted
        if ended is None or entry.listed == 0 or max(ended, entry.listed, *(m.time for m in row.moves), 0) >= cutoff:
            continue
        watch.check_fence()
        try:
            scope.rows.remove_tombstone(row)
        except SwapConflictError:
            continue  # alive again
        # The row first: a row without a listed name would be a reference that no collection marks.
        if entry.origin is ReferenceOrigin.EXTENSION:
            release_listed(scope.rows, entry.name, older_than=cutoff)
        elif not release_name(scope.rows, entry.name, older_than=cutoff):
            release_tree(scope.rows, entry.name, older_than=cutoff)
        result.tombstones_removed += 1


def release_pins(store: Store, scope: CollectionScope, watch: FenceWatch, result: CollectionResult) -> None:
    """Release the pins whose task has ended or is gone without releasing them itself, and whose hold is over."""
    tasks, now = TaskQueue(store), store.clock.now()
    # Read before the tasks: a pin is taken by an active task, so one that is read here had an active task at that time.
    holds: dict[ObjectId, Micros] = {}
    for pin in read_pins(scope.rows):
        holds[pin.owner] = max(holds.get(pin.owner, Micros(0)), pin.held_until)
    for owner in sorted(holds):
        if holds[owner] <= now and not _is_active(tasks, owner):
            watch.check_fence()
            result.pins_released += unpin_commits(scope.rows, owner, held_past=now, fence=watch.check_fence)


def collect_purged_keys(store: Store, pacing: Throttle, result: CollectionResult) -> None:
    """Delete what late writers left under the keys of PURGED realms and of deleted ones, and forget keys of the latter that are old
    enough and have nothing.

    A key whose writers do not stop is left to the next collection after ``_LATE_BATCHES`` batches.
    """
    realms = RealmRegistry(store)
    oldest = store.clock.now() - store.settings.purged_keys_kept_seconds * 1_000_000
    # The removed keys first: a realm that is deleted in between is in one of the two. PURGED has no way back, so its key serves nobody.
    purged = realms.purged_keys()
    emptied = {realm.key for realm in realms.list_realms() if realm.state is RealmState.PURGED}
    keys = sorted({*purged, *emptied})
    fed = {
        key
        for key in keys_with_rows(store, keys, pacing.watch.check_now_and_then)
        if not _is_cleared(store, key, pacing, result)
    }
    for scope in list_file_scopes(store) if keys and keeps_file_references(store) else []:
        if scope.realm in keys and not _is_scope_cleared(store, scope, pacing, result):
            fed.add(scope.realm)
    old = [key for key, removed in purged.items() if removed < oldest and key not in fed]
    realms.forget_purged_keys(old, fence=pacing.watch.check_fence)


def _is_cleared(store: Store, key: RealmKey, pacing: Throttle, result: CollectionResult) -> bool:
    rows, size = store.rows(RealmId("purged"), key), store.settings.delete_batch
    for _ in range(_LATE_BATCHES):
        pacing.before_deleting(size)
        deleted = rows.delete_rows(size)
        result.late_rows_deleted += deleted
        if not deleted:
            return rows.is_empty()
    return False


def _is_scope_cleared(store: Store, scope: FileScope, pacing: Throttle, result: CollectionResult) -> bool:
    """Delete the references of a file table that late writers left. Their data files stay: nothing says whose they are."""
    size = store.settings.delete_batch
    try:
        references = open_file_references(store, scope)
    except NotFoundError:
        return True  # deleted meanwhile
    with closing(references):
        references.close_scope()
        for _ in range(_LATE_BATCHES):
            pacing.before_deleting(size)
            deleted = references.delete_scope(size)
            result.late_rows_deleted += deleted
            if not deleted:
                return True
    return False


def _is_active(tasks: TaskQueue, owner: ObjectId) -> bool:
    try:
        return tasks.read_task(owner).value.is_active
    except NotFoundError:
        return False
    except CorruptionError:
        return True  # it may be active, and a pin too many only keeps the commit that it names


_SCAN_ROWS = 1000


def keys_with_rows(store: Store, keys: Collection[RealmKey], fence: Callable[[], None]) -> list[RealmKey]:
    """Returns the keys that some row carries. Looks each up where keys are ordered; otherwise scans the store once."""
    if not keys or store.backend.capabilities.ordered_keys:
        return [key for key in keys if not store.rows(RealmId("any"), key).is_empty()]
    return sorted(keys_in_use(store, fence).intersection(keys))


def keys_in_use(store: Store, fence: Callable[[], None] = lambda: None) -> set[RealmKey]:
    """Scan the store for all realm keys that some row carries."""
    keys: set[RealmKey] = set()
    after = None
    while batch := store.backend.scan_objects(ScanSplit(), after, _SCAN_ROWS):
        fence()
        keys.update(key.realm for key in batch)
        after = batch[-1].position
    name = None
    while rows := store.backend.scan_references(ScanSplit(), name, _SCAN_ROWS):
        fence()
        keys.update(row.realm for row in rows)
        name = rows[-1].position
    return keys


_type = itemgetter(ObjectKey._fields.index("type"))
_bytes = itemgetter(ObjectKey._fields.index("bytes"))


@dataclass(slots=True, kw_only=True)
class CollectionResult:
    """What a collection saw and did, counted in rows (an object may have several).

    kept          rows that stay, by reason
    types         rows by object type and reason; "garbage" is one of the reasons
    leftover_parts  garbage rows that are parts which an interrupted rewriting left; their object itself may stay
    deleted       rows that the database confirmed deleted; 0 in a dry run, where ``garbage`` counts what would go
    deleted_bytes, deleted_types  at least: they count the rows whose deletion is certain; by type (rows, bytes)
    marks         objects that were marked; the part that a filter holds is estimated
    filter_bytes, filter_fpp  the filter's size and the share of garbage that it keeps by mistake; 0 where the marks are exact
    seconds       by phase: note, mark, plan (a whole scan), raise, save, sweep (another scan), delete (a part of the sweep);
                  where splits are swept side by side, a split's share
    resumed       how often an interrupted sweep was resumed; every count is the sum over all attempts
    """

    realm: str
    dry_run: bool
    writer_cutoff: Micros
    reader_cutoff: Micros
    references: int = 0
    scanned: int = 0
    scanned_bytes: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    garbage: int = 0
    garbage_bytes: int = 0
    leftover_parts: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    types: dict[str, dict[str, int]] = field(default_factory=dict)
    garbage_types: dict[str, tuple[int, int]] = field(default_factory=dict)
    deleted_types: dict[str, tuple[int, int]] = field(default_factory=dict)
    tombstones_removed: int = 0
    claims_released: int = 0
    pins_released: int = 0
    late_rows_deleted: int = 0
    marks: int = 0
    filter_bytes: int = 0
    filter_fpp: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    resumed: int = 0
    notes: list[str] = field(default_factory=list)

    def as_plain(self) -> dict[str, Any]:
        """The result as plain data, for a task's outcome and a run's record."""
        return {_camel(name): value for name, value in self.saved().items()} | {
            "writerCutoff": as_text(self.writer_cutoff),
            "readerCutoff": as_text(self.reader_cutoff),
            "garbageTypes": _by_type(self.garbage_types),
            "deletedTypes": _by_type(self.deleted_types),
            "seconds": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
        }

    def saved(self) -> dict[str, Any]:
        """The counts as plain data that a resumed run reads with ``restored``."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> CollectionResult:
        """The counts that ``saved`` gave. Raises CorruptionError when another release wrote them in another form."""
        try:
            return convert(saved, cls)
        except msgspec.ValidationError as fault:
            raise CorruptionError(f"the counts of an interrupted collection cannot be read: {fault}") from fault

    def count_scanned(self, batch: Sequence[ObjectKey], reasons: Sequence[KeepReason | None]) -> None:
        """Count a batch of scanned rows, each with its reason; None is garbage."""
        self.scanned += len(batch)
        self.scanned_bytes += sum(map(_bytes, batch))
        for (kind, why), rows in Counter(zip(map(_type, batch), reasons, strict=True)).items():
            name = "garbage" if why is None else why.value
            counts = self.types.setdefault(kind, {})
            counts[name] = counts.get(name, 0) + rows
            if why is None:
                self.garbage += rows
            else:
                self.kept[name] = self.kept.get(name, 0) + rows
        if None in reasons:
            garbage = [key for key, why in zip(batch, reasons, strict=True) if why is None]
            self.garbage_bytes += sum(map(_bytes, garbage))
            _add(self.garbage_types, garbage)

    def count_deleted(self, rows: int, gone: Sequence[ObjectKey]) -> None:
        """Count deleted rows: how many the database says, and which ones, as far as that is certain."""
        self.deleted += rows
        self.deleted_bytes += sum(map(_bytes, gone))
        _add(self.deleted_types, gone)


class PhaseTimer:
    """Adds up how long each phase takes, on the monotonic clock. Safe for several threads."""

    def __init__(self, clock: Clock, seconds: dict[str, float]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()

    @contextmanager
    def time_phase(self, name: str, *, share: int = 1) -> Iterator[None]:
        """Time the body. ``share`` is how many threads do it side by side."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            taken = (self._clock.monotonic() - began) / share
            with self._lock:
                self._seconds[name] = self._seconds.get(name, 0.0) + taken


def _add(types: dict[str, tuple[int, int]], keys: Sequence[ObjectKey]) -> None:
    for kind, rows in Counter(map(_type, keys)).items():
        before, size = types.get(kind, (0, 0))
        types[kind] = (before + rows, size)
    for key in keys:
        rows, size = types[key.type]
        types[key.type] = (rows, size + key.bytes)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _by_type(types: dict[str, tuple[int, int]]) -> dict[str, dict[str, int]]:
    return {name: {"rows": rows, "bytes": size} for name, (rows, size) in types.items()}
