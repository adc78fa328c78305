"""fsck: find what is wrong in a store, propose repairs, do those that are safe, and explain why an object is still there.

Reads everything; only ``repair_realm`` changes anything. Lies above the jobs because it checks what they leave behind: task kinds, run
records, reports, sweeps and pins. Must not know its caller.
"""

from headwater.fsck.explanation import Explanation, explain
from headwater.fsck.fsck_findings import FindingCode, FindingWeight, FsckFinding, is_bad
from headwater.fsck.fsck_task import run_fsck
from headwater.fsck.repair import RepairAction, RepairStep, plan_repairs, repair_realm
from headwater.fsck.store_check import check_store

__all__ = [
    "Explanation",
    "FindingCode",
    "FindingWeight",
    "FsckFinding",
    "RepairAction",
    "RepairStep",
    "check_store",
    "explain",
    "is_bad",
    "plan_repairs",
    "repair_realm",
    "run_fsck",
]
