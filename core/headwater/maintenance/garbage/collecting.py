"""Collection: mark, publish, look again, sweep. See ``headwater.commits.moving`` for the other side of the handshake.

1. The cut-offs are fixed: no row younger than the writer's grace is touched, and what was HEAD within the reader's grace stays.
2. Mark from every listed reference; plan, by a scan that deletes nothing.
3. Publish "sweeping". Raise the version of every listed reference, and mark what is new: whoever looked before is beaten now.
4. Sweep: delete the rows that are unmarked, or left-over parts of what is marked, and unchanged since they were scanned.
   Withdraw the flag.

A run that crashed leaves the flag on, which harms nobody but those who want to point at an old commit. The next run marks anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import structlog

from headwater.catalogs import Catalogs, release_claims, release_name
from headwater.clock import Micros, as_text
from headwater.commits import COLLECTION_ID, Collection, Cuts, read_collection
from headwater.errors import BeatenError, FencedError, HeadwaterError, UnavailableError
from headwater.maintenance.garbage.keys import keys_with_rows
from headwater.maintenance.garbage.listing import Listed, Scope, scope_of
from headwater.maintenance.garbage.marking import Marker, check_time
from headwater.maintenance.garbage.parts import LeftOvers
from headwater.maintenance.garbage.retention import Why
from headwater.realms import Realms
from headwater.settings import duration_text
from headwater.store import ObjectKey, RealmId, Reference, Store, Versioned, is_fixed

__all__ = ["Collected", "Fence", "Progress", "collect", "marker_for"]

Fence = Callable[[], None]
"""Called before every durable step; raises FencedError when the task was taken over."""
Progress = Callable[[int, int, str], None]
"""Called with (done, total, unit)."""

_TRIES = 100
_log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class Collected:
    """What a collection saw and did, counted in rows (an object may have several).

    kept          by reason; ``types`` the same by object type
    leftover_parts  of the garbage: parts that an interrupted rewriting left of an object that itself may stay
    deleted       rows that the database confirmed gone; in a dry run 0, and ``garbage`` says what would go
    deleted_bytes at least so many
    """

    realm: str
    dry_run: bool
    writer_cutoff: Micros
    reader_cutoff: Micros
    references: int = 0
    scanned: int = 0
    garbage: int = 0
    garbage_bytes: int = 0
    leftover_parts: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    types: dict[str, dict[str, int]] = field(default_factory=dict)
    tombstones_removed: int = 0
    claims_released: int = 0
    late_rows_deleted: int = 0
    notes: list[str] = field(default_factory=list)

    def as_plain(self) -> dict[str, Any]:
        """For a task's outcome and a run's record."""
        return {
            "realm": self.realm,
            "dryRun": self.dry_run,
            "writerCutoff": as_text(self.writer_cutoff),
            "readerCutoff": as_text(self.reader_cutoff),
            "references": self.references,
            "scanned": self.scanned,
            "kept": self.kept,
            "garbage": self.garbage,
            "garbageBytes": self.garbage_bytes,
            "leftoverParts": self.leftover_parts,
            "deleted": self.deleted,
            "deletedBytes": self.deleted_bytes,
            "types": self.types,
            "tombstonesRemoved": self.tombstones_removed,
            "claimsReleased": self.claims_released,
            "lateRowsDeleted": self.late_rows_deleted,
            "notes": self.notes,
        }


def collect(
    store: Store,
    realm_id: str,
    *,
    fence: Fence = lambda: None,
    progress: Progress = lambda done, total, unit: None,
    owner: str = "",
    dry_run: bool = False,
) -> Collected:
    """Collect the garbage of one realm, or of ``::system::``.

    owner         who does it, as text: stands in the realm's record while it sweeps
    dry_run       mark and plan, and change nothing
    raises        RefusedError and UnreadableError before anything was deleted, with the reason why nothing may be ·
                  FencedError when the task was taken over
    """
    return _Collection(store, scope_of(store, realm_id), fence, progress, owner, dry_run).run()


def marker_for(scope: Scope, *, trace: bool = False) -> Marker:
    """A marker with the cut-offs of now."""
    settings, now = scope.rows.settings, scope.rows.clock.now()
    record = read_collection(scope.rows)
    return Marker(
        scope=scope,
        now=now,
        reader_cutoff=Micros(now - round(settings.reader_grace_seconds * 1_000_000)),
        writer_cutoff=Micros(now - round(settings.writer_grace_seconds * 1_000_000)),
        previous=None if record is None else record.value,
        trace=trace,
    )


class _Collection:
    def __init__(self, store: Store, scope: Scope, fence: Fence, progress: Progress, owner: str, dry_run: bool) -> None:
        self._store = store
        self._scope = scope
        self._rows = scope.rows
        self._fence = fence
        self._progress = progress
        self._owner = owner
        self._marker = marker_for(scope)
        self.result = Collected(
            realm=scope.rows.realm,
            dry_run=dry_run,
            writer_cutoff=self._marker.writer_cutoff,
            reader_cutoff=self._marker.reader_cutoff,
        )

    def run(self) -> Collected:
        self._note_circumstances()
        found = self._scope.found()
        self.result.references = sum(row.deleted is None for _, row in found)
        self._marker.mark(found)
        self._plan()
        if not self.result.dry_run:
            self._destroy()
        return self.result

    def _note_circumstances(self) -> None:
        settings = self._rows.settings
        if settings.unsafe_short_graces:
            self.result.notes.append(
                f"UNSAFE: graces are {duration_text(settings.writer_grace_seconds)} (writers) and"
                f" {duration_text(settings.reader_grace_seconds)} (readers), by the setting unsafe_short_graces"
            )
        if self._marker.previous is not None and self._marker.previous.sweeping:
            self.result.notes.append(
                f"the sweep of {self._marker.previous.owner or 'an earlier run'} was interrupted: marked anew"
            )

    def _plan(self) -> None:
        """Count what stays and why, and what would go; and see that no row's time makes its age meaningless."""
        result = self.result
        for judged in self._judged():
            self._fence()
            for key, why in judged:
                check_time(key.created, self._marker.now, self._scope, f"a row of type {key.type!r}")
                result.scanned += 1
                by_type = result.types.setdefault(key.type, {})
                name = "garbage" if why is None else why.value
                by_type[name] = by_type.get(name, 0) + 1
                if why is None:
                    result.garbage += 1
                    result.garbage_bytes += key.bytes
                    result.leftover_parts += self._why(key) is not None
                else:
                    result.kept[why.value] = result.kept.get(why.value, 0) + 1
            self._progress(0, result.garbage, "rows")

    def _judged(self) -> Iterator[list[tuple[ObjectKey, Why | None]]]:
        """Every row of the realm, in batches, with why it stays; None: it is garbage, by its object or as a left-over part."""
        left_overs = LeftOvers(self._rows)
        for batch in self._rows.scan_objects():
            judged = [(key, self._why(key)) for key in batch]
            old = [key for key, why in judged if why is not None and key.created <= self._marker.writer_cutoff]
            left = left_overs.among(batch, old)
            yield [(key, None if key in left else why) for key, why in judged]

    def _why(self, key: ObjectKey) -> Why | None:
        """Why a row's object stays; None when it is garbage."""
        if is_fixed(key.id):
            return Why.FIXED
        marked = self._marker.marks.get(key.id)
        if marked is not None:
            return marked
        return Why.YOUNG if key.created > self._marker.writer_cutoff else None

    def _destroy(self) -> None:
        self._fence()
        published = self._publish()
        try:
            listed = self._scope.listed()
            raised = [(entry, row) for entry in listed if (row := self._raise_version(entry)) is not None]
            self._marker.mark(raised)
            published = self._republish(published)
            self._sweep()
            self._bury(raised)
            self._release()
        except FencedError:
            raise  # the flag belongs to whoever took over
        except HeadwaterError:
            self._withdraw(published)
            raise
        self._withdraw(published)

    def _publish(self) -> Versioned[Collection]:
        seen = read_collection(self._rows)
        record = self._record(sweeping=True)
        if seen is None:
            return self._rows.insert(COLLECTION_ID, record)
        if seen.value != self._marker.previous:
            raise UnavailableError(
                f"another collection of realm {self._rows.realm!r} is under way ({seen.value.owner or 'no owner named'}):"
                " try again after it"
            )
        return self._rows.update(seen, record)

    def _republish(self, published: Versioned[Collection]) -> Versioned[Collection]:
        """The cuts as they are after the second marking, before anything is deleted by them."""
        self._fence()
        return self._rows.update(published, self._record(sweeping=True))

    def _record(self, *, sweeping: bool) -> Collection:
        cuts = self._rows.new_id()
        self._rows.write([(cuts, Cuts(lines=self._marker.cuts))])
        return Collection(
            sweeping=sweeping,
            owner=self._owner,
            reader_cutoff=self._marker.reader_cutoff,
            writer_cutoff=self._marker.writer_cutoff,
            cuts=cuts,
        )

    def _withdraw(self, published: Versioned[Collection]) -> None:
        done = Collection(
            sweeping=False,
            owner=published.value.owner,
            reader_cutoff=published.value.reader_cutoff,
            writer_cutoff=published.value.writer_cutoff,
            cuts=published.value.cuts,
        )
        try:
            self._rows.update(published, done)
        except HeadwaterError as fault:
            _log.warning("the sweep's flag stays on until the next run", realm=self._rows.realm, fault=str(fault))

    def _raise_version(self, entry: Listed) -> Reference | None:
        """The reference as it is under its new version; a listed name without a row gets a tombstone.

        A name that every realm has is never created on an existing commit: it needs none.
        """
        for _ in range(_TRIES):
            self._fence()
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

    def _sweep(self) -> None:
        done = 0
        for batch in _batches(self._garbage(), self._rows.settings.delete_batch):
            self._fence()
            deleted = self._rows.delete_unchanged(batch)
            self.result.deleted += deleted
            if deleted == len(batch):  # else some of them changed meanwhile, and nobody knows which
                self.result.deleted_bytes += sum(key.bytes for key in batch)
            done += len(batch)
            self._progress(done, max(self.result.garbage, done), "rows")

    def _garbage(self) -> Iterator[ObjectKey]:
        for judged in self._judged():
            yield from (key for key, why in judged if why is None)

    def _bury(self, raised: list[tuple[Listed, Reference]]) -> None:
        """Remove tombstones that nobody can read from any more, then their names."""
        slack = round(self._rows.settings.commit_timeout_seconds * 1_000_000)
        cutoff = Micros(min(self._marker.reader_cutoff, self._marker.writer_cutoff) - slack)
        for entry, row in raised:
            ended = row.deleted
            if ended is None or entry.listed == 0 or max(ended, entry.listed, *(m.time for m in row.moves), 0) >= cutoff:
                continue
            self._fence()
            try:
                self._rows.remove_tombstone(row)
            except BeatenError:
                continue  # alive again
            release_name(self._rows, entry.name, older_than=cutoff)
            self.result.tombstones_removed += 1

    def _release(self) -> None:
        """What belongs to nothing that is kept: claims of tables, and rows that late writers left under purged keys."""
        if not self._scope.is_system:
            cutoff = min(self._marker.reader_cutoff, self._marker.writer_cutoff)
            self._fence()
            self.result.claims_released = release_claims(self._rows, self._marker.content, older_than=cutoff, fence=self._fence)
            self._fence()
            Catalogs(self._rows).finish_deletions()
        self._collect_purged_keys()

    def _collect_purged_keys(self) -> None:
        realms = Realms(self._store)
        oldest = self._marker.now - self._rows.settings.purged_keys_kept_seconds * 1_000_000
        purged = realms.purged_keys()
        for key in keys_with_rows(self._store, purged, self._fence):
            rows = self._store.rows(RealmId("purged"), key)
            while not rows.is_empty():
                self._fence()
                self.result.late_rows_deleted += rows.delete_rows(self._rows.settings.delete_batch)
        realms.forget_purged_keys([key for key, removed in purged.items() if removed < oldest], fence=self._fence)


def _batches(keys: Iterator[ObjectKey], size: int) -> Iterator[list[ObjectKey]]:
    batch: list[ObjectKey] = []
    for key in keys:
        batch.append(key)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch
