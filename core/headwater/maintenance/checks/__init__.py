"""fsck: what is not as it must be in a store, what would mend it, and the mending of what is safe to mend.

Reads everything, and changes something only by ``repair``. Knows what garbage, tasks and realms keep; must not know who asks.
"""

from headwater.maintenance.checks.checking import check_store
from headwater.maintenance.checks.findings import CODES, Code, Finding, Weight, is_bad
from headwater.maintenance.checks.planning import Action, Step, plan_repairs
from headwater.maintenance.checks.repairing import repair

__all__ = [
    "CODES",
    "Action",
    "Code",
    "Finding",
    "Step",
    "Weight",
    "check_store",
    "is_bad",
    "plan_repairs",
    "repair",
]
