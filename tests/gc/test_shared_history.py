"""Branches share most of their history: it is walked once, and what is kept is what each of them keeps alone."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog
from headwater.commits.commit import TAIL
from headwater.errors import RefusedError
from headwater.gc import collect_realm
from headwater.gc import mark_phase as marking
from headwater.gc.collector import open_marker
from headwater.gc.mark_phase import LiveMarker
from headwater.gc.retention import CollectionScope, open_scope
from headwater.realms import HistoryRetention, KeptHistory, RealmRegistry
from headwater.settings import Settings
from headwater.store import ObjectId, ObjectRow, RealmKey, Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, make_lake, make_realm, open_on, put


class CountingBackend(MemoryBackend):
    """Remembers how often each row was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: dict[tuple[ObjectId, int], int] = {}

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        for key in keys:
            self.reads[key] = self.reads.get(key, 0) + 1
        return super().read_objects(realm, keys)


class Forgetful(dict[ObjectId, object]):
    """No landmark is ever found again, so that each line is walked to its end."""

    def setdefault(self, key: ObjectId, default: object = None) -> object:
        return default


def marked(store: Store, *, each_alone: bool = False) -> LiveMarker:
    scope = open_scope(store, "acme")
    marker = open_marker(CollectionScope(scope.rows.without_cache(), scope.policy, scope.is_system))
    if each_alone:
        marker._landmarks = Forgetful()  # type: ignore[assignment]
    marker.mark(marker.scope.find_references())
    return marker


def grow(catalog: Catalog, clock: FakeClock, chance: random.Random, steps: range) -> None:
    """Commits on random branches, new branches from the middle of others, and branches that are moved and deleted."""
    for step in steps:
        names = [branch.name for branch in catalog.branches()]
        branch = chance.choice(names)
        put(catalog, step, branch=branch, table=chance.choice("abc"))
        clock.advance(chance.choice([1, 60, HOUR]))
        if chance.random() < 0.12:
            commits = [entry.id for entry in catalog.log(branch, limit=30)]
            with contextlib.suppress(RefusedError):  # where another line cut its history
                catalog.create_branch(f"b{step}", branch, at=chance.choice(commits))
                if chance.random() < 0.3:
                    catalog.assign_branch(chance.choice(names), chance.choice(commits))
                if chance.random() < 0.2 and branch != "main":
                    catalog.delete_branch(branch)


@pytest.mark.parametrize("seed", [*range(7), 45, 101])
def test_shared_history_is_cut_as_if_walked_line_by_line(
    seed: int, settings: Settings, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marking, "_LANDMARK", 2)
    store, chance = open_on(MemoryBackend(), settings, clock), random.Random(seed)
    make_realm(store)
    pattern = KeptHistory(pattern="lake/b?", commits=chance.choice([1, 20]))
    wanted = HistoryRetention(
        content_commits=chance.choice([3, 8]), content_age_seconds=chance.choice([0, 4 * HOUR]), references=(pattern,)
    )
    RealmRegistry(store).update_realm(RealmRegistry(store).read_realm("acme"), retention=wanted)
    catalog = make_lake(store)
    for steps in (range(60), range(60, 120)):
        grow(catalog, clock, chance, steps)
        together, alone = marked(store), marked(store, each_alone=True)
        if steps.stop == 120:
            grow(catalog, clock, chance, range(200, 230))
            for marker in (together, alone):
                marker.mark(marker.scope.find_references())

        assert together.cuts == alone.cuts
        assert list(together.marks) == list(alone.marks)
        assert list(together.content.chunks()) == list(alone.content.chunks())
        collect_realm(store, "acme")


def test_branch_costs_few_blocks_beyond_its_shared_history(settings: Settings, clock: FakeClock) -> None:
    backend = CountingBackend()
    store = open_on(backend, settings, clock)
    make_realm(store, commits=1000)
    catalog = make_lake(store)
    for version in range(300):
        put(catalog, version)
        if version % 30 == 29:
            catalog.create_branch(f"b{version}")
    reads = []
    for each_alone in (False, True):
        backend.reads.clear()
        marker = marked(store, each_alone=each_alone)
        reads.append(sum(backend.reads.get((object_id, 0), 0) for object_id in marker.marks))

    assert reads[0] < len(marker.marks) + 11 * 3 * TAIL < reads[1]


def test_unchanged_history_is_not_marked_again(settings: Settings, clock: FakeClock) -> None:
    backend = CountingBackend()
    store = open_on(backend, settings, clock)
    make_realm(store, commits=10)
    catalog = make_lake(store)
    for version in range(10):
        put(catalog, version)
    catalog.create_branch("dev")
    marker = marked(store)
    changed = put(catalog, 11, branch="dev")
    found = marker.scope.find_references()
    backend.reads.clear()
    marker.mark(found)

    assert marker.marks.is_exact(changed)
    assert sum(backend.reads.values()) < 60
    backend.reads.clear()
    marker.mark(found)
    assert backend.reads == {}
