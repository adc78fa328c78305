"""What a realm's references pointed to at a moment that has passed, told by their rows as they are now.

A row knows since when it is there, when it was deleted, and each pointer that it left other than by a commit on top, with the time:

    row           pointer D, created 9:00, moves (B, 11:00)
    history       A 9:10 - B 9:50        C 10:20 - D 11:30
    at 10:00      the pointer that was left first after it is B, whose newest commit by then is B itself
    at 11:10      none was left after it: D, whose newest commit by then is C
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.clock import Micros, as_text
from headwater.commits import End, Head, log, read_collection
from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater.store import Move, ObjectId, RealmStore, Reference, is_note

__all__ = ["Absent", "check_known", "commit_at", "head_then", "newest_readable", "readable_from"]

_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Absent:
    """The reference was not there."""


def readable_from(time: Micros, settings: Settings) -> Micros:
    """From when on no commit of ``time`` or before can appear any more, whichever process made it."""
    return Micros(time + round((settings.commit_timeout_seconds + settings.clock_bound_seconds) * _SECOND))


def newest_readable(now: Micros, settings: Settings) -> Micros:
    """The newest moment that can be read now."""
    return Micros(now - (readable_from(Micros(0), settings)))


def check_known(rows: RealmStore, time: Micros, *, now: Micros) -> None:
    """Pass if all that was at ``time`` can still be told. Ask after everything was read and pinned: a collection may have begun.

    raises        RefusedError that names the oldest moment which can be told
    """
    settings = rows.settings
    record = read_collection(rows)
    grace = max(settings.reader_grace_seconds, settings.writer_grace_seconds)
    oldest = max(now - round(grace * _SECOND), 0 if record is None else record.value.reader_cutoff)
    if time < oldest:
        raise RefusedError(
            f"realm {rows.realm!r} as of {as_text(time)} cannot be told any more: what was deleted and moved is remembered since"
            f" {as_text(oldest + _SECOND - 1)} only"
        )


def head_then(row: Reference | None, time: Micros, relisted: Micros | None = None) -> ObjectId | Absent | None:
    """What a reference pointed to at ``time`` or had on its way to it (see ``commit_at``); None for one without a commit.

    relisted      when its name was listed first after ``time``, if it was: a name is listed only while it is not alive
    """
    if row is None or row.created > time:
        return Absent()
    left = [move for move in row.moves if not is_note(move)]  # what a late commit left stands on its own line
    if row.deleted is not None:
        left.insert(0, Move(row.pointer, row.deleted))  # type: ignore[arg-type]  # None is told as None
    later = [move for move in left if move.time > time]
    if relisted is not None and not any(move.time <= relisted for move in later):
        return Absent()  # what it left last before it was listed again is what its tombstone held
    if later:
        return later[-1].pointer
    return Absent() if row.deleted is not None else row.pointer


def commit_at(
    rows: RealmStore, name: str, pointer: ObjectId, time: Micros, *, fence: Callable[[], None] = lambda: None
) -> Head | None:
    """The newest commit not after ``time`` on the line that a pointer ends; None where the line begins later.

    raises        RefusedError where history was cut before it · ExpiredError when the pointer's own commit is not there
    """
    line = log(rows, pointer)
    for found in line:
        fence()
        if found.commit.time <= time:
            return found
    if line.end is End.BEGINNING:
        return None
    raise RefusedError(
        f"reference {name!r} of realm {rows.realm!r} as of {as_text(time)} cannot be told any more: its history begins later"
    )
