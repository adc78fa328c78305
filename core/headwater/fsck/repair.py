"""Repairs: the steps that would repair the findings, in their order, and the execution of those that are safe.

The plan is a pure function from findings to steps. Each step reads again what it is about to change, does one thing, and is
idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from headwater.catalogs import CATALOGS, Catalogs
from headwater.clock import Micros, as_text
from headwater.commits import CutPoint, newest_move, read_collection, read_commit, read_cuts
from headwater.errors import HeadwaterError, RefusedError, SwapConflictError
from headwater.fsck.fsck_findings import FindingCode, FindingWeight, FsckFinding
from headwater.fsck.object_walk import FaultWalker
from headwater.fsck.reference_checks import readable_pointer
from headwater.fsck.row_checks import KeepFile, mend_commit_time, rewrite_rows, set_aside_unreadable
from headwater.fsck.store_check import abandoned_sweep
from headwater.gc.retention import CollectionScope, open_scope
from headwater.store import ObjectId, RealmStore, Reference, Store, check_clock, id_text, is_note
from headwater.store.store_identity import check_may_maintain
from headwater.tasks import mend_entries


class RepairAction(StrEnum):
    """What a step does. All but BY_HAND and COLLECT are safe: they guess nothing, and remove nothing that can be read."""

    GO_BACK = "GO_BACK"
    MEND_TIME = "MEND_TIME"
    REWRITE_ROWS = "REWRITE_ROWS"
    COMPLETE_CATALOG = "COMPLETE_CATALOG"
    SET_ASIDE = "SET_ASIDE"
    SETTLE_TASKS = "SETTLE_TASKS"
    WITHDRAW_FLAG = "WITHDRAW_FLAG"
    BY_HAND = "BY_HAND"
    COLLECT = "COLLECT"


_ASIDE = {
    FindingCode.TASK_UNREADABLE: "the place of the task: what it asked for can be asked for again",
    FindingCode.RUN_UNREADABLE: "the record of one run, or a piece of its report",
    FindingCode.REALM_UNREADABLE: "the realm's place in the list; its rows stay, under a key that no realm has",
    FindingCode.TURN_UNREADABLE: "nothing: the next collection takes its turn anew",
}
"""The codes of findings that can be set aside, and what is lost by it."""
_SETTLES = "take the entries of tasks that are not there off the lists, and let every other entry say what its task says"
_REPAIRS = {
    FindingCode.COMMITS_AHEAD: (
        RepairAction.MEND_TIME,
        "put a commit with the time now on top of them, which changes nothing else; this machine's clock must be right",
        "nothing; of the commits that lie ahead it is not known when they were made",
    ),
    FindingCode.TIME_AHEAD: (
        RepairAction.REWRITE_ROWS,
        "write the rows that lie ahead anew as they are, with the time now; this machine's clock must be right",
        "nothing",
    ),
    FindingCode.CATALOG_INCOMPLETE: (
        RepairAction.COMPLETE_CATALOG,
        "make what is missing of the catalog: its own references, its admin role, its default branch",
        "nothing",
    ),
    FindingCode.TASK_MISSING: (RepairAction.SETTLE_TASKS, _SETTLES, "what the lost tasks asked for: ask for it again"),
    FindingCode.TASK_ENTRY_STALE: (RepairAction.SETTLE_TASKS, _SETTLES, "nothing"),
    FindingCode.SWEEP_ABANDONED: (
        RepairAction.WITHDRAW_FLAG,
        "withdraw the flag of the sweep that nobody goes on with",
        "how far the sweep was: the next collection marks anew",
    ),
}
"""By code what repairs a finding, in words, and what is lost by it."""
_SUBJECTS = {RepairAction.REWRITE_ROWS: "rows", RepairAction.SETTLE_TASKS: "tasks", RepairAction.COLLECT: "left-overs"}
"""The subject of steps that do all of their kind in a realm at once."""
_ORDER = tuple(RepairAction)
"""The order of the steps: a reference comes before what it lists; a person's decisions come last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairStep:
    """One step of a repair.

    does          what it does, or what a person has to do
    loses         what is gone after it, or "nothing"
    because       the codes of the findings that it repairs
    target        the commit that it goes back to, or the object that it sets aside; empty for all other steps
    result        the outcome; empty until it was done
    """

    action: RepairAction
    realm: str
    subject: str
    does: str
    loses: str
    because: tuple[FindingCode, ...]
    target: str = ""
    result: str = ""

    @property
    def is_safe(self) -> bool:
        """Whether ``repair_realm`` does it."""
        return self.action not in (RepairAction.BY_HAND, RepairAction.COLLECT)


def plan_repairs(findings: Iterable[FsckFinding], *, later: bool = False) -> list[RepairStep]:
    """The steps in their order; findings that the same step repairs share it.

    later         also set aside objects that a later release has written
    """
    steps: dict[tuple[RepairAction, str, str], RepairStep] = {}
    for finding in findings:
        step = _step(finding, later=later)
        key = (step.action, step.realm, step.subject)
        before = steps.get(key)
        if before is not None and step.action is RepairAction.BY_HAND and step.does != before.does:
            key = (step.action, step.realm, f"{step.subject} {step.does}")
            before = steps.get(key)
        steps[key] = step if before is None else replace(before, because=tuple(dict.fromkeys((*before.because, *step.because))))
    return sorted(steps.values(), key=lambda step: _ORDER.index(step.action))


def _step(finding: FsckFinding, *, later: bool) -> RepairStep:
    code, realm, target = finding.code, finding.realm, finding.target
    if code in _ASIDE and target and (later or not finding.is_intact):
        does = "write its row and its entries to a file in the folder of --aside, then take it off the list"
        return replace(_plain(RepairAction.SET_ASIDE, finding, does, _ASIDE[code]), subject=target, target=target)
    if code is FindingCode.HEAD_UNREADABLE and target:
        does = (
            f"point it back at commit {target}, the newest of its recent pointers that can be read with all that it reaches; the move"
            " is recorded"
        )
        loses = (
            "what the commits after that one changed, which cannot be read now. Collections refuse until the readers' grace is over,"
            " so they can still come back from a backup"
        )
        return replace(_plain(RepairAction.GO_BACK, finding, does, loses), target=target)
    if code in _REPAIRS and (code is not FindingCode.CATALOG_INCOMPLETE or finding.subject != CATALOGS):
        action, does, loses = _REPAIRS[code]
        return _plain(action, finding, does, loses)
    if finding.weight is FindingWeight.LEFTOVER and not realm.startswith("("):
        does = f"nothing, or `headwater gc run {realm}` once the graces are over: maintenance clears it away by itself"
        return _plain(RepairAction.COLLECT, finding, does, "nothing")
    return _plain(RepairAction.BY_HAND, finding, finding.repair, "nothing by itself")


def _plain(action: RepairAction, finding: FsckFinding, does: str, loses: str) -> RepairStep:
    subject = _SUBJECTS.get(action, finding.subject)
    return RepairStep(action=action, realm=finding.realm, subject=subject, does=does, loses=loses, because=(finding.code,))


_TRIES = 10


def repair_realm(
    store: Store, realm_id: str, steps: Sequence[RepairStep], *, keep: KeepFile | None = None
) -> Iterator[RepairStep]:
    """Do the safe steps of one realm in order. Returns each with its result, including those that were refused.

    keep          writes what is set aside; without it nothing is set aside
    raises        NotFoundError and RefusedError when the realm is not there, in a state that allows no repair, or in a store that only a
                  later release may maintain
    """
    check_may_maintain(store, "a repair")
    scope = open_scope(store, realm_id)
    for step in steps:
        if not step.is_safe or step.realm != realm_id:
            continue
        try:
            if step.action is RepairAction.SET_ASIDE:
                yield replace(step, result=_set_aside(scope, step, keep))
            else:
                yield replace(step, result=_ACTIONS[step.action](store, scope, step))
        except HeadwaterError as fault:
            yield replace(step, result=f"not done: {fault}")


def _set_aside(scope: CollectionScope, step: RepairStep, keep: KeepFile | None) -> str:
    if keep is None:
        return "not done: say with --aside FOLDER where its row is kept"
    return set_aside_unreadable(scope.rows, step.because[0], step.target, keep)


def _go_back(store: Store, scope: CollectionScope, step: RepairStep) -> str:
    """Point a dangling reference at the commit that the plan names.

    A running collection cannot delete that commit unnoticed: the reference is read before the sweep flag, and a sweep that is published
    after that raises the reference's version, so that the swap fails. What was cut earlier is refused by its time.
    """
    for _ in range(_TRIES):
        row = scope.rows.find_row(step.subject)
        if row is None or row.deleted is not None or row.pointer is None:
            return "nothing to do: it is not there any more, or points nowhere"
        if all(
            fault.object_id != row.pointer or fault.is_unknown for fault in FaultWalker(scope.rows).faults_below(row.pointer)[0]
        ):
            return "nothing to do: its head can be read"
        target = readable_pointer(scope.rows, row)
        if target is None or id_text(target) != step.target:
            raise RefusedError(f"the newest readable pointer of {step.subject!r} is another one by now: plan again")
        _check_kept(scope.rows, row, target)
        try:
            scope.rows.move_reference(row, target)
        except SwapConflictError:
            continue
        return f"it is at commit {step.target}; what it left, {id_text(row.pointer)}, is recorded"
    raise SwapConflictError(f"reference {step.subject!r} of realm {scope.rows.realm!r} changes too fast: try again")


def _check_kept(rows: RealmStore, row: Reference, target: ObjectId) -> None:
    """Pass if the target of a recent pointer is kept: no sweep is running, and the last cut did not reach it."""
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
    """Pass if a recent pointer is at least as new as the reference's last move, or was left by a move after the last collection's cut-off.

    An earlier target lies on another line of history, whose times say nothing about this reference's cut.
    """
    left = next((move for move in row.moves if not is_note(move)), None)
    if left is None or left.pointer not in row.recent or row.recent.index(target) < row.recent.index(left.pointer):
        return
    if target != left.pointer or left.time <= cutoff:
        raise RefusedError(
            f"reference {row.name!r} of realm {rows.realm!r} was put elsewhere at {as_text(left.time)}, and has left commit"
            f" {id_text(target)} then or before: the last collection did not keep it, so it may go at any time"
        )


def _mend_time(store: Store, scope: CollectionScope, step: RepairStep) -> str:
    check_clock(store)
    return mend_commit_time(scope.rows, step.subject)


def _rewrite_rows(store: Store, scope: CollectionScope, step: RepairStep) -> str:
    check_clock(store)
    return rewrite_rows(scope.rows)


def _complete_catalog(store: Store, scope: CollectionScope, step: RepairStep) -> str:
    catalogs = Catalogs(scope.rows)
    catalogs.complete_catalog(catalogs.read_catalog(step.subject))
    return "it is complete"


def _settle_tasks(store: Store, scope: CollectionScope, step: RepairStep) -> str:
    return f"entries of {mend_entries(scope.rows)} tasks were mended"


def _withdraw_flag(store: Store, scope: CollectionScope, step: RepairStep) -> str:
    record = read_collection(scope.rows)
    if record is None or not abandoned_sweep(store, scope.rows.realm, record):
        return "nothing to do: no sweep is on that nobody owns"
    scope.rows.update_object(record, msgspec.structs.replace(record.value, sweeping=False, sweep=None))
    return f"the flag of {record.value.owner} is withdrawn"


_ACTIONS: dict[RepairAction, Callable[[Store, CollectionScope, RepairStep], str]] = {
    RepairAction.GO_BACK: _go_back,
    RepairAction.MEND_TIME: _mend_time,
    RepairAction.REWRITE_ROWS: _rewrite_rows,
    RepairAction.COMPLETE_CATALOG: _complete_catalog,
    RepairAction.SETTLE_TASKS: _settle_tasks,
    RepairAction.WITHDRAW_FLAG: _withdraw_flag,
}
