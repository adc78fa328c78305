"""Checks of the rows of a realm, reachable or not, and their repairs: times, parts, checksums, and listed objects that are unreadable.

A clock that was ahead leaves commits and rows from the future, which block both choosing a state by time and collecting garbage.
Unreadable tasks, runs, reports and realms block nothing else, but stay listed and keep their name taken until they are set aside.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from headwater.clock import as_text
from headwater.commits import Head, Transaction, commit_change, find_ahead, mend_time, read_head
from headwater.errors import CorruptionError, HeadwaterError, NotFoundError, RefusedError, SwapConflictError
from headwater.fsck.fsck_findings import FindingCode, FsckContext, FsckFinding
from headwater.fsck.object_walk import read_with_faults
from headwater.gc.live_set import LeftoverParts
from headwater.gc.mark_phase import check_not_ahead
from headwater.gc.retention import RUNS
from headwater.gc.shared_scan import SCAN_LOCK_ID, ScanLock
from headwater.index import IndexValue
from headwater.jobs.task_runs import ReportPiece, Run, list_runs
from headwater.realms import REALMS, Realm, RealmRegistry
from headwater.store import ObjectId, ObjectKey, RealmReader, RealmStore, Reference, StoredObject, UnreadableRow, id_of, id_text
from headwater.store.realm_refs import CROWDED_MOVES, MOVES_LIMIT
from headwater.tasks import REFERENCE as TASKS
from headwater.tasks import Task, unreadable_tasks

_READ_BYTES = 4 * 1024 * 1024
_READ_OBJECTS = 200
_SHOWN = 100
"""The number of findings of one kind, at most: a damaged disk has many."""


def check_stored_rows(context: FsckContext) -> Iterator[FsckFinding]:
    """Check the rows by a scan, then read each object once; in constant memory."""
    left_overs, is_ahead, damaged = LeftoverParts(context.rows), False, Counter[str]()
    cutoff = context.now - round(context.rows.settings.writer_grace_seconds * 1_000_000)
    rows, unit = 0, f"rows of realm {context.rows.realm!r} checked"
    for batch in context.rows.scan_objects():
        rows += len(batch)
        context.progress(rows, 0, unit)
        for finding in () if is_ahead else _ahead(context, batch):
            yield finding  # the first finding stands for all
            is_ahead = True
        left = left_overs.among(batch, [key for key in batch if key.created <= cutoff])
        for key in sorted(left, key=lambda key: key.position):
            yield context.finding(
                FindingCode.PART_LEFT_OVER,
                id_text(key.id),
                f"has a part {key.part} of type {key.type!r} ({key.bytes} bytes) beyond the parts that it has now: a rewriting of it"
                " was interrupted",
                "the next collection deletes it; nobody reads it",
            )
        for key, fault in _damaged(context, batch):
            damaged[key.type] += 1
            if damaged[key.type] <= _SHOWN:
                yield _damage(context, key, fault)
    context.progress(rows, rows, unit)
    for kind, count in damaged.items():
        if count > _SHOWN:
            text = f"{count - _SHOWN} more objects of type {kind!r} are damaged"
            yield context.finding(FindingCode.OBJECT_DAMAGED, kind, text, "as above")


def _ahead(context: FsckContext, batch: Sequence[ObjectKey]) -> Iterator[FsckFinding]:
    for key in batch:
        try:
            check_not_ahead(key.created, context.now, context.scope, f"object {id_text(key.id)} of type {key.type!r}")
        except HeadwaterError as fault:
            yield context.finding(FindingCode.TIME_AHEAD, id_text(key.id), str(fault), "set the clocks right, or wait")
            return


def _damaged(context: FsckContext, batch: Sequence[ObjectKey]) -> Iterator[tuple[ObjectKey, CorruptionError]]:
    """The objects of a batch that exist and cannot be read.

    A young object with several parts may still be being written; objects that a head reaches were reported already.
    """
    young = context.now - round(context.rows.settings.commit_timeout_seconds * 1_000_000)
    keys = {key.id: key for key in batch if key.part == 0 and key.id not in context.lost}
    for ids in _bulks(list(keys.values())):
        for object_id, value in read_with_faults(context.rows, ids):
            key = keys[object_id]
            if isinstance(value, CorruptionError) and not (key.parts > 1 and key.created > young):
                yield key, value


def _damage(context: FsckContext, key: ObjectKey, fault: CorruptionError) -> FsckFinding:
    return context.finding(
        FindingCode.OBJECT_DAMAGED,
        id_text(key.id),
        f"{fault}; no head reaches it",
        "if history needs it, `headwater gc explain` tells how; otherwise a collection deletes it. Look at the disk of the database",
    )


def _bulks(keys: Sequence[ObjectKey]) -> Iterator[list[ObjectId]]:
    """Batches of ids of objects that are read together, limited in number and size."""
    bulk: list[ObjectId] = []
    total = 0
    for key in keys:
        size = key.bytes * key.parts
        if bulk and (total + size > _READ_BYTES or len(bulk) >= _READ_OBJECTS):
            yield bulk
            bulk, total = [], 0
        bulk.append(key.id)
        total += size
    if bulk:
        yield bulk


_TRIES = 10


def check_times(context: FsckContext) -> Iterator[FsckFinding]:
    """Report references whose commits, or whose own row, lie further in the future than clocks may differ."""
    for row in (*context.references.values(), *context.unlisted):
        if is_row_ahead(context.rows, row):
            yield context.finding(
                FindingCode.TIME_AHEAD,
                row.name,
                f"{context.reference_words(row.name)} was made, moved or deleted by a clock that was ahead: its row carries a time beyond"
                f" {as_text(context.now)}",
                "set the clocks right; then `headwater fsck --repair` has it count from now",
            )
        if len(row.moves) >= CROWDED_MOVES:
            yield context.finding(
                FindingCode.MOVES_CROWDED,
                row.name,
                f"{context.reference_words(row.name)} has {len(row.moves)} recorded moves of at most {MOVES_LIMIT}; a move is recorded"
                " until the grace period is over",
                "let what creates and deletes it, or resets it, use other names or do so less often: a move beyond the limit is refused",
            )
        yield from _commits(context, row)


def is_row_ahead(rows: RealmStore, row: Reference) -> bool:
    return max(row.created, row.deleted or 0, *(move.time for move in row.moves), 0) > rows.credible_until(rows.clock.now())


def _commits(context: FsckContext, row: Reference) -> Iterator[FsckFinding]:
    if row.deleted is not None or row.pointer is None or row.pointer in context.lost:
        return
    try:
        ahead = find_ahead(context.rows, row.pointer)
    except HeadwaterError:
        return  # its head cannot be read: already reported
    if ahead is None:
        return
    commits, carry = ("1 commit", "carries") if ahead.commits == 1 else (f"{ahead.commits} commits", "carry")
    yield context.finding(
        FindingCode.COMMITS_AHEAD,
        row.name,
        f"{context.reference_words(row.name)} has {commits}, from {id_text(ahead.first.id)} on, that {carry} the time"
        f" {as_text(ahead.first.commit.time)} of a clock that was ahead; it is {as_text(context.now)} now. No state can be chosen by time,"
        " and nothing of the realm is collected",
        "set the clocks right; then `headwater fsck --repair` puts a commit with the right time on top of them",
    )


def mend_commit_time(rows: RealmStore, reference: str) -> str:
    """Put a commit with the correct time on a reference; returns what was done. This process' clock must be right."""
    made = mend_time(rows, reference, properties=_properties)
    return "nothing to do: its time is right" if made is None else f"commit {id_text(made)} mends the time"


def _properties(parent: Head) -> dict[str, Any]:
    """The properties of the new commit: a commit of a branch or tag names its catalog."""
    catalog = parent.commit.properties.get("catalog")
    return {} if catalog is None else {"catalog": catalog}


def rewrite_rows(rows: RealmStore) -> str:
    """Rewrite the rows whose time lies in the future, unchanged; returns their number. This process' clock must be right."""
    references = sum(_raise(rows, key.name) for key in rows.scan_references())
    objects, credible = 0, rows.credible_until(rows.clock.now())
    for batch in rows.scan_objects():
        objects += sum(
            _rewrite(rows, object_id) for object_id in dict.fromkeys(key.id for key in batch if key.created > credible)
        )
    return f"{objects} objects and {references} references were written anew"


def _raise(rows: RealmStore, name: str) -> bool:
    for _ in range(_TRIES):
        row = rows.find_row(name)
        if row is None or not is_row_ahead(rows, row):
            return False
        try:
            rows.raise_version(row)
        except SwapConflictError:
            continue
        return True
    raise SwapConflictError(f"reference {name!r} of realm {rows.realm!r} changes too fast: try again")


def _rewrite(rows: RealmStore, object_id: ObjectId) -> bool:
    """Rewrite one object unchanged. An object that is deleted meanwhile comes back as garbage, which the next collection deletes."""
    parts = rows.raw_rows(object_id)
    if not parts or len(parts) < parts[0].parts:
        return False  # a left-over, which a collection deletes once its time has come
    rows.check_write()
    now, backend = rows.clock.now(), rows.store.backend
    if parts[0].token is None:
        backend.write_objects([msgspec.structs.replace(row, created=now) for row in parts[: parts[0].parts]])
        return True
    try:
        backend.update_object(msgspec.structs.replace(parts[0], created=now, token=secrets.token_hex(8)), parts[0].token)
    except SwapConflictError:
        return False  # a concurrent writer gave it a new time
    return True


KeepFile = Callable[[str, bytes], str]
"""Writes a file of that name safely, and returns where it is."""

SET_ASIDE_LISTS: dict[FindingCode, tuple[str, tuple[type[StoredObject], ...]]] = {
    FindingCode.TASK_UNREADABLE: (TASKS, (Task,)),
    FindingCode.RUN_UNREADABLE: (RUNS, (Run, ReportPiece)),
    FindingCode.REALM_UNREADABLE: (REALMS, (Realm,)),
}
"""What can be set aside: the reference that lists it, and the classes that its objects must have."""
_REPORTS = "reports"


def check_listed_objects(context: FsckContext) -> Iterator[FsckFinding]:
    """Report listed objects of the system realm that cannot be read, each with what its list says about it."""
    lists: dict[FindingCode, Callable[[], Sequence[UnreadableRow]]] = {
        FindingCode.TASK_UNREADABLE: lambda: unreadable_tasks(context.rows),
        FindingCode.RUN_UNREADABLE: lambda: [*list_runs(context.store).unreadable, *_reports(context.rows)],
        FindingCode.REALM_UNREADABLE: lambda: RealmRegistry(context.store).list_realms().unreadable,
    }
    for code, list_rows in lists.items():
        try:
            rows = list_rows()
        except HeadwaterError:
            continue  # the list itself cannot be read: reported with the heads
        for row in rows:
            context.apart.add(row.id)
            context.lost.add(row.id)
            yield _finding(context, code, row)
    yield from _check_turn(context)


def set_aside_unreadable(rows: RealmStore, code: FindingCode, target: str, keep: KeepFile) -> str:
    """Write an unreadable object and the entries that name it to a file; then remove the entries.

    The object itself stays until a collection, because earlier commits of the list still name it.

    keep          writes the file; only when it has returned is anything changed
    returns       the outcome in words
    """
    object_id = id_of(target)
    if code is FindingCode.TURN_UNREADABLE:
        return _set_turn_aside(rows, keep)
    reference, classes = SET_ASIDE_LISTS[code]
    if _can_be_read(rows, object_id, classes):
        return "nothing to do: it can be read"
    entries = _entries(rows, reference, object_id)
    if not entries:
        return "nothing to do: nothing lists it any more"
    place = keep(f"{reference}-{target}.json", _document(rows, object_id, reference, entries))

    def change(tx: Transaction) -> int:
        if _can_be_read(tx.reader, object_id, classes):
            raise RefusedError(f"object {target} of realm {rows.realm!r} can be read by now: look again")
        held = [(index, key) for index, key, _ in entries if _target(tx.index(index).get(key)) == object_id]
        return sum(tx.index(index).remove(key) for index, key in held)

    taken = commit_change(rows, reference, change, message=f"set aside what cannot be read: {target}").result
    return f"{taken} entries of {reference!r} are taken off; they and the row are kept in {place}"


def _finding(context: FsckContext, code: FindingCode, row: UnreadableRow) -> FsckFinding:
    is_intact = context.rows.is_intact(row.id)
    command = "`headwater fsck --repair --confirm ::system:: --aside FOLDER`"
    repair = (
        f"its bytes are whole: a later release wrote them, so use that one; {command} with --later sets it aside all the same"
        if is_intact
        else f"{command} keeps its row in a file and takes it off the list; or bring it back from a backup of the database"
    )
    return context.finding(code, row.realm or id_text(row.id), str(row), repair, target=id_text(row.id), is_intact=is_intact)


def _reports(rows: RealmStore) -> Iterator[UnreadableRow]:
    entries = _head_entries(rows, RUNS, _REPORTS)
    pieces = {value.object_id: key for key, value in entries if value.object_id is not None}
    for object_id, piece in zip(pieces, rows.read_each(list(pieces), ReportPiece), strict=True):
        if isinstance(piece, CorruptionError):
            task = id_text(ObjectId(int.from_bytes(pieces[object_id][:8], "big")))
            yield UnreadableRow(what="report", id=object_id, name=f"of task {task}", realm="", fault=str(piece))


def _check_turn(context: FsckContext) -> Iterator[FsckFinding]:
    try:
        context.rows.find_versioned(SCAN_LOCK_ID, ScanLock)
    except CorruptionError as fault:
        context.lost.add(SCAN_LOCK_ID)
        repair = "`headwater fsck --repair --confirm ::system:: --aside FOLDER` keeps its row in a file and deletes it"
        yield context.finding(
            FindingCode.TURN_UNREADABLE,
            id_text(SCAN_LOCK_ID),
            f"nothing is collected in any realm, because the turn at scanning cannot be read: {fault}",
            repair,
            target=id_text(SCAN_LOCK_ID),
            is_intact=context.rows.is_intact(SCAN_LOCK_ID),
        )


def _set_turn_aside(rows: RealmStore, keep: KeepFile) -> str:
    if _can_be_read(rows, SCAN_LOCK_ID, (ScanLock,)):
        return "nothing to do: it can be read"
    keys = [key for batch in rows.scan_objects() for key in batch if key.id == SCAN_LOCK_ID]
    place = keep(f"scan-turn-{id_text(SCAN_LOCK_ID)}.json", _document(rows, SCAN_LOCK_ID, "", []))
    return f"{rows.delete_unchanged(keys)} rows are deleted; they are kept in {place}"


def _can_be_read(rows: RealmReader, object_id: ObjectId, classes: Sequence[type[StoredObject]]) -> bool:
    """Whether the object exists and has one of the classes, as read from the database now."""
    [value] = rows.without_cache().read_each([object_id], StoredObject)
    return isinstance(value, tuple(classes))


def _entries(rows: RealmStore, reference: str, object_id: ObjectId) -> list[tuple[str, bytes, IndexValue]]:
    at = read_head(rows, reference, fresh=True)
    names = [] if at is None else at.names
    return [
        (name, bytes(key), value)
        for name in names
        for key, value in _head_entries(rows, reference, name)
        if value.object_id == object_id
    ]


def _head_entries(rows: RealmStore, reference: str, index: str) -> list[tuple[bytes, IndexValue]]:
    try:
        at = read_head(rows, reference, fresh=True)
    except NotFoundError:
        return []
    return [] if at is None else [(bytes(key), value) for key, value in at.index(index).range()]


def _target(value: IndexValue | None) -> ObjectId | None:
    return None if value is None else value.object_id


def _document(rows: RealmStore, object_id: ObjectId, reference: str, entries: Sequence[tuple[str, bytes, IndexValue]]) -> bytes:
    """Everything known of an object, as JSON: enough to restore it by hand, or to see what it was."""
    plain = {
        "realm": rows.realm,
        "realmKey": rows.key,
        "object": id_text(object_id),
        "reference": reference,
        "setAside": as_text(rows.clock.now()),
        "rows": [
            {
                "part": row.part,
                "type": row.type,
                "created": row.created,
                "token": row.token,
                "parts": row.parts,
                "value": base64.b64encode(row.value).decode(),
            }
            for row in rows.raw_rows(object_id)
        ],
        "entries": [
            {"index": index, "key": key.hex(), "data": bytes(value.data).hex(), "text": key.decode(errors="replace")}
            for index, key, value in entries
        ],
    }
    return (json.dumps(plain, indent=2) + "\n").encode()
