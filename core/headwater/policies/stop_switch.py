"""The stop switch: maintenance of a store, a realm or a catalog is stopped until somebody resumes it.

It lies in the index ``stops`` of the reference ``realms``: ``s`` for the store, ``r`` and 8 bytes realm key, or ``c``, 8 bytes realm key
and 8 bytes catalog id -> what was said, as msgpack. Whoever asks reads it from the database: what begins after a stop sees it.

Work that asks does so before each batch. What is stopped is put off, and goes on by itself when it is resumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from headwater.catalogs import Catalogs
from headwater.clock import Micros, as_text
from headwater.commits import Head, Transaction, commit_change, read_head
from headwater.errors import CorruptionError, HeadwaterError, MaintenanceStoppedError, NotFoundError, RefusedError
from headwater.index import Index, IndexValue
from headwater.realms import REALMS, STOPS, RealmRegistry
from headwater.store import RealmId, RealmKey, Store
from headwater.typed_values import decode_msgpack

STORE = b"s"
WORDS_LIMIT = 300
_NO_REALM = RealmKey(0)


class _Said(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of a stop."""

    by: str
    at: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopScope:
    """What is stopped: a catalog, all of a realm, or all of the store.

    realm         its id; empty: the store
    catalog       its name; empty: the realm
    """

    realm: str = ""
    realm_key: RealmKey = _NO_REALM
    catalog: str = ""
    catalog_id: str = ""

    def __str__(self) -> str:
        if not self.realm:
            return "the store"
        return f"catalog {self.realm}/{self.catalog}" if self.catalog_id else f"realm {self.realm}"

    @property
    def argument(self) -> str:
        """How the command line names it."""
        return "/".join(filter(None, (self.realm, self.catalog)))

    def key(self) -> bytes:
        if not self.realm:
            return STORE
        realm = self.realm_key.to_bytes(8, "big")
        return b"c" + realm + bytes.fromhex(self.catalog_id) if self.catalog_id else b"r" + realm

    def around(self) -> list[StopScope]:
        """It and all that it lies in, the widest first."""
        scopes = [StopScope()]
        if self.realm:
            scopes.append(StopScope(realm=self.realm, realm_key=self.realm_key))
        return [*scopes, self] if self.catalog_id else scopes


@dataclass(frozen=True, slots=True)
class MaintenanceStop:
    """Who stopped the maintenance of what, when and why."""

    scope: StopScope
    by: str
    at: Micros
    why: str

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"maintenance of {self.scope} was stopped by {self.by} at {as_text(self.at)}{why}"


def read_scope(store: Store, realm: str = "", catalog: str = "") -> StopScope:
    """The scope of a catalog, of a realm or, without names, of the store; raises NotFoundError."""
    if not realm:
        return StopScope()
    registry = RealmRegistry(store)
    key = registry.read_realm(realm).key
    if not catalog:
        return StopScope(realm=realm, realm_key=key)
    definition = Catalogs(registry.open_realm(realm)).read_catalog(catalog)
    return StopScope(realm=realm, realm_key=key, catalog=definition.name, catalog_id=definition.id)


def stop_maintenance(store: Store, scope: StopScope, *, by: str, why: str = "") -> MaintenanceStop:
    """Stop the maintenance of a scope. One that is stopped already stays as it is; returns who stopped it first.

    raises        RefusedError for words that are too long
    """
    if max(len(by), len(why)) > WORDS_LIMIT:
        raise RefusedError(f"who stops it, and why, have at most {WORDS_LIMIT} characters each")
    store.system.ensure_reference(REALMS)

    def change(tx: Transaction) -> MaintenanceStop:
        stops = tx.index(STOPS)
        value = stops.get(scope.key())
        if value is None:
            said = _Said(by, tx.time, why)
            value = IndexValue(None, msgspec.msgpack.encode(said))
            stops.put(scope.key(), value)
        return _stop(scope, value)

    return commit_change(store.system, REALMS, change, message=f"stop maintenance of {scope}").result


def resume_maintenance(store: Store, scope: StopScope) -> MaintenanceStop | None:
    """End the stop of exactly this scope; returns the one that ended, or None where it was not stopped."""
    if find_stop(store, scope) is None:
        return None

    def change(tx: Transaction) -> MaintenanceStop | None:
        stops = tx.index(STOPS)
        value = stops.get(scope.key())
        stops.remove(scope.key())
        return None if value is None else _stop(scope, value)

    return commit_change(store.system, REALMS, change, message=f"resume maintenance of {scope}").result


def find_stop(store: Store, scope: StopScope) -> MaintenanceStop | None:
    """The stop of exactly this scope, read from the database."""
    stops = _read(store)
    value = None if stops is None else stops.get(scope.key())
    return None if value is None else _stop(scope, value)


def find_stops_around(store: Store, scope: StopScope) -> list[MaintenanceStop]:
    """The stops that hold for a scope: its own, and those of what it lies in, the widest first; read from the database."""
    stops = _read(store)
    if stops is None:
        return []
    values = [(around, stops.get(around.key())) for around in scope.around()]
    return [_stop(around, value) for around, value in values if value is not None]


def list_stops(store: Store, *, realm: str = "") -> list[MaintenanceStop]:
    """Every stop, the store's first; with ``realm`` only the store's and those in this realm. Read from the database."""
    stops = _read(store)
    if stops is None:
        return []
    realms = {each.key: each.id for each in RealmRegistry(store).list_realms() if realm in ("", each.id)}
    listed = []
    for key, value in sorted(stops.range(), key=lambda entry: (entry[0] != STORE, entry[0][1:])):
        realm_key = RealmKey(int.from_bytes(key[1:9], "big"))
        if key == STORE:
            listed.append(_stop(StopScope(), value))
        elif realm_key in realms:
            listed.append(_stop(_listed_scope(store, realms[realm_key], realm_key, bytes(key)[9:].hex()), value))
    return listed


def _listed_scope(store: Store, realm: RealmId, realm_key: RealmKey, catalog_id: str) -> StopScope:
    """A scope by its ids; a catalog that is gone, or cannot be read, is called by its id."""
    name = ""
    if catalog_id:
        try:
            name = next(
                (each.name for each in Catalogs(store.rows(realm, realm_key)).list_catalogs() if each.id == catalog_id),
                catalog_id,
            )
        except HeadwaterError:
            name = catalog_id
    return StopScope(realm=realm, realm_key=realm_key, catalog=name, catalog_id=catalog_id)


def check_not_stopped(store: Store, realm: str, realm_key: RealmKey, catalog_id: str = "", *, catalog: str = "") -> None:
    """Check that maintenance of a realm or catalog is not stopped. Costs one read of a row: ask before each batch.

    catalog       the catalog's name, for the message
    raises        MaintenanceStoppedError that says who stopped it, and how it is resumed
    """
    scope = StopScope(realm=realm, realm_key=realm_key, catalog=catalog or catalog_id, catalog_id=catalog_id)
    stops = find_stops_around(store, scope)
    if stops:
        resume = " ".join(filter(None, ("headwater maintenance resume", stops[0].scope.argument)))
        raise MaintenanceStoppedError(f"{stops[0]}; `{resume}` ends that")


def _read(store: Store) -> Index | None:
    try:
        realms: Head | None = read_head(store.system, REALMS, fresh=True)
    except NotFoundError:
        return None  # a store without any realm
    return None if realms is None else realms.index(STOPS)


def _stop(scope: StopScope, value: IndexValue) -> MaintenanceStop:
    try:
        said = decode_msgpack(value.data, _Said)
    except msgspec.DecodeError as fault:
        raise CorruptionError(
            f"what is stored of the stop of {scope} cannot be read: {fault}; resume it, and stop it anew"
        ) from fault
    return MaintenanceStop(scope, said.by, Micros(said.at), said.why)
