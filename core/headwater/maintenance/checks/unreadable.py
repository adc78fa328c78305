"""Tasks, runs, reports and realms that are listed but cannot be read: named, and taken off the list.

They stop nothing else, but stay listed and keep the name taken.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence

from headwater.clock import as_text
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import HeadwaterError, MissingError, RefusedError, UnreadableError
from headwater.index import Value
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.sight import Sight
from headwater.maintenance.garbage.listing import RUNS
from headwater.maintenance.garbage.turns import SCAN_TURN_ID, ScanTurn
from headwater.maintenance.reports import ReportPiece
from headwater.maintenance.runs import Run, list_runs
from headwater.realms import REALMS, Realm, Realms
from headwater.store import ObjectId, RealmReader, RealmStore, StoredObject, UnreadableRow, id_of, id_text
from headwater.tasks import REFERENCE as TASKS
from headwater.tasks import Task, unreadable_tasks

__all__ = ["ASIDE", "Keep", "check_listed", "set_aside"]

Keep = Callable[[str, bytes], str]
"""Writes a file of that name, safely, and says where it is."""

ASIDE: dict[Code, tuple[str, tuple[type[StoredObject], ...]]] = {
    Code.TASK_UNREADABLE: (TASKS, (Task,)),
    Code.RUN_UNREADABLE: (RUNS, (Run, ReportPiece)),
    Code.REALM_UNREADABLE: (REALMS, (Realm,)),
}
"""What can be set aside: the reference that lists it, and what its objects should be."""
_REPORTS = "reports"


def check_listed(sight: Sight) -> Iterator[Finding]:
    """What is listed in the system realm and cannot be read, each with what its list tells of it."""
    lists: dict[Code, Callable[[], Sequence[UnreadableRow]]] = {
        Code.TASK_UNREADABLE: lambda: unreadable_tasks(sight.rows),
        Code.RUN_UNREADABLE: lambda: [*list_runs(sight.store).unreadable, *_reports(sight.rows)],
        Code.REALM_UNREADABLE: lambda: Realms(sight.store).list().unreadable,
    }
    for code, list_rows in lists.items():
        try:
            rows = list_rows()
        except HeadwaterError:
            continue  # the list itself cannot be read: told with the heads
        for row in rows:
            sight.apart.add(row.id)
            sight.lost.add(row.id)
            yield _finding(sight, code, row)
    yield from _check_turn(sight)


def set_aside(rows: RealmStore, code: Code, target: str, keep: Keep) -> str:
    """Write an object that cannot be read, and the entries that name it, to a file; then take the entries off.

    The object itself stays until a collection: earlier commits of its list still name it.

    keep          writes the file; only when it has returned is anything changed
    returns       what came of it
    """
    object_id = id_of(target)
    if code is Code.TURN_UNREADABLE:
        return _set_turn_aside(rows, keep)
    reference, classes = ASIDE[code]
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


def _finding(sight: Sight, code: Code, row: UnreadableRow) -> Finding:
    is_intact = sight.rows.is_intact(row.id)
    command = "`headwater fsck --repair --confirm ::system:: --aside FOLDER`"
    repair = (
        f"its bytes are whole: a later release wrote them, so use that one; {command} with --later sets it aside all the same"
        if is_intact
        else f"{command} keeps its row in a file and takes it off the list; or bring it back from a backup of the database"
    )
    return sight.finding(code, row.realm or id_text(row.id), str(row), repair, target=id_text(row.id), is_intact=is_intact)


def _reports(rows: RealmStore) -> Iterator[UnreadableRow]:
    found = _head_entries(rows, RUNS, _REPORTS)
    pieces = {value.object_id: key for key, value in found if value.object_id is not None}
    for object_id, piece in zip(pieces, rows.read_each(list(pieces), ReportPiece), strict=True):
        if isinstance(piece, UnreadableError):
            task = id_text(ObjectId(int.from_bytes(pieces[object_id][:8], "big")))
            yield UnreadableRow(what="report", id=object_id, name=f"of task {task}", realm="", fault=str(piece))


def _check_turn(sight: Sight) -> Iterator[Finding]:
    try:
        sight.rows.find_versioned(SCAN_TURN_ID, ScanTurn)
    except UnreadableError as fault:
        sight.lost.add(SCAN_TURN_ID)
        repair = "`headwater fsck --repair --confirm ::system:: --aside FOLDER` keeps its row in a file and deletes it"
        yield sight.finding(
            Code.TURN_UNREADABLE,
            id_text(SCAN_TURN_ID),
            f"nothing is collected in any realm, because the turn at scanning cannot be read: {fault}",
            repair,
            target=id_text(SCAN_TURN_ID),
            is_intact=sight.rows.is_intact(SCAN_TURN_ID),
        )


def _set_turn_aside(rows: RealmStore, keep: Keep) -> str:
    if _can_be_read(rows, SCAN_TURN_ID, (ScanTurn,)):
        return "nothing to do: it can be read"
    keys = [key for batch in rows.scan_objects() for key in batch if key.id == SCAN_TURN_ID]
    place = keep(f"scan-turn-{id_text(SCAN_TURN_ID)}.json", _document(rows, SCAN_TURN_ID, "", []))
    return f"{rows.delete_unchanged(keys)} rows are deleted; they are kept in {place}"


def _can_be_read(rows: RealmReader, object_id: ObjectId, classes: Sequence[type[StoredObject]]) -> bool:
    """Whether it is there and what it should be; as it is in the database now."""
    [found] = rows.without_cache().read_each([object_id], StoredObject)
    return isinstance(found, tuple(classes))


def _entries(rows: RealmStore, reference: str, object_id: ObjectId) -> list[tuple[str, bytes, Value]]:
    at = read_head(rows, reference, fresh=True)
    names = [] if at is None else at.names
    return [
        (name, bytes(key), value)
        for name in names
        for key, value in _head_entries(rows, reference, name)
        if value.object_id == object_id
    ]


def _head_entries(rows: RealmStore, reference: str, index: str) -> list[tuple[bytes, Value]]:
    try:
        at = read_head(rows, reference, fresh=True)
    except MissingError:
        return []
    return [] if at is None else [(bytes(key), value) for key, value in at.index(index).range()]


def _target(value: Value | None) -> ObjectId | None:
    return None if value is None else value.object_id


def _document(rows: RealmStore, object_id: ObjectId, reference: str, entries: Sequence[tuple[str, bytes, Value]]) -> bytes:
    """All that is known of an object, as JSON: enough to bring it back by hand, or to tell what it was."""
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
