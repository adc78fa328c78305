"""Checks of every row of a realm, reachable or not: its time, its parts, its checksum; and the repair of times that lie in the future.

A clock that was ahead leaves commits and rows from the future, which block both choosing a state by time and collecting garbage.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from headwater.clock import as_text
from headwater.commits import Head, credible_until, find_ahead, mend_time
from headwater.errors import CorruptionError, HeadwaterError, SwapConflictError
from headwater.fsck.fsck_codes import FindingCode, FsckFinding
from headwater.fsck.fsck_context import FsckContext
from headwater.fsck.object_walk import read_with_faults
from headwater.gc.live_set import LeftoverParts
from headwater.gc.mark_phase import check_not_ahead
from headwater.store import ObjectId, ObjectKey, RealmStore, Reference, id_text

_READ_BYTES = 4 * 1024 * 1024
_READ_OBJECTS = 200
_SHOWN = 100
"""The number of findings of one kind, at most: a damaged disk has many."""


def check_stored_rows(context: FsckContext) -> Iterator[FsckFinding]:
    """Check the rows by a scan, then read each object once; in constant memory."""
    left_overs, is_ahead, damaged = LeftoverParts(context.rows), False, Counter[str]()
    cutoff = context.now - round(context.rows.settings.writer_grace_seconds * 1_000_000)
    for batch in context.rows.scan_objects():
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
        for object_id, found in read_with_faults(context.rows, ids):
            key = keys[object_id]
            if isinstance(found, CorruptionError) and not (key.parts > 1 and key.created > young):
                yield key, found


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
    for row in context.references.values():
        if is_row_ahead(context.rows, row):
            yield context.finding(
                FindingCode.TIME_AHEAD,
                row.name,
                f"{context.reference_words(row.name)} was made, moved or deleted by a clock that was ahead: its row carries a time beyond"
                f" {as_text(context.now)}",
                "set the clocks right; then `headwater fsck --repair` has it count from now",
            )
        yield from _commits(context, row)


def is_row_ahead(rows: RealmStore, row: Reference) -> bool:
    return max(row.created, row.deleted or 0, *(move.time for move in row.moves), 0) > credible_until(rows)


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
    objects, credible = 0, credible_until(rows)
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
    found = rows.raw_rows(object_id)
    if not found or len(found) < found[0].parts:
        return False  # a left-over, which a collection deletes once its time has come
    rows.check_write()
    now, backend = rows.clock.now(), rows.store.backend
    if found[0].token is None:
        backend.write_objects([msgspec.structs.replace(row, created=now) for row in found[: found[0].parts]])
        return True
    try:
        backend.update_object(msgspec.structs.replace(found[0], created=now, token=secrets.token_hex(8)), found[0].token)
    except SwapConflictError:
        return False  # a concurrent writer gave it a new time
    return True
