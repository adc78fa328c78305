"""The job of the kind ``fsck``: check a realm, and keep in the run what was found, as far as a record has room. It changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from headwater.fsck.fsck_findings import FindingWeight, FsckFinding
from headwater.fsck.store_check import check_store
from headwater.jobs.task_runs import open_realm, run_recorded
from headwater.store import SYSTEM_REALM, Store
from headwater.tasks import TaskLease
from headwater.tasks.task import OUTCOME_BYTES

FINDINGS_KEPT: Final = 200
"""Findings that a run keeps at most; all are counted."""
_KEPT_BYTES: Final = OUTCOME_BYTES * 3 // 4
"""What they may measure as JSON: the outcome of a task is bounded, and has the counts, too."""
_TEXT_CHARACTERS: Final = 500
"""Of a text of a finding."""


def run_fsck(store: Store, claim: TaskLease) -> dict[str, Any]:
    """Check the task's realm, in whatever state it is. The outcome is the same whether anything was found or not: see ``findings_outcome``.

    raises        RefusedError where the realm was created anew; NotFoundError; what ``check_store`` raises
    """
    if claim.task.realm != SYSTEM_REALM:
        open_realm(store, claim.task)

    def check() -> dict[str, Any]:
        findings = check_store(store, realm=claim.task.realm, fence=claim.check_stop, progress=claim.report_progress)
        return findings_outcome(findings)

    return run_recorded(store, claim, check)


def findings_outcome(findings: Sequence[FsckFinding]) -> dict[str, Any]:
    """Findings as the outcome of a task: their numbers in all, by weight and by code, and the first of them, the gravest before others.

    ``isCut`` says that there are more than stand there, or that texts were cut.
    """
    gravest = sorted(findings, key=lambda finding: _WEIGHTS.index(finding.weight))
    kept = list(_fitting(gravest))
    weights = Counter(finding.weight for finding in findings)
    is_text_cut = any(len(text) > _TEXT_CHARACTERS for each in gravest[: len(kept)] for text in _texts(each))
    return {
        "findings": len(findings),
        **{weight.value.lower(): weights[weight] for weight in FindingWeight},
        "codes": dict(sorted(Counter(finding.code.value for finding in findings).items())),
        "first": kept,
        "isCut": len(kept) < len(findings) or is_text_cut,
    }


_WEIGHTS: Final = list(FindingWeight)


def _fitting(findings: Sequence[FsckFinding]) -> Iterator[dict[str, Any]]:
    left = _KEPT_BYTES
    for finding in findings[:FINDINGS_KEPT]:
        plain = _plain(finding)
        left -= len(msgspec.json.encode(plain))
        if left < 0:
            return
        yield plain


def _texts(finding: FsckFinding) -> tuple[str, ...]:
    return finding.subject, finding.message, finding.repair


def _plain(finding: FsckFinding) -> dict[str, Any]:
    subject, message, repair = (text[:_TEXT_CHARACTERS] for text in _texts(finding))
    return {
        "code": finding.code.value,
        "weight": finding.weight.value,
        "realm": finding.realm,
        "subject": subject,
        "message": message,
        "repair": repair,
        "keys": [key[:_TEXT_CHARACTERS] for key in finding.keys],
    }
