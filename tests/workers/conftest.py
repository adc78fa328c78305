"""Tasks and the processes that do them."""

from __future__ import annotations

import pytest

from headwater.store import ObjectId, Store
from headwater.tasks import Tasks


@pytest.fixture
def tasks(store: Store) -> Tasks:
    return Tasks(store, chance=lambda: 0.5)


@pytest.fixture
def waiting(tasks: Tasks) -> ObjectId:
    """A task that is due."""
    return tasks.submit("gc", realm="acme").id
