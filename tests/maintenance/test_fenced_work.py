"""Work whose task was taken over in the middle of it: it ends with the step that was under way, and writes nothing more.

Each kind of work is taken over before each of its writes in turn. A step is a bulk of objects and the swap that publishes it, or one
batch of deletions; the fence refuses what comes next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lakes import HOUR, REALM, copied, make_lake, make_realm, open_on, put

from headwater.catalogs import iceberg
from headwater.clock import FakeClock
from headwater.errors import FencedError
from headwater.maintenance import run_collection, run_import, run_purge
from headwater.maintenance.work import run_export, run_load
from headwater.realms import Realms, RealmState
from headwater.settings import Settings
from headwater.store import FaultyBackend, ObjectId, Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import Claim, StoodStill, Tasks

Run = Callable[[Store, Claim], dict[str, Any]]

# An insertion is the lease of a node or an empty record, which say nothing; an update of the task is conditional by itself.
EXPORTED = "exported.archive"
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

FOUND = iceberg.Found(
    directory="s3://lake/orders",
    key=("orders",),
    metadata_location="s3://lake/orders/metadata/v1.metadata.json",
    uuid=None,
    format_version=2,
    snapshot_id=1,
    schema_id=0,
    spec_id=0,
    sort_order_id=0,
    log=(),
    rule=iceberg.Rule.HIGHEST_NUMBER,
    evidence=(),
)


@dataclass(frozen=True)
class World:
    """Rows with a task that is due, and a clock at which it may be done."""

    rows: MemoryBackend
    task: ObjectId
    now: int
    settings: Settings
    folder: Path
    run: Run

    def work(self, *, taken_over_before: int | None = None) -> tuple[list[str], BaseException | None]:
        """The calls to the database, and what the work raised; another worker takes the task over before that call."""
        (self.folder / EXPORTED).unlink(missing_ok=True)
        rows = copied(self.rows)
        faulty = FaultyBackend(rows)
        store = open_on(faulty, self.settings, FakeClock(self.now))
        other = Tasks(open_on(rows, self.settings, FakeClock(self.now)))
        claim = Tasks(store).claim(self.task, "first")
        assert claim is not None
        before = len(faulty.calls)
        if taken_over_before is not None:
            token = StoodStill(other.read(self.task).token)
            faulty.intervene("*", lambda: other.claim(self.task, "second", token), at=taken_over_before + 1)
        fault = None
        try:
            claim.finish(self.run(store, claim))
        except FencedError as fenced:
            fault = fenced
        return faulty.calls[before:], fault


Make = Callable[[Store, FakeClock, Path], tuple[ObjectId, Run]]


def _submit(store: Store, kind: str, **arguments: Any) -> ObjectId:
    realm = Realms(store).read(REALM)
    return Tasks(store).submit(kind, realm=REALM, realm_key=realm.key, arguments=arguments).id


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
    realms = Realms(store)
    inactive = realms.move(realms.read(REALM), RealmState.INACTIVE)
    clock.advance(24 * HOUR)
    realms.move(inactive, RealmState.PURGING)
    return _submit(store, "purge"), run_purge


def _import(store: Store, clock: FakeClock, folder: Path) -> tuple[ObjectId, Run]:
    make_realm(store)
    spec = {"name": "by hand", "locations": ["s3://lake/"]}
    definition = make_lake(store).definition
    task = _submit(store, "import", catalog="lake", catalogId=definition.id, spec=spec)
    return task, lambda store, claim: run_import(store, claim, survey=lambda scope, progress: [FOUND], engine="test")


def _export(store: Store, clock: FakeClock, folder: Path) -> tuple[ObjectId, Run]:
    _lake(store, clock)
    return _submit(store, "export", file=str(folder / EXPORTED)), run_export


def _load(store: Store, clock: FakeClock, folder: Path) -> tuple[ObjectId, Run]:
    task, run = _export(store, clock, folder)
    claim = Tasks(store).claim(task, "exporter")
    assert claim is not None
    claim.finish(run(store, claim))
    archive = (folder / EXPORTED).rename(folder / "loaded.archive")
    return Tasks(store).submit("load", realm="copy", arguments={"file": str(archive)}).id, run_load


@pytest.mark.parametrize("make", [_collection, _purge, _import, _export, _load])
def test_who_is_taken_over_before_a_write_ends_with_that_step(
    make: Make, settings: Settings, clock: FakeClock, tmp_path: Path
) -> None:
    rows = MemoryBackend()
    task, run = make(open_on(rows, settings, clock), clock, tmp_path)
    world = World(rows, task, clock.now(), settings, tmp_path, run)
    calls, fault = world.work()
    steps = [number for number, call in enumerate(calls) if call in WRITES]
    assert fault is None and len(steps) > 3

    for number in steps:
        after, fenced = world.work(taken_over_before=number)
        late = [call for call in after[number:] if call in WRITES]
        assert fenced is not None or number in steps[-STEP:], (
            f"{after[number]}, call {number}, was the last that anybody checked"
        )
        assert len(late) <= STEP, f"taken over before call {number}, it still did {late}"
