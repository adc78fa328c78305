"""fsck: check everything in a store or in one realm, change nothing, and report each finding with its repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headwater.errors import HeadwaterError, NotFoundError, RefusedError
from headwater.fsck.fsck_codes import FindingCode, FsckFinding, is_bad
from headwater.fsck.fsck_context import FsckContext, open_context
from headwater.fsck.realm_checks import (
    check_catalogs,
    check_flags,
    check_realm_keys,
    check_realm_state,
    check_tasks,
    listed_realms,
)
from headwater.fsck.reference_checks import check_collectability, check_heads, check_names
from headwater.fsck.row_checks import check_stored_rows, check_times
from headwater.fsck.unreadable_objects import check_listed_objects
from headwater.gc.retention import open_scope
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import SYSTEM_REALM, Store

_SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)
_Check = Callable[[FsckContext], Iterator[FsckFinding]]
_CHECKS: tuple[_Check, ...] = (check_names, check_heads, check_times, check_stored_rows, check_flags)
_OF_REALMS: tuple[_Check, ...] = (check_catalogs,)
_OF_SYSTEM: tuple[_Check, ...] = (check_tasks,)


def check_store(store: Store, *, realm: str | None = None) -> list[FsckFinding]:
    """All findings of a store or of one realm. An empty list means that every head and everything it reaches is readable.

    The store may be written to meanwhile: what moves during its check is checked again.

    raises        NotFoundError when there is no such realm
    """
    if realm == SYSTEM_REALM:
        return list(_check_rows(store, SYSTEM_REALM))
    if realm is not None:
        return _check_realm(store, RealmRegistry(store).read_realm(realm))
    findings = list(_check_rows(store, SYSTEM_REALM))
    realms, fault = listed_realms(store)
    findings += fault
    for one in realms:
        findings += _check_realm(store, one)
    return findings + list(check_realm_keys(store))


def _check_realm(store: Store, realm: Realm) -> list[FsckFinding]:
    """Check a realm against its state. If its state changes during the check, the new state decides what is reported."""
    found: list[FsckFinding] = []
    if realm.state in _SERVED:
        fault: HeadwaterError | None = None
        try:
            found = list(_check_rows(store, realm.id))
        except (NotFoundError, RefusedError) as raised:
            fault = raised
        if fault is not None or is_bad(found):
            now = RealmRegistry(store).find_realm(realm.id)
            if now is None or now.key != realm.key:
                return []
            if now.state not in _SERVED:
                return list(check_realm_state(store, now))
        if fault is not None:
            raise fault
    return [*check_realm_state(store, realm), *found]


def _check_rows(store: Store, realm_id: str) -> Iterator[FsckFinding]:
    context = open_context(store, open_scope(store, realm_id))
    checks = (check_listed_objects, *_CHECKS, *_OF_SYSTEM) if context.scope.is_system else (*_CHECKS, *_OF_REALMS)
    is_ahead = False
    for check in checks:
        for finding in check(context):
            is_ahead = is_ahead or finding.code in (FindingCode.TIME_AHEAD, FindingCode.COMMITS_AHEAD)
            yield finding
    if not is_ahead:  # the collection refuses for these, too
        yield from check_collectability(context)
