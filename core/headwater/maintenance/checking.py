"""fsck: look at everything, change nothing, and say what is wrong with what would mend it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.catalogs import Catalogs
from headwater.clock import as_text
from headwater.commits import PINS, Commit, load_head, reach
from headwater.errors import HeadwaterError, MissingError, UnreadableError
from headwater.maintenance.garbage.collecting import marker_for
from headwater.maintenance.garbage.keys import keys_in_use
from headwater.maintenance.garbage.listing import Listed, Scope, scope_of
from headwater.maintenance.garbage.marking import check_time
from headwater.maintenance.garbage.parts import LeftOvers
from headwater.realms import REALMS, Realms, RealmState
from headwater.store import SYSTEM_KEY, SYSTEM_REALM, ObjectId, Store, id_text

__all__ = ["Finding", "check_store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it must be. ``code`` is stable; ``repair`` says what to do."""

    code: str
    realm: str
    subject: str
    message: str
    repair: str


def check_store(store: Store, *, realm: str | None = None) -> list[Finding]:
    """All findings of a store, or of one realm. An empty list: every head and all that it reaches is readable.

    raises        MissingError when there is no such realm
    """
    if realm is not None:
        return list(_check_realm(store, realm))
    realms = Realms(store)
    findings = list(_check_realm(store, SYSTEM_REALM))
    served = [found.id for found in realms.list() if found.state in (RealmState.ACTIVE, RealmState.INACTIVE)]
    for realm_id in served:
        findings += _check_realm(store, realm_id)
    return findings + list(_check_keys(store, realms))


def _check_realm(store: Store, realm_id: str) -> Iterator[Finding]:
    scope = scope_of(store, realm_id)
    try:
        listed = scope.listed()
    except HeadwaterError as fault:
        yield Finding(
            code="LIST_UNREADABLE",
            realm=realm_id,
            subject="references",
            message=f"what the realm consists of cannot be read: {fault}",
            repair="point the reference named above at one of its recent pointers; nothing of this realm is collected until then",
        )
        return
    for entry in listed:
        yield from _check_reference(scope, entry)
    yield from _check_unlisted(scope, {entry.name for entry in listed})
    yield from _check_reachable(scope, listed)
    yield from _check_rows(scope)
    if not scope.is_system:
        yield from _check_catalogs(scope)


def _check_reference(scope: Scope, entry: Listed) -> Iterator[Finding]:
    row = scope.rows.find_row(entry.name)
    grace = scope.rows.settings.writer_grace_seconds * 1_000_000
    if row is None:
        if not entry.listed and not scope.is_system and entry.name != PINS:
            yield _finding(
                scope,
                "REFERENCE_MISSING",
                entry.name,
                "has no row, though every realm has this reference from its bootstrap on: it was lost",
                "restore it from a backup of the database; what only it held is lost at the next collection",
            )
        elif entry.listed and entry.listed < scope.rows.clock.now() - grace:
            yield _finding(
                scope,
                "NAME_WITHOUT_ROW",
                entry.name,
                "is listed, but has no row",
                "the next collection buries it, and the one after removes it",
            )
        return
    if row.deleted is not None:
        return
    try:
        load_head(scope.rows, row)
    except UnreadableError as fault:
        readable = [i for i in row.recent if scope.rows.find(i, Commit) is not None]
        hint = (
            f"its newest readable recent pointer is {id_text(readable[0])}"
            if readable
            else "none of its recent pointers is readable"
        )
        yield _finding(scope, "HEAD_UNREADABLE", entry.name, str(fault).partition(". Nothing")[0], hint)


def _check_unlisted(scope: Scope, listed: set[str]) -> Iterator[Finding]:
    for row in scope.rows.scan_references():
        if row.name not in listed:
            yield _finding(
                scope,
                "ROW_WITHOUT_NAME",
                row.name,
                f"has a row (created {as_text(row.created)}), but stands in no list: what it points to will be collected",
                "create the branch or tag again under this name, or leave it: it harms nobody",
            )


def _check_reachable(scope: Scope, listed: list[Listed]) -> Iterator[Finding]:
    """What the living heads reach; each reference on its own, so that one fault hides no other."""
    seen: set[ObjectId] = set()

    def mark(object_id: ObjectId, _: ObjectId | None) -> bool:
        is_new = object_id not in seen
        seen.add(object_id)
        return is_new

    for entry in listed:
        row = scope.rows.find_row(entry.name)
        if row is None or row.deleted is not None or row.pointer is None:
            continue
        try:
            reach(scope.rows, [row.pointer], mark)
        except UnreadableError as fault:
            yield _finding(
                scope,
                "OBJECT_UNREADABLE",
                entry.name,
                str(fault),
                "restore the object from a backup of the database, or delete what refers to it;"
                " nothing of this realm is collected until then",
            )


def _check_rows(scope: Scope) -> Iterator[Finding]:
    """What a scan of the object rows tells: times that lie ahead, of which the first stands for all, and left-over parts."""
    marker, left_overs, is_ahead = marker_for(scope), LeftOvers(scope.rows), False
    for batch in scope.rows.scan_objects():
        for key in () if is_ahead else batch:
            try:
                check_time(key.created, marker.now, scope, f"object {id_text(key.id)} of type {key.type!r}")
            except HeadwaterError as fault:
                yield _finding(scope, "TIME_AHEAD", id_text(key.id), str(fault), "set the clocks right, or wait")
                is_ahead = True
                break
        left = left_overs.among(batch, [key for key in batch if key.created <= marker.writer_cutoff])
        for key in sorted(left, key=lambda key: key.position):
            yield _finding(
                scope,
                "PART_LEFT_OVER",
                id_text(key.id),
                f"has a part {key.part} of type {key.type!r} ({key.bytes} bytes) beyond the parts that it has now: a rewriting of it"
                " was interrupted",
                "the next collection deletes it; nobody reads it",
            )


def _check_catalogs(scope: Scope) -> Iterator[Finding]:
    catalogs = Catalogs(scope.rows)
    try:
        for definition in catalogs.list():
            branches = {branch.name for branch in catalogs.open(definition.name).branches()}
            if definition.default_branch not in branches:
                yield _finding(
                    scope,
                    "CATALOG_INCOMPLETE",
                    definition.name,
                    f"the catalog has no default branch {definition.default_branch!r}",
                    "apply its manifest again, or run `headwater catalog create` with the same values: it goes on where it stopped",
                )
    except (MissingError, UnreadableError) as fault:
        yield _finding(
            scope, "CATALOG_INCOMPLETE", "catalogs", str(fault), "apply its manifest again: it goes on where it stopped"
        )


def _check_keys(store: Store, realms: Realms) -> Iterator[Finding]:
    """Rows under keys that no realm has, nor had lately."""
    known = {SYSTEM_KEY, *(realm.key for realm in realms.list()), *realms.purged_keys()}
    is_lost = store.system.find_row(REALMS) is None
    for key in sorted(keys_in_use(store) - known):
        yield Finding(
            code="ROWS_OF_NO_REALM",
            realm=f"(key {key})",
            subject="rows",
            message=f"there are rows under realm key {key}, which belongs to no realm"
            + (f", and the reference {REALMS!r}, which lists the realms, is missing" if is_lost else ""),
            repair=f"restore the reference {REALMS!r} from a backup of the database: these may be all the rows of a living realm"
            if is_lost
            else "look for a backup in which a realm has this key, before you take them for what a purged realm left",
        )


def _finding(scope: Scope, code: str, subject: str, message: str, repair: str) -> Finding:
    return Finding(code=code, realm=scope.rows.realm, subject=subject, message=message, repair=repair)
