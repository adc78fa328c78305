"""Purges of tables that die, or lose their task, before any of their calls to the database."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.errors import FencedError
from headwater.jobs import PURGE_TABLE, run_purge_table
from headwater.store import ObjectId, open_backend, parse_url
from headwater.tasks import LeaseExpiry, TaskLease, TaskQueue

OF_A_BATCH = {"manifests": "*-m*.avro", "manifest lists": "snap-*.avro", "metadata files": "00000-*.json"}
"""A file of the batch that was under way when an attempt died, by what it had marked."""


class Died(BaseException):
    """The process is gone."""


@dataclass
class World:
    """A purge that is due, as often as one likes."""

    folder: Path
    place: Path
    settings: Settings
    now: int
    task: ObjectId
    is_over: bool = False

    def __post_init__(self) -> None:
        shutil.copytree(self.place, self.folder / "saved")
        with closing(sqlite3.connect(self.folder / "headwater.db")) as there, closing(self._database("saved.db")) as saved:
            there.backup(saved)

    def begin(self, name: str = "again.db") -> tuple[FaultyBackend, Store, TaskLease]:
        """The first attempt, on rows and files of its own."""
        shutil.rmtree(self.place)
        shutil.copytree(self.folder / "saved", self.place)
        for file in self.folder.glob(f"{name}*"):
            file.unlink()
        shutil.copy(self.folder / "saved.db", self.folder / name)
        url = f"sqlite:///{self.folder}/{name}"
        faulty = FaultyBackend(open_backend(parse_url(url)))
        store = Store(faulty, url=url, settings=self.settings, clock=FakeClock(self.now))  # type: ignore[arg-type]
        claim = TaskQueue(store).claim_task(self.task, "first")
        assert claim is not None
        return faulty, store, claim

    def die(self) -> None:
        if not self.is_over:
            raise Died

    def files(self) -> set[Path]:
        return {file for file in self.place.rglob("*") if file.is_file()}

    def take_over(self, store: Store) -> TaskLease:
        tasks = TaskQueue(store)
        claim = tasks.claim_task(self.task, "second", LeaseExpiry(tasks.read_task(self.task).token))
        assert claim is not None
        return claim

    def _database(self, name: str) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / name)


@pytest.fixture
def world(
    shop: HeadwaterCatalog, pass_time: Callable[[], None], store: Store, clock: FakeClock, place: Path, tmp_path: Path
) -> World:
    shop.purge_table("sales.orders")
    pass_time()
    (task,) = TaskQueue(store).list_tasks(kind=PURGE_TABLE)
    return World(tmp_path, place, store.settings, clock.now(), task.id)


def attempts(world: World) -> Iterator[tuple[int, FaultyBackend, Store, TaskLease]]:
    """One more call each time, until a test says ``world.is_over``."""
    for call in itertools.count(1):
        faulty, store, claim = world.begin()
        yield call, faulty, store, claim
        with store:
            if world.is_over:
                return


@pytest.mark.long
def test_purge_that_dies_anywhere_is_ended_by_the_next_attempt(world: World) -> None:
    units = set()
    for call, faulty, store, claim in attempts(world):
        faulty.intervene("*", world.die, at=call)
        try:
            run_purge_table(store, claim)
        except Died:
            pass
        else:
            world.is_over = True
            continue
        progress = TaskQueue(store).read_task(world.task).value.progress
        units.add("" if progress is None else progress.unit)
        for file in list(world.place.rglob(OF_A_BATCH.get("" if progress is None else progress.unit, "nothing")))[:1]:
            file.unlink()
        left = len(world.files())
        outcome = run_purge_table(store, world.take_over(store))

        assert world.files() == set(), f"dead before call {call}"
        assert (outcome["deleted"], outcome["others"]) == (left, 0)
    assert units == {"", "data files", *OF_A_BATCH}


@pytest.mark.long
def test_purge_that_lost_its_task_ends_with_its_batch(world: World) -> None:
    met = 0
    for call, faulty, store, claim in attempts(world):
        seen: list[set[Path]] = []
        faulty.intervene("*", lambda: world.is_over or seen.append(world.files()) or world.take_over(store), at=call)  # type: ignore[func-returns-value]  # noqa: B023
        try:
            run_purge_table(store, claim)
        except FencedError:
            kinds = {file.name.partition("-")[0].isdigit() and file.suffix for file in seen[0] - world.files()}
            assert len(kinds) <= 1
            met += 1
        else:
            world.is_over = True
    assert met > 10
