"""Realms against their rows: what each state promises of what is stored under the realm's key."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.errors import HeadwaterError
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.garbage.keys import keys_in_use
from headwater.maintenance.work.kinds import LOAD, PURGE
from headwater.realms import REALMS, Realm, Realms, RealmState
from headwater.store import SYSTEM_KEY, SYSTEM_REALM, ReadableRows, RealmKey, Store
from headwater.tasks import Tasks

__all__ = ["check_keys", "check_state", "listed_realms"]


def listed_realms(store: Store) -> tuple[ReadableRows[Realm], list[Finding]]:
    """Every realm that can be read, and what keeps the list from being read; single ones are told with the system realm."""
    try:
        return Realms(store).list(), []
    except HeadwaterError as fault:
        repair = f"mend the reference {REALMS!r} of the system realm; rows of every realm stay until then"
        return ReadableRows(), [_finding(Code.REALM_UNREADABLE, SYSTEM_REALM, REALMS, str(fault), repair)]


def check_state(store: Store, realm: Realm) -> Iterator[Finding]:
    """A realm that is not begun has no rows, nor has one that is purged; one that is being purged has a task for it."""
    command = f"headwater realm purge {realm.id} --confirm {realm.id}"
    if realm.state is RealmState.PURGING and not _has(store, realm, PURGE):
        yield _finding(
            Code.PURGE_ABANDONED,
            realm.id,
            "rows",
            "the realm is PURGING, and no task purges it: its purge failed, was cancelled, or was never asked for",
            f"`{command}` goes on with it; there is no way back from PURGING",
        )
    elif realm.state is RealmState.LOADING and not _has(store, realm, LOAD):
        yield _finding(
            Code.LOAD_ABANDONED,
            realm.id,
            "rows",
            "the realm is LOADING, and no task loads it: its import failed or was cancelled",
            f"`headwater realm import FILE {realm.id}` with the same file goes on with it, or `{command}` takes it away",
        )
    elif realm.state is RealmState.PURGED and not Realms(store).is_empty(realm):
        yield _finding(
            Code.ROWS_AFTER_PURGE,
            realm.id,
            "rows",
            "the realm is PURGED, and has rows again, which a late writer left",
            f"`{command}` deletes them; the realm's entry cannot be deleted before",
        )
    elif realm.state is RealmState.CREATED and not Realms(store).is_empty(realm):
        yield _finding(
            Code.ROWS_BEFORE_BOOTSTRAP,
            realm.id,
            "rows",
            "the realm is CREATED, its bootstrap never began, and yet there are rows under its key",
            f"`{command}`, then delete the realm and create it again",
        )


def _has(store: Store, realm: Realm, kind: str) -> bool:
    """Whether a task of that kind, whatever its subject, is active in the realm, or may be."""
    listed = Tasks(store).of_realm(realm.id)
    return bool(listed.unreadable) or any(seen.value.is_active and seen.value.kind == kind for seen in listed)


def check_keys(store: Store) -> Iterator[Finding]:
    """Rows under keys that no realm has, or had lately. A realm is listed before it gets rows, so the list is read after them."""
    used = keys_in_use(store)
    realms, faults = listed_realms(store)
    is_complete = not faults and not realms.unreadable  # otherwise these rows may be those of a living realm
    try:
        purged = set(Realms(store).purged_keys())
    except HeadwaterError:
        purged, is_complete = set[RealmKey](), False
    is_lost = not is_complete or (not realms and store.system.find_row(REALMS) is None)
    for key in sorted((used & purged) - {realm.key for realm in realms}):
        yield _finding(
            Code.LATE_ROWS,
            f"(key {key})",
            "rows",
            f"late writers left rows under realm key {key}, whose realm was purged and deleted",
            "every collection deletes such rows",
        )
    for key in sorted(used - purged - {SYSTEM_KEY, *(realm.key for realm in realms)}):
        yield _finding(
            Code.ROWS_OF_NO_REALM,
            f"(key {key})",
            "rows",
            f"there are rows under realm key {key}, which belongs to no realm"
            + (f", and the reference {REALMS!r}, which lists the realms, cannot be read or is missing" if is_lost else ""),
            f"restore the reference {REALMS!r} from a backup of the database: these may be all the rows of a living realm"
            if is_lost
            else "look for a backup in which a realm has this key, before you take them for what a purged realm left",
        )


def _finding(code: Code, realm: str, subject: str, message: str, repair: str) -> Finding:
    return Finding(code=code, realm=realm, subject=subject, message=message, repair=repair)
