"""Coordinated work: tasks that survive their process, done by one worker at a time, and never twice.

All tasks live in the system realm. This package knows no kind of work and no message broker: it keeps what was asked for, which
worker does it, and how it ended. Workers, the command line and `headwater up` use it alike.
"""

from headwater.tasks.task import AttemptEnd, FollowUpTask, Task, TaskAttempt, TaskProgress, TaskState
from headwater.tasks.task_index import REFERENCE, TaskFigures, TaskQuery
from headwater.tasks.task_index_repair import EntryFault, entry_faults, mend_entries, unreadable_tasks
from headwater.tasks.task_lease import (
    LeaseEvidence,
    LeaseExpiry,
    LeaseVerdict,
    LeaseWatch,
    TaskLease,
    TaskNotReadyError,
    TaskStoppedError,
)
from headwater.tasks.task_queue import ClaimableTask, DueWindow, SubmittedTask, TaskQueue

__all__ = [
    "REFERENCE",
    "AttemptEnd",
    "ClaimableTask",
    "DueWindow",
    "EntryFault",
    "FollowUpTask",
    "LeaseEvidence",
    "LeaseExpiry",
    "LeaseVerdict",
    "LeaseWatch",
    "SubmittedTask",
    "Task",
    "TaskAttempt",
    "TaskFigures",
    "TaskLease",
    "TaskNotReadyError",
    "TaskProgress",
    "TaskQuery",
    "TaskQueue",
    "TaskState",
    "TaskStoppedError",
    "entry_faults",
    "mend_entries",
    "unreadable_tasks",
]
