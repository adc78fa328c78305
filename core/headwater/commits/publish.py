"""Publishing a group of commits, and finding out what became of it when the database did not say.

A swap whose answer was lost may have happened, may be on its way still, or may never arrive. It can do something only while the
reference's version is the one that was seen. So the very same call is repeated: when it works, or has worked, the version has
passed; and then the history tells whose commit it was::

    publisher                               database
    write and swap, version 7 to 8   ->     the answer is lost
    the same again                   ->     beaten: the version has passed 7
    looks for its commit, from the head and from every recorded move back to its seq

Where the call meets ids that another process made, it can only fail again. The version is then taken from under it, so that what may
be on its way can do nothing either, and the commit starts over with other ids.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from headwater.commits.commit import Commit, descends
from headwater.commits.commit_group import CommitGroup
from headwater.errors import (
    CollisionError,
    HeadwaterError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.settings import duration_text
from headwater.store import ObjectBatch, ObjectId, RealmStore

_LATE_TRIES = 20
_log = structlog.get_logger()


def publish_group(rows: RealmStore, group: CommitGroup, *, until: float, pause: Callable[[int], None]) -> bool:
    """Whether the group became the head; found out by all means before it is said. What a beaten one wrote is deleted.

    May be called again for the same group by another thread, when one was stopped in the middle of it.

    until         the monotonic second from which on an outcome that is open is left open
    pause         waits before another try, given the number of tries
    raises        UnavailableError: certainly not, for the database is away or the group was made too long ago;
                  UnknownOutcomeError: nobody knows. Whatever else packing or writing raises: certainly not
    """
    if group.is_open:
        is_applied = _find_out(rows, group, until, pause, UnknownOutcomeError("its publisher was stopped"))
    else:
        batch = group.pack_rows(rows)
        _check_age(rows, group)  # after packing, which may take long; from here to the swap there is only the call itself
        is_applied = _write(rows, group, batch, until, pause)
    if is_applied:
        _record_late_move(rows, group)
    else:
        # Only here is it certain that the group did not and will not become the head. To delete its rows after any other outcome
        # could delete what the reference points to.
        _clean_up(rows, group)
    return is_applied


def _check_age(rows: RealmStore, group: CommitGroup) -> None:
    """Readers' grace is counted from commits' times: none may become the head long after its own."""
    if rows.clock.monotonic() - group.prepared > rows.settings.commit_timeout_seconds:
        timeout = duration_text(rows.settings.commit_timeout_seconds)
        raise UnavailableError(
            f"preparing the commit took longer than the time-out of {timeout}: change less at once, or raise HEADWATER_COMMIT_TIMEOUT"
        )


def _write(rows: RealmStore, group: CommitGroup, batch: ObjectBatch, until: float, pause: Callable[[int], None]) -> bool:
    assert group.newest_id is not None
    # Before the call, and not after it: this thread may be stopped inside, and whoever takes over must find out what became of the
    # call before anything is done again.
    group.is_open = True
    try:
        rows.write_and_advance(batch, group.seen, group.newest_id)
    except SwapConflictError:
        return False
    except UnknownOutcomeError as unclear:
        return _find_out(rows, group, until, pause, unclear)
    except HeadwaterError:
        group.is_open = False  # the backend says that it did certainly nothing
        raise
    return True


def _find_out(
    rows: RealmStore, group: CommitGroup, until: float, pause: Callable[[int], None], unclear: UnknownOutcomeError
) -> bool:
    batch, commit_id = group.pack_rows(rows), group.newest_id
    assert commit_id is not None
    tries = 0
    while True:
        try:
            rows.write_and_advance_again(batch, group.seen, commit_id)
            return True
        except SwapConflictError:
            has_passed = True
        except CollisionError as taken:
            # The same ids can only collide again. Raising the version makes the first call lose, too, wherever it still is: only then
            # may the commit start over with other ids, or it could be made twice.
            if _is_precluded(rows, group):
                group.is_open = False
                raise
            has_passed, unclear = _has_passed(rows, group), UnknownOutcomeError(str(taken))
        except HeadwaterError as fault:
            has_passed = isinstance(fault, RefusedError) and _has_passed(rows, group)  # the gate closed: only looking is left
            unclear = UnknownOutcomeError(str(fault))
        if has_passed:
            try:
                return _is_in_history(rows, group, commit_id)
            except HeadwaterError as fault:
                unclear = UnknownOutcomeError(str(fault))
        if rows.clock.monotonic() >= until:
            raise unclear
        tries += 1
        pause(tries)


def _is_precluded(rows: RealmStore, group: CommitGroup) -> bool:
    """Whether the version that the swap expects was taken from under it: then it did nothing, and never will."""
    try:
        rows.raise_version(group.seen)
    except HeadwaterError:
        return False
    return True


def _has_passed(rows: RealmStore, group: CommitGroup) -> bool:
    """Whether the reference is beyond the version that the swap expects, so that it can do nothing any more."""
    try:
        row = rows.find_row(group.seen.name)
    except HeadwaterError:
        return False
    return row is not None and row.version > group.seen.version


def _is_in_history(rows: RealmStore, group: CommitGroup, commit_id: ObjectId) -> bool:
    row = rows.find_row(group.seen.name)
    if row is None or row.created != group.seen.created:
        raise UnknownOutcomeError("the reference was removed meanwhile, and with it its record of what it pointed to")
    starts = [pointer for pointer in (row.pointer, *(move.pointer for move in row.moves)) if pointer is not None]
    cut: UnknownOutcomeError | None = None
    for start in starts:
        try:
            if descends(rows, start, commit_id, group.seq):
                return True
        except UnknownOutcomeError as fault:
            cut = fault  # another start may tell
    if cut is not None:
        raise cut
    return False


def _record_late_move(rows: RealmStore, group: CommitGroup) -> None:
    """The swap took effect long after the commits' time, from which readers' grace is counted: note when it really was.

    Whoever learns of the swap only hours later may find that commit collected, or about to be. So a note is no move: what it names
    is kept only if the last collection did not let it go, and nothing can point to it otherwise.
    """
    left = group.seen.pointer
    if left is None or rows.clock.monotonic() - group.prepared <= rows.settings.commit_timeout_seconds:
        return
    for _ in range(_LATE_TRIES):
        try:
            row = rows.find_row(group.seen.name)
            if row is not None and rows.without_cache().find_object(left, Commit) is not None:
                rows.record_move(row, left)
        except SwapConflictError:
            continue
        except HeadwaterError as fault:
            _log.warning("a late move was not recorded", reference=group.seen.name, realm=rows.realm, fault=str(fault))
        return


def _clean_up(rows: RealmStore, group: CommitGroup) -> None:
    """Delete what the lost attempt wrote. Best effort: what stays is garbage, and the collector's."""
    try:
        rows.discard(group.pack_rows(rows))
    except HeadwaterError as fault:
        _log.debug("a lost attempt's objects were left to the collector", reference=group.seen.name, fault=str(fault))
