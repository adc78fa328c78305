"""The safe steps of a repair. Each looks again at what it is about to change, does one thing, and does nothing the second time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import msgspec

from headwater.catalogs import Catalogs
from headwater.clock import Micros, as_text
from headwater.commits import CutPoint, newest_move, read_collection, read_commit, read_cuts
from headwater.errors import BeatenError, HeadwaterError, RefusedError
from headwater.maintenance.checks.flags import abandoned_sweep
from headwater.maintenance.checks.heads import readable_pointer
from headwater.maintenance.checks.planning import Action, Step
from headwater.maintenance.checks.times_ahead import mend_reference, rewrite_rows
from headwater.maintenance.checks.unreadable import Keep, set_aside
from headwater.maintenance.checks.walking import Walker
from headwater.maintenance.garbage.listing import Scope, scope_of
from headwater.store import ObjectId, RealmStore, Reference, Store, check_clock, id_text, is_note
from headwater.tasks import mend_entries

__all__ = ["repair"]

_TRIES = 10


def repair(store: Store, realm_id: str, steps: Sequence[Step], *, keep: Keep | None = None) -> Iterator[Step]:
    """Do the safe steps of one realm, in their order; each comes back with its result, also where it was refused.

    keep          writes what is set aside; without it nothing is
    raises        MissingError and RefusedError when the realm is not there, or in no state in which anything is mended
    """
    scope = scope_of(store, realm_id)
    for step in steps:
        if not step.is_safe or step.realm != realm_id:
            continue
        try:
            if step.action is Action.SET_ASIDE:
                yield replace(step, result=_set_aside(scope, step, keep))
            else:
                yield replace(step, result=_ACTIONS[step.action](store, scope, step))
        except HeadwaterError as fault:
            yield replace(step, result=f"not done: {fault}")


def _set_aside(scope: Scope, step: Step, keep: Keep | None) -> str:
    if keep is None:
        return "not done: say with --aside FOLDER where its row is kept"
    return set_aside(scope.rows, step.because[0], step.target, keep)


def _go_back(store: Store, scope: Scope, step: Step) -> str:
    """Point a dangling reference at the commit that the plan names.

    A collection under way cannot have lost sight of that commit: the reference is read first, then the flag; whoever publishes a
    sweep after that raises the reference's version, and beats the swap. What was cut before is refused by its time.
    """
    for _ in range(_TRIES):
        row = scope.rows.find_row(step.subject)
        if row is None or row.deleted is not None or row.pointer is None:
            return "nothing to do: it is not there any more, or points nowhere"
        if all(fault.object_id != row.pointer or fault.is_unknown for fault in Walker(scope.rows).faults_below(row.pointer)[0]):
            return "nothing to do: its head can be read"
        target = readable_pointer(scope.rows, row)
        if target is None or id_text(target) != step.target:
            raise RefusedError(f"the newest readable pointer of {step.subject!r} is another one by now: plan again")
        _check_kept(scope.rows, row, target)
        try:
            scope.rows.move_reference(row, target)
        except BeatenError:
            continue
        return f"it is at commit {step.target}; what it left, {id_text(row.pointer)}, is recorded"
    raise BeatenError(f"reference {step.subject!r} of realm {scope.rows.realm!r} changes too fast: try again")


def _check_kept(rows: RealmStore, row: Reference, target: ObjectId) -> None:
    """Pass if a collection keeps what a recent pointer leads to: nothing is swept now, and the last cut left it alone."""
    record = read_collection(rows)
    if record is None:
        return
    if record.value.sweeping:
        raise RefusedError(
            f"a collection of realm {rows.realm!r} is sweeping ({record.value.owner or 'no owner named'}): end it first"
        )
    _check_not_left(rows, row, target, record.value.reader_cutoff)
    cuts = read_cuts(rows, record.value)
    own = cuts.lines.get(row.name)
    is_own = own is not None and own.moved == newest_move(row)
    cut = CutPoint(own.time, own.oldest) if own is not None and is_own else CutPoint(cuts.latest)
    commit = read_commit(rows, target).commit
    if cut.lets_go(commit):
        raise RefusedError(
            f"commit {id_text(target)} ({as_text(commit.time)}) is older than what the last collection kept (since {as_text(cut.time)}):"
            " it may go at any time, so nothing can point to it again"
        )


def _check_not_left(rows: RealmStore, row: Reference, target: ObjectId, cutoff: Micros) -> None:
    """Pass if a recent pointer is no older than the reference's last move, or is what that left since the last collection's cut-off.

    What it pointed to before stands on a line that it is not on any more, whose times tell nothing of its own cut.
    """
    left = next((move for move in row.moves if not is_note(move)), None)
    if left is None or left.pointer not in row.recent or row.recent.index(target) < row.recent.index(left.pointer):
        return
    if target != left.pointer or left.time <= cutoff:
        raise RefusedError(
            f"reference {row.name!r} of realm {rows.realm!r} was put elsewhere at {as_text(left.time)}, and has left commit"
            f" {id_text(target)} then or before: the last collection did not keep it, so it may go at any time"
        )


def _mend_time(store: Store, scope: Scope, step: Step) -> str:
    check_clock(store)
    return mend_reference(scope.rows, step.subject)


def _rewrite_rows(store: Store, scope: Scope, step: Step) -> str:
    check_clock(store)
    return rewrite_rows(scope.rows)


def _complete_catalog(store: Store, scope: Scope, step: Step) -> str:
    catalogs = Catalogs(scope.rows)
    catalogs.complete(catalogs.read(step.subject))
    return "it is complete"


def _settle_tasks(store: Store, scope: Scope, step: Step) -> str:
    return f"entries of {mend_entries(scope.rows)} tasks were mended"


def _withdraw_flag(store: Store, scope: Scope, step: Step) -> str:
    seen = read_collection(scope.rows)
    if seen is None or not abandoned_sweep(store, scope.rows.realm, seen):
        return "nothing to do: no sweep is on that nobody owns"
    scope.rows.update(seen, msgspec.structs.replace(seen.value, sweeping=False, sweep=None))
    return f"the flag of {seen.value.owner} is withdrawn"


_ACTIONS: dict[Action, Callable[[Store, Scope, Step], str]] = {
    Action.GO_BACK: _go_back,
    Action.MEND_TIME: _mend_time,
    Action.REWRITE_ROWS: _rewrite_rows,
    Action.COMPLETE_CATALOG: _complete_catalog,
    Action.SETTLE_TASKS: _settle_tasks,
    Action.WITHDRAW_FLAG: _withdraw_flag,
}
