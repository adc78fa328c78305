"""fsck: check everything in a store or in one realm, change nothing, and report each finding with its repair.

Here are also the checks of whole realms: their states, their lists of catalogs, left-overs of work, and the entries of their tasks.
Each state of a realm promises something about the rows under its key. Work in progress leaves the flag of a sweep and pins for others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from headwater.catalogs import CATALOGS, CatalogDefinition, Catalogs, CatalogState
from headwater.clock import as_text
from headwater.commits import CollectionRecord, read_collection, read_head, read_pins
from headwater.errors import HeadwaterError, NotFoundError, RefusedError
from headwater.fsck.file_table_checks import check_file_tables, left_file_scopes
from headwater.fsck.fsck_findings import FindingCode, FsckContext, FsckFinding, is_bad, open_context
from headwater.fsck.reference_checks import check_collectability, check_heads, check_names
from headwater.fsck.row_checks import check_listed_objects, check_stored_rows, check_times
from headwater.gc.retention import open_scope
from headwater.gc.sweep import keys_in_use
from headwater.index import IndexValue
from headwater.jobs.task_runs import COLLECT, LOAD, PURGE
from headwater.realms import REALMS, Realm, RealmRegistry, RealmState
from headwater.store import SYSTEM_KEY, SYSTEM_REALM, ObjectId, ReadableRows, RealmKey, Store, Versioned, id_of, id_text
from headwater.store.store_identity import check_may_maintain
from headwater.tasks import EntryFault, TaskQueue, TaskState, entry_faults
from headwater.throttle import ProgressCallback, no_progress

_SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)


def check_store(
    store: Store,
    *,
    realm: str | None = None,
    fence: Callable[[], None] = lambda: None,
    progress: ProgressCallback = no_progress,
) -> list[FsckFinding]:
    """All findings of a store or of one realm. An empty list means that every head and everything it reaches is readable.

    The store may be written to meanwhile: what moves during its check is checked again.

    fence         called between the checks of a realm; what it raises ends them
    raises        NotFoundError when there is no such realm
    """
    if realm == SYSTEM_REALM:
        return list(_check_rows(store, SYSTEM_REALM, fence, progress))
    if realm is not None:
        return _check_realm(store, RealmRegistry(store).read_realm(realm), fence, progress)
    findings = list(_check_rows(store, SYSTEM_REALM, fence, progress))
    findings += _check_release(store)
    realms, fault = listed_realms(store)
    findings += fault
    for number, listed in enumerate(realms):
        progress(number, len(realms), "realms checked")
        findings += _check_realm(store, listed, fence, progress)
    progress(len(realms), len(realms), "realms checked")
    return findings + list(check_realm_keys(store))


def _check_release(store: Store) -> Iterator[FsckFinding]:
    try:
        check_may_maintain(store, "maintenance")
    except RefusedError as fault:
        repair = "use that release for collections, purges, repairs and imports, and stop the maintenance of this one"
        yield FsckFinding(FindingCode.RELEASE_TOO_OLD, SYSTEM_REALM, "store", str(fault), repair)


def _check_realm(store: Store, realm: Realm, fence: Callable[[], None], progress: ProgressCallback) -> list[FsckFinding]:
    """Check a realm against its state. If its state changes during the check, the new state decides what is reported."""
    findings: list[FsckFinding] = []
    if realm.state in _SERVED:
        fault: HeadwaterError | None = None
        try:
            findings = list(_check_rows(store, realm.id, fence, progress))
        except (NotFoundError, RefusedError) as raised:
            fault = raised
        if fault is not None or is_bad(findings):
            now = RealmRegistry(store).find_realm(realm.id)
            if now is None or now.key != realm.key:
                return []
            if now.state not in _SERVED:
                return list(check_realm_state(store, now))
        if fault is not None:
            raise fault
    return [*check_realm_state(store, realm), *findings]


def _check_rows(store: Store, realm_id: str, fence: Callable[[], None], progress: ProgressCallback) -> Iterator[FsckFinding]:
    context = open_context(store, open_scope(store, realm_id), progress)
    checks: list[Callable[[FsckContext], Iterator[FsckFinding]]] = [
        check_names,
        check_heads,
        check_times,
        check_stored_rows,
        check_flags,
    ]
    # Listed objects first: what they report, the check of the heads need not report again.
    checks = (
        [check_listed_objects, *checks, check_tasks]
        if context.scope.is_system
        else [*checks, check_catalogs, check_file_tables]
    )
    is_ahead = False
    for check in checks:
        fence()
        for finding in check(context):
            is_ahead = is_ahead or finding.code in (FindingCode.TIME_AHEAD, FindingCode.COMMITS_AHEAD)
            yield finding
    if not is_ahead:  # the collection refuses for these, too
        yield from check_collectability(context)


def listed_realms(store: Store) -> tuple[ReadableRows[Realm], list[FsckFinding]]:
    """Every readable realm, and the fault that keeps the list from being read. Single unreadable realms are reported with the
    system realm.
    """
    try:
        return RealmRegistry(store).list_realms(), []
    except HeadwaterError as fault:
        repair = f"mend the reference {REALMS!r} of the system realm; rows of every realm stay until then"
        return ReadableRows(), [FsckFinding(FindingCode.REALM_UNREADABLE, SYSTEM_REALM, REALMS, str(fault), repair)]


def check_realm_state(store: Store, realm: Realm) -> Iterator[FsckFinding]:
    """Check the rows of a realm against its state: a realm that is not begun or is purged has no rows; a realm in PURGING has a
    task for it.
    """
    command = f"headwater realm purge {realm.id} --confirm {realm.id}"
    if realm.state is RealmState.PURGING and not _has(store, realm, PURGE):
        code = FindingCode.PURGE_ABANDONED
        message = "the realm is PURGING, and no task purges it: its purge failed, was cancelled, or was never asked for"
        repair = f"`{command}` goes on with it; there is no way back from PURGING"
    elif realm.state is RealmState.LOADING and not _has(store, realm, LOAD):
        code = FindingCode.LOAD_ABANDONED
        message = "the realm is LOADING, and no task loads it: its import failed or was cancelled"
        repair = f"`headwater realm import FILE {realm.id}` with the same file goes on with it, or `{command}` takes it away"
    elif realm.state is RealmState.PURGED and (
        not RealmRegistry(store).is_realm_empty(realm) or left_file_scopes(store, realm.key)
    ):
        code = FindingCode.ROWS_AFTER_PURGE
        message = "the realm is PURGED, and has rows again, which a late writer left"
        repair = f"`{command}` deletes them; the realm's entry cannot be deleted before"
    elif realm.state is RealmState.CREATED and not RealmRegistry(store).is_realm_empty(realm):
        code = FindingCode.ROWS_BEFORE_BOOTSTRAP
        message = "the realm is CREATED, its bootstrap never began, and yet there are rows under its key"
        repair = f"`{command}`, then delete the realm and create it again"
    else:
        return
    yield FsckFinding(code, realm.id, "rows", message, repair)


def _has(store: Store, realm: Realm, kind: str) -> bool:
    """Whether a task of that kind, for any subject, is or may be active in the realm."""
    listed = TaskQueue(store).of_realm(realm.id)
    return bool(listed.unreadable) or any(task.value.is_active and task.value.kind == kind for task in listed)


def check_realm_keys(store: Store) -> Iterator[FsckFinding]:
    """Report rows under keys that no realm has or recently had. A realm is listed before it gets rows, so the list is read after them."""
    used = keys_in_use(store)
    realms, faults = listed_realms(store)
    is_complete = not faults and not realms.unreadable  # otherwise these rows may belong to a living realm
    try:
        purged = set(RealmRegistry(store).purged_keys())
    except HeadwaterError:
        purged, is_complete = set[RealmKey](), False
    is_lost = not is_complete or (not realms and store.system.find_row(REALMS) is None)
    for key in sorted((used & purged) - {realm.key for realm in realms}):
        yield FsckFinding(
            FindingCode.LATE_ROWS,
            f"(key {key})",
            "rows",
            f"late writers left rows under realm key {key}, whose realm was purged and deleted",
            "every collection deletes such rows",
        )
    for key in sorted(used - purged - {SYSTEM_KEY, *(realm.key for realm in realms)}):
        yield FsckFinding(
            FindingCode.ROWS_OF_NO_REALM,
            f"(key {key})",
            "rows",
            f"there are rows under realm key {key}, which belongs to no realm"
            + (f", and the reference {REALMS!r}, which lists the realms, cannot be read or is missing" if is_lost else ""),
            f"restore the reference {REALMS!r} from a backup of the database: these may be all the rows of a living realm"
            if is_lost
            else "look for a backup in which a realm has this key, before you take them for what a purged realm left",
        )


_BY_NAME, _BY_ID = "by-name", "by-id"
_PARTS = ("refs", "roles", "grants")
_MEND = "apply its manifest again, or run `headwater fsck --repair`: it goes on where it stopped"


def check_catalogs(context: FsckContext) -> Iterator[FsckFinding]:
    """Check that every live catalog has its own references and its default branch, and that both lists agree on it."""
    try:
        yield from _check_lists(context)
        for definition in Catalogs(context.rows).list_catalogs():
            yield from _check_catalog(context, definition)
    except HeadwaterError as fault:
        if not context.list_fault and not context.lost:
            yield context.finding(FindingCode.CATALOG_INCOMPLETE, CATALOGS, str(fault), _MEND)


def _check_catalog(context: FsckContext, definition: CatalogDefinition) -> Iterator[FsckFinding]:
    own = [f"cat/{definition.id}/{part}" for part in _PARTS]
    branch = f"cat/{definition.id}/heads/{definition.default_branch}"
    rows = context.rows.find_rows([*own, branch])
    missing = [name for name, row in zip(own, rows, strict=False) if row is None or row.deleted is not None]
    if missing:
        text = f"the catalog has no {', no '.join(name.rpartition('/')[2] for name in missing)}"
        yield context.finding(FindingCode.CATALOG_INCOMPLETE, definition.name, text, _MEND)
    if rows[-1] is None or rows[-1].deleted is not None:
        text = f"the catalog has no default branch {definition.default_branch!r}"
        yield context.finding(FindingCode.CATALOG_INCOMPLETE, definition.name, text, _MEND)


def _check_lists(context: FsckContext) -> Iterator[FsckFinding]:
    """Check that the list by name has exactly the live catalogs of the list by id."""
    at = read_head(context.rows, CATALOGS, fresh=True)
    if at is None:
        return
    by_name, by_id = dict(at.index(_BY_NAME).range()), dict(at.index(_BY_ID).range())
    targets = {value.object_id for value in (*by_name.values(), *by_id.values()) if value.object_id is not None}
    wanted = sorted(targets)
    definitions = dict(zip(wanted, context.rows.read_many(wanted, CatalogDefinition), strict=True))
    for key, value in by_name.items():
        definition = _of(value, definitions)
        other = None if definition is None else _of(by_id.get(definition.id.encode()), definitions)
        if definition is None or definition.name.encode() != key or other != definition:
            yield _mislisted(context, key, f"the list by name has {key.decode()!r}, which the list by id does not have so")
    for key, value in by_id.items():
        definition = _of(value, definitions)
        is_live = definition is not None and definition.state is CatalogState.ACTIVE
        if definition is None or (is_live and definition.name.encode() not in by_name):
            yield _mislisted(context, key, f"the list by id has {key.decode()}, which the list by name lacks")


def _of(value: IndexValue | None, definitions: dict[ObjectId, CatalogDefinition | None]) -> CatalogDefinition | None:
    return None if value is None or value.object_id is None else definitions.get(value.object_id)


def _mislisted(context: FsckContext, key: bytes, text: str) -> FsckFinding:
    return context.finding(
        FindingCode.CATALOG_MISLISTED,
        key.decode(),
        text,
        f"restore the reference {CATALOGS!r} to a commit before that; `headwater realm restore` does it",
    )


_OWNER = re.compile(r"task ([0-9a-f]{16}), attempt (\d+)")


def check_flags(context: FsckContext) -> Iterator[FsckFinding]:
    """Report a sweep that nobody resumes, and pins whose task has ended."""
    yield from _check_sweep(context)
    yield from _check_pins(context)


def abandoned_sweep(store: Store, realm: str, record: Versioned[CollectionRecord] | None) -> bool:
    """Whether a sweep flag is set that no active task owns. A sweep without a task is assumed to be alive."""
    if record is None or not record.value.sweeping:
        return False
    owner = _OWNER.fullmatch(record.value.owner)
    if owner is None:
        return False
    tasks = TaskQueue(store)
    if tasks.active_tasks(COLLECT, realm) is not None:
        return False  # that task resumes the sweep, or marks anew
    return not _is_task_active(tasks, id_of(owner[1]))


def _check_sweep(context: FsckContext) -> Iterator[FsckFinding]:
    record = read_collection(context.rows)
    if record is not None and abandoned_sweep(context.store, context.rows.realm, record):
        yield context.finding(
            FindingCode.SWEEP_ABANDONED,
            context.rows.realm,
            f"a collection ({record.value.owner}) published its sweep and did not end it: only heads can be pointed at until then",
            "the next collection goes on or marks anew; `headwater fsck --repair` withdraws the flag now",
        )


def _check_pins(context: FsckContext) -> Iterator[FsckFinding]:
    if context.scope.is_system:
        return
    try:
        pins = read_pins(context.rows)
    except HeadwaterError:
        return  # the reference cannot be read: already reported
    tasks, is_active = TaskQueue(context.store), dict[ObjectId, bool]()
    for pin in pins:
        if pin.owner not in is_active:
            is_active[pin.owner] = _is_task_active(tasks, pin.owner)
        if not is_active[pin.owner] and pin.held_until <= context.rows.clock.now():
            yield context.finding(
                FindingCode.PIN_STALE,
                id_text(pin.commit),
                f"the commit is pinned since {as_text(pin.time)} by task {id_text(pin.owner)}, which has ended",
                "the next collection takes the pin away",
            )


def _is_task_active(tasks: TaskQueue, task_id: ObjectId) -> bool:
    try:
        return tasks.read_task(task_id).value.is_active
    except NotFoundError:
        return False


_PAUSES_SECONDS = (0.1, 0.4, 1.5)
"""Seconds between two looks. A task's object changes first and its entries in a commit just after, so one entry may be stale now."""


def check_tasks(context: FsckContext) -> Iterator[FsckFinding]:
    """Report entries that name a missing task or contradict it, and tasks that wait for a time of a clock that was ahead."""
    yield from _check_entries(context)
    yield from _check_due(context)


def _check_due(context: FsckContext) -> Iterator[FsckFinding]:
    credible = context.rows.credible_until(context.rows.clock.now())
    try:
        waiting = TaskQueue(context.store).list_tasks(state=TaskState.WAITING)
    except HeadwaterError:
        return  # the reference cannot be read: reported with the heads
    for task in waiting:
        # When it is due may be far away by intention; when it was asked for, tried or retried is past by any clock that is right.
        attempts = (time for attempt in task.value.attempts for time in (attempt.started, attempt.ended or 0))
        noted = max(task.value.created, task.value.retried or 0, *attempts, 0)
        if min(noted, task.value.due) > credible:
            name = id_text(task.id)
            yield context.finding(
                FindingCode.TASK_AHEAD,
                name,
                f"task {name} ({task.value}) was submitted or tried at {as_text(noted)} by a clock that was ahead, and waits until"
                f" {as_text(task.value.due)}; it is {as_text(context.now)} now",
                f"`headwater task run-now {name}` runs it now, `headwater task cancel {name}` takes it away",
            )


def _check_entries(context: FsckContext) -> Iterator[FsckFinding]:
    told: set[tuple[FindingCode, str]] = set()
    try:
        for fault in _lasting_faults(context):
            code = FindingCode.TASK_MISSING if fault.is_missing else FindingCode.TASK_ENTRY_STALE
            if (code, id_text(fault.task)) in told:
                continue
            told.add((code, id_text(fault.task)))
            repair = (
                "`headwater fsck --repair` takes its entries off; what it asked for must be asked for again"
                if fault.is_missing
                else "whoever meets the task next settles it; `headwater fsck --repair` does it now"
            )
            yield context.finding(code, id_text(fault.task), fault.text, repair)
    except HeadwaterError:
        return  # the reference cannot be read: reported with the heads


def _lasting_faults(context: FsckContext) -> list[EntryFault]:
    """The faults that remain when no process can still be between the two writes that settle them.

    Tasks that cannot be read are reported with the listed objects.
    """
    faults = [fault for fault in entry_faults(context.rows) if not fault.is_unreadable]
    for pause in _PAUSES_SECONDS:
        if not faults:
            break
        context.store.clock.sleep(pause)
        now = set(entry_faults(context.rows))
        faults = [fault for fault in faults if fault in now]
    return faults
