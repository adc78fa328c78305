"""A handle on one realm and its references: find, create, swap and delete them. Every change is conditional on the row that was read.

No call can name another realm's rows: names, ids and sizes out of bounds are refused before they reach a database.

The functions at the top compute the new row of each kind of change; they touch no database. A recorded move has an even time. An odd
time marks a note: a commit on top took effect late, and the pointer is still in the reference's history.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from headwater.clock import Clock, Micros
from headwater.errors import (
    CorruptionError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.settings import Settings
from headwater.store.backend import ROW_BYTES, Backend, ReferenceMove, ReferenceRow
from headwater.store.cache import Cache, CacheTicket
from headwater.store.ids import ObjectId, RealmId, RealmKey, id_time

NAME_BYTES = 500
"""The most bytes of UTF-8 that a reference's name may have."""
_MOST = (1 << 63) - 1
_POINTER_BYTES, _MOVE_BYTES = 8, 16
RECENT_POINTERS = 20
MOVES_LIMIT = 4000
"""Recorded moves in one row: 16 bytes each, well under a row's limit."""
CROWDED_MOVES = MOVES_LIMIT // 4 * 3
"""The newest moves up to this number are complete. Of older ones a full row keeps the last of each pointer."""
_ROOMY = MOVES_LIMIT // 4
"""With fewer moves than this, a row is in no danger of becoming too full."""
_TOLD_EVERY = 100
_TRIES = 10
_log = structlog.get_logger()

Reference = ReferenceRow
"""Readers get the stored row itself."""


def advanced_row(seen: ReferenceRow, pointer: ObjectId) -> ReferenceRow:
    """The row after a commit on top of the current one."""
    return dataclasses.replace(seen, pointer=pointer, version=seen.version + 1, recent=_recent(seen))


def moved_row(seen: ReferenceRow, pointer: ObjectId | None, *, now: Micros, since: Micros) -> ReferenceRow:
    """The row after a move to a commit that is not on top of the old one, or to none at all; the old one is recorded."""
    # One place stays free: what is deleted then can be undeleted.
    moves = _moves(seen, seen.pointer, now=_even(now), since=since, limit=MOVES_LIMIT - 1)
    return dataclasses.replace(seen, pointer=pointer, version=seen.version + 1, recent=_recent(seen), moves=moves)


def with_move(seen: ReferenceRow, left: ObjectId, *, now: Micros, since: Micros) -> ReferenceRow:
    """Keep the pointer, and note that ``left`` was HEAD until now.

    Recorded moves stay, however old: only another move may drop them, because its caller has handled the commits they lead to.
    When they fill the row, only the last one stays.
    """
    noted = _moves(seen, left, now=Micros(now | 1), since=since)
    old = tuple(move for move in seen.moves if not is_note(move) and move not in noted)
    is_full = len(noted) + len(old) > MOVES_LIMIT
    last = next((move for move in seen.moves if not is_note(move)), None)
    kept = ((last,) if last in old else ()) if is_full else old
    return dataclasses.replace(seen, version=seen.version + 1, moves=(*noted, *kept))


def is_note(move: ReferenceMove) -> bool:
    """Whether this is a note: the pointer was left by a commit on top, and the entry records how late that took effect."""
    return bool(move.time & 1)


def raised_row(seen: ReferenceRow, *, now: Micros, credible: Micros) -> ReferenceRow:
    """Keep the pointer and raise the version, so that every swap based on the old version fails.

    credible      a later time was written by a clock that was ahead: it is replaced by now, so that every grace period is as long as
                  promised and none lasts for years
    """

    def mended(time: Micros) -> Micros:
        return time if time <= credible else Micros(now & ~1 | time & 1)

    return dataclasses.replace(
        seen,
        version=seen.version + 1,
        created=mended(seen.created),
        moves=tuple(ReferenceMove(move.pointer, mended(move.time)) for move in seen.moves),
        deleted=None if seen.deleted is None else mended(seen.deleted),
    )


def tombstone_row(seen: ReferenceRow, *, now: Micros, since: Micros | None = None) -> ReferenceRow:
    """The row after deletion: a tombstone.

    since         RefusedError when its re-creation could not be recorded, with the moves since then; None: it goes for good
    """
    if since is not None:
        _moves(seen, seen.pointer, now=_even(now), since=since)
    return dataclasses.replace(seen, version=seen.version + 1, deleted=now)


def recreated_row(tombstone: ReferenceRow, pointer: ObjectId | None, *, since: Micros) -> ReferenceRow:
    """The row after re-creation: version and recorded moves continue, and the tombstone's pointer becomes one of the moves."""
    assert tombstone.deleted is not None
    return dataclasses.replace(
        tombstone,
        pointer=pointer,
        version=tombstone.version + 1,
        recent=_recent(tombstone),
        moves=_moves(tombstone, tombstone.pointer, now=_even(tombstone.deleted), since=since),
        deleted=None,
    )


def _even(time: Micros) -> Micros:
    return Micros(time & ~1)


def _recent(seen: ReferenceRow) -> tuple[ObjectId, ...]:
    return seen.recent if seen.pointer is None else (seen.pointer, *seen.recent)[:RECENT_POINTERS]


def _moves(
    seen: ReferenceRow, left: ObjectId | None, *, now: Micros, since: Micros, limit: int = MOVES_LIMIT
) -> tuple[ReferenceMove, ...]:
    kept = tuple(move for move in seen.moves if move.time >= since)
    if left is None:
        return kept
    if len(kept) >= limit:
        kept = _thinned(kept)
    if len(kept) >= limit:
        free = (kept[-1].time + max(now - since, 0)) / 1_000_000
        raise RefusedError(
            f"reference {seen.name!r} was moved {len(kept)} times within the grace period, which is all that its row can record: it can be"
            f" moved, deleted or created again from {datetime.fromtimestamp(free, UTC):%Y-%m-%dT%H:%M:%SZ} on; use another name until then"
        )
    return (ReferenceMove(left, now), *kept)


def _thinned(moves: tuple[ReferenceMove, ...]) -> tuple[ReferenceMove, ...]:
    """What a full row has to keep: the newest moves, and of each pointer that only older ones name the last.

    A collection needs no more: it keeps a pointer for the grace period after it was last left. A moment before the newest
    ``CROWDED_MOVES`` cannot be read any more.
    """
    newest = moves[:CROWDED_MOVES]
    last_of = {move.pointer: move for move in reversed(moves)}  # the newest comes last, and stays
    return (*newest, *(move for move in moves[CROWDED_MOVES:] if last_of[move.pointer] is move))


class WriteGuard(Protocol):
    """Decides whether a handle may write now."""

    def check_write(self) -> None:
        """Raise RefusedError when the handle may not write now."""
        ...


class IdSource(Protocol):
    """The part of an ``IdGenerator`` that handles use."""

    def next(self) -> ObjectId: ...
    def next_many(self, n: int) -> list[ObjectId]: ...
    def leave(self, node: int) -> None: ...


class StoreContext(Protocol):
    """The part of a store that its handles use."""

    @property
    def backend(self) -> Backend: ...
    @property
    def cache(self) -> Cache: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def ids(self) -> IdSource: ...


class RealmReferences:
    """A handle on one realm: its references. ``RealmObjects`` adds the objects. As thread-safe and fork-safe as its store."""

    def __init__(
        self, store: StoreContext, realm: RealmId, key: RealmKey, gate: WriteGuard | None, cache: Cache | None = None
    ) -> None:
        self.store = store
        self.realm = realm
        self.key = key
        self._gate = gate
        self._backend = store.backend
        self._shared = store.cache
        self._cache = store.cache if cache is None else cache
        self._clock_bound = round(store.settings.clock_bound_seconds * 1_000_000)

    @property
    def settings(self) -> Settings:
        return self.store.settings

    @property
    def clock(self) -> Clock:
        return self.store.clock

    def new_id(self) -> ObjectId:
        """Make one new id; see ``IdGenerator.next``."""
        return self.store.ids.next()

    def new_ids(self, n: int) -> list[ObjectId]:
        """Make ``n`` new ids; see ``IdGenerator.next_many``."""
        return self.store.ids.next_many(n)

    def credible_until(self, now: Micros) -> Micros:
        """The latest time that can be right: ``now``, plus the bound by which clocks may differ. A later time is of a wrong clock."""
        return Micros(now + self._clock_bound)

    def check_write(self) -> None:
        """Raise RefusedError when this handle may not write now."""
        if self._gate is not None:
            self._gate.check_write()

    def find_reference(self, name: str, *, fresh: bool = False) -> Reference | None:
        """Return the live reference, from the cache within its time to live unless ``fresh``. Absence is never answered from the cache."""
        row = None if fresh else self._cache.find_reference(self.key, name)
        if row is None or row.deleted is not None:
            row = self.find_row(name)
        return None if row is None or row.deleted is not None else row

    def read_reference(self, name: str, *, fresh: bool = False) -> Reference:
        """Return the live reference like ``find_reference``; NotFoundError when there is none."""
        reference = self.find_reference(name, fresh=fresh)
        if reference is None:
            raise NotFoundError(f"reference {name!r} is not in realm {self.realm!r}")
        return reference

    def find_row(self, name: str) -> Reference | None:
        """Read a reference from the database, tombstones included; threads that ask at the same moment share the round trip."""
        return self._cache.row_reads.share_read((self.key, name), lambda: self.find_rows([name])[0])

    def find_rows(self, names: Sequence[str]) -> list[Reference | None]:
        """Read references from the database in one round trip, tombstones included, in the order of the names; None where absent."""
        self._check_names(names)
        ticket = self._cache.ticket()
        rows = self._backend.read_references(self.key, names) if names else []
        for name, row in zip(names, rows, strict=True):
            if row is None:
                self._cache.forget_reference(self.key, name)
            else:
                self._check_stored(row)
                self._cache.put_reference(row, ticket)
        return rows

    def create_reference(self, name: str, pointer: ObjectId | None = None) -> Reference:
        """Create, or swap over a tombstone; SwapConflictError when the name is alive.

        The name must be in its index already. A pointer to an existing commit needs the collector's handshake: use
        ``headwater.commits.create_reference_at``.
        """
        return self.create_reference_as_seen(name, self.find_row(name), pointer)

    def create_references(self, names: Sequence[str]) -> list[Reference]:
        """Create the references that do not exist, and return all of them in the order of the names.

        One round trip when none exists. A live reference is left alone, and a deleted one is created again. The names must be in
        their index already.

        raises        RefusedError for a name that appears twice; UnknownOutcomeError when the database became unavailable after an
                      unclear answer: some references may exist, and creating them once more does no harm
        """
        self._check_names(names)
        self._check_once(names, "reference")
        references: dict[str, Reference] = {}
        unclear: UnknownOutcomeError | None = None
        for _ in range(_TRIES):
            rest = [name for name in names if name not in references]
            if not rest:
                return [references[name] for name in names]
            self.check_write()
            try:
                references.update(self._create_absent(rest, is_repeat=unclear is not None))
            except UnknownOutcomeError as fault:
                unclear = fault
                unclear.unclear = tuple(rest)
            except HeadwaterError as fault:
                if unclear is None:
                    raise
                raise unclear from fault
        if unclear is not None:
            raise unclear
        raise SwapConflictError(f"references {rest!r} of realm {self.realm!r} are created and deleted by others all the time")

    def ensure_reference(self, name: str) -> Reference:
        """Returns the reference; creates it without a commit if it is absent."""
        reference = self.find_reference(name, fresh=True)
        if reference is not None:
            return reference
        try:
            return self.create_reference(name)
        except SwapConflictError:
            return self.read_reference(name, fresh=True)

    def ensure_references(self, names: Sequence[str]) -> None:
        """Create those of the references that are absent, without a commit, in one go.

        raises        as ``create_references`` does; doing it again goes on from there
        """
        rows = self.find_rows(names)
        absent = [name for name, row in zip(names, rows, strict=True) if row is None or row.deleted is not None]
        if absent:
            self.create_references(absent)

    def create_reference_as_seen(self, name: str, seen: Reference | None, pointer: ObjectId | None = None) -> Reference:
        """Create a reference that was read as absent (None) or as a tombstone; SwapConflictError when that has changed."""
        if seen is None:
            return self._insert_reference(name, pointer)
        if seen.name != name:
            raise RefusedError(f"reference {name!r} of realm {self.realm!r} is not made of {seen.name!r}")
        if seen.deleted is None:
            raise SwapConflictError(f"reference {name!r} of realm {self.realm!r} is there already")
        made = self._settle(seen, recreated_row(seen, pointer, since=self._moves_since(seen)))
        self._tell_crowded(made)
        return made

    def advance_reference(self, seen: Reference, pointer: ObjectId) -> Reference:
        """Move the reference to a commit on top. UnknownOutcomeError is passed on: the caller determines the outcome."""
        return self.swap(seen, advanced_row(seen, pointer))

    def move_reference(self, seen: Reference, pointer: ObjectId | None) -> Reference:
        """Move the reference to a commit that is not on top of the current one, which is recorded; None: to before all commits."""
        return self._leave(seen, lambda now: moved_row(seen, pointer, now=now, since=self._moves_since(seen)))

    def moves_to_forget(self, seen: Reference) -> tuple[ReferenceMove, ...]:
        """The recorded moves that are so old that the next move, or re-creation, now or soon, will drop them from the row."""
        soon = self._moves_since(seen) + round(self.settings.commit_timeout_seconds * 1_000_000)
        return tuple(move for move in seen.moves if move.time < soon and not is_note(move))

    def record_move(self, seen: Reference, left: ObjectId) -> Reference:
        """Note that ``left`` was HEAD until now."""
        return self._settle(seen, with_move(seen, left, now=self._leaving(left), since=self._moves_since(seen)))

    def raise_version(self, seen: Reference) -> Reference:
        """Make every swap based on this version fail; the pointer stays. Times from a clock that was ahead become now."""
        now = self.clock.now()
        return self._settle(seen, raised_row(seen, now=now, credible=self.credible_until(now)))

    def confirm_reference(self, seen: Reference) -> Reference:
        """Make what was read of a reference durable: raise its version by a swap, and change nothing else.

        For an outcome that only a read has shown. A database may show a write that a failover takes back, because no synchronous
        standby has it yet; once this write is acknowledged, the ones before it are safe, too.

        raises        SwapConflictError: it changed since, so read it again · UnavailableError, UnknownOutcomeError: not confirmed
        """
        return self.swap(seen, dataclasses.replace(seen, version=seen.version + 1))

    def delete_reference(self, seen: Reference, *, is_final: bool = False) -> Reference:
        """Replace the reference with a tombstone.

        is_final      nobody will create it again; otherwise RefusedError where the row could not record that
        """
        since = None if is_final else self._moves_since(seen)
        return self._leave(seen, lambda now: tombstone_row(seen, now=now, since=since))

    def bury_reference(self, name: str) -> Reference:
        """Create a tombstone for a listed name that has no row; SwapConflictError when it has one."""
        return self._insert_reference(name, None, deleted=self.clock.now())

    def remove_tombstone(self, seen: Reference) -> None:
        """Delete the row of a tombstone; SwapConflictError when it changed, for example because the reference was created again."""
        if seen.deleted is None:
            raise RefusedError(f"reference {seen.name!r} of realm {self.realm!r} is alive: delete it first")
        self._check_row(seen)
        self.check_write()
        try:
            self._backend.remove_reference(seen)
        finally:
            self._forget_reference(seen.name)

    def _tell_crowded(self, row: Reference) -> None:
        """Warn of a row that soon cannot record a move any more."""
        if len(row.moves) >= CROWDED_MOVES and len(row.moves) % _TOLD_EVERY == 0:
            _log.warning(
                "a reference is moved so often that it soon cannot be moved, deleted or created again within the grace period",
                reference=row.name,
                realm=self.realm,
                moves=len(row.moves),
                limit=MOVES_LIMIT,
            )

    def swap(self, seen: Reference, new: Reference) -> Reference:
        """Compare-and-swap a whole row. SwapConflictError when it has changed since it was read; UnknownOutcomeError is passed on."""
        self._check_swap(seen, new)
        self.check_write()
        ticket = self._begin_swap(new)
        try:
            self._backend.swap_reference(seen, new)
        except BaseException as fault:
            self._forget_reference(new.name)
            if isinstance(fault, UnknownOutcomeError):
                fault.unclear = (new.name,)
            raise
        self._shared.put_reference(new, ticket, is_written=True)
        return new

    def _begin_swap(self, new: Reference) -> CacheTicket:
        """Drop the cached row that the swap will replace. After a failure drop it again: a reader may have cached it meanwhile."""
        self._forget_reference(new.name)
        return self._shared.ticket()

    def _forget_reference(self, name: str) -> None:
        self._shared.forget_reference(self.key, name)
        if self._cache is not self._shared:
            self._cache.forget_reference(self.key, name)

    def _insert_reference(self, name: str, pointer: ObjectId | None, deleted: Micros | None = None) -> Reference:
        self.check_write()
        row = self._new_row(name, pointer, deleted)
        ticket = self._shared.ticket()
        try:
            self._backend.create_reference(row)
        except UnknownOutcomeError as unclear:
            unclear.unclear = (name,)
            return self._create_again(row, unclear)
        self._shared.put_reference(row, ticket, is_written=True)
        return row

    def _new_row(self, name: str, pointer: ObjectId | None = None, deleted: Micros | None = None) -> ReferenceRow:
        self._check_names((name,))
        if pointer is not None:
            self._check_ids((pointer,))
        return ReferenceRow(
            realm=self.key, name=name, pointer=pointer, version=self.new_id(), created=self.clock.now(), deleted=deleted
        )

    def _create_absent(self, names: Sequence[str], *, is_repeat: bool) -> dict[str, Reference]:
        """Try once to create references, and return those that exist, also of others: an unclear response only needs a retry.

        is_repeat     an answer was unclear: what exists may be of that call, and is confirmed
        """
        rows = [self._new_row(name) for name in names]
        ticket = self._shared.ticket()
        inserted = self._backend.create_references(rows)
        references = {row.name: row for row, is_inserted in zip(rows, inserted, strict=True) if is_inserted}
        for row in references.values():
            self._shared.put_reference(row, ticket, is_written=True)
        rest = [name for name in names if name not in references]
        for stored in self.find_rows(rest):
            if stored is not None:
                try:
                    if stored.deleted:
                        stored = self.create_reference_as_seen(stored.name, stored)
                    elif is_repeat:
                        stored = self.confirm_reference(stored)
                except SwapConflictError:
                    continue  # another created or changed it: it is found by the next try
                references[stored.name] = stored
        return references

    def _create_again(self, row: ReferenceRow, unclear: UnknownOutcomeError) -> Reference:
        """Create again after an unclear answer. The version is an id made here, so a row that carries it was written by this call."""
        ticket = self._shared.ticket()
        try:
            self._backend.create_reference(row)
        except SwapConflictError as beaten:
            stored = self._look_again(row.name, unclear)
            if stored == row:
                return self._confirm(row, unclear)
            if stored is None or stored.created == row.created:
                raise unclear from None  # perhaps ours, and changed by others since
            raise beaten from None
        except HeadwaterError as fault:
            raise unclear from fault
        self._shared.put_reference(row, ticket, is_written=True)
        return row

    def _confirm(self, written: Reference, unclear: UnknownOutcomeError) -> Reference:
        """Settle an unclear write that a read has shown, by a write of its own."""
        try:
            return self.confirm_reference(written)
        except HeadwaterError as fault:
            raise unclear from fault

    def _look_again(self, name: str, unclear: UnknownOutcomeError) -> Reference | None:
        try:
            return self.find_row(name)
        except HeadwaterError as fault:
            raise unclear from fault

    def _settle(self, seen: Reference, new: Reference) -> Reference:
        """Run a swap that may be repeated after an unclear answer, because applying it twice has the same result."""
        try:
            return self.swap(seen, new)
        except UnknownOutcomeError as unclear:
            try:
                return self.swap(seen, new)
            except SwapConflictError as beaten:
                stored = self._look_again(seen.name, unclear)
                if stored == new:
                    return self._confirm(new, unclear)
                if stored is not None and stored.version == new.version:
                    raise beaten from None  # another took the version that ours would have had
                raise unclear from None
            except HeadwaterError as fault:
                raise unclear from fault

    def _leave(self, seen: Reference, make: Callable[[Micros], Reference]) -> Reference:
        """Swap away from a pointer and record the time. If the swap ended long after that time, record the end as well."""
        started = self.clock.monotonic()
        done = self._settle(seen, make(self._leaving(seen.pointer)))
        self._tell_crowded(done)
        if seen.pointer is None or self.clock.monotonic() - started <= self.settings.commit_timeout_seconds:
            return done
        return self._record_late(done, seen.pointer)

    def _record_late(self, done: Reference, left: ObjectId) -> Reference:
        """Record when a slow swap really took effect. The swap has happened, so an error of this note is not an error of the swap.

        The caller waits, so this is limited by the commit time-out.
        """
        reference: Reference | None = done
        ends = self.clock.monotonic() + self.settings.commit_timeout_seconds
        wait = self.settings.commit_backoff_seconds
        while self.clock.monotonic() < ends:
            try:
                reference = self.find_row(done.name) if reference is None else reference
                return done if reference is None else self.record_move(reference, left)
            except (SwapConflictError, UnavailableError, UnknownOutcomeError):
                reference = None
                self.clock.sleep(wait)
                wait = min(2 * wait, self.settings.commit_backoff_limit_seconds)
            except HeadwaterError as fault:
                _log.warning("a late move was not recorded", reference=done.name, realm=self.realm, fault=str(fault))
                return done
        _log.warning("a late move was not recorded", reference=done.name, realm=self.realm)
        return done

    def _leaving(self, pointer: ObjectId | None) -> Micros:
        """The time at which a pointer is left, when its grace starts: now, but not before its creation by another, later clock."""
        now = self.clock.now()
        return now if pointer is None else max(now, id_time(pointer))

    def _moves_since(self, seen: Reference) -> Micros:
        """The time before which moves are of no interest to any collector, however its clock differs from ours.

        A clock that is far ahead would drop moves that others still need. So as long as there is plenty of room, the age is measured
        from the reference's current target, which other processes made.
        """
        now = self.clock.now()
        if seen.pointer is not None and len(seen.moves) < _ROOMY:
            now = min(now, id_time(seen.pointer))
        grace = max(self.settings.reader_grace_seconds, self.settings.writer_grace_seconds)
        slack = self.settings.clock_bound_seconds + self.settings.commit_timeout_seconds
        return Micros(now - round((grace + slack) * 1_000_000))

    def _check_ids(self, object_ids: Sequence[ObjectId]) -> None:
        """Check object ids. 0 is not an id: in an index it means that there is no object."""
        if object_ids and not (min(object_ids) >= 1 and max(object_ids) <= _MOST):
            wrong = next(object_id for object_id in object_ids if not 1 <= object_id <= _MOST)
            raise RefusedError(
                f"{wrong} is not a valid id of an object in realm {self.realm!r}: an id is a number from 1 to 2^63-1"
            )

    def _check_names(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                size = len(name.encode())
            except UnicodeEncodeError:  # a lone surrogate
                size = 0
            if not 1 <= size <= NAME_BYTES or "\0" in name:
                shown = repr(name) if len(name) <= 80 else f"{name[:80]!r}..."
                raise RefusedError(
                    f"{shown} is not a name of a reference in realm {self.realm!r}:"
                    f" a name is 1 to {NAME_BYTES} bytes of UTF-8 without NUL and surrogates"
                )

    def _check_once(self, named: Sequence[Any], what: str) -> None:
        """Check that a bulk call names each row once."""
        if len(set(named)) != len(named):
            seen: set[Any] = set()
            twice = next(name for name in named if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise RefusedError(f"{what} {twice!r} of realm {self.realm!r} stands in one call twice: name each of them once")

    def _check_row(self, row: ReferenceRow) -> None:
        self._check_realm(row.realm, f"reference {row.name!r}")
        self._check_names([row.name])
        if not 1 <= row.version <= _MOST:
            raise RefusedError(
                f"reference {row.name!r} of realm {self.realm!r} cannot have version {row.version}: versions are 1 to 2^63-1"
            )
        if row.pointer is not None:
            self._check_ids((row.pointer,))
        size = _POINTER_BYTES * len(row.recent) + _MOVE_BYTES * len(row.moves)
        if size > ROW_BYTES:
            raise RefusedError(
                f"reference {row.name!r} of realm {self.realm!r} would have {size} bytes of pointers; a row may have {ROW_BYTES}"
            )

    def _check_realm(self, key: RealmKey, what: str) -> None:
        if key != self.key:
            raise RefusedError(
                f"{what} belongs to realm key {key}: the handle on realm {self.realm!r} (key {self.key}) changes no other realm's rows"
            )

    def _check_stored(self, row: ReferenceRow) -> None:
        """Raise CorruptionError for a row in the database that no handle would have written."""
        if row.version < 1 or (row.pointer is not None and row.pointer < 1):
            raise CorruptionError(
                f"reference {row.name!r} of realm {self.realm!r} is at version {row.version} and object {row.pointer}:"
                " both are 1 to 2^63-1, the row was altered"
            )

    def _check_swap(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        self._check_row(seen)
        self._check_row(new)
        if seen.name != new.name or new.version <= seen.version:
            raise RefusedError(
                f"reference {seen.name!r} of realm {self.realm!r} at version {seen.version} cannot become {new.name!r} at version"
                f" {new.version}: a swap keeps the name and raises the version"
            )
