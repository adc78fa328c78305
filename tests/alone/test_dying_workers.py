"""A worker dies before each of its calls to the database in turn, in every kind of work; the next one brings the task to its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deaths import attempt, deaths, open_on, succeed
from grounds_of_work import WORKS

from fake_clock import FakeClock
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import LeaseWatch, TaskState

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", WORKS)
def test_next_worker_ends_what_one_left_at_any_call(name: str, tmp_path: Path) -> None:
    prepared, clock, work = MemoryBackend(), FakeClock(), WORKS[name]
    task_id = work.submit(open_on(prepared, clock), clock, tmp_path)
    reset, met = keeper_of(tmp_path), 0

    def run(store: Store) -> None:
        reset()
        attempt(store, task_id, LeaseWatch(store.clock, store.settings.task_lease_seconds))

    for widow in deaths(prepared, clock.now(), run, step=3):
        task = succeed(widow.open(), widow.clock, task_id)
        assert (task.state, task.error) == (TaskState.SUCCEEDED, ""), (widow.call, widow.method)
        assert work.faults(widow.open(), widow.clock, tmp_path) == [], (widow.call, widow.method)
        met += 1
    assert met > 10


def keeper_of(folder: Path) -> Callable[[], None]:
    """Makes a folder as it is now."""
    there = {path: path.read_bytes() for path in folder.iterdir()}

    def reset() -> None:
        for path in folder.iterdir():
            path.unlink()
        for path, content in there.items():
            path.write_bytes(content)

    return reset
