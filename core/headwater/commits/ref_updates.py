"""Create references, and point one at an existing commit, without bringing back what the collector is deleting.

    mover                                     collector
    reads the reference (or lists its name)   marks
    reads the flag: no sweep                  publishes "sweeping"
    checks that the target is no garbage      raises every listed reference's version  -> a mover in flight is beaten,
    swaps                                     and what it put before that is marked
                                              sweeps

While a sweep is on, only what is HEAD of a listed reference right now is a legal target: the collector saw it, or sees what it
left within the grace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from headwater.clock import Micros
from headwater.commits.commit import Commit, Head, descends, read_commit
from headwater.commits.commit_times import credible_until
from headwater.commits.cut_points import CutPoint, find_cut_point, is_note_collected
from headwater.commits.gc_record import CollectionRecord, CutLines, read_collection, read_cuts
from headwater.errors import (
    ConflictError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store import ObjectId, RealmReader, RealmStore, Reference, id_text

_TRIES = 50


def assign_reference(
    rows: RealmStore, reference: str, target: ObjectId, *, expected: ObjectId | None, among: Iterable[str]
) -> Reference:
    """Move a reference to an existing commit; what it leaves is recorded and stays readable for the grace.

    expected      where the caller saw the reference
    among         names of references in whose history the target may be, beside this one
    raises        ConflictError: it is elsewhere · ExpiredError: no such commit · RefusedError: the target is garbage already ·
                  UnavailableError: a sweep is on, and the target is no HEAD
    """
    for _ in range(_TRIES):
        # Read before the flag: a collector that says "sweeping" after our look raises this version, and the swap fails.
        seen = rows.read_reference(reference, fresh=True)
        if seen.pointer != expected:
            raise ConflictError(
                f"reference {reference!r} of realm {rows.realm!r} is at {_shown(seen.pointer)}, expected {_shown(expected)}: look again"
            )
        if seen.pointer == target:
            return seen
        check_targets(rows, {target: [reference, *among]})
        try:
            return rows.move_reference(seen, target)
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
        seen = rows.find_row(reference)
        if seen is not None and seen.deleted is None:
            raise SwapConflictError(f"reference {reference!r} of realm {rows.realm!r} is there already")
        if target is not None:
            check_targets(rows, {target: [*([] if seen is None else [reference]), *among]})
        check()
        try:
            return rows.create_reference_as_seen(reference, seen, target)  # as it was before the flag was read
        except SwapConflictError:
            continue  # alive now, or buried by the collector: look again
    raise SwapConflictError(f"reference {reference!r} of realm {rows.realm!r} changes too fast: try again")


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
    found = _read_commits(rows.without_cache(), targets)
    names = list(dict.fromkeys(name for among in targets.values() for name in among))
    there = {name: row for name, row in zip(names, rows.find_rows(names), strict=True) if row is not None}
    for target, among in targets.items():
        references = [there[name] for name in dict.fromkeys(among) if name in there]
        if not any(row.pointer == target and row.deleted is None for row in references):
            _check_history(rows, found[target], references, collection)


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
    found = {}
    for commit_id, commit in zip(wanted, rows.read_many(wanted, Commit), strict=True):
        found[commit_id] = read_commit(rows, commit_id) if commit is None else Head(commit_id, commit, rows)
    return found


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
    if cut.time and not cut.seq and target.commit.time > credible_until(rows):
        return False
    return not cut.lets_go(target.commit)


def _shown(pointer: ObjectId | None) -> str:
    return "no commit" if pointer is None else id_text(pointer)


def ensure_reference(rows: RealmStore, name: str) -> Reference:
    """Returns the reference; creates it without a commit if it is absent."""
    found = rows.find_reference(name, fresh=True)
    if found is not None:
        return found
    try:
        return rows.create_reference(name)
    except SwapConflictError:
        return rows.read_reference(name, fresh=True)


def ensure_references(rows: RealmStore, names: Sequence[str]) -> None:
    """Create those of the references that are absent, without a commit, in one go.

    raises        as ``create_references`` does; doing it again goes on from there
    """
    found = rows.find_rows(names)
    absent = [name for name, row in zip(names, found, strict=True) if row is None or row.deleted is not None]
    if absent:
        rows.create_references(absent)
