"""What a clock that was ahead has left: commits and rows whose times lie in the future; and the mending of both."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import msgspec

from headwater.clock import as_text
from headwater.commits import Head, credible_until, find_ahead, mend_time
from headwater.errors import BeatenError, HeadwaterError
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.sight import Sight
from headwater.store import ObjectId, RealmStore, Reference, id_text

__all__ = ["check_times", "is_row_ahead", "mend_reference", "rewrite_rows"]

_TRIES = 10


def check_times(sight: Sight) -> Iterator[Finding]:
    """References whose commits, or whose own row, lie further in the future than clocks may differ."""
    for row in sight.references.values():
        if is_row_ahead(sight.rows, row):
            yield sight.finding(
                Code.TIME_AHEAD,
                row.name,
                f"{sight.words(row.name)} was made, moved or deleted by a clock that was ahead: its row carries a time beyond"
                f" {as_text(sight.now)}",
                "set the clocks right; then `headwater fsck --repair` has it count from now",
            )
        yield from _commits(sight, row)


def is_row_ahead(rows: RealmStore, row: Reference) -> bool:
    return max(row.created, row.deleted or 0, *(move.time for move in row.moves), 0) > credible_until(rows)


def _commits(sight: Sight, row: Reference) -> Iterator[Finding]:
    if row.deleted is not None or row.pointer is None or row.pointer in sight.lost:
        return
    try:
        ahead = find_ahead(sight.rows, row.pointer)
    except HeadwaterError:
        return  # its head cannot be read: that has been told
    if ahead is None:
        return
    commits, carry = ("1 commit", "carries") if ahead.commits == 1 else (f"{ahead.commits} commits", "carry")
    yield sight.finding(
        Code.COMMITS_AHEAD,
        row.name,
        f"{sight.words(row.name)} has {commits}, from {id_text(ahead.first.id)} on, that {carry} the time"
        f" {as_text(ahead.first.commit.time)} of a clock that was ahead; it is {as_text(sight.now)} now. No state can be chosen by time,"
        " and nothing of the realm is collected",
        "set the clocks right; then `headwater fsck --repair` puts a commit with the right time on top of them",
    )


def mend_reference(rows: RealmStore, reference: str) -> str:
    """Put a commit with the right time on a reference; says what was done. This process' clock must be right."""
    made = mend_time(rows, reference, properties=_properties)
    return "nothing to do: its time is right" if made is None else f"commit {id_text(made)} mends the time"


def _properties(parent: Head) -> dict[str, Any]:
    """A commit of a branch or tag names its catalog."""
    catalog = parent.commit.properties.get("catalog")
    return {} if catalog is None else {"catalog": catalog}


def rewrite_rows(rows: RealmStore) -> str:
    """Write the rows that lie ahead anew, as they are; says how many. This process' clock must be right."""
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
        except BeatenError:
            continue
        return True
    raise BeatenError(f"reference {name!r} of realm {rows.realm!r} changes too fast: try again")


def _rewrite(rows: RealmStore, object_id: ObjectId) -> bool:
    """Write one object anew as it is. One that is deleted meanwhile comes back as garbage, which the next collection deletes."""
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
    except BeatenError:
        return False  # whoever was faster gave it a time of its own
    return True
