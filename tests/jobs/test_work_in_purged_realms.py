"""Work that finds nothing any more because its realm is being purged says so, and calls nothing damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fake_clock import FakeClock
from headwater.errors import CorruptionError, RefusedError
from headwater.jobs import COLLECT
from headwater.jobs.task_runs import run_recorded
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskQueue
from lakes import make_realm


@pytest.fixture
def served(settings: Settings, clock: FakeClock) -> Store:
    store = Store(MemoryBackend(), url="memory://", settings=settings, clock=clock)
    make_realm(store)
    return store


def purging(store: Store, clock: FakeClock) -> Realm:
    realms = RealmRegistry(store)
    realm = realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    clock.advance(3600)
    return realms.move_realm(realm, RealmState.PURGING)


def broken_work(store: Store, before: Callable[[], object]) -> None:
    """A task whose work finds something unreadable, after something else has happened."""
    tasks = TaskQueue(store)
    claim = tasks.claim_task(tasks.submit_task(COLLECT, realm="acme").id, "worker")
    assert claim is not None

    def work() -> dict[str, Any]:
        before()
        raise CorruptionError("reference 'root' dangles")

    run_recorded(store, claim, work)


def test_realm_that_is_purged_meanwhile_is_not_damaged(served: Store, clock: FakeClock) -> None:
    with pytest.raises(RefusedError, match="purged meanwhile: reference 'root' dangles"):
        broken_work(served, lambda: purging(served, clock))


def test_realm_that_was_made_anew_meanwhile_is_not_damaged(served: Store, clock: FakeClock) -> None:
    def anew() -> None:
        realms = RealmRegistry(served)
        realm = realms.move_realm(purging(served, clock), RealmState.PURGED)
        while realms.open_realm_for("acme", RealmState.PURGED).delete_rows(1000):
            continue
        realms.remove_realm(realm)
        make_realm(served)

    with pytest.raises(RefusedError, match="purged meanwhile"):
        broken_work(served, anew)


def test_realm_that_stands_is_damaged(served: Store) -> None:
    with pytest.raises(CorruptionError, match="dangles"):
        broken_work(served, lambda: None)
