"""The entries of tasks against the tasks."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.errors import HeadwaterError
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.sight import Sight
from headwater.store import id_text
from headwater.tasks import EntryFault, entry_faults

__all__ = ["check_tasks"]

_PAUSES_SECONDS = (0.1, 0.4, 1.5)
"""Between two looks. A task's object changes first and its entries in a commit just after, so one of a healthy store may be stale now."""


def check_tasks(sight: Sight) -> Iterator[Finding]:
    """Entries that name a task which is not there, or that contradict it."""
    told: set[tuple[Code, str]] = set()
    try:
        for fault in _lasting_faults(sight):
            code = Code.TASK_MISSING if fault.is_missing else Code.TASK_ENTRY_STALE
            if (code, id_text(fault.task)) in told:
                continue
            told.add((code, id_text(fault.task)))
            repair = (
                "`headwater fsck --repair` takes its entries off; what it asked for must be asked for again"
                if fault.is_missing
                else "whoever meets the task next settles it; `headwater fsck --repair` does it now"
            )
            yield sight.finding(code, id_text(fault.task), fault.text, repair)
    except HeadwaterError:
        return  # the reference cannot be read: told with the heads


def _lasting_faults(sight: Sight) -> list[EntryFault]:
    """The faults that are still there when nobody can be in the middle of settling them any more.

    Tasks that cannot be read are told with what is listed.
    """
    faults = [fault for fault in entry_faults(sight.rows) if not fault.is_unreadable]
    for pause in _PAUSES_SECONDS:
        if not faults:
            break
        sight.store.clock.sleep(pause)
        now = set(entry_faults(sight.rows))
        faults = [fault for fault in faults if fault in now]
    return faults
