"""The content ids that marking finds are those that the kept commits hold, though not every commit's index is read."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from uuid import UUID

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog, ContentKey, Delete, content_ids
from headwater.commits import read_commit
from headwater.errors import RefusedError
from headwater.gc import collect_realm
from headwater.gc.collector import open_marker
from headwater.gc.mark_phase import LiveMarker
from headwater.gc.retention import open_scope
from headwater.settings import Settings
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, make_lake, make_realm, open_on, put

TABLES = tuple("abcdefghijkl")


def wander(catalog: Catalog, clock: FakeClock, chance: random.Random) -> None:
    """Some random commits and branches."""
    for step in range(25):
        branch = chance.choice([branch.name for branch in catalog.branches()])
        table = ContentKey.of(chance.choice(TABLES))
        if catalog.get_content(branch, table) is not None and chance.random() < 0.6:
            catalog.commit(branch, [Delete(table)])
        else:
            put(catalog, step, branch=branch, table=str(table))
        if chance.random() < 0.2:
            commits = [entry.id for entry in catalog.log(branch, limit=3)]
            with contextlib.suppress(RefusedError):  # where another line cut its history
                catalog.create_branch(f"b{len(catalog.branches())}", branch, at=chance.choice(commits))
        clock.advance(chance.choice([1, 10, HOUR]))


def marked(store: Store) -> LiveMarker:
    marker = open_marker(open_scope(store, "acme"), trace=True)
    marker.mark(marker.scope.find_references())
    return marker


def held(marker: LiveMarker) -> set[UUID]:
    """What the kept commits hold, each looked at on its own."""
    kept = [origin.commit for origin in marker.origins.values() if "/heads/" in origin.reference]
    return {content_id for commit in kept for content_id in content_ids(read_commit(marker.scope.rows, commit))}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("stripe_bytes", [16 * 1024, 150], ids=["in commits", "in stripes"])
def test_marking_finds_the_content_of_every_kept_commit(
    seed: int, stripe_bytes: int, settings: Settings, clock: FakeClock
) -> None:
    small = dataclasses.replace(settings, index_embedded_bytes=stripe_bytes, index_stripe_bytes=2 * stripe_bytes)
    store, chance = open_on(MemoryBackend(), small, clock), random.Random(seed)
    make_realm(store, commits=4)
    catalog = make_lake(store)
    for _ in range(2):
        wander(catalog, clock, chance)
        marker = marked(store)

        there = held(marker)
        assert there
        assert all(content_id in marker.content for content_id in there)
        assert len(marker.content) == len(there)
        collect_realm(store, "acme")


def test_content_that_no_kept_commit_holds_is_not_found(settings: Settings, clock: FakeClock) -> None:
    store = open_on(MemoryBackend(), settings, clock)
    make_realm(store, commits=2)
    catalog = make_lake(store)
    put(catalog, 1, table="a")
    put(catalog, 1, table="b")
    gone = catalog.get_content(None, ContentKey.of("a"))
    catalog.commit(None, [Delete(ContentKey.of("a"))])
    put(catalog, 2, table="b")
    clock.advance(HOUR)

    assert gone is not None
    assert gone.id not in marked(store).content
