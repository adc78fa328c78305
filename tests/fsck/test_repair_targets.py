"""A repair goes back to no commit that a collection has let go, also where its row is still there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from harm import HOUR, REALM, make_lake, make_realm, open_on, put, rows_of

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import Catalog
from headwater.errors import UnavailableError
from headwater.fsck import RepairAction, RepairStep, check_store, plan_repairs, repair_realm
from headwater.gc import abandon_sweep, collect_realm
from headwater.settings import Settings
from headwater.store import ObjectId, Store
from headwater.store.backends.memory import MemoryBackend


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def store(backend: MemoryBackend, settings: Settings, clock: FakeClock) -> Store:
    return open_on(backend, settings, clock)


@pytest.fixture
def lake(store: Store) -> Catalog:
    make_realm(store)
    return make_lake(store)


@pytest.fixture
def elsewhere(lake: Catalog, clock: FakeClock) -> ObjectId:
    """A commit of dev that main was put on; the commits that main had before are later."""
    lake.create_branch("dev")
    made = put(lake, 1, branch="dev")
    for version in (1, 2, 3):
        clock.advance(HOUR)
        put(lake, version)
    lake.assign_branch("main", made)
    return made


def lose_head(store: Store, clock: FakeClock, head: ObjectId) -> Sequence[RepairStep]:
    """Lose the commit; returns what became of the steps that go back."""
    rows = rows_of(store)
    store.backend.delete_objects([key for batch in rows.scan_objects() for key in batch if key.id == head])
    store.cache.clear()
    done = repair_realm(store, REALM, plan_repairs(check_store(store, realm=REALM)))
    return [step for step in done if step.action is RepairAction.GO_BACK and step.subject.endswith("/main")]


def test_pointer_left_before_the_grace_is_not_gone_back_to(
    store: Store, backend: MemoryBackend, settings: Settings, clock: FakeClock, elsewhere: ObjectId
) -> None:
    clock.advance(10 * HOUR)
    stopped = FaultyBackend(backend)
    stopped.fail("delete_objects", at=1, fault=UnavailableError("stopped"))
    with pytest.raises(UnavailableError):
        collect_realm(open_on(stopped, settings, clock), REALM, owner="sleeper")
    abandon_sweep(rows_of(store), "sleeper")  # cancelled, and still it may wake up and delete what it has scanned
    [step] = lose_head(store, clock, elsewhere)

    assert "not done" in step.result
    assert "put elsewhere" in step.result


def test_pointer_left_since_the_last_collection_is_gone_back_to(store: Store, clock: FakeClock, elsewhere: ObjectId) -> None:
    collect_realm(store, REALM)
    [step] = lose_head(store, clock, elsewhere)

    assert "is recorded" in step.result
