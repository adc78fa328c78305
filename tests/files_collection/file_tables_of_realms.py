"""Collections of file tables of a realm, as a worker claims them."""

from __future__ import annotations

from fake_clock import FakeClock
from headwater import Store
from headwater.files import FileTableColumn
from headwater.jobs import COLLECT_FILES, schedule_file_collections
from headwater.tasks import LeaseWatch, TaskLease, TaskQueue

__all__ = ["COLUMNS", "claim_collection"]

COLUMNS = (FileTableColumn(name="id", type="long", nullable=False),)


def claim_collection(store: Store, clock: FakeClock) -> TaskLease:
    """The task of the table, when it is due."""
    schedule_file_collections(store)
    (task,) = (task for task in TaskQueue(store).list_tasks(kind=COLLECT_FILES, realm="acme") if task.value.is_active)
    clock.advance(max((task.value.due - clock.now()) / 1_000_000, 0))
    claimed = TaskQueue(store).claim_task(task.id, "worker", LeaseWatch(clock, 60))
    assert claimed is not None
    return claimed
