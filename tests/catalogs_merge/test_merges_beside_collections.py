"""Merges and transplants while a collection runs, and after it has cut the history that they would need."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from fake_clock import FakeClock
from headwater.catalogs import ContentKey, MergeMode, MergeOptions, MergeResult
from headwater.errors import ExpiredError
from headwater.gc import collect_realm
from headwater.settings import Settings
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, lake, make_lake, make_realm, meetings, open_on, put
from tiers import Sample

ORDERS, DRAFTS = ContentKey.of("orders"), ContentKey.of("drafts")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Contents are copied one by one: a merge of two of them writes copies ahead of its commit."""
    return replace(settings, copy_batch=1)


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def store(backend: MemoryBackend, settings: Settings, clock: FakeClock) -> Store:
    """Branch ``dev`` with a table of its own, parted from ``main`` at a commit that either keeps; ``main`` has moved on."""
    opened = open_on(backend, settings, clock)
    make_realm(opened, commits=2)
    catalog = make_lake(opened)
    put(catalog, 1)
    clock.advance(HOUR)
    put(catalog, 2)
    catalog.create_branch("dev")
    put(catalog, 1, branch="dev", table="notes")
    put(catalog, 1, branch="dev", table="drafts")
    put(catalog, 3)
    return opened


def merge_dev(store: Store) -> MergeResult:
    return lake(store).merge("dev")


def transplant_dev(store: Store) -> MergeResult:
    catalog = lake(store)
    head = catalog.branch("dev").head
    assert head is not None
    return catalog.transplant("dev", [head])


@pytest.mark.parametrize("act", [merge_dev, transplant_dev])
def test_merge_during_a_collection_stays(
    store: Store, backend: MemoryBackend, settings: Settings, clock: FakeClock, act: object, sample: Sample
) -> None:
    clock.advance(HOUR)
    calls = sample.one_in(5, itertools.count(1))
    for meeting in meetings(backend, settings, clock.now(), act, calls):  # type: ignore[arg-type]  # one of the two above
        assert isinstance(meeting.acted[0], MergeResult), f"call {meeting.call}: {meeting.acted}"
        lake(meeting.open()).delete_branch("dev")
        meeting.collect_again()

        assert meeting.faults == []
        assert set(lake(meeting.open()).get_contents("main", [ORDERS, DRAFTS])) == {ORDERS, DRAFTS}


def test_base_that_retention_has_cut_is_named_by_hand(store: Store, settings: Settings, clock: FakeClock) -> None:
    for version in (4, 5):
        put(lake(store), version)
        put(lake(store), version, branch="dev", table="drafts")
    clock.advance(HOUR)
    collect_realm(store, "acme")
    catalog = lake(store)

    with pytest.raises(ExpiredError, match="was collected: name the base of the merge yourself"):
        catalog.merge("dev")
    oldest = list(catalog.log("dev"))[-1].id
    done = catalog.merge("dev", options=MergeOptions(base=oldest, mode=MergeMode.FORCE))
    assert [str(one.key) for one in done.merged_keys] == ["drafts"]


def test_commit_whose_parent_was_collected_is_not_transplanted(store: Store, clock: FakeClock) -> None:
    for version in (4, 5):
        put(lake(store), version, branch="dev", table="drafts")
    clock.advance(HOUR)
    collect_realm(store, "acme")
    oldest = list(lake(store).log("dev"))[-1].id

    with pytest.raises(ExpiredError, match="the commit before it was collected"):
        lake(store).transplant("dev", [oldest])
