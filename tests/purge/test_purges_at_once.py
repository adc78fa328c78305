"""Two clients purge one table at the same time: one of them drops it, and the task for its files stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store, open_store
from headwater.catalogs import Catalog
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.jobs import PURGE_TABLE
from headwater.tasks import TaskQueue, TaskState


@pytest.fixture
def store(clock: FakeClock) -> Iterator[Store]:
    graces = Settings(unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60)
    with open_store("memory://", settings=graces, clock=clock) as opened:
        yield opened


def purge(client: HeadwaterCatalog, name: str, done: list[bool]) -> None:
    try:
        client.purge_table(name)
    except (NoSuchTableError, CommitFailedException):
        done.append(False)
    else:
        done.append(True)


def states(store: Store, key: str) -> list[TaskState]:
    tasks = (seen.value for seen in TaskQueue(store).list_tasks(kind=PURGE_TABLE))
    return [task.state for task in tasks if task.arguments["drops"][0]["key"] == key]


def test_purge_that_was_beaten_leaves_the_task_to_the_other(
    store: Store, lake: Catalog, open_shop: Callable[..., HeadwaterCatalog], rows: pa.Table
) -> None:
    """Whichever of them asked first, and wherever the other came in between."""
    fast, faulty = open_shop(), FaultyBackend(store.backend)
    fast.create_namespace("sales")
    slow = HeadwaterCatalog.on(
        Store(faulty, url="memory://", settings=store.settings, clock=store.clock),  # type: ignore[arg-type]
        realm="acme",
        catalog="lake",
    )
    joined = 0
    for call in count(1):
        name, done = f"sales.t{call}", list[bool]()
        fast.create_table(name, rows.schema)
        faulty.intervene("*", partial(purge, fast, name, done), at=call)
        purge(slow, name, done)

        assert (fast.table_exists(name), states(store, name).count(TaskState.WAITING)) == (False, 1), f"before call {call}"
        joined += done == [True, False]
        if len(done) == 1:
            break
    assert joined > 3
