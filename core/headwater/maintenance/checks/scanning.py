"""Every object row of a realm, also of what nothing reaches: its time, its parts, its checksum, its type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from headwater.errors import HeadwaterError, UnreadableError
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.sight import Sight
from headwater.maintenance.checks.walking import read_each
from headwater.maintenance.garbage.marking import check_time
from headwater.maintenance.garbage.parts import LeftOvers
from headwater.store import ObjectId, ObjectKey, id_text

__all__ = ["check_rows"]

_READ_BYTES = 4 * 1024 * 1024
_READ_OBJECTS = 200
_SHOWN = 100
"""Findings of one kind, at most: a damaged disk has many."""


def check_rows(sight: Sight) -> Iterator[Finding]:
    """What a scan of the rows tells, and reading each object once; in constant memory."""
    left_overs, is_ahead, damaged = LeftOvers(sight.rows), False, Counter[str]()
    cutoff = sight.now - round(sight.rows.settings.writer_grace_seconds * 1_000_000)
    for batch in sight.rows.scan_objects():
        for finding in () if is_ahead else _ahead(sight, batch):
            yield finding  # the first stands for all
            is_ahead = True
        left = left_overs.among(batch, [key for key in batch if key.created <= cutoff])
        for key in sorted(left, key=lambda key: key.position):
            yield sight.finding(
                Code.PART_LEFT_OVER,
                id_text(key.id),
                f"has a part {key.part} of type {key.type!r} ({key.bytes} bytes) beyond the parts that it has now: a rewriting of it"
                " was interrupted",
                "the next collection deletes it; nobody reads it",
            )
        for key, fault in _damaged(sight, batch):
            damaged[key.type] += 1
            if damaged[key.type] <= _SHOWN:
                yield _damage(sight, key, fault)
    for kind, count in damaged.items():
        if count > _SHOWN:
            text = f"{count - _SHOWN} more objects of type {kind!r} are damaged"
            yield sight.finding(Code.OBJECT_DAMAGED, kind, text, "as above")


def _ahead(sight: Sight, batch: Sequence[ObjectKey]) -> Iterator[Finding]:
    for key in batch:
        try:
            check_time(key.created, sight.now, sight.scope, f"object {id_text(key.id)} of type {key.type!r}")
        except HeadwaterError as fault:
            yield sight.finding(Code.TIME_AHEAD, id_text(key.id), str(fault), "set the clocks right, or wait")
            return


def _damaged(sight: Sight, batch: Sequence[ObjectKey]) -> Iterator[tuple[ObjectKey, UnreadableError]]:
    """The objects of a batch that are there and cannot be read.

    One with several parts that is young may just be written; what a head reaches has been told already.
    """
    young = sight.now - round(sight.rows.settings.commit_timeout_seconds * 1_000_000)
    keys = {key.id: key for key in batch if key.part == 0 and key.id not in sight.lost}
    for ids in _bulks(list(keys.values())):
        for object_id, found in read_each(sight.rows, ids):
            key = keys[object_id]
            if isinstance(found, UnreadableError) and not (key.parts > 1 and key.created > young):
                yield key, found


def _damage(sight: Sight, key: ObjectKey, fault: UnreadableError) -> Finding:
    return sight.finding(
        Code.OBJECT_DAMAGED,
        id_text(key.id),
        f"{fault}; no head reaches it",
        "if history needs it, `headwater gc explain` tells how; otherwise a collection deletes it. Look at the disk of the database",
    )


def _bulks(keys: Sequence[ObjectKey]) -> Iterator[list[ObjectId]]:
    """Ids of objects that are read together: not too many, and not too large."""
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
