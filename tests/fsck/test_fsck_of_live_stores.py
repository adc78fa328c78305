"""fsck of a store that others write to, collect and delete from meanwhile: what moved is no damage."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest
from harm import HOUR, REALM, deactivate, make_lake, make_realm, open_on, put, rows_of

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings
from headwater.catalogs import Catalogs
from headwater.fsck import FsckFinding, check_store
from headwater.gc import collect_realm
from headwater.purge.realm_purge import purge_realm
from headwater.realms import RealmRegistry, RealmState
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import LeaseWatch, TaskLease, TaskQueue

Act = Callable[[Store, FakeClock], None]


def commit_and_collect(store: Store, clock: FakeClock) -> None:
    """All that fsck saw before is superseded, and gone."""
    lake = Catalogs(rows_of(store)).open_catalog("lake")
    lake.delete_branch("main-2")
    for version in (10, 11):
        put(lake, version, "orders", "customers")
        clock.advance(HOUR)
    collect_realm(store, REALM)


def branch_and_delete(store: Store, clock: FakeClock) -> None:
    lake = Catalogs(rows_of(store)).open_catalog("lake")
    lake.create_branch("dev")
    put(lake, 12, branch="dev")
    lake.delete_branch("main-2")
    clock.advance(HOUR)
    collect_realm(store, REALM)


def purge_and_create(store: Store, clock: FakeClock) -> None:
    """The realm goes, and another one of its id comes."""
    realms = RealmRegistry(store)
    inactive = deactivate(store)
    clock.advance(HOUR)
    realms.move_realm(inactive, RealmState.PURGING)
    purge_realm(store, REALM)
    realms.remove_realm(realms.read_realm(REALM))
    make_realm(store)


def found_while(act: Act, settings: Settings, call: int) -> list[FsckFinding] | None:
    """What fsck finds when ``act`` happens before its ``call``-th call to the database; None: it makes fewer."""
    backend, clock = MemoryBackend(), FakeClock()
    other = open_on(backend, settings, clock)
    make_realm(other)
    lake = make_lake(other)
    put(lake, 1, "orders", "customers")
    lake.create_branch("main-2")
    clock.advance(HOUR)
    acted: list[bool] = []

    def meanwhile() -> None:
        acting = threading.Thread(target=lambda: (act(other, clock), acted.append(True)))
        acting.start()
        acting.join(60)

    faulty = FaultyBackend(backend)
    faulty.intervene("*", meanwhile, at=call)
    found = check_store(open_on(faulty, settings, clock))
    return found if acted else None


@pytest.mark.long
@pytest.mark.parametrize("act", [commit_and_collect, branch_and_delete, purge_and_create])
def test_work_of_others_meanwhile_is_no_damage(act: Act, settings: Settings) -> None:
    for call in itertools.count(1, 2):
        found = found_while(act, settings, call)
        if found is None:
            break
        assert [(call, one) for one in found if one.weight != "LEFTOVER"] == []
    assert call > 20


class ClockOfAnother(FakeClock):
    """While this process sleeps, another one goes on."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._act()


def test_task_that_ends_just_now_is_no_finding(settings: Settings) -> None:
    clock = ClockOfAnother(lambda: TaskQueue(store).find_claimable(watch))  # who meets a stale entry settles it
    watch = LeaseWatch(clock, 60)
    with open_on(MemoryBackend(), settings, clock) as store:
        task = TaskQueue(store).submit_task("gc", realm=REALM).id
        TaskQueue(store).claim_task(task, "worker-1")
        seen = TaskQueue(store).read_task(task)
        TaskLease(store.system, seen, settle=lambda _: None, chance=lambda: 0.5).finish_task({})

        assert check_store(store, realm="::system::") == []
