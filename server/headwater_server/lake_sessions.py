"""Open catalogs, kept from request to request: opening one reads its realm and its definition."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from headwater.access import AccessDecisions, ForbiddenError, PluginDecisions, Privilege
from headwater.catalogs import CatalogDefinition
from headwater.errors import HeadwaterError, NotFoundError
from headwater.iceberg import StorageFile, StorageOptions, TableStorage
from headwater.iceberg_catalog import IcebergCatalog, LakeAccess, allow_all, hidden_catalog_error
from headwater.typed_values import json_decoder
from headwater_server.audit_trail import current_trail
from headwater_server.call import Call, ServedStore
from headwater_server.caller import Caller
from headwater_server.identity import PageSeal, PageSeals
from headwater_server.realm_directory import RealmDirectory, access_plugin, subject_of
from headwater_server.warehouse_address import WarehouseAddress

K = TypeVar("K")
V = TypeVar("V")
ReadRules = Callable[[CatalogDefinition], AccessDecisions]
"""What decides about one caller in a catalog, read when it is asked for."""
_SESSIONS_LIMIT = 1000
"""More than the references that clients of one server use at a time; the one that was used least recently goes."""
_DIGEST_BYTES = 6


class _LocatedDocument(msgspec.Struct, frozen=True):
    """The part of a table's document that says where its files lie."""

    location: str
    properties: dict[str, str] = {}

    @property
    def folders(self) -> list[str]:
        """Where new data and metadata files are written."""
        return [
            self.properties.get(f"write.{part}.path") or f"{self.location.rstrip('/')}/{part}" for part in ("data", "metadata")
        ]


_LOCATED = json_decoder(_LocatedDocument)


@dataclass(frozen=True, slots=True)
class LakeSession:
    """A reference of a catalog, opened.

    opened        by the store's monotonic clock
    access        what the caller may do; None: everything, because nobody has to prove who calls
    read_rules    what decides about the caller in a catalog, as it is now, where there is a caller
    seal          of the caller's tokens of pages, where there is a caller
    """

    address: WarehouseAddress
    lake: IcebergCatalog
    storage: TableStorage
    options: StorageFile
    opened: float
    access: LakeAccess | None = None
    read_rules: ReadRules | None = None
    seal: PageSeal | None = None

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the catalog."""
        return self.lake.session.catalog.definition.properties

    def config_of(self, text: bytes) -> dict[str, str]:
        """What clients are told of the way to the files of a table, given its document: an address, never a credential."""
        if not self.options.current():
            return {}  # most servers: the document is not read for nothing
        return self.storage.client_config(_LOCATED.decode(text).location)

    @property
    def own_options(self) -> list[StorageOptions]:
        """The options of storages that are for this catalog."""
        return [
            options
            for options in self.options.current()
            if options.realm in ("", self.address.realm) and options.catalog in ("", self.address.catalog)
        ]

    @property
    def config_digest(self) -> str:
        """A digest of what clients are told of all storages of this catalog; empty where there is nothing to tell."""
        known = [(options.location, options.client_config()) for options in self.own_options]
        return hashlib.blake2b(msgspec.json.encode(known), digest_size=_DIGEST_BYTES).hexdigest() if known else ""

    def make_folders(self, text: bytes) -> None:
        """Make the folders of a new table on a local disk, for engines that make none (seen with DuckDB). Best effort."""
        with suppress(HeadwaterError):
            for folder in _LOCATED.decode(text).folders:
                self.storage.make_folder(folder)

    def check_reference(self) -> None:
        """Check that the reference is there; raises NotFoundError."""
        self.lake.session.state()

    def given_properties(self, kind: str, chosen: Mapping[str, str]) -> dict[str, str]:
        """The properties of a new table or view: the catalog's defaults, what its creator chose, and what the catalog insists on.

        kind          ``table`` or ``view``, with which the names of these properties of the catalog begin
        """
        return {**self._area(f"{kind}-default."), **chosen, **self._area(f"{kind}-override.")}

    def _area(self, prefix: str) -> dict[str, str]:
        return {name.removeprefix(prefix): value for name, value in self.properties.items() if name.startswith(prefix)}


class LakeSessions:
    """The sessions of a process, each opened anew when it is as old as a handle on a realm may be. Thread-safe.

    Where callers have rights, a catalog that was deleted, replaced or changed is seen as soon as a right that was taken away.
    """

    def __init__(self, served: ServedStore, *, limit: int = _SESSIONS_LIMIT) -> None:
        self._served = served
        self._limit = limit
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[WarehouseAddress, Caller | None], LakeSession] = OrderedDict()
        self._storages: OrderedDict[tuple[str, str], TableStorage] = OrderedDict()

    def open_session(self, address: WarehouseAddress, caller: Caller | None = None) -> LakeSession:
        """The session of a caller at an address, which another request may have opened.

        caller        None: nobody has to prove who it is, and everything is allowed

        raises        NotFoundError for a realm or catalog that is not there, or is not served here; RefusedError while the realm is not
                      ACTIVE
        """
        store = self._served.store
        now = store.clock.monotonic()
        key = (address, caller)
        with self._lock:
            session = self._sessions.get(key)
            if session is not None:
                self._sessions.move_to_end(key)
        is_young = session is not None and now - session.opened < store.settings.realm_handle_ttl_seconds
        if session is not None and is_young and (caller is None or self._is_current(session)):
            return session
        fresh = self._opened(address, caller, now)  # outside of the lock: a slow database holds up nobody else
        with self._lock:
            _keep_newest(self._sessions, key, fresh, limit=self._limit)
        return fresh

    def _is_current(self, session: LakeSession) -> bool:
        """Whether the catalog is still the one of its name, and its default branch, where grants hold, the same."""
        realm = self._served.part(RealmDirectory).open_realm(session.address.realm)
        return realm.find_catalog(session.address.catalog) == session.lake.session.catalog.definition

    def _opened(self, address: WarehouseAddress, caller: Caller | None, now: float) -> LakeSession:
        store = self._served.store
        if not self._served.serves(address.realm):
            raise NotFoundError(f"there is no realm {address.realm!r}")
        options = self._served.part(_storage_file)
        storage = self._storage_of(address, options)
        read_rules = None if caller is None else self._rules_of(address.realm, caller)
        access = None if read_rules is None else LakeAccess(address.reference, read_rules)
        lake = IcebergCatalog.open(
            store,
            address.realm,
            address.catalog,
            address.reference,
            storage=storage,
            committer="" if caller is None else caller.name,
            guard=allow_all if access is None else access.check_change,
        )
        # the realm's key, for the commits of a later realm of the same id are others
        scope = "" if caller is None else f"{lake.session.rows.key} {address} {caller.name}"
        seal = None if caller is None else self._served.part(PageSeals).of_scope(scope)
        return LakeSession(address, lake, storage, options, now, access, read_rules, seal)

    def _rules_of(self, realm: str, caller: Caller) -> ReadRules:
        directory, plugin = self._served.part(RealmDirectory), self._served.part(access_plugin)

        def read_rules(definition: CatalogDefinition) -> AccessDecisions:
            access = directory.open_realm(realm).access
            if plugin is None:
                return access.read_rules(caller.holder, definition)
            return PluginDecisions(plugin, subject_of(caller, access), definition.name)

        return read_rules

    def _storage_of(self, address: WarehouseAddress, options: StorageFile) -> TableStorage:
        """The storage of a catalog, kept for longer than a session: it holds the connections to its buckets."""
        key = (address.realm, address.catalog)
        with self._lock:
            storage = self._storages.get(key) or TableStorage(options, realm=address.realm, catalog=address.catalog)
            _keep_newest(self._storages, key, storage, limit=self._limit)
        return storage


def _keep_newest(kept: OrderedDict[K, V], key: K, value: V, *, limit: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > limit:
        kept.popitem(last=False)


def _storage_file(served: ServedStore) -> StorageFile:
    """The options of storages, which all sessions of a process share."""
    return StorageFile(served.store.settings.storage_file)


def session_of(call: Call[Any, Any]) -> LakeSession:
    """The session that a call's prefix names, with the rights of its caller.

    raises        NotFoundError, also for what the caller may see nothing of; ForbiddenError without the right to read history
    """
    return open_for(call, WarehouseAddress.from_prefix(call.path["prefix"]))


def open_for(call: Call[Any, Any], address: WarehouseAddress) -> LakeSession:
    """The session of an address, with the rights of a call's caller; raises as ``session_of`` does."""
    try:
        session = call.served.part(LakeSessions).open_session(address, call.caller)
    except NotFoundError:
        if call.caller is None:
            raise
        raise hidden_catalog_error(address.catalog, address.reference) from None
    if session.access is not None:
        try:
            session.access.check_reference(session.lake.session.catalog.definition)
        except HeadwaterError as fault:
            lacked = Privilege.REFERENCE_READ_HISTORY if isinstance(fault, ForbiddenError) else Privilege.CATALOG_LIST
            current_trail().note_check(lacked, address, is_held=False)
            raise
    return session


def realm_of_prefix(path: Mapping[str, str], query: object) -> str:
    """The realm that the prefix of a path names; raises NotFoundError for what is no prefix."""
    return WarehouseAddress.from_prefix(path["prefix"]).realm
