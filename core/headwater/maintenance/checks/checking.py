"""fsck: look at everything, change nothing, and say what is wrong with what would mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headwater.errors import HeadwaterError, MissingError, RefusedError
from headwater.maintenance.checks.catalogs import check_catalogs
from headwater.maintenance.checks.claims import check_kept
from headwater.maintenance.checks.findings import Code, Finding, is_bad
from headwater.maintenance.checks.flags import check_flags
from headwater.maintenance.checks.heads import check_heads
from headwater.maintenance.checks.naming import check_names
from headwater.maintenance.checks.queues import check_tasks
from headwater.maintenance.checks.scanning import check_rows
from headwater.maintenance.checks.sight import Sight, sight_of
from headwater.maintenance.checks.states import check_keys, check_state, listed_realms
from headwater.maintenance.checks.times_ahead import check_times
from headwater.maintenance.checks.unreadable import check_listed
from headwater.maintenance.garbage.listing import scope_of
from headwater.realms import Realm, Realms, RealmState
from headwater.store import SYSTEM_REALM, Store

__all__ = ["check_store"]

_SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)
_Check = Callable[[Sight], Iterator[Finding]]
_CHECKS: tuple[_Check, ...] = (check_names, check_heads, check_times, check_rows, check_flags)
_OF_REALMS: tuple[_Check, ...] = (check_catalogs,)
_OF_SYSTEM: tuple[_Check, ...] = (check_tasks,)


def check_store(store: Store, *, realm: str | None = None) -> list[Finding]:
    """All findings of a store, or of one realm. An empty list: every head and all that it reaches is readable.

    The store may be written to meanwhile: what moves while it is looked at is looked at again.

    raises        MissingError when there is no such realm
    """
    if realm == SYSTEM_REALM:
        return list(_check_rows(store, SYSTEM_REALM))
    if realm is not None:
        return _check_realm(store, Realms(store).read(realm))
    findings = list(_check_rows(store, SYSTEM_REALM))
    realms, fault = listed_realms(store)
    findings += fault
    for one in realms:
        findings += _check_realm(store, one)
    return findings + list(check_keys(store))


def _check_realm(store: Store, realm: Realm) -> list[Finding]:
    """A realm against its state. One that is taken down while its rows are looked at is not damaged, and is told by its new state."""
    found: list[Finding] = []
    if realm.state in _SERVED:
        fault: HeadwaterError | None = None
        try:
            found = list(_check_rows(store, realm.id))
        except (MissingError, RefusedError) as raised:
            fault = raised
        if fault is not None or is_bad(found):
            now = Realms(store).find(realm.id)
            if now is None or now.key != realm.key:
                return []
            if now.state not in _SERVED:
                return list(check_state(store, now))
        if fault is not None:
            raise fault
    return [*check_state(store, realm), *found]


def _check_rows(store: Store, realm_id: str) -> Iterator[Finding]:
    sight = sight_of(store, scope_of(store, realm_id))
    checks = (check_listed, *_CHECKS, *_OF_SYSTEM) if sight.scope.is_system else (*_CHECKS, *_OF_REALMS)
    is_ahead = False
    for check in checks:
        for finding in check(sight):
            is_ahead = is_ahead or finding.code in (Code.TIME_AHEAD, Code.COMMITS_AHEAD)
            yield finding
    if not is_ahead:  # for which the collection refuses, too
        yield from check_kept(sight)
