"""fsck: what is not as it must be in a store, what would mend it, and the mending of what is safe to mend.

Reads everything, and changes something only by ``repair``. Knows what garbage, tasks and realms keep; must not know who asks.
"""

from headwater.maintenance.checks.checking import check_store
from headwater.maintenance.checks.findings import CODES, Code, Finding, Weight, is_bad

__all__ = [
    "CODES",
    "Code",
    "Finding",
    "Weight",
    "check_store",
    "is_bad",
]
