"""The realms of a store: definitions in an index of the system realm, changed by compare-and-swap on the whole definition.

And the guards: what a handle on a realm's rows checks before it writes.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TypeVar, Unpack

import msgspec

from headwater.clock import Clock, Micros, as_text
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import CorruptionError, NotFoundError, RefusedError, SwapConflictError, UnavailableError
from headwater.index import Index, IndexValue
from headwater.realms.realm_definition import Realm, RealmFields, RealmState, check_move, hold_until, is_hold_ahead
from headwater.settings import check_seconds
from headwater.store import ObjectId, ReadableRows, RealmKey, RealmReader, RealmStore, Store, UnreadableRow, check_clock
from headwater.store.ids import checked_realm_id

FindRealm = Callable[[str], Realm | None]


class RealmClosedError(RefusedError):
    """The realm is not in the state in which this is done. It may be again: what is asked for is not wrong."""


class UserWriteGuard:
    """Allows writes only while the realm is ACTIVE and the one that was opened; looks again after ``ttl_seconds``.

    A server asks before users' reads, too: only an ACTIVE realm is open to users. Administrators read in every state.
    """

    def __init__(self, realm: Realm, *, find: FindRealm, clock: Clock, ttl_seconds: float) -> None:
        self._realm = realm
        self._find = find
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        is_passed = realm.state is RealmState.ACTIVE and clock.now() >= realm.loaded_until
        self._passed_until = clock.monotonic() + ttl_seconds if is_passed else float("-inf")

    def check_write(self) -> None:
        """Pass, or raise RealmClosedError or UnavailableError. Not remembered: a realm that was activated again is served at once."""
        asked = self._clock.monotonic()
        if asked < self._passed_until:
            return
        self._passed_until = float("-inf")
        _check(self._realm, self._find(self._realm.id), RealmState.ACTIVE, "it serves users", self._clock)
        # counted from before the look-up: the answer is as old as the question
        self._passed_until = asked + self._ttl_seconds


class MaintenanceWriteGuard:
    """Allows writes only in one state of the realm; the definition is read again for every check."""

    def __init__(self, realm: Realm, *, find: FindRealm, clock: Clock, state: RealmState) -> None:
        self._realm = realm
        self._find = find
        self._clock = clock
        self._state = state

    def check_write(self) -> None:
        _check(self._realm, self._find(self._realm.id), self._state, "this handle writes", self._clock)


def _check(opened: Realm, realm: Realm | None, state: RealmState, what: str, clock: Clock) -> None:
    if realm is None:
        raise RealmClosedError(f"realm {opened.id!r} was deleted: nothing more is written to it")
    if realm.key != opened.key:
        raise RealmClosedError(
            f"realm {opened.id!r} was deleted and created again: this handle belongs to the earlier realm, open a new one"
        )
    if realm.state is not state:
        raise RealmClosedError(f"realm {opened.id!r} is {realm.state}: {what} only while it is {state}")
    if clock.now() < realm.loaded_until:
        raise UnavailableError(
            f"realm {opened.id!r} was loaded from an archive with ids made until {as_text(realm.loaded_until)}, and by the clock of this"
            f" machine it is {as_text(clock.now())}: an id that it makes now could be one of these. Set its clock right, or try again later"
        )


REALMS = "realms"
BY_ID = "by-id"
PURGED_KEYS = "purged-keys"
STOPS = "stops"
"""Of which realms and catalogs maintenance is stopped, see ``headwater.policies.stop_switch``."""
REALM_REFERENCES = ("root", "catalogs", "principals", "principal-roles", "grants", "policy-mappings", "claims")
"""The named references that every realm has from its bootstrap on."""
FILLED_REFERENCES = ("root", "principals", "principal-roles", "grants")
"""The references that a bootstrap fills, in this order: in a realm in which one of them is empty, nobody can log in."""

Fence = Callable[[], None]
R = TypeVar("R")


class RealmRegistry:
    """All realms of one store. Every read goes to the database, because callers decide by it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._rows = store.system

    def create_realm(self, realm_id: str, **spec: Unpack[RealmFields]) -> Realm:
        """Create a realm in state CREATED, with a key that no realm had before.

        raises        RefusedError for a malformed or reserved id; SwapConflictError if there is a realm of that id
        """
        _check_fields(spec)
        realm = Realm(id=checked_realm_id(realm_id), key=RealmKey(self.store.new_id()), **spec)
        self._rows.ensure_reference(REALMS)

        def change(tx: Transaction) -> Realm:
            existing = _stored(tx, realm.id)
            if existing is not None:
                raise SwapConflictError(f"there is a realm {realm.id!r} already; it is {existing.state}")
            state = RealmState.CREATED
            return _put(tx, msgspec.structs.replace(realm, created=tx.time, updated=tx.time, entered={state.value: tx.time}))

        return self._commit(change, f"create realm {realm.id}")

    def find_realm(self, realm_id: str) -> Realm | None:
        """The realm as it is now, or None."""
        index = self._index(BY_ID)
        value = index.get(realm_id.encode()) if index is not None else None
        return None if value is None else _definition(self._rows, realm_id, value)

    def read_realm(self, realm_id: str) -> Realm:
        """The realm as it is now; raises NotFoundError if there is none."""
        realm = self.find_realm(realm_id)
        if realm is None:
            raise NotFoundError(f"there is no realm {realm_id!r}")
        return realm

    def has_realms(self) -> bool:
        """Whether there is any realm; reads no definition."""
        index = self._index(BY_ID)
        return index is not None and next(iter(index.range()), None) is not None

    def list_realms(self) -> ReadableRows[Realm]:
        """Every realm, by id."""
        index = self._index(BY_ID)
        entries = list(index.range()) if index is not None else []
        wanted = [value.object_id for _, value in entries if value.object_id]
        definitions = dict(zip(wanted, self._rows.read_each(wanted, Realm), strict=True))
        readable: builtins.list[Realm] = []
        unreadable: builtins.list[UnreadableRow] = []
        for key, value in entries:
            realm = definitions.get(value.object_id or ObjectId(0))
            if isinstance(realm, Realm):
                readable.append(realm)
            else:
                unreadable.append(_unreadable(key.decode(errors="replace"), value, realm))
        return ReadableRows(readable, unreadable)

    def update_realm(self, seen: Realm, **changes: Unpack[RealmFields]) -> Realm:
        """Change fields of a realm; its state stays. Values that it has already make no commit.

        raises        SwapConflictError if the stored definition is no longer ``seen``
        """
        _check_fields(changes)

        def change(tx: Transaction) -> Realm:
            _check_seen(tx, seen)
            changed = msgspec.structs.replace(seen, **changes)
            return seen if changed == seen else _put(tx, msgspec.structs.replace(changed, updated=tx.time))

        return self._commit(change, f"update realm {seen.id}")

    def move_realm(self, seen: Realm, to: RealmState, *, fence: Fence | None = None) -> Realm:
        """Move a realm to another state. A move to its present state makes no commit.

        raises        SwapConflictError if the stored definition is no longer ``seen``; RefusedError for an illegal move, for a
                      purge before its hold is over and for one of a protected realm; FencedError from ``fence``;
                      DoubtfulClockError for a purge by a clock that may be ahead of the hold
        """
        if to is RealmState.PURGING and seen.state is RealmState.INACTIVE:
            _check_unprotected(seen)
            check_clock(self.store, is_noted=True)
            seen = self._with_credible_hold(seen, fence)

        def change(tx: Transaction) -> Realm:
            _check_seen(tx, seen)
            if to is seen.state:
                return seen
            check_move(seen.id, seen.state, to=to)
            if to is RealmState.PURGING:
                self._check_purge(seen, tx.time)
            entered = seen.entered | {to.value: tx.time}
            return _put(tx, msgspec.structs.replace(seen, state=to, updated=tx.time, entered=entered))

        return self._commit(change, f"move realm {seen.id} from {seen.state} to {to}", fence)

    def remove_realm(self, seen: Realm, *, fence: Fence | None = None) -> None:
        """Delete the entry of a PURGED realm; its key is kept among the purged ones, for what late writers may leave under it.

        raises        SwapConflictError if the stored definition is no longer ``seen``; RefusedError in any other state, or if a
                      row is left under its key
        """
        if seen.state is not RealmState.PURGED:
            raise RefusedError(f"realm {seen.id!r} is {seen.state}: only a PURGED realm can be deleted")
        if not self.is_realm_empty(seen):
            raise RefusedError(f"realm {seen.id!r} has rows again, left by a late writer: run its purge once more")

        def change(tx: Transaction) -> None:
            _check_seen(tx, seen)
            tx.index(BY_ID).remove(seen.id.encode())
            tx.index(PURGED_KEYS).put(_key_bytes(seen.key), IndexValue(None, tx.time.to_bytes(8, "big")))
            for key in [bytes(key) for key, _ in tx.index(STOPS).range() if key[1:9] == _key_bytes(seen.key)]:
                tx.index(STOPS).remove(key)

        self._commit(change, f"delete realm {seen.id}", fence)

    def is_realm_empty(self, realm: Realm) -> bool:
        """Whether the database holds no row under the realm's key."""
        return self.store.rows(realm.id, realm.key).is_empty()

    def purged_keys(self) -> dict[RealmKey, Micros]:
        """The keys of deleted realms, each with the time of its deletion."""
        index = self._index(PURGED_KEYS)
        if index is None:
            return {}
        return {RealmKey(int.from_bytes(key, "big")): Micros(int.from_bytes(value.data, "big")) for key, value in index.range()}

    def forget_purged_keys(self, keys: Sequence[RealmKey], *, fence: Fence | None = None) -> int:
        """Take keys off the purged ones; returns how many of them were there."""
        if not keys:
            return 0

        def change(tx: Transaction) -> int:
            index = tx.index(PURGED_KEYS)
            return sum(index.remove(_key_bytes(key)) for key in keys)

        return self._commit(change, "forget purged keys", fence)

    def open_realm(self, realm_id: str) -> RealmStore:
        """A user's handle: reads always, writes only while the realm is ACTIVE (looked up again after the handle's TTL).

        The opener of a store is its administrator and reads in every state; a server asks ``check_write`` before users' reads, too.
        """
        realm = self.read_realm(realm_id)
        settings = self.store.settings
        gate = UserWriteGuard(
            realm, find=self.find_realm, clock=self.store.clock, ttl_seconds=settings.realm_handle_ttl_seconds
        )
        return self.store.rows(realm.id, realm.key, gate=gate)

    def open_realm_for(self, realm_id: str, state: RealmState) -> RealmStore:
        """A maintenance handle: writes only while the realm is in ``state``, which is looked up before every write.

        raises        RefusedError if it is in another state now
        """
        realm = self.read_realm(realm_id)
        gate = MaintenanceWriteGuard(realm, find=self.find_realm, clock=self.store.clock, state=state)
        gate.check_write()
        return self.store.rows(realm.id, realm.key, gate=gate)

    def reference_names(self, realm: Realm) -> tuple[str, ...]:
        """The named references that a realm has outside its catalogs."""
        return REALM_REFERENCES

    def _with_credible_hold(self, seen: Realm, fence: Fence | None) -> Realm:
        """The realm. If a clock that was ahead deactivated it, its hold counts from now: no shorter than promised, and not for years."""
        if not is_hold_ahead(seen, self.store.settings, self.store.clock.now()):
            return seen

        def change(tx: Transaction) -> Realm:
            _check_seen(tx, seen)
            entered = seen.entered | {RealmState.INACTIVE.value: tx.time}
            return _put(tx, msgspec.structs.replace(seen, updated=tx.time, entered=entered))

        return self._commit(change, f"count the hold of realm {seen.id} from now", fence)

    def _check_purge(self, realm: Realm, now: Micros) -> None:
        _check_unprotected(realm)
        until = hold_until(realm, self.store.settings, now)
        if until is not None and now < until:
            shown = as_text(until + 999_999)  # rounded up: at the time that is told, it works
            raise RefusedError(f"realm {realm.id!r} is held until {shown}: only then it can be purged")

    def _index(self, name: str) -> Index | None:
        try:
            head = read_head(self._rows, REALMS, fresh=True)
        except NotFoundError:
            return None
        return None if head is None else head.index(name)

    def _commit(self, change: Callable[[Transaction], R], message: str, fence: Fence | None = None) -> R:
        return commit_change(self._rows, REALMS, change, message=message, fence=fence).result


def _check_unprotected(realm: Realm) -> None:
    if realm.deletion_protection:
        raise RefusedError(f"realm {realm.id!r} is protected from deletion: take deletionProtection away first")


def _stored(tx: Transaction, realm_id: str) -> Realm | None:
    value = tx.index(BY_ID).get(realm_id.encode())
    return None if value is None else _definition(tx.reader, realm_id, value)


def _definition(reader: RealmReader, realm_id: str, value: IndexValue) -> Realm:
    return _present(reader.find_object(_target(value), Realm), realm_id)


def _present(realm: Realm | None, realm_id: str) -> Realm:
    if realm is None:
        raise CorruptionError(
            f"the definition of realm {realm_id!r} is listed, but its object is missing: run `headwater fsck`"
        )
    return realm


def _unreadable(realm_id: str, value: IndexValue, fault: CorruptionError | None) -> UnreadableRow:
    text = "its definition is not there" if fault is None else str(fault)
    return UnreadableRow(what="realm", id=value.object_id or ObjectId(0), name=repr(realm_id), realm=realm_id, fault=text)


def _target(value: IndexValue) -> ObjectId:
    if value.object_id is None:
        raise CorruptionError(
            f"index {BY_ID!r} of reference {REALMS!r} has an entry that points to no definition: run `headwater fsck`"
        )
    return value.object_id


def _check_seen(tx: Transaction, seen: Realm) -> None:
    stored = _stored(tx, seen.id)
    if stored is None:
        raise SwapConflictError(f"realm {seen.id!r} was deleted meanwhile")
    if stored != seen:
        raise SwapConflictError(f"realm {seen.id!r} was changed meanwhile; it is {stored.state}: read it again")


def _put(tx: Transaction, realm: Realm) -> Realm:
    tx.index(BY_ID).put(realm.id.encode(), IndexValue(tx.add_object(realm), b""))
    return realm


def _key_bytes(key: RealmKey) -> bytes:
    return key.to_bytes(8, "big")


def _check_fields(fields: RealmFields) -> None:
    unknown = sorted(set(fields) - set(RealmFields.__annotations__))
    if unknown:
        raise RefusedError(f"a realm has no field {', '.join(unknown)} that a caller may set")
    check_seconds(fields.get("purge_hold_seconds"), "purge_hold_seconds of a realm")
    if "retention" in fields:
        fields["retention"].check()
