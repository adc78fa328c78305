"""Unreadable tasks, runs, reports and realms that are still listed: report them, and take them off the list.

They block nothing else, but stay listed and keep their name taken.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence

from headwater.clock import as_text
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import CorruptionError, HeadwaterError, NotFoundError, RefusedError
from headwater.fsck.fsck_codes import FindingCode, FsckFinding
from headwater.fsck.fsck_context import FsckContext
from headwater.gc.retention import RUNS
from headwater.gc.shared_scan import SCAN_LOCK_ID, ScanLock
from headwater.index import IndexValue
from headwater.jobs.run_record import ReportPiece, Run, list_runs
from headwater.realms import REALMS, Realm, RealmRegistry
from headwater.store import ObjectId, RealmReader, RealmStore, StoredObject, UnreadableRow, id_of, id_text
from headwater.tasks import REFERENCE as TASKS
from headwater.tasks import Task, unreadable_tasks

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
    found = _head_entries(rows, RUNS, _REPORTS)
    pieces = {value.object_id: key for key, value in found if value.object_id is not None}
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
    [found] = rows.without_cache().read_each([object_id], StoredObject)
    return isinstance(found, tuple(classes))


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
