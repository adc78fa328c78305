"""What would mend the findings, in the order in which to do it: pure, from findings to steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from headwater.maintenance.checks.findings import Code, Finding, Weight

__all__ = ["Action", "Step", "plan_repairs"]


class Action(StrEnum):
    """What a step does. All but BY_HAND and COLLECT are safe: they guess nothing, and take nothing away that can be read."""

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
    Code.TASK_UNREADABLE: "the place of the task: what it asked for can be asked for again",
    Code.RUN_UNREADABLE: "the record of one run, or a piece of its report",
    Code.REALM_UNREADABLE: "the realm's place in the list; its rows stay, under a key that no realm has",
    Code.TURN_UNREADABLE: "nothing: the next collection takes its turn anew",
}
"""What can be set aside, and what is gone then."""
_ORDER = tuple(Action)
"""First what others are read by: a reference, then what it lists; what a person must decide comes behind what needs no decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a repair.

    does          what it does, or what a person has to do
    loses         what is gone after it, or "nothing"
    because       the codes of the findings that it mends
    target        the commit that it goes back to, or the object that it sets aside; empty for other steps
    result        what came of it; empty as long as it was not done
    """

    action: Action
    realm: str
    subject: str
    does: str
    loses: str
    because: tuple[Code, ...]
    target: str = ""
    result: str = ""

    @property
    def is_safe(self) -> bool:
        """Whether ``repair`` does it."""
        return self.action not in (Action.BY_HAND, Action.COLLECT)


def plan_repairs(findings: Iterable[Finding], *, later: bool = False) -> list[Step]:
    """The steps in their order; findings that the same step mends share it.

    later         set aside also what a later release has written
    """
    steps: dict[tuple[Action, str, str], Step] = {}
    for finding in findings:
        step = _step(finding, later=later)
        key = (step.action, step.realm, step.subject)
        before = steps.get(key)
        if before is not None and step.action is Action.BY_HAND and step.does != before.does:
            key = (step.action, step.realm, f"{step.subject} {step.does}")
            before = steps.get(key)
        steps[key] = step if before is None else replace(before, because=tuple(dict.fromkeys((*before.because, *step.because))))
    return sorted(steps.values(), key=lambda step: _ORDER.index(step.action))


def _step(finding: Finding, *, later: bool) -> Step:
    realm, subject = finding.realm, finding.subject
    if finding.code in _ASIDE and finding.target and (later or not finding.is_intact):
        does = "write its row and its entries to a file in the folder of --aside, then take it off the list"
        step = _plain(Action.SET_ASIDE, finding, does, _ASIDE[finding.code])
        return replace(step, subject=finding.target, target=finding.target)
    if finding.code is Code.HEAD_UNREADABLE and finding.target:
        return Step(
            action=Action.GO_BACK,
            realm=realm,
            subject=subject,
            does=f"point it back at commit {finding.target}, the newest of its recent pointers that can be read with all that it"
            " reaches; the move is recorded",
            loses="what the commits after that one changed, which cannot be read now. Collections refuse until the readers' grace is"
            " over, so they can still come back from a backup",
            because=(finding.code,),
            target=finding.target,
        )
    if finding.code is Code.COMMITS_AHEAD:
        does = "put a commit with the time now on top of them, which changes nothing else; this machine's clock must be right"
        return _plain(
            Action.MEND_TIME, finding, does, "nothing; of the commits that lie ahead it is not known when they were made"
        )
    if finding.code is Code.TIME_AHEAD:
        does = "write the rows that lie ahead anew as they are, with the time now; this machine's clock must be right"
        return _plain(Action.REWRITE_ROWS, replace(finding, subject="rows"), does, "nothing")
    if finding.code is Code.CATALOG_INCOMPLETE and subject != "catalogs":
        does = "make what is missing of the catalog: its own references, its admin role, its default branch"
        return _plain(Action.COMPLETE_CATALOG, finding, does, "nothing")
    if finding.code in (Code.TASK_MISSING, Code.TASK_ENTRY_STALE):
        does = "take the entries of tasks that are not there off the lists, and let every other entry say what its task says"
        lost = "nothing" if finding.code is Code.TASK_ENTRY_STALE else "what the lost tasks asked for: ask for it again"
        return _plain(Action.SETTLE_TASKS, replace(finding, subject="tasks"), does, lost)
    if finding.code is Code.SWEEP_ABANDONED:
        does = "withdraw the flag of the sweep that nobody goes on with"
        return _plain(Action.WITHDRAW_FLAG, finding, does, "how far the sweep was: the next collection marks anew")
    if finding.weight is Weight.LEFTOVER and not realm.startswith("("):
        does = f"nothing, or `headwater gc run {realm}` once the graces are over: maintenance clears it away by itself"
        return _plain(Action.COLLECT, replace(finding, subject="left-overs"), does, "nothing")
    return _plain(Action.BY_HAND, finding, finding.repair, "nothing by itself")


def _plain(action: Action, finding: Finding, does: str, loses: str) -> Step:
    return Step(action=action, realm=finding.realm, subject=finding.subject, does=does, loses=loses, because=(finding.code,))
