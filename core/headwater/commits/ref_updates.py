"""Create references, and point one at an existing commit, without bringing back what the collector is deleting.

    mover                                     collector
    reads the reference (or lists its name)   marks
    reads the flag: no sweep                  publishes "sweeping"
    checks that the target is no garbage      raises every listed reference's version  -> a mover in flight is beaten,
    swaps                                     and what it put before that is marked
                                              sweeps

While a sweep is on, only what is HEAD of a listed reference right now is a legal target: the collector saw it, or sees what it
left within the grace. At other times a commit is, as long as it lies after the cut point of a line of history: what lies before it
is garbage for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from headwater.clock import Micros
from headwater.commits.commit import Commit, Head, descends, read_commit
from headwater.commits.commit_log import read_log, sound_times
from headwater.commits.gc_record import CollectionRecord, CutLines, HistoryCut, home_of, read_collection, read_cuts
from headwater.errors import (
    ConflictError,
    ExpiredError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store import (
    ObjectId,
    RealmReader,
    RealmStore,
    Reference,
    ReferenceMove,
    id_text,
    is_note,
)

_TRIES = 50
_ASKED = 50
"""The limit of lines that are asked whether they have a commit: a reference without a cut of its own would otherwise cost all."""


def assign_reference(
    rows: RealmStore,
    reference: str,
    target: ObjectId | None,
    *,
    expected: ObjectId | None,
    among: Iterable[str],
    check: Callable[[], None] = lambda: None,
) -> Reference:
    """Move a reference to an existing commit; what it leaves is recorded and stays readable for the grace.

    target        None: to before its first commit
    expected      where the caller saw the reference
    among         names of references in whose history the target may be, beside this one
    check         called after the reference was read, and before it is swapped
    raises        ConflictError: it is elsewhere · ExpiredError: no such commit · RefusedError: the target is garbage already ·
                  UnavailableError: a sweep is on, and the target is no HEAD
    """
    for _ in range(_TRIES):
        # Read before the flag: a collector that says "sweeping" after our look raises this version, and the swap fails.
        row = rows.read_reference(reference, fresh=True)
        if row.pointer != expected:
            raise ConflictError(
                f"reference {reference!r} of realm {rows.realm!r} is at {_shown(row.pointer)}, expected {_shown(expected)}: look again"
            )
        if row.pointer == target:
            return row
        if target is not None:
            check_targets(rows, {target: [reference, *among]})
        check()
        try:
            return rows.move_reference(row, target)
        except SwapConflictError:
            continue
    raise SwapConflictError(f"reference {reference!r} of realm {rows.realm!r} changes too fast: try again")


def create_reference_at(
    rows: RealmStore,
    reference: str,
    target: ObjectId | None,
    *,
    among: Iterable[str],
    check: Callable[[], None] = lambda: None,
) -> Reference:
    """Create a reference, whose name is listed already, on an existing commit; None: without one.

    among         names of references in whose history the target may be
    check         called after the reference was read, and before it is swapped
    raises        SwapConflictError: it exists · ExpiredError, RefusedError and UnavailableError as for ``assign_reference``
    """
    for _ in range(_TRIES):
        row = rows.find_row(reference)
        if row is not None and row.deleted is None:
            raise SwapConflictError(f"reference {reference!r} of realm {rows.realm!r} is there already")
        if target is not None:
            check_targets(rows, {target: [*([] if row is None else [reference]), *among]})
        check()
        try:
            return rows.create_reference_as_seen(reference, row, target)  # as it was before the flag was read
        except SwapConflictError:
            continue  # alive now, or buried by the collector: look again
    raise SwapConflictError(f"reference {reference!r} of realm {rows.realm!r} changes too fast: try again")


def delete_moving_reference(rows: RealmStore, reference: str, fence: Callable[[], None] | None = None) -> bool:
    """Delete a reference for good, wherever it is at; False: it is gone already. ``fence`` is called before each attempt.

    raises        UnavailableError: others move it all the time
    """
    for _ in range(_TRIES):
        row = rows.find_reference(reference, fresh=True)
        if row is None:
            return False
        if fence is not None:
            fence()
        try:
            rows.delete_reference(row, is_final=True)
        except SwapConflictError:
            continue
        return True
    raise UnavailableError(f"reference {reference!r} of realm {rows.realm!r} moved {_TRIES} times while it was to be deleted")


def check_targets(rows: RealmReader, targets: Mapping[ObjectId, Sequence[str]]) -> None:
    """Pass if each commit may be pointed at now. The reference that is to be swapped must have been read before.

    targets       the commits, each with the names of references in whose kept history it may be
    raises        ExpiredError: no such commit · RefusedError: it is garbage already · UnavailableError: a sweep is on, and it is no HEAD
    """
    if not targets:
        return
    # The flag is read before the targets: a commit that is there after the flag was off cannot be one that a sweep then takes,
    # for that sweep raises the reference's version first. Both are read past the cache, which may be older than either.
    record = read_collection(rows)
    collection = None if record is None else record.value
    heads = _read_commits(rows.without_cache(), targets)
    names = list(dict.fromkeys(name for among in targets.values() for name in among))
    row_of = {name: row for name, row in zip(names, rows.find_rows(names), strict=True) if row is not None}
    for target, among in targets.items():
        references = [row_of[name] for name in dict.fromkeys(among) if name in row_of]
        if not any(row.pointer == target and row.deleted is None for row in references):
            _check_history(rows, heads[target], references, collection)


def _check_history(
    rows: RealmReader, target: Head, references: Iterable[Reference], collection: CollectionRecord | None
) -> None:
    """Pass if a commit that is no HEAD is in the kept history of one of these references."""
    if collection is not None and collection.sweeping:
        raise UnavailableError(
            f"commit {id_text(target.id)} of realm {rows.realm!r} is no branch's head, and a collection is sweeping: try again after it"
        )
    cuts = read_cuts(rows, collection)
    cutoff = Micros(0) if collection is None else collection.reader_cutoff
    if not any(_is_kept(rows, target, row, cuts, cutoff) for row in references):
        raise RefusedError(
            f"commit {id_text(target.id)} of realm {rows.realm!r} is not in the kept history of any branch:"
            " it may be collected at any time, so nothing can point to it again"
        )


def _read_commits(rows: RealmReader, targets: Iterable[ObjectId]) -> dict[ObjectId, Head]:
    wanted = list(targets)
    heads = {}
    for commit_id, commit in zip(wanted, rows.read_many(wanted, Commit), strict=True):
        heads[commit_id] = read_commit(rows, commit_id) if commit is None else Head(commit_id, commit, rows)
    return heads


def _is_kept(rows: RealmReader, target: Head, row: Reference, cuts: CutLines, cutoff: Micros) -> bool:
    cut = find_cut_point(rows, row, cuts)
    left = [move for move in row.moves if move.pointer == target.id and move.time > cutoff]
    if any(not is_note_collected(row, move, target.commit, cut, cuts) for move in left):
        return True
    if row.pointer is None or (row.deleted is not None and row.deleted <= cutoff):
        return False
    if row.pointer == target.id:
        return True
    try:
        return _is_within(rows, target, cut) and descends(rows, row.pointer, target.id, target.commit.seq)
    except UnknownOutcomeError:
        return False  # history was cut in between


def _is_within(rows: RealmReader, target: Head, cut: CutPoint) -> bool:
    """Whether a commit of a line lies after its cut. A cut that is a time alone cannot tell that of a commit by a clock that was ahead."""
    if cut.time and not cut.seq and target.commit.time > rows.credible_until(rows.clock.now()):
        return False
    return not cut.lets_go(target.commit)


def _shown(pointer: ObjectId | None) -> str:
    return "no commit" if pointer is None else id_text(pointer)


class CutPoint(NamedTuple):
    """Where a line of history was cut: at a position if that is known, otherwise at a time that is surely not too early.

    seq           of the oldest commit that was kept; 0: only the time is known
    """

    time: Micros
    seq: int = 0

    def lets_go(self, commit: Commit) -> bool:
        """Whether a commit of that line lies before the cut: it is garbage, and stays garbage."""
        return commit.seq < self.seq if self.seq else commit.time < self.time

    def explains(self, oldest: Commit) -> bool:
        """Whether what lies before a commit may be gone by this cut: it is the oldest that was kept, or older."""
        return oldest.seq <= self.seq if self.seq else oldest.time <= self.time


UNCUT = CutPoint(Micros(0))
"""The cut point of a history that no collection ever cut."""


def find_cut_point(rows: RealmReader, row: Reference, cuts: CutLines) -> CutPoint:
    """Returns the point before which the commits of a reference are garbage.

    A reference that was put elsewhere since the last cut, or made since then, stands on a line that others cut. That is found by the
    newest commit that the cuts can have seen: the line that has it has all that is below it, and was kept down to its own cut.

        main   A                       A   B   C   <- main, assigned to the head of dev
        dev    A - B - C, only C kept          both lead to A, but B is garbage: what counts is the cut of dev

    Where no such line is found, the newest of all cuts is taken: it is surely not before the right one. A reference that was put back
    on its own line still has its own cut, also with new commits on top of that.
    """
    if row.pointer is None or not cuts.lines:
        return CutPoint(cuts.latest)
    own = cuts.lines.get(row.name)
    try:
        if own is not None and newest_move(row) == own.moved and descends(rows, row.pointer, own.head, own.seq):
            return CutPoint(own.time, own.oldest)
        return _cut_of_line(rows, row.name, row.pointer, cuts)
    except (ExpiredError, UnknownOutcomeError):
        return CutPoint(cuts.latest)  # too late a cut refuses a legal target; too early a one accepts garbage


def left_line_name(name: str, pointer: ObjectId) -> str:
    """The name under which cuts have a pointer that a reference left."""
    return f"{name}@{id_text(pointer)}"


def is_note_collected(row: Reference, left: ReferenceMove, commit: Commit, cut: CutPoint, cuts: CutLines) -> bool:
    """Whether a note came so late that the last collection had let go of the commit that it names.

    commit        the one that was left
    cut           the reference's own
    """
    return is_note(left) and cut.lets_go(commit) and left_line_name(row.name, left.pointer) not in cuts.lines


def newest_move(row: Reference) -> Micros:
    """When the reference was last moved other than by a commit on top, by the mover's clock; 0 for never."""
    # The note of a late commit is no move: with it as one, all of the reference's history would count as cut by others.
    return next((move.time for move in row.moves if not is_note(move)), Micros(0))


def _cut_of_line(rows: RealmReader, name: str, pointer: ObjectId, cuts: CutLines) -> CutPoint:
    """The cut of a line that has everything that a pointer leads to, except commits later than every head that was cut."""
    line, newest = sound_times(read_log(rows, pointer)), cuts.newest_of_kin(name)
    head, time = next(((head, time) for head, time in line if time <= newest), (None, newest))
    if head is None:
        return CutPoint(cuts.latest)
    is_new = name not in cuts.lines
    known = cuts.found.get((home_of(name), head.id, time)) if is_new else None
    if known is not None:
        return CutPoint(*known)
    able = (cut for cut in cuts.nearest(name) if cut.seq >= head.commit.seq and cut.newest >= time)
    points = (CutPoint(cut.time, cut.oldest) for cut in islice(able, _ASKED) if _has(rows, cut, head))
    found = next(points, CutPoint(cuts.latest))
    if is_new:  # its own line, which comes before all others, is none of them
        cuts.found[home_of(name), head.id, time] = found
    return found


def _has(rows: RealmReader, cut: HistoryCut, head: Head) -> bool:
    try:
        return descends(rows, cut.head, head.id, head.commit.seq)
    except UnknownOutcomeError:
        return False
