"""The snapshot of a realm at one moment: its references, their pinned commits, and every object that they reach.

A moment is readable once no commit of that time can appear any more, and while deletions and moves since then are still recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from headwater.backup.archive_format import SealedObject
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
from headwater.commits import AbsentReference, Head, no_state_error, pin_commits, read_collection, state_as_of
from headwater.errors import CorruptionError, ExpiredError, RefusedError
from headwater.gc.live_set import LiveSet
from headwater.gc.retention import KeepReason
from headwater.gc.sweep import paced_fence
from headwater.realms import FILLED_REFERENCES, REALM_REFERENCES
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, StoredObject, id_text, unknown_pointers_reason
from headwater.store.realm_objects import load_object
from headwater.store.stored_objects import decode_object

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
        found: dict[ObjectId, list[str]] = {}
        for name, commit in self.pointers.items():
            if commit is not None:
                found.setdefault(commit, []).append(name)
        return found


def take_snapshot(rows: RealmStore, time: Micros, *, owner: ObjectId, fence: Callable[[], None]) -> RealmSnapshot:
    """Determine the state at ``time`` and pin it for the task ``owner``.

    rows          a handle that may write, because it writes the pins
    raises        RefusedError for a time that is too late or undetermined; NotFoundError for one before the realm was filled;
                  ExpiredError for one that is no longer recorded; UnavailableError while a collection sweeps; CorruptionError for damage
    """
    looked = rows.without_cache(budget_bytes=_REMEMBERED_BYTES)
    snapshot = _SnapshotReader(looked, time, paced_fence(fence, rows.clock)).read_snapshot()
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
    there = rows.find_rows(REALM_REFERENCES)
    born = max((row.created for row in there if row is not None), default=Micros(0))
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
    seen = LiveSet(_EXACT_BYTES)
    waiting = [root for root in roots if seen.mark(root, KeepReason.HEAD)]
    while waiting:
        batch = waiting[-_BATCH:]
        del waiting[-_BATCH:]
        found = {
            row.id: SealedObject(row.id, row.type, row.token is not None, envelope)
            for row, envelope in load_object(rows.store.backend, rows.realm, rows.key, batch)
        }
        for object_id in batch:
            sealed = found.pop(object_id, None)
            if sealed is None:
                raise CorruptionError(
                    f"object {id_text(object_id)} of realm {rows.realm!r} is referred to, but not there: run `headwater fsck`"
                )
            waiting += [target for target in open_sealed(sealed, rows.realm).points_to() if seen.mark(target, KeepReason.HEAD)]
            yield sealed


def open_sealed(sealed: SealedObject, realm: str) -> StoredObject:
    """The object in its envelope, after a check of its checksum.

    raises        CorruptionError, also for a type that this release does not know, because what it reaches would be left out
    """
    token = "" if sealed.is_updateable else None
    value = decode_object(sealed.id, sealed.type, sealed.envelope, StoredObject, realm=realm, token=token)
    if why := unknown_pointers_reason(value):
        raise CorruptionError(
            f"object {id_text(sealed.id)} of realm {realm!r} {why}: what it points to cannot be told; use the release that wrote it"
        )
    return value
