"""The realms that a server has open: who belongs to them and who may do what, never older than a few seconds.

So whatever is taken from somebody, a credential, a role, a grant or a catalog, is gone on every server within ``FRESH_SECONDS``, and most
requests ask the database nothing about it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from headwater.access import AccessPlugin, AccessReader, AccessSubject, load_access_plugin
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.clock import Micros
from headwater.commits import Head
from headwater.errors import NotFoundError, RefusedError
from headwater.realms import Principal, RealmRegistry, find_listed_principal, read_principals
from headwater.store import RealmKey, RealmStore
from headwater_server.call import ServedStore
from headwater_server.caller import Caller

FRESH_SECONDS = 2.0
"""How old what is believed of a realm's principals and grants may be: with both, and the time of a request, well under five."""
_REALMS_LIMIT = 1000


@dataclass(slots=True)
class OpenRealm:
    """A realm, opened.

    looked        when the database was last asked, by the store's monotonic clock
    looked_at     the same by its wall time
    access        the rules of its callers
    """

    id: str
    key: RealmKey
    rows: RealmStore
    access: AccessReader
    looked: float
    looked_at: Micros
    _principals: Head | None
    _found: dict[str, Principal | None] = field(default_factory=dict)
    _catalogs: dict[str, CatalogDefinition | None] = field(default_factory=dict)

    def find_principal(self, name: str) -> Principal | None:
        """A principal by its name, disabled or not."""
        if name not in self._found:
            self._found[name] = find_listed_principal(self.rows, self._principals, name)
        return self._found[name]

    def find_catalog(self, name: str) -> CatalogDefinition | None:
        """A live catalog by its name, one that was there: names that callers make up are not asked about."""
        if name not in self._catalogs:
            self._catalogs[name] = Catalogs(self.rows).find_catalog(name)
        return self._catalogs[name]


def access_plugin(served: ServedStore) -> AccessPlugin | None:
    """The plug-in that decides for a process; None: the grants do.

    raises        RefusedError for one that is not there, and where nobody has to prove who calls: it would never be asked
    """
    settings = served.store.settings
    if not settings.server_access:
        return None
    if not settings.server_signing_keys and not settings.server_issuers:
        raise RefusedError(
            "HEADWATER_SERVER_ACCESS needs HEADWATER_SERVER_SIGNING_KEYS or HEADWATER_SERVER_ISSUERS: nobody has to prove who calls"
        )
    return load_access_plugin(settings.server_access, settings.server_access_file)


def subject_of(caller: Caller, access: AccessReader) -> AccessSubject:
    """A caller, as a plug-in is told of it."""
    roles = {role.name for role in access.read_roles(caller.holder)} | caller.holder.added
    return AccessSubject(caller.realm, caller.name, tuple(sorted(roles)))


class RealmDirectory:
    """The open realms of a process. Thread-safe."""

    def __init__(self, served: ServedStore) -> None:
        self._served = served
        self._registry = RealmRegistry(served.store)
        self._clock = served.store.clock
        self._lock = threading.Lock()
        self._realms: OrderedDict[str, OpenRealm] = OrderedDict()

    def open_realm(self, realm_id: str, *, since: Micros | None = None) -> OpenRealm:
        """A realm that is served here, as it was a moment ago.

        since         not as it was before this time, which lies in the past
        raises        NotFoundError for one that is not there or not served; RealmClosedError for one that is not ACTIVE
        """
        now = self._clock.monotonic()
        realm = self._realms.get(realm_id)
        if realm is not None and now - realm.looked <= FRESH_SECONDS and (since is None or realm.looked_at > since):
            return realm
        fresh = self._opened(realm_id, realm, now)
        with self._lock:
            self._realms[realm_id] = fresh
            self._realms.move_to_end(realm_id)
            while len(self._realms) > _REALMS_LIMIT:
                self._realms.popitem(last=False)
        return fresh

    def forget_realm(self, realm_id: str) -> None:
        """Let what this process has changed in a realm hold for the next request, and not only in a moment."""
        with self._lock:
            self._realms.pop(realm_id, None)

    def _opened(self, realm_id: str, before: OpenRealm | None, now: float) -> OpenRealm:
        if not self._served.serves(realm_id):
            raise NotFoundError(f"there is no realm {realm_id!r}")
        rows = self._registry.open_realm(realm_id)
        rows.check_write()  # only an ACTIVE realm serves users
        same = before if before is not None and before.key == rows.key else None
        access = AccessReader(rows, max_age_seconds=FRESH_SECONDS) if same is None else same.access
        looked_at = self._clock.now()
        return OpenRealm(realm_id, rows.key, rows, access, now, looked_at, read_principals(rows))
