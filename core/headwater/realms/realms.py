"""The realms of a store: definitions in an index of the system realm, changed by compare-and-swap on the whole definition."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TypeVar, Unpack

import msgspec

from headwater.clock import Micros, as_text
from headwater.commits import Transaction, commit_change, ensure_reference, read_head
from headwater.errors import BeatenError, MissingError, RefusedError, UnreadableError
from headwater.index import Index, Value
from headwater.quantities import check_seconds
from headwater.realms.definitions import Realm, RealmFields, checked_realm_id, hold_until, is_hold_ahead
from headwater.realms.handles import MaintenanceGate, UserGate
from headwater.realms.states import RealmState, check_move
from headwater.store import ObjectId, ReadableRows, RealmKey, RealmReader, RealmStore, Store, UnreadableRow, check_clock

__all__ = ["BY_ID", "FILLED_REFERENCES", "PURGED_KEYS", "REALMS", "REALM_REFERENCES", "Realms"]

REALMS = "realms"
BY_ID = "by-id"
PURGED_KEYS = "purged-keys"
REALM_REFERENCES = ("root", "catalogs", "principals", "principal-roles", "grants", "policy-mappings", "claims")
"""The named pointers that every realm has from its bootstrap on."""
FILLED_REFERENCES = ("root", "principals", "principal-roles", "grants")
"""Those that a bootstrap fills, in this order: a realm in which one holds nothing lets nobody in."""

Fence = Callable[[], None]
R = TypeVar("R")


class Realms:
    """All realms of one store. Every read goes to the database, because decisions hang on it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._rows = store.system

    def create(self, realm_id: str, **spec: Unpack[RealmFields]) -> Realm:
        """A new realm in state CREATED, with a key that no realm had before.

        raises        RefusedError for a malformed or reserved id; BeatenError if there is a realm of that id
        """
        _check_fields(spec)
        realm = Realm(id=checked_realm_id(realm_id), key=RealmKey(self.store.new_id()), **spec)
        ensure_reference(self._rows, REALMS)

        def change(tx: Transaction) -> Realm:
            found = _stored(tx, realm.id)
            if found is not None:
                raise BeatenError(f"there is a realm {realm.id!r} already; it is {found.state}")
            state = RealmState.CREATED
            return _put(tx, msgspec.structs.replace(realm, created=tx.time, updated=tx.time, entered={state.value: tx.time}))

        return self._commit(change, f"create realm {realm.id}")

    def find(self, realm_id: str) -> Realm | None:
        """The realm as it is now, or None."""
        index = self._index(BY_ID)
        value = index.get(realm_id.encode()) if index is not None else None
        return None if value is None else _definition(self._rows, realm_id, value)

    def read(self, realm_id: str) -> Realm:
        """The realm as it is now; raises MissingError if there is none."""
        realm = self.find(realm_id)
        if realm is None:
            raise MissingError(f"there is no realm {realm_id!r}")
        return realm

    def list(self) -> ReadableRows[Realm]:
        """Every realm, by id."""
        index = self._index(BY_ID)
        entries = list(index.range()) if index is not None else []
        wanted = [value.object_id for _, value in entries if value.object_id]
        found = dict(zip(wanted, self._rows.read_each(wanted, Realm), strict=True))
        readable: builtins.list[Realm] = []
        unreadable: builtins.list[UnreadableRow] = []
        for key, value in entries:
            realm = found.get(value.object_id or ObjectId(0))
            if isinstance(realm, Realm):
                readable.append(realm)
            else:
                unreadable.append(_unreadable(key.decode(errors="replace"), value, realm))
        return ReadableRows(readable, unreadable)

    def update(self, seen: Realm, **changes: Unpack[RealmFields]) -> Realm:
        """The realm with other fields, in the state that it is in. Values that it has already make no commit.

        raises        BeatenError if the stored definition is no longer ``seen``
        """
        _check_fields(changes)

        def change(tx: Transaction) -> Realm:
            _check_seen(tx, seen)
            changed = msgspec.structs.replace(seen, **changes)
            return seen if changed == seen else _put(tx, msgspec.structs.replace(changed, updated=tx.time))

        return self._commit(change, f"update realm {seen.id}")

    def move(self, seen: Realm, to: RealmState, *, fence: Fence | None = None) -> Realm:
        """The realm in its next state. To the state that it is in makes no commit.

        raises        BeatenError if the stored definition is no longer ``seen``; RefusedError for an illegal move, for a
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

    def remove(self, seen: Realm, *, fence: Fence | None = None) -> None:
        """Delete the entry of a PURGED realm; its key is kept among the purged ones, for what late writers may leave under it.

        raises        BeatenError if the stored definition is no longer ``seen``; RefusedError in any other state, or if a
                      row is left under its key
        """
        if seen.state is not RealmState.PURGED:
            raise RefusedError(f"realm {seen.id!r} is {seen.state}: only a PURGED realm can be deleted")
        if not self.is_empty(seen):
            raise RefusedError(f"realm {seen.id!r} has rows again, left by a late writer: run its purge once more")

        def change(tx: Transaction) -> None:
            _check_seen(tx, seen)
            tx.index(BY_ID).remove(seen.id.encode())
            tx.index(PURGED_KEYS).put(_key_bytes(seen.key), Value(None, tx.time.to_bytes(8, "big")))

        self._commit(change, f"delete realm {seen.id}", fence)

    def is_empty(self, realm: Realm) -> bool:
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

    def open(self, realm_id: str) -> RealmStore:
        """A user's handle: reads always, writes only while the realm is ACTIVE (looked up again after the handle's TTL).

        Whoever opens the store is its administrator, who reads in every state; who serves users asks ``check_write`` before reads, too.
        """
        realm = self.read(realm_id)
        settings = self.store.settings
        gate = UserGate(realm, find=self.find, clock=self.store.clock, ttl_seconds=settings.realm_handle_ttl_seconds)
        return self.store.rows(realm.id, realm.key, gate=gate)

    def open_for(self, realm_id: str, state: RealmState) -> RealmStore:
        """A maintenance handle: writes only while the realm is in ``state``, which is looked up before every write.

        raises        RefusedError if it is in another state now
        """
        realm = self.read(realm_id)
        gate = MaintenanceGate(realm, find=self.find, state=state)
        gate.check_write()
        return self.store.rows(realm.id, realm.key, gate=gate)

    def reference_names(self, realm: Realm) -> tuple[str, ...]:
        """The named pointers that a realm has outside its catalogs."""
        return REALM_REFERENCES

    def _with_credible_hold(self, seen: Realm, fence: Fence | None) -> Realm:
        """The realm; if a clock that was ahead deactivated it, its hold counts from now: no shorter than promised, and not for years."""
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
            found = read_head(self._rows, REALMS, fresh=True)
        except MissingError:
            return None
        return None if found is None else found.index(name)

    def _commit(self, change: Callable[[Transaction], R], message: str, fence: Fence | None = None) -> R:
        return commit_change(self._rows, REALMS, change, message=message, fence=fence).result


def _check_unprotected(realm: Realm) -> None:
    if realm.deletion_protection:
        raise RefusedError(f"realm {realm.id!r} is protected from deletion: take deletionProtection away first")


def _stored(tx: Transaction, realm_id: str) -> Realm | None:
    value = tx.index(BY_ID).get(realm_id.encode())
    return None if value is None else _definition(tx.reader, realm_id, value)


def _definition(rows: RealmReader, realm_id: str, value: Value) -> Realm:
    return _present(rows.find(_target(value), Realm), realm_id)


def _present(realm: Realm | None, realm_id: str) -> Realm:
    if realm is None:
        raise UnreadableError(
            f"the definition of realm {realm_id!r} is listed, but its object is missing: run `headwater fsck`"
        )
    return realm


def _unreadable(realm_id: str, value: Value, fault: UnreadableError | None) -> UnreadableRow:
    text = "its definition is not there" if fault is None else str(fault)
    return UnreadableRow(what="realm", id=value.object_id or ObjectId(0), name=repr(realm_id), realm=realm_id, fault=text)


def _target(value: Value) -> ObjectId:
    if value.object_id is None:
        raise UnreadableError(
            f"index {BY_ID!r} of reference {REALMS!r} has an entry that points to no definition: run `headwater fsck`"
        )
    return value.object_id


def _check_seen(tx: Transaction, seen: Realm) -> None:
    found = _stored(tx, seen.id)
    if found is None:
        raise BeatenError(f"realm {seen.id!r} was deleted meanwhile")
    if found != seen:
        raise BeatenError(f"realm {seen.id!r} was changed meanwhile; it is {found.state}: read it again")


def _put(tx: Transaction, realm: Realm) -> Realm:
    tx.index(BY_ID).put(realm.id.encode(), Value(tx.add_object(realm), b""))
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
