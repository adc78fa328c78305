"""Work that is disturbed before each of its calls in turn: taken over, it writes nothing more; stopped, the next attempt ends it.

A step is a bulk of objects and the swap that publishes it, or one batch of deletions; the fence refuses what comes next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import FencedError
from headwater.jobs import run_collection, run_export, run_import, run_load, run_purge, run_restore
from headwater.realms import RealmRegistry, RealmState, bootstrap, hash_credentials, new_credentials
from headwater.settings import Settings
from headwater.store import ObjectId, Store, id_text
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import LeaseExpiry, TaskLease, TaskQueue, TaskState, TaskStoppedError
from lakes import FOUND, HOUR, REALM, HandmadeSurvey, copied, make_lake, make_realm, open_on, put

Run = Callable[[Store, TaskLease], dict[str, Any]]

# An insertion is the lease of a node or an empty record, which say nothing; an update of the task is conditional by itself.
EXPORTED = "exported.archive"
ROOT = hash_credentials(new_credentials())
WRITES = frozenset(
    {
        "create_reference",
        "create_references",
        "swap_reference",
        "write_and_swap",
        "remove_reference",
        "write_objects",
        "delete_objects",
        "delete_realm",
    }
)
STEP = 2
"""Writes that one step may still make: its objects, and its swap."""


@dataclass(frozen=True)
class World:
    """Rows with a task that is due, and a clock at which it may be done."""

    rows: MemoryBackend
    task: ObjectId
    now: int
    settings: Settings
    folder: Path
    run: Run

    def begin(self) -> tuple[FaultyBackend, Store, TaskLease]:
        """The first attempt, on rows of its own."""
        (self.folder / EXPORTED).unlink(missing_ok=True)
        faulty = FaultyBackend(copied(self.rows))
        store = open_on(faulty, self.settings, FakeClock(self.now))
        claim = TaskQueue(store).claim_task(self.task, "first")
        assert claim is not None
        return faulty, store, claim

    def calls(self) -> list[str]:
        """What undisturbed work asks of the database."""
        faulty, store, claim = self.begin()
        before = len(faulty.calls)
        claim.finish_task(self.run(store, claim))
        return faulty.calls[before:]


def taken_over(world: World, call: int) -> tuple[list[str], bool]:
    """What an attempt still wrote that lost its task before the call; and whether it was told so."""
    faulty, store, claim = world.begin()
    others = TaskQueue(open_on(faulty.backend, world.settings, FakeClock(world.now)))
    token, before = LeaseExpiry(others.read_task(world.task).token), len(faulty.calls)
    faulty.intervene("*", lambda: others.claim_task(world.task, "second", token), at=call + 1)
    try:
        claim.finish_task(world.run(store, claim))
    except FencedError:
        return _but_taken_back([late for late in faulty.calls[before + call :] if late in WRITES]), True
    return [], False


def _but_taken_back(writes: list[str]) -> list[str]:
    """Without the removals of references that were made by the step under way, which is a step taken back."""
    return [write for write in writes if "create_references" not in writes or write != "remove_reference"]


def stopped(world: World, call: int) -> TaskState:
    """How a task ends whose first attempt is asked to stop before the call, and whose second one goes on."""
    faulty, store, claim = world.begin()
    faulty.intervene("*", lambda: claim.request_stop("the worker stops"), at=call + 1)
    try:
        claim.finish_task(world.run(store, claim))
    except TaskStoppedError:
        claim.end_stopped()
        second = TaskQueue(store).claim_task(world.task, "second")
        assert second is not None and second.task.failures == 0
        second.finish_task(world.run(store, second))
    return TaskQueue(store).read_task(world.task).value.state


Make = Callable[[Store, FakeClock, Path], tuple[ObjectId, Run]]


def _submit(store: Store, kind: str, **arguments: Any) -> ObjectId:
    realm = RealmRegistry(store).read_realm(REALM)
    return TaskQueue(store).submit_task(kind, realm=REALM, realm_key=realm.key, arguments=arguments).id


def _lake(store: Store, clock: FakeClock) -> None:
    make_realm(store)
    catalog = make_lake(store)
    for version in (1, 2, 3):
        put(catalog, version)
        clock.advance(HOUR)


def _collection(store: Store, clock: FakeClock, folder: Path) -> tuple[ObjectId, Run]:
    _lake(store, clock)
    clock.advance(24 * HOUR)
    return _submit(store, "gc"), run_collection


def _purge(store: Store, clock: FakeClock, folder: Path) -> tuple[ObjectId, Run]:
    _lake(store, clock)
    realms = RealmRegistry(store)
    inactive = realms.move_realm(realms.read_realm(REALM), RealmState.INACTIVE)
    clock.advance(24 * HOUR)
    realms.move_realm(inactive, RealmState.PURGING)
    return _submit(store, "purge"), run_purge


def _import(store: Store, clock: FakeClock, folder: Path) -> tuple[ObjectId, Run]:
    make_realm(store)
    spec = {"name": "by hand", "locations": ["s3://lake/"]}
    definition = make_lake(store).definition
    task = _submit(store, "import", catalog="lake", catalogId=definition.id, spec=spec)
    return task, lambda store, claim: run_import(store, claim, survey=HandmadeSurvey(lambda scope, progress: [FOUND]))


def _export(store: Store, clock: FakeClock, folder: Path) -> tuple[ObjectId, Run]:
    realms = RealmRegistry(store)
    realms.create_realm(REALM)
    bootstrap(realms, REALM, ROOT)  # only what was filled is exported
    put(make_lake(store), 1)
    clock.advance(24 * HOUR)
    return _submit(store, "export", file=str(folder / EXPORTED)), run_export


def _load(store: Store, clock: FakeClock, folder: Path) -> tuple[ObjectId, Run]:
    task, run = _export(store, clock, folder)
    claim = TaskQueue(store).claim_task(task, "exporter")
    assert claim is not None
    claim.finish_task(run(store, claim))
    archive = (folder / EXPORTED).rename(folder / "loaded.archive")
    return TaskQueue(store).submit_task("load", realm="copy", arguments={"file": str(archive)}).id, run_load


def _restore(store: Store, clock: FakeClock, folder: Path) -> tuple[ObjectId, Run]:
    make_realm(store, commits=10)
    catalog = make_lake(store)
    commits = [put(catalog, version) for version in (1, 2, 3)]
    clock.advance(HOUR)
    return _submit(store, "restore", reference="lake/main", commit=id_text(commits[0])), run_restore


MAKES = {"gc": _collection, "purge": _purge, "import": _import, "export": _export, "load": _load, "restore": _restore}


@pytest.fixture(params=MAKES)
def world(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock, tmp_path: Path) -> World:
    make: Make = MAKES[request.param]
    rows = MemoryBackend()
    task, run = make(open_on(rows, settings, clock), clock, tmp_path)
    return World(rows, task, clock.now(), settings, tmp_path, run)


def test_work_taken_over_before_a_write_ends_with_that_step(world: World) -> None:
    writes = [number for number, call in enumerate(world.calls()) if call in WRITES]
    assert len(writes) > 3

    for number in writes:
        late, is_told = taken_over(world, number)
        assert is_told or number in writes[-STEP:], f"call {number} was the last, and nobody checked it"
        assert len(late) <= STEP, f"taken over before call {number}, it still did {late}"


def test_work_that_is_stopped_anywhere_is_ended_by_the_next(world: World) -> None:
    for call in range(0, len(world.calls()), 3):
        assert stopped(world, call) is TaskState.SUCCEEDED, call
