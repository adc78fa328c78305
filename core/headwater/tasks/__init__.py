"""Coordinated work: tasks that survive their process, done by one worker at a time, and never twice.

All tasks live in the system realm. This room knows no kind of work, no message broker and no other room beside it: it keeps
what was asked, who does it, and how it ended. Workers, the command line and `headwater up` use it alike.
"""

from headwater.tasks.asking import Asked
from headwater.tasks.auditing import EntryFault, entry_faults, mend_entries, unreadable_tasks
from headwater.tasks.claims import Claim, NotYetError, StoppedError, Verdict
from headwater.tasks.entries import REFERENCE
from headwater.tasks.figures import TaskFigures
from headwater.tasks.leases import Evidence, LeaseWatch, StoodStill
from headwater.tasks.queue import Claimable, Submitted, Tasks
from headwater.tasks.task import Attempt, AttemptEnd, FollowUp, Progress, Task, TaskState

__all__ = [
    "REFERENCE",
    "Asked",
    "Attempt",
    "AttemptEnd",
    "Claim",
    "Claimable",
    "EntryFault",
    "Evidence",
    "FollowUp",
    "LeaseWatch",
    "NotYetError",
    "Progress",
    "StoodStill",
    "StoppedError",
    "Submitted",
    "Task",
    "TaskFigures",
    "TaskState",
    "Tasks",
    "Verdict",
    "entry_faults",
    "mend_entries",
    "unreadable_tasks",
]
