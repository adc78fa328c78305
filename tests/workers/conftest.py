"""Tasks and the processes that do them."""

from __future__ import annotations

import pytest

from headwater.store import ObjectId, Store
from headwater.tasks import TaskQueue


@pytest.fixture
def tasks(store: Store) -> TaskQueue:
    return TaskQueue(store, chance=lambda: 0.5)


@pytest.fixture
def waiting(tasks: TaskQueue) -> ObjectId:
    """A task that is due."""
    return tasks.submit_task("gc", realm="acme").id
