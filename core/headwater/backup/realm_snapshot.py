"""What a realm holds at one moment: each reference with its commit, pinned so that it can be read at leisure.

The present is determined by looking twice: what all references show in two looks, they showed together at any moment between these
looks. Where writers are too quick for that, and for a moment that is past, each reference is followed back by the times of its commits.
Such a moment is readable once no commit of that time can appear any more, and while deletions and moves since then are still recorded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

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
from headwater.commits import (
    AbsentReference,
    Commit,
    Head,
    extensions_at,
    no_state_error,
    pin_commits,
    read_collection,
    read_commit,
    state_as_of,
)
from headwater.errors import ExpiredError, NotFoundError, RefusedError, UnavailableError
from headwater.realms import FILLED_REFERENCES, REALM_REFERENCES
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, Reference
from headwater.throttle import FenceWatch

NameT = TypeVar("NameT")
_REMEMBERED_BYTES = 32 * 1024 * 1024
_NAMES = 500
_LOOKS = 5
"""How often the present is looked for before an earlier moment is taken."""


@dataclass(frozen=True, slots=True)
class RealmSnapshot:
    """``pointers`` maps each reference that existed at ``time`` to its newest commit by then; ``extensions`` names those of extensions."""

    time: Micros
    pointers: Mapping[str, ObjectId | None]
    extensions: frozenset[str] = frozenset()

    @property
    def commits(self) -> dict[ObjectId, list[str]]:
        """The commits, each with the references that pointed to it."""
        names: dict[ObjectId, list[str]] = {}
        for name, commit in self.pointers.items():
            if commit is not None:
                names.setdefault(commit, []).append(name)
        return names


def take_snapshot(rows: RealmStore, time: Micros | None, *, owner: ObjectId, fence: Callable[[], None]) -> RealmSnapshot:
    """Determine the state at ``time`` and pin it for the task ``owner``.

    rows          a handle that may write, because it writes the pins
    time          None: now; or the newest moment that is readable, where references change faster than they can be looked at
    raises        RefusedError for a time that is too late or undetermined; NotFoundError for one before the realm was filled;
                  ExpiredError for one that is no longer recorded; UnavailableError while a collection sweeps, or for a realm that changes
                  too fast and is too young for an earlier moment; CorruptionError for damage
    """
    looked = rows.without_cache(budget_bytes=_REMEMBERED_BYTES)
    watch = FenceWatch(fence, rows.clock).check_now_and_then
    snapshot = _read_newest(looked, watch) if time is None else _read_past(looked, time, watch)
    fence()
    _check_commits(rows, snapshot)
    pin_commits(rows, owner, snapshot.commits, fence=fence)
    check_remembered(rows, snapshot.time, now=rows.clock.now())
    return snapshot


def _check_commits(rows: RealmStore, snapshot: RealmSnapshot) -> None:
    """Pass if the references of extensions point to commits. RefusedError otherwise: nothing else can be pinned."""
    pointers = {name: pointer for name in snapshot.extensions if (pointer := snapshot.pointers.get(name)) is not None}
    read = rows.read_pointing(list(pointers.values())) if pointers else []
    for name, seen in zip(pointers, read, strict=True):
        if seen is not None and seen.type != Commit.type_name:
            raise RefusedError(
                f"reference {name!r} of realm {rows.realm!r}, of an extension, points to an object of type {seen.type!r}: an archive has"
                " commits alone, so nothing is exported; export what it holds by the extension, and remove the reference"
            )


def find_present(rows: RealmStore, fence: Callable[[], None] = lambda: None) -> RealmSnapshot | None:
    """Determine the state of now, without pinning it; None: in each of some tries a reference was changed meanwhile.

    raises        NotFoundError for a realm that is not filled yet
    """
    for _ in range(_LOOKS):
        walk = _PresentWalk(rows, fence)
        walk.walk()
        time = rows.clock.now()  # between the two looks: the state of all that did not change from one to the other
        if walk.is_unchanged():
            return RealmSnapshot(walk.settled_time(time), walk.pointers, walk.extensions)
    return None


def check_newest_exportable(rows: RealmStore) -> None:
    """Pass if the present, or else an earlier moment, can be read now. Raises UnavailableError and others as ``take_snapshot`` does."""
    try:
        check_exportable_time(rows, newest_readable(rows.clock.now(), rows.settings))
    except NotFoundError as young:
        if find_present(rows) is None:
            raise _restless_error(rows, young) from young


def _read_newest(rows: RealmStore, fence: Callable[[], None]) -> RealmSnapshot:
    present = find_present(rows, fence)
    if present is not None:
        return present
    try:
        return _read_past(rows, newest_readable(rows.clock.now(), rows.settings), fence)
    except NotFoundError as young:
        raise _restless_error(rows, young) from young


def _read_past(rows: RealmStore, time: Micros, fence: Callable[[], None]) -> RealmSnapshot:
    check_exportable_time(rows, time)
    walk = _PastWalk(rows, fence, time)
    walk.walk()
    return RealmSnapshot(time, walk.pointers, walk.extensions)


def _restless_error(rows: RealmStore, young: NotFoundError) -> UnavailableError:
    return UnavailableError(
        f"realm {rows.realm!r} was changed during each of {_LOOKS} looks at its present state: try again when less is written. {young}"
    )


_RowState = tuple[int, Micros, Micros | None, ObjectId | None]
"""What is another one after any change of a reference: its version, and what a reference of the same name would differ by."""


class _ReferenceWalk(ABC):
    """Finds all references of a realm, from those that every realm has to the branches and tags that its catalogs list."""

    def __init__(self, rows: RealmStore, fence: Callable[[], None]) -> None:
        self.rows = rows
        self.fence = fence
        self.pointers: dict[str, ObjectId | None] = {}
        self.extensions: frozenset[str] = frozenset()

    @abstractmethod
    def unfilled_error(self) -> NotFoundError:
        """The error for a realm that has not all of its own references."""

    @abstractmethod
    def state_of(self, name: str, row: Reference | None, relisted: Micros | None) -> ObjectId | AbsentReference | None:
        """Where a reference points; None: at nothing yet. ``row`` is as it is now, a tombstone too."""

    def relisted(self, refs_name: str, catalog_id: str) -> Mapping[str, Micros]:
        """The references of a catalog that were listed again after the moment, with the times."""
        return {}

    def walk(self) -> None:
        """Note in ``pointers`` where each reference points that is there."""
        self._look_at(REALM_REFERENCES)
        if any(self.pointers.get(name) is None for name in FILLED_REFERENCES):
            raise self.unfilled_error()
        catalogs = self._head(CATALOGS)
        if catalogs is None:
            return
        self._look_at(own_references_at(catalogs))
        names = [entry.name for entry in extensions_at(catalogs, self.rows)]
        self._look_at(names)
        self.extensions = frozenset(names).intersection(self.pointers)
        for catalog_id in catalog_ids_at(catalogs):
            name = own_reference(catalog_id, OwnRefKind.REFS)
            refs = self._head(name)
            if refs is not None:
                self._look_at(ref_references_at(refs, catalog_id), self.relisted(name, catalog_id))

    def _head(self, name: str) -> Head | None:
        pointer = self.pointers.get(name)
        return None if pointer is None else read_commit(self.rows, pointer)

    def _look_at(self, names: Sequence[str], again: Mapping[str, Micros] | None = None) -> None:
        for some in _portions(names):
            for name, row in zip(some, self.rows.find_rows(some), strict=True):
                self.fence()
                state = self.state_of(name, row, (again or {}).get(name))
                if not isinstance(state, AbsentReference):
                    self.pointers[name] = state


class _PastWalk(_ReferenceWalk):
    """Follows each reference back to a moment."""

    def __init__(self, rows: RealmStore, fence: Callable[[], None], time: Micros) -> None:
        super().__init__(rows, fence)
        self.time = time

    def unfilled_error(self) -> NotFoundError:
        why = "it was filled later, its bootstrap was under way; name a later time"
        return no_state_error(self.rows.realm, "the whole", self.time, why)

    def state_of(self, name: str, row: Reference | None, relisted: Micros | None) -> ObjectId | AbsentReference | None:
        what = partial(reference_text, self.rows, name)
        head = state_as_of(self.rows, row, self.time, what=what, relisted=relisted, fence=self.fence)
        return head.id if isinstance(head, Head) else head

    def relisted(self, refs_name: str, catalog_id: str) -> Mapping[str, Micros]:
        newest = self.rows.find_row(refs_name)
        if newest is None or newest.pointer is None:
            return {}
        return dict(relisted_since(self.rows, newest.pointer, catalog_id, since=self.time))


class _PresentWalk(_ReferenceWalk):
    """Takes each reference as it is, and can look whether all of them are so still."""

    def __init__(self, rows: RealmStore, fence: Callable[[], None]) -> None:
        super().__init__(rows, fence)
        self._seen: dict[str, _RowState | None] = {}
        # Invariant: the last time at which a reference was made, moved or deleted, so far.
        self._changed = Micros(0)

    def settled_time(self, looked: Micros) -> Micros:
        """The moment by which the references are as they were at ``looked``: that of their last change, as their own times have it.

        A commit that is under way carries the time at which it began, which is before the look. With the time of the look, a later read of
        the realm as of that moment would show a commit that the archive does not have. What comes on top of the last commit is later than
        that commit, and before the newest readable time nothing can appear any more.

        What stays: a commit that is under way on another reference than that of the last change may be earlier than it. A raise of every
        reference's version would make such a commit begin again, but by its own clock, which may be behind by the clock bound; only
        waiting for as long excludes it, as an export of a named moment does.
        """
        commits = [pointer for pointer in self.pointers.values() if pointer is not None]
        times = [self._changed]
        for some in _portions(list(dict.fromkeys(commits))):
            times += [commit.time for commit in self.rows.read_many(some, Commit) if commit is not None]
        return min(looked, max(*times, newest_readable(looked, self.rows.settings)))

    def unfilled_error(self) -> NotFoundError:
        return NotFoundError(
            f"realm {self.rows.realm!r} has no content yet: its bootstrap is under way, try again when it is ACTIVE"
        )

    def state_of(self, name: str, row: Reference | None, relisted: Micros | None) -> ObjectId | AbsentReference | None:
        self._seen[name] = _state(row)
        if row is not None:
            self._changed = Micros(max(self._changed, row.created, row.deleted or 0, *(move.time for move in row.moves)))
        return AbsentReference() if row is None or row.deleted is not None else row.pointer

    def is_unchanged(self) -> bool:
        """Whether no reference was changed since it was looked at. A row that was changed and changed back has another version."""
        for some in _portions(list(self._seen)):
            self.fence()
            if list(map(_state, self.rows.find_rows(some))) != [self._seen[name] for name in some]:
                return False
        return True


def _state(row: Reference | None) -> _RowState | None:
    return None if row is None else (row.version, row.created, row.deleted, row.pointer)


def _portions(names: Sequence[NameT]) -> Iterator[Sequence[NameT]]:
    return (names[start : start + _NAMES] for start in range(0, len(names), _NAMES))


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
    references = rows.find_rows(REALM_REFERENCES)
    born = max((row.created for row in references if row is not None), default=Micros(0))
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
